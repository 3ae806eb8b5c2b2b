"""The port to the API server: manifests in, manifests out."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from balanced_source.errors import BalancedSourceError, InvalidSpecError, StateError
from balanced_source.names import checked_object
from balanced_source_operator.resources.kinds import ResourceKind

Manifest: TypeAlias = Mapping[str, Any]


class KubernetesError(BalancedSourceError):
    """The API server refused, or did not answer."""


class ConflictError(KubernetesError):
    """The object was changed, or made, by someone else meanwhile (409)."""


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


class InvalidNameError(KubernetesError):
    """No object can have that name.

    It was not asked for: the name may be meant to reach another object.
    """


def object_path(kind: ResourceKind, namespace: str, name: str, subresource: str = "") -> str:
    """Returns the path of an object in the API.

    Raises:
        InvalidNameError: namespace or name is not one that Kubernetes accepts. An empty one would
            be the collection.
    """
    try:
        return kind.path(
            namespace, checked_object(name, field=f"name of a {kind.kind}"), subresource
        )
    except InvalidSpecError as error:
        raise InvalidNameError(str(error)) from error


def collection_path(kind: ResourceKind, namespace: str) -> str:
    """Returns the path of all objects of a kind in a namespace.

    Raises:
        InvalidNameError: the namespace is not one that Kubernetes accepts.
    """
    try:
        return kind.path(namespace)
    except InvalidSpecError as error:
        raise InvalidNameError(str(error)) from error


class KubernetesApi(Protocol):
    """What the operator needs of an API server. All methods raise `KubernetesError`.

    A name that is not valid raises `InvalidNameError` before anything is sent.
    """

    async def get(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        """The object; None if there is none.

        Raises:
            UnknownKindError: there is no such kind at all.
        """
        ...

    async def list(self, kind: ResourceKind, namespace: str, *, selector: str) -> list[Manifest]:
        """Objects with matching labels.

        Raises:
            UnknownKindError: there is no such kind at all.
        """
        ...

    async def create(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        """Make an object.

        Raises:
            ConflictError: there is one with that name.
        """
        ...

    async def objection(self, kind: ResourceKind, manifest: Manifest) -> str | None:
        """Returns what the API server says against an object, which is not created.

        None if it would be accepted.

        Raises:
            RefusedError: the operator may not create objects of that kind (403), or another
                refusal.
        """
        ...

    async def replace(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        """Replace an object whose ``metadata.resourceVersion`` is that of the manifest.

        Raises:
            ConflictError: it has changed since, or is gone.
        """
        ...

    async def apply(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        """Make the object's fields what the manifest says (server-side apply).

        Other fields stay.
        """
        ...

    async def patch_status(
        self, kind: ResourceKind, namespace: str, name: str, status: Manifest
    ) -> Manifest | None:
        """Merge into the status and return the object; None if it is gone."""
        ...

    async def scale(
        self, kind: ResourceKind, namespace: str, name: str, *, before: int, after: int
    ) -> None:
        """Change the number of replicas by the scale subresource.

        Raises:
            ConflictError: it is not `before` any more.
        """
        ...

    async def delete(self, kind: ResourceKind, namespace: str, name: str, *, uid: str) -> None:
        """Delete this very object with what it owns. One that is gone is no error."""
        ...


async def named(api: KubernetesApi, kind: ResourceKind, namespace: str, name: str) -> Manifest:
    """Return the object that a user has named.

    Raises:
        StateError: there is none.
        KubernetesError: as `KubernetesApi.get`.
    """
    found = await api.get(kind, namespace, name)
    if found is None:
        raise StateError(f"there is no {kind.kind} {name!r} in namespace {namespace!r}")
    return found
