"""Turns refusals by the API server, and requests without an answer, into problems.

For every object that the operator uses.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias, TypeVar

from balanced_source.api import Problem, ProblemBoard
from balanced_source.reasons import Reason
from balanced_source_operator.controller.refusals import (
    cut_off_problem,
    is_final,
    refusal_problem,
    unanswered_problem,
)
from balanced_source_operator.kube.port import (
    ConflictError,
    InvalidNameError,
    KubernetesApi,
    KubernetesError,
    Manifest,
    RefusedError,
    UnknownKindError,
)
from balanced_source_operator.resources.kinds import (
    APACHE_APPLICATION,
    CONFIG_MAP,
    EVENT,
    KUBEFLOW_APPLICATION,
    SECRET,
    SERVICE_ACCOUNT,
    ResourceKind,
)

T = TypeVar("T")

PATIENCE: Final = 10.0
"""Seconds for which an answer that may pass (429, 5xx) must persist before it is a problem."""

NO_ANSWER_PATIENCE: Final = 30.0
"""Seconds for which a request must get no answer before that is a problem.

Longer than for an answer: each attempt takes until the client gives up, and an API server that has
just started answers some requests late.
"""

KEEP_MESSAGE: Final = 30.0
"""Seconds for which the message of a refusal stays although the next answer has other words."""

SAME_ROW: Final = 300.0
"""Seconds between two requests without an answer after which the first one does not count any more.

