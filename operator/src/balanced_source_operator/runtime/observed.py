"""What was last seen of a source and its children.

Fed by watches, refreshed by lists now and then.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from balanced_source_operator.kube.informer import slim
from balanced_source_operator.kube.port import (
    KubernetesApi,
    Manifest,
    RefusedError,
    UnknownKindError,
)
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, CHILDREN, POD, ResourceKind
from balanced_source_operator.resources.providers import SPARK_OPERATORS


class Observed:
    """Mutable, used by one task; handlers call `note` on the same event loop.

    Attributes:
        body: the BalancedSource, without what no one here reads.
        is_deleted: whether it is gone.
        unknown: kinds that the API server does not know.
        stopping: uids of applications that were deleted by this process. A watch may tell so later.
    """

    def __init__(self, body: Manifest) -> None:
        self.body = slim(BALANCED_SOURCE, body)
        self.is_deleted = False
        self.unknown: set[ResourceKind] = set()
        self.stopping: set[str] = set()
        self._objects: dict[ResourceKind, dict[str, Manifest]] = {kind: {} for kind in CHILDREN}
        # A turn asks dozens of times; None: to be looked at again.
        self._by_host: Mapping[str, Sequence[Manifest]] | None = None

    @property
    def identity(self) -> Identity:
        """Whose objects these are."""
        return Identity.of(self.body)

    @property
    def generation(self) -> int:
        """Generation of the spec that was seen last."""
        return int(self.body["metadata"].get("generation", 0))

    def note(self, kind: ResourceKind, event: str | None, manifest: Manifest) -> None:
        """A watch delivered something. Older versions than what is known are ignored."""
        self._by_host = None
        if kind == BALANCED_SOURCE:
            self._note_body(event, manifest)
        elif not self._is_child(kind, manifest):
            return
        elif event == "DELETED":
            known = self._objects[kind].get(manifest["metadata"]["name"])
            # A deletion that comes late must not remove the object of that name that followed.
            if known is not None and known["metadata"]["uid"] == manifest["metadata"]["uid"]:
                del self._objects[kind][manifest["metadata"]["name"]]
        elif _is_newer(manifest, self._objects[kind].get(manifest["metadata"]["name"])):
            self._objects[kind][manifest["metadata"]["name"]] = manifest

    def get(self, kind: ResourceKind, name: str) -> Manifest | None:
        """One child."""
        return self._objects[kind].get(name)

    def all(self, kind: ResourceKind) -> list[Manifest]:
        """All children of a kind."""
        return list(self._objects[kind].values())

    @property
    def applications(self) -> list[Manifest]:
        """All applications, of either Spark operator, with their states in the same words."""
        return [
            operator.view(seen)
            for operator in SPARK_OPERATORS.values()
            for seen in self.all(operator.kind)
        ]

    @property
    def by_host(self) -> Mapping[str, Sequence[Manifest]]:
        """The applications of each host that has any."""
        if self._by_host is None:
            found: dict[str, list[Manifest]] = {}
            for application in self.applications:
                host = self.identity.host_of(application["metadata"]["name"])
                found.setdefault(host, []).append(application)
            self._by_host = found
        return self._by_host

    def staying(self, host: str) -> list[Manifest]:
        """Return the applications of a host that are not being deleted."""
        return [
            a
            for a in self.by_host.get(host, [])
            if not a["metadata"].get("deletionTimestamp")
            and a["metadata"]["uid"] not in self.stopping
        ]

    async def refresh(self, api: KubernetesApi) -> None:
        """Look at everything again; a kind whose list is refused stays as it was seen last.

        Raises:
            KubernetesError: the API server does not answer, or refused.
        """
        source = self.identity
        body = await api.get(BALANCED_SOURCE, source.namespace, source.name)
        # Another uid is a new source of that name, which gets a task of its own.
        if body is None or body["metadata"]["uid"] != source.uid:
            self.is_deleted = True
            return
        self._note_body("MODIFIED", body)
        refusal = None
        for kind in CHILDREN:
            try:
                found = await api.list(kind, source.namespace, selector=source.selector)
            except UnknownKindError:
                self.unknown.add(kind)
                found = []
            except RefusedError as error:
                refusal = refusal or error
                continue
            else:
                self.unknown.discard(kind)
            self._by_host = None
            self._objects[kind] = {
                item["metadata"]["name"]: item for item in _owned(found, source, kind)
            }
        self.stopping &= {application["metadata"]["uid"] for application in self.applications}
        if refusal is not None:
            raise refusal

    def _is_child(self, kind: ResourceKind, manifest: Manifest) -> bool:
        """Whether this is our object, even if its labels or owner reference were just removed.

        Pods are owned by their application, and nothing is done to them.
        """
        known = self._objects[kind].get(manifest["metadata"]["name"])
        is_same = known is not None and known["metadata"]["uid"] == manifest["metadata"].get("uid")
        return kind == POD or is_same or self.identity.owns(manifest)

    def _note_body(self, event: str | None, body: Manifest) -> None:
        if event == "DELETED" or body["metadata"].get("deletionTimestamp"):
            self.is_deleted = True
        elif _is_newer(body, self.body):
            self.body = slim(BALANCED_SOURCE, body)


def _owned(found: Iterable[Manifest], source: Identity, kind: ResourceKind) -> Iterable[Manifest]:
    """Children of this very source, not of a namesake that was deleted.

    Pods are owned by their application.
    """
    for manifest in found:
        if kind == POD or source.owns(manifest):
            yield manifest


def _is_newer(manifest: Manifest, known: Manifest | None) -> bool:
    if known is None or known["metadata"].get("uid") != manifest["metadata"].get("uid"):
        return True
    return revision(manifest) >= revision(known)


def revision(manifest: Mapping[str, Any]) -> int:
    """Return the resource version as a number; 0 if there is none."""
    text = str(manifest["metadata"].get("resourceVersion", "0"))
    return int(text) if text.isdigit() else 0
