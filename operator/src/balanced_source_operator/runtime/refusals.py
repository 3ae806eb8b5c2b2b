"""Turns refusals by the API server into problems, for every object the operator uses."""

import time
from collections.abc import Awaitable
from typing import Final, TypeAlias, TypeVar

from balanced_source.api import Problem, ProblemBoard
from balanced_source_operator.controller.refusals import is_final, refusal_problem
from balanced_source_operator.kube.port import KubernetesApi, Manifest, RefusedError
from balanced_source_operator.resources.kinds import (
    APACHE_APPLICATION,
    EVENT,
    KUBEFLOW_APPLICATION,
    SECRET,
    ResourceKind,
)

T = TypeVar("T")

PATIENCE: Final = 10.0
"""Seconds for which an answer that may pass (429, 5xx) must persist before it is a problem."""

KEEP_MESSAGE: Final = 30.0
"""Seconds for which the message of a refusal stays although the next answer has other words."""

_GENERATED_NAMES: Final = (EVENT, KUBEFLOW_APPLICATION, APACHE_APPLICATION)
"""Kinds whose objects have another name each time: the next one shows whether the refusal lasts."""

_STATUS: Final = "update the status of"

_Key: TypeAlias = tuple[str, ...]


class ReportingApi:
    """Wraps a `KubernetesApi` for one source.

    Each refusal that lasts is on the board until the call succeeds.

    Refused reads of Secrets are not reported here: they fail a discovery, which is reported with
    its cluster.
    """

    def __init__(self, api: KubernetesApi, problems: ProblemBoard) -> None:
        self._api = api
        self._problems = problems
        self._since: dict[_Key, float] = {}
        self._keep_until: dict[_Key, float] = {}

    async def get(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        call = self._api.get(kind, namespace, name)
        # A missing Secret fails a discovery, which is reported with its cluster.
        return await (call if kind == SECRET else self._reported("get", kind, name, call))

    async def list(self, kind: ResourceKind, namespace: str, *, selector: str) -> list[Manifest]:
        return await self._reported(
            "list", kind, "", self._api.list(kind, namespace, selector=selector)
        )

    async def create(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        return await self._reported(
            "create", kind, manifest["metadata"]["name"], self._api.create(kind, manifest)
        )

    async def objection(self, kind: ResourceKind, manifest: Manifest) -> str | None:
        return await self._api.objection(kind, manifest)

    async def replace(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        return await self._reported(
            "update", kind, manifest["metadata"]["name"], self._api.replace(kind, manifest)
        )

    async def apply(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        return await self._reported(
            "apply", kind, manifest["metadata"]["name"], self._api.apply(kind, manifest)
        )

    async def patch_status(
        self, kind: ResourceKind, namespace: str, name: str, status: Manifest
    ) -> Manifest | None:
        call = self._api.patch_status(kind, namespace, name, status)
        return await self._reported(_STATUS, kind, name, call)

    async def scale(
        self, kind: ResourceKind, namespace: str, name: str, *, before: int, after: int
    ) -> None:
        """Change the number of replicas. The autoscaler has a condition of its own for refusals."""
        await self._api.scale(kind, namespace, name, before=before, after=after)

    async def delete(self, kind: ResourceKind, namespace: str, name: str, *, uid: str) -> None:
        await self._reported("delete", kind, name, self._api.delete(kind, namespace, name, uid=uid))

    def turn_succeeded(self) -> None:
        """Clear refusals of calls that are no longer made.

        Status and events are written after a turn.
        """
        # A turn that has ended does not show whether these, which come after it, work again.
        for key in [key for key in self._since if key[1] != _STATUS and key[2] != EVENT.plural]:
            self._clear(key)

    async def _reported(self, verb: str, kind: ResourceKind, name: str, call: Awaitable[T]) -> T:
        key = ("Refused", verb, kind.plural, "" if kind in _GENERATED_NAMES else name)
        try:
            result = await call
        except RefusedError as error:
            self._refused(key, _problem(verb, kind, name, error), is_final=is_final(error))
            raise
        self._clear(key)
        return result

    def _refused(self, key: _Key, problem: Problem, *, is_final: bool) -> None:
        """Set the problem.

        Names and numbers in its message may differ at each call: keep it for a while.
        """
        now = time.monotonic()
        first = self._since.setdefault(key, now)
        before = self._problems.get(key)
        is_other = (
            before is None
            or before.reason != problem.reason
            or now >= self._keep_until.get(key, now)
        )
        if is_other and (is_final or now - first >= PATIENCE):
            self._problems.raise_(key, problem)
            self._keep_until[key] = now + KEEP_MESSAGE

    def _clear(self, key: _Key) -> None:
        if self._since.pop(key, None) is not None:
            self._problems.clear(key)


def _problem(verb: str, kind: ResourceKind, name: str, error: RefusedError) -> Problem:
    scope = kind.kind if kind in _GENERATED_NAMES else f"{kind.kind}/{name}"
    return refusal_problem(f"{verb} {kind.kind} {name}".strip(), error, scope=scope)
