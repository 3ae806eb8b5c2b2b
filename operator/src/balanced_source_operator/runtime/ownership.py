"""The operator changes and deletes only objects that carry its source's uid."""

from typing import TypeVar

from balanced_source.api import Problem
from balanced_source.reasons import Reason
from balanced_source_operator.kube.port import (
    ConflictError,
    KubernetesApi,
    KubernetesError,
    Manifest,
)
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import FORMER_UID_ANNOTATION, UID_LABEL, ResourceKind
from balanced_source_operator.runtime.observed import Observed

ManifestT = TypeVar("ManifestT", bound=Manifest)


class ForeignObjectError(KubernetesError):
    """An object has a name that the operator needs, and does not belong to the source.

    Attributes:
        scope: kind and name of the object.
        is_passing: whether the garbage collector is about to delete it.
    """

    def __init__(self, message: str, *, scope: str, is_passing: bool) -> None:
        super().__init__(message)
        self.scope = scope
        self.is_passing = is_passing


def checked(source: Identity, kind: ResourceKind, manifest: ManifestT) -> ManifestT:
    """Return an object that belongs to the source.

    Raises:
        ForeignObjectError: it does not; its message says what to do.
    """
    if source.owns(manifest):
        return manifest
    name = manifest["metadata"]["name"]
    what = f"{kind.kind} {name}"
    other = source.namesake_uid(manifest)
    if other:
        message = (
            f"{what} belongs to a former BalancedSource {source.name} with the uid {other}. Delete"
            f" {what}, or, if it was restored from a backup, set the annotation"
            f" {FORMER_UID_ANNOTATION}: {other} on the BalancedSource"
        )
    else:
        message = (
            f"{what} exists and does not belong to BalancedSource {source.name}: neither an owner"
            f" reference nor the label {UID_LABEL} has the uid {source.uid}. Delete or rename"
            f" {what}, or rename the BalancedSource; the operator does not touch it and retries"
            " automatically"
        )
    is_passing = bool(other and manifest["metadata"].get("ownerReferences"))
    raise ForeignObjectError(message, scope=f"{kind.kind}/{name}", is_passing=is_passing)


async def create_or_adopt(
    api: KubernetesApi, observed: Observed, kind: ResourceKind, manifest: Manifest
) -> bool:
    """Create an object; one that exists is adopted if it is ours.

    Returns whether it was created.
    """
    name, namespace, is_new = manifest["metadata"]["name"], observed.identity.namespace, True
    try:
        there = await api.create(kind, manifest)
    except ConflictError:
        # The watch may be late, and the operator before this one may have created it just now.
        found, is_new = await api.get(kind, namespace, name), False
        if found is None:
            # Deleted between the two requests: the next turn creates it.
            raise
        there = checked(observed.identity, kind, found)
    observed.note(kind, "ADDED", there)
    return is_new


def binding(source: Identity, kind: ResourceKind, name: str) -> Manifest:
    """Return what restores labels and owner reference by server-side apply, and nothing else."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": source.metadata(name)}


def unbound_problem(application: Manifest) -> Problem:
    """Return the problem of a SparkApplication that Kubernetes does not delete with its source."""
    name = application["metadata"]["name"]
    message = (
        f"SparkApplication {name} has lost its owner reference, so Kubernetes does not delete it"
        " with its source. The operator never writes to a SparkApplication: restore"
        f" metadata.ownerReferences, or delete {name} and the operator creates a new one"
    )
    return Problem(reason=Reason.OWNER_REFERENCE_MISSING, message=message)