Events, for example, may be rare.
"""

PROBE_TIMEOUT: Final = 5.0
"""Seconds that the API server has to answer a small request, or it counts as away."""

_GENERATED_NAMES: Final = (EVENT, KUBEFLOW_APPLICATION, APACHE_APPLICATION)
"""Kinds whose objects have another name each time: the next one shows whether the refusal lasts."""

_STATUS: Final = "update the status of"

_READS: Final = ("get", "list")

_ANSWERS: Final = (ConflictError, InvalidNameError, UnknownKindError)
"""What the API server answers beside refusals, or would answer."""

_Key: TypeAlias = tuple[str, ...]

_CUT_OFF: Final[_Key] = ("CutOff", "", "", "")
"""Key of an answer that cuts off each turn."""


class _Silence(NamedTuple):
    """First and last time that a request got no answer, on a clock that never goes back."""

    since: float
    last: float


class _ApiRequest(NamedTuple):
    verb: str
    kind: ResourceKind
    namespace: str
    name: str

    @property
    def key(self) -> _Key:
        """What stays the same when the request is repeated."""
        return ("Refused", self.verb, self.kind.plural, "" if self._is_new_each_time else self.name)

    @property
    def action(self) -> str:
        """What is asked for, in words."""
        return f"{self.verb} {self.kind.kind} {self.name}".strip()

    @property
    def scope(self) -> str:
        """The object, or its kind, that a problem is about."""
        return self.kind.kind if self._is_new_each_time else f"{self.kind.kind}/{self.name}"

    @property
    def _is_new_each_time(self) -> bool:
        return self.kind in _GENERATED_NAMES


class ReportingApi:
    """Wraps a `KubernetesApi` for one source.

    Each refusal that lasts is on the board until the call succeeds; so is a request that gets no
    answer while the API server answers others.

    Refused reads of Secrets are not reported here: they fail a discovery, which is reported with
    its cluster.
    """

    def __init__(self, api: KubernetesApi, problems: ProblemBoard) -> None:
        self._api = api
        self._problems = problems
        self._since: dict[_Key, float] = {}
        self._keep_until: dict[_Key, float] = {}
        self._unanswered: dict[_Key, _Silence] = {}

    async def get(self, kind: ResourceKind, namespace: str, name: str) -> Manifest | None:
        call = self._api.get(kind, namespace, name)
        # A missing Secret fails a discovery, which is reported with its cluster.
        if kind == SECRET:
            return await call
        return await self._reported(_ApiRequest("get", kind, namespace, name), call)

    async def list(self, kind: ResourceKind, namespace: str, *, selector: str) -> list[Manifest]:
        call = self._api.list(kind, namespace, selector=selector)
        return await self._reported(_ApiRequest("list", kind, namespace, ""), call)

    async def create(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        return await self._reported(_of(manifest, "create", kind), self._api.create(kind, manifest))

    async def objection(self, kind: ResourceKind, manifest: Manifest) -> str | None:
        """Ask with a dry run. An operator that may not ask continues without the answer."""
        return await self._reported(
            _of(manifest, "check", kind),
            self._api.objection(kind, manifest),
            is_reported=lambda error: error.status != HTTPStatus.FORBIDDEN,
        )

    async def replace(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        return await self._reported(
            _of(manifest, "update", kind), self._api.replace(kind, manifest)
        )

    async def apply(self, kind: ResourceKind, manifest: Manifest) -> Manifest:
        return await self._reported(_of(manifest, "apply", kind), self._api.apply(kind, manifest))

    async def patch_status(
        self, kind: ResourceKind, namespace: str, name: str, status: Manifest
    ) -> Manifest | None:
        call = self._api.patch_status(kind, namespace, name, status)
        return await self._reported(_ApiRequest(_STATUS, kind, namespace, name), call)

    async def scale(
        self, kind: ResourceKind, namespace: str, name: str, *, before: int, after: int
    ) -> None:
        """Change the number of replicas. The autoscaler has a condition of its own for refusals."""
        await self._reported(
            _ApiRequest("scale", kind, namespace, name),
            self._api.scale(kind, namespace, name, before=before, after=after),
            is_reported=lambda _: False,
        )

    async def delete(self, kind: ResourceKind, namespace: str, name: str, *, uid: str) -> None:
        call = self._api.delete(kind, namespace, name, uid=uid)
        await self._reported(_ApiRequest("delete", kind, namespace, name), call)

    def turn_succeeded(self) -> None:
        """Clear problems of calls that are no longer made.

        Status and events are written after a turn.
        """
        # A turn that has ended does not show whether these, which come after it, work again.
        for key in self._since.keys() | self._unanswered.keys():
            if key[1] != _STATUS and key[2] != EVENT.plural:
                self._clear(key)

    def turn_failed(self, error: KubernetesError) -> bool:
        """Note what has cut off a turn; return whether there is a problem that lasts.

        If not, nothing is to be said: the API server may be away.

        Args:
            error: no refusal.
        """
        if isinstance(error, _ANSWERS):
            now = time.monotonic()
            if now - self._since.setdefault(_CUT_OFF, now) >= PATIENCE:
                self._problems.raise_(_CUT_OFF, cut_off_problem(error))
        return any(self._problems.get(key) is not None for key in (_CUT_OFF, *self._unanswered))

    async def _reported(
        self,
        request: _ApiRequest,
        answer: Awaitable[T],
        *,
        is_reported: Callable[[RefusedError], bool] = lambda _: True,
    ) -> T:
        key = request.key
        try:
            result = await answer
        except RefusedError as error:
            self._unanswered.pop(key, None)
            if is_reported(error):
                problem = refusal_problem(request.action, error, scope=request.scope)
                self._refused(key, problem, is_final=is_final(error))
            else:
                self._clear(key)
            raise
        except _ANSWERS:
            self._answered(key)
            raise
        except KubernetesError:
            await self._not_answered(request)
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

    async def _not_answered(self, request: _ApiRequest) -> None:
        """Set the problem if the request has got no answer for long, and others have.

        While the API server is away, no time counts: when it is back, nothing is wrong.
        """
        if not await self._is_answering(request):
            for key in [key for key in self._unanswered if not self._is_known(key)]:
                del self._unanswered[key]
            return
        key, now = request.key, time.monotonic()
        before = self._unanswered.get(key)
        is_same = before is not None and now - before.last < SAME_ROW
        since = before.since if before is not None and is_same else now
        self._unanswered[key] = _Silence(since, now)
        if now - since >= NO_ANSWER_PATIENCE and not self._is_known(key):
            problem = unanswered_problem(
                request.action,
                since=time.time() - (now - since),
                is_read=request.verb in _READS,
                scope=request.scope,
            )
            self._problems.raise_(key, problem)

    def _is_known(self, key: _Key) -> bool:
        """Return whether it is on the board that a request gets no answer."""
        problem = self._problems.get(key)
        return problem is not None and problem.reason == Reason.REQUEST_UNANSWERED

    async def _is_answering(self, request: _ApiRequest) -> bool:
        """Return whether the API server answers another request: a small one, of another kind.

        One that no admission webhook hears of, and that is not answered from memory.
        """
        kind = CONFIG_MAP if request.kind == SERVICE_ACCOUNT else SERVICE_ACCOUNT
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                await self._api.get(kind, request.namespace, "default")
        except (RefusedError, *_ANSWERS):
            return True
        except (KubernetesError, TimeoutError):
            return False
        return True

    def _answered(self, key: _Key) -> None:
        """Note an answer that is neither success nor refusal."""
        if self._unanswered.pop(key, None) is not None and self._is_known(key):
            self._problems.clear(key)

    def _clear(self, key: _Key) -> None:
        was_refused = self._since.pop(key, None) is not None
        was_unanswered = self._unanswered.pop(key, None) is not None
        if was_refused or was_unanswered:
            self._problems.clear(key)


def _of(manifest: Manifest, verb: str, kind: ResourceKind) -> _ApiRequest:
    metadata = manifest["metadata"]
    return _ApiRequest(verb, kind, metadata["namespace"], metadata["name"])
