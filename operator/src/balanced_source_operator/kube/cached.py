"""Answers reads of the kinds that are watched from memory.

A look at a source then costs no request.
"""

from collections.abc import Container, Sequence
from typing import Final

from balanced_source_operator.kube.informer import Informer, Tell
from balanced_source_operator.kube.port import KubernetesApi, Manifest, UnknownKindError
from balanced_source_operator.kube.stream import Stream
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CHILDREN,
    NAME_LABEL,
    ResourceKind,
)

WATCHED: Final = (BALANCED_SOURCE, *CHILDREN)
"""Sources, and the kinds of their objects."""


def informers_for(
    stream: Stream, namespaces: Sequence[str], tell: Tell, *, only: Container[str] | None = None
) -> list[Informer]:
    """Return an informer for each watched kind and namespace.

    Args:
        stream: lists and watches.
        namespaces: none given means all of them.
        tell: see `Informer`.
        only: if not None, of all these namespaces, those whose objects are kept.
    """
    return [
        Informer(
            stream,
            kind,
            namespace,
            selector="" if kind == BALANCED_SOURCE else NAME_LABEL,
            tell=tell,
            namespaces=only,
        )
        for namespace in namespaces or ("",)
        for kind in WATCHED
    ]


class CachedApi:
    """Wraps a `KubernetesApi`. What no informer knows for certain is asked for; writes always are.

    A list may be as old as a watch is late. That is enough for a look: the state of a source is
    written by compare-and-swap, and objects are created under names that exist once.
    """

    def __init__(self, api: KubernetesApi, informers: Sequence[Informer]) -> None:
        self._api = api
        self._informers = {(informer.kind, informer.namespace): informer for informer in informers}

    async def get(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        """A BalancedSource that is known comes from memory.

        Documents never do: they are compared and swapped.
        """
        if kind == BALANCED_SOURCE and (informer := self._live(kind, namespace)) is not None:
            known = informer.get(namespace, name)
            # A source that is not known may be newer than the watch: only the API server can deny
            # it.
            if known is not None:
                return known
        return await self._api.get(kind, namespace, name)

    async def list(self, kind: ResourceKind, namespace: str, *, selector: str) -> list[Manifest]:
        source = selector.removeprefix(f"{NAME_LABEL}=")
        if selector != source and (informer := self._live(kind, namespace)) is not None:
            return informer.of_source(namespace, source)
        return await self._api.list(kind, namespace, selector=selector)

    async def create(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        return await self._api.create(kind, manifest)

    async def objection(self, kind: ResourceKind, manifest: Manifest) -> str | None:
        return await self._api.objection(kind, manifest)

    async def replace(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        return await self._api.replace(kind, manifest)

    async def apply(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        return await self._api.apply(kind, manifest)

    async def patch_status(
        self, kind: ResourceKind, namespace: str, name: str, status: Manifest
    ) -> Manifest | None:
        return await self._api.patch_status(kind, namespace, name, status)

    async def scale(
        self, kind: ResourceKind, namespace: str, name: str, *, before: int, after: int
    ) -> None:
        await self._api.scale(kind, namespace, name, before=before, after=after)

    async def delete(self, kind: ResourceKind, namespace: str, name: str, *, uid: str) -> None:
        await self._api.delete(kind, namespace, name, uid=uid)

    def _live(self, kind: ResourceKind, namespace: str) -> Informer | None:
        """Return the informer that knows all objects of a kind; None if they must be asked for.

        Raises:
            UnknownKindError: the API server does not know the kind.
        """
        informer = self._informers.get((kind, namespace)) or self._informers.get((kind, ""))
        if informer is not None and informer.is_unknown:
            raise UnknownKindError(f"the kind {kind.plural}.{kind.group} is not installed")
        return informer if informer is not None and informer.covers(namespace) else None
