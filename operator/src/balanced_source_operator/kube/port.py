"""The port to the API server: manifests in, manifests out."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from balanced_source.errors import BalancedSourceError
from balanced_source_operator.resources.kinds import Kind

Manifest: TypeAlias = Mapping[str, Any]


class KubernetesError(BalancedSourceError):
    """The API server refused, or did not answer."""


class ConflictError(KubernetesError):
    """The object was changed, or made, by somebody else meanwhile (409)."""


class RefusedError(KubernetesError):
    """The API server answered, and refused: quota, admission, rights, or an invalid object.

    Attributes:
        status: HTTP status code of the answer.
    """

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class UnknownKindError(KubernetesError):
    """The API server does not know this kind: its CRD is not installed."""


class KubernetesApi(Protocol):
    """What the operator needs of an API server. All methods raise `KubernetesError`."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        """The object; None if there is none.

        Raises:
            UnknownKindError: there is no such kind at all.
        """
        ...

    async def list(self, kind: Kind, namespace: str, *, selector: str) -> list[Manifest]:
        """Objects with matching labels.

        Raises:
            UnknownKindError: there is no such kind at all.
        """
        ...

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Make an object.

        Raises:
            ConflictError: there is one with that name.
        """
        ...

    async def replace(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Replace an object whose ``metadata.resourceVersion`` is that of the manifest.

        Raises:
            ConflictError: it has changed since, or is gone.
        """
        ...

    async def apply(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Make the object's fields what the manifest says (server-side apply); other fields stay."""
        ...

    async def patch_status(self, kind: Kind, namespace: str, name: str, status: Manifest) -> Manifest | None:
        """Merge into the status and return the object; None if it is gone."""
        ...

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        """Delete this very object with what it owns. One that is gone is no error."""
        ...
