"""Asks what a source reads from, by executing the first calls of its enumerator from here."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from balanced_source.api import Caller, CallFailure, Source, discovery_problem
from balanced_source.coordinator import SourceCoordinator
from balanced_source.coordinator.effects import Effect, ExecuteCall
from balanced_source.coordinator.events import CallCompleted
from balanced_source_adapters.connectors import installed
from balanced_source_adapters.mistakes import call_error
from balanced_source_operator.doctor.finding import ClusterApi, Diagnosis, error, remedy_of, unknown
from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.runtime.secrets import SecretCache

MAX_CALLS: Final = 200
"""Calls of one source; each cluster needs two."""

PATIENCE: Final = 60.0
"""Seconds for all calls of one source."""


async def check_discovery(
    api: ClusterApi, namespace: str, label: str, source: Source[Any, Any]
) -> AsyncIterator[Diagnosis]:
    """Yield the problems that discovery finds, one per cluster or the like.

    Calls are made as the operator makes them: with the Secrets of the source, and never with files
    or the identity of this machine.
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
        advice = "If only pods can reach it, run this command in a pod."
        yield error(
            f"{label}: {scope}", problem.reason, problem.message, f"{remedy} {advice}".strip()
        )
    if not problems:
        yield Diagnosis(check=f"{label}: discovery")


def found_problems(source: Source[Any, Any], secrets: Any) -> Mapping[str, Exception]:
    """Return what the enumerator of a new source finds wrong, by scope. Blocking."""
    execute = (
        installed()
        .of(source)
        # As the operator: a check by the user's own identity would hide what the operator lacks.
        .executor(secrets, caller=Caller.OPERATOR, client_id="balanced-source-doctor")
    )
    coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(source)
    waiting: list[Effect] = coordinator.start(now=0.0)
    try:
        for _ in range(MAX_CALLS):
            calls = [
                effect
                for effect in waiting
                # Delayed calls are repetitions, which a single look does not need.
                if isinstance(effect, ExecuteCall) and effect.delay == 0
            ]
            if not calls:
                break
            first = calls[0]
            waiting = [effect for effect in waiting if effect is not first]
            waiting += coordinator.handle(
                CallCompleted(first.call_id, _result(execute, first, source.kind)), now=0.0
            )
        return dict(coordinator.enumerator.problems())
    finally:
        coordinator.close()


def _result(execute: Any, effect: ExecuteCall, kind: str) -> Any:
    try:
        return execute(effect.call)
    except Exception as failure:  # noqa: BLE001 - the enumerator decides what it means
        return CallFailure(call_error(kind, effect.call, failure))
