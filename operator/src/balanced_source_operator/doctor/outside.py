"""Asks what a source reads from, by executing the first calls of its enumerator from here."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final

from balanced_source.api import Caller, CallFailure, Source, discovery_problem
from balanced_source.coordinator import SourceCoordinator
from balanced_source.coordinator.effects import (
    Effect,
    ExecuteCall,
    PersistState,
    PublishAssignment,
    ReportFact,
    perform,
)
from balanced_source.coordinator.events import CallCompleted
from balanced_source.errors import TransientDiscoveryError
from balanced_source_adapters.connectors import installed
from balanced_source_adapters.mistakes import call_error
from balanced_source_operator.doctor.finding import ClusterApi, Diagnosis, error, remedy_of, unknown
from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.runtime.secrets import SecretCache

MAX_CALLS: Final = 200
"""Calls of one source; each cluster needs two."""

_IN_A_POD: Final = (
    "kubectl exec -n balanced-source deploy/balanced-source -- balanced-source doctor -n NAMESPACE"
)
"""With the names of the chart's documentation."""

PATIENCE: Final = 60.0
"""Seconds for all calls of one source."""


async def check_discovery(
    api: ClusterApi, namespace: str, label: str, source: Source[Any, Any], *, is_read: bool
) -> AsyncIterator[Diagnosis]:
    """Yield the problems that discovery finds, one per cluster or the like.

    Calls are made as the operator makes them: with the Secrets of the source, and never with files
    or the identity of this machine.

    Args:
        api: the API server.
        namespace: of the source.
        label: how the check calls it.
        source: to look at.
        is_read: whether its pods read it without a problem. A server that does not answer here is
            out of reach of this machine then, and nothing is wrong.
    """
    secrets = SecretCache(api, namespace)
    try:
        await secrets.load(installed().of(source).secrets(source))
        async with asyncio.timeout(PATIENCE):
            problems = await asyncio.to_thread(found_problems, source, secrets)
    except (KubernetesError, TimeoutError) as silence:
        yield unknown(f"{label}: discovery", str(silence) or f"no answer within {PATIENCE:.0f} s")
        return
    for scope, failure in problems.items():
        problem = discovery_problem(failure, scope=scope)
        remedy = remedy_of(problem.reason)
        advice = f"If only pods can reach it, run it in the operator's pod: {_IN_A_POD}"
        if is_read and isinstance(failure, TransientDiscoveryError):
            message = (
                f"{problem.message}. This is so on this machine only: the source is Ready, so its"
                " pods can reach it"
            )
            yield unknown(f"{label}: {scope}", message)
            continue
        yield error(
            f"{label}: {scope}",
            problem.reason,
            problem.message,
            f"{remedy} {advice}".strip(),
            subject=scope,
        )
    if not problems:
        # Only this: that a discovery works says nothing of the applications that read.
        message = "the servers of the source answer and list its splits"
        yield Diagnosis(check=f"{label}: discovery", message=message)


def found_problems(source: Source[Any, Any], secrets: Any) -> Mapping[str, Exception]:
    """Return what the enumerator of a new source finds wrong, by scope. Blocking."""
    execute = (
        installed()
        .of(source)
        # As the operator: a check by the user's own identity would hide what the operator lacks.
        .executor(secrets, caller=Caller.OPERATOR, client_id="balanced-source-doctor")
    )
    coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(source)
    look = _Look()
    try:
        look.perform(coordinator.start(now=0.0))
        for _ in range(MAX_CALLS):
            if not look.calls:
                break
            call = look.calls.popleft()
            answer = CallCompleted(call.call_id, _result(execute, call, source.kind))
            look.perform(coordinator.handle(answer, now=0.0))
        return dict(coordinator.enumerator.problems())
    finally:
        coordinator.close()


class _Look:
    """Ports of effects for a single look at a source: calls wait, and nothing is changed.

    Attributes:
        calls: that are to be executed, in the order in which the enumerator made them.
    """

    def __init__(self) -> None:
        self.calls = deque[ExecuteCall]()

    def perform(self, effects: Iterable[Effect]) -> None:
        """Perform the effects of one event."""
        for effect in effects:
            perform(effect, self)

    def execute_call(self, effect: ExecuteCall) -> None:
        """Keep a call that is due now: a single look does not repeat any."""
        if effect.delay == 0:
            self.calls.append(effect)

    def persist_state(self, effect: PersistState) -> None:
        """Store nothing: this is not the operator of the source."""

    def publish_assignment(self, effect: PublishAssignment) -> None:
        """Publish nothing."""

    def report_fact(self, effect: ReportFact) -> None:
        """Report nothing: the problems of the enumerator say it."""


def _result(execute: Any, effect: ExecuteCall, kind: str) -> Any:
    try:
        return execute(effect.call)
    except Exception as failure:  # noqa: BLE001 - the enumerator decides what it means
        return CallFailure(call_error(kind, effect.call, failure))
