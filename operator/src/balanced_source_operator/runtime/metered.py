"""Counts requests to the API server, for all sources together."""

from collections.abc import Awaitable
from typing import TypeVar

from balanced_source_operator.kube.port import (
    KubernetesApi,
    KubernetesError,
    Manifest,
    RefusedError,
)
from balanced_source_operator.metrics import Metrics
from balanced_source_operator.resources.kinds import ResourceKind

T = TypeVar("T")


class MeteredApi:
    """Wraps a `KubernetesApi`. Watches are not requests of this kind: they are counted nowhere."""

    def __init__(self, api: KubernetesApi, metrics: Metrics) -> None:
        self._api = api
        self._metrics = metrics

    async def get(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        return await self._counted("get", kind, self._api.get(kind, namespace, name))

    async def list(self, kind: ResourceKind, namespace: str, *, selector: str) -> list[Manifest]:
        return await self._counted("list", kind, self._api.list(kind, namespace, selector=selector))

    async def create(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        return await self._counted("create", kind, self._api.create(kind, manifest))

    async def objection(self, kind: ResourceKind, manifest: Manifest) -> str | None:
        return await self._counted("dry-run", kind, self._api.objection(kind, manifest))

    async def replace(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        return await self._counted("update", kind, self._api.replace(kind, manifest))

    async def apply(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        return await self._counted("apply", kind, self._api.apply(kind, manifest))

    async def patch_status(
        self, kind: ResourceKind, namespace: str, name: str, status: Manifest
    ) -> Manifest | None:
        return await self._counted(
            "patch-status", kind, self._api.patch_status(kind, namespace, name, status)
        )

    async def scale(
        self, kind: ResourceKind, namespace: str, name: str, *, before: int, after: int
    ) -> None:
        await self._counted(
            "scale", kind, self._api.scale(kind, namespace, name, before=before, after=after)
        )

    async def delete(self, kind: ResourceKind, namespace: str, name: str, *, uid: str) -> None:
        await self._counted("delete", kind, self._api.delete(kind, namespace, name, uid=uid))

    async def _counted(self, verb: str, kind: ResourceKind, call: Awaitable[T]) -> T:
        try:
            result = await call
        except KubernetesError as error:
            self._metrics.requested(verb, kind.plural, _word(error))
            raise
        self._metrics.requested(verb, kind.plural)
        return result


def _word(error: KubernetesError) -> str:
    """Return the error as a label: the status code if there is one, else the kind of error."""
    return (
        str(error.status)
        if isinstance(error, RefusedError)
        else type(error).__name__.removesuffix("Error")
    )
