"""One task per BalancedSource.

Level-based: whatever wakes the task (a watch, a result, a timer) leads to the same turn: observe → validate →
coordinate → children → status. A turn may be cut off anywhere; the next one, or the next operator, ends in the same
place, because every effect can be repeated and the state is stored before anything that it implies.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Mapping
from typing import Any, Final

import structlog

from balanced_source.api import Problem, ProblemBoard
from balanced_source.errors import InvalidSpecError, StateConflictError
from balanced_source_operator.controller.application import ApplicationState, Decision
from balanced_source_operator.controller.conditions import WAITS_FOR_READERS, Facts, status_of
from balanced_source_operator.controller.reasons import Reason
from balanced_source_operator.controller.translate import check_ends, to_source
from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.resources.kinds import Kind
from balanced_source_operator.runtime.children import Children
from balanced_source_operator.runtime.coordination import Coordination
from balanced_source_operator.runtime.deadline import Deadline
from balanced_source_operator.runtime.environment import Desired, Environment
from balanced_source_operator.runtime.events import EventRecorder
from balanced_source_operator.runtime.metadata import MetadataReader
from balanced_source_operator.runtime.observed import Observed
from balanced_source_operator.runtime.status_writer import StatusWriter
from balanced_source_operator.spec import parse_spec

BACKOFF_FIRST: Final = 0.5
BACKOFF_MAX: Final = 30.0

_NOTHING: Final = Decision(state=ApplicationState.NONE)

log = structlog.get_logger(__name__)


class SourceRuntime:
    """See the module. `note` is called by handlers on the same event loop."""

    def __init__(self, environment: Environment, body: Mapping[str, Any]) -> None:
        self._env = environment
        self._observed = Observed(body)
        source = self._observed.identity
        self._identity = source
        self._problems = ProblemBoard()
        self._wake = asyncio.Event()
        self._events = EventRecorder(environment.api, source, reporter=environment.settings.identity)
        self._coordination = Coordination(
            environment, source, self._observed, self._events, self._problems, wake=self._wake.set
        )
        self._children = Children(environment, source, self._observed, self._events, self._problems)
        self._status = StatusWriter(environment.api, source, self._events)
        self._metadata = MetadataReader(environment.api, source.namespace)
        self._waiting = Deadline(environment.settings.gate_deadline)
        self._desired: Desired | None = None
        self._refreshed_at = -float("inf")
        self._log = log.bind(source=source.name, namespace=source.namespace)

    def note(self, kind: Kind, event: str | None, manifest: Mapping[str, Any]) -> None:
        """Something of this source was seen."""
        self._observed.note(kind, event, manifest)
        self._wake.set()

    async def run(self) -> None:
        """Serve the source until it is deleted."""
        backoff = BACKOFF_FIRST
        try:
            while not self._observed.is_deleted:
                self._wake.clear()
                try:
                    with self._env.metrics.turn(self._identity):
                        pause = await self._turn()
                    backoff = BACKOFF_FIRST
                except Exception as error:  # noqa: BLE001 - one source's trouble must not end the operator
                    await self._failed(error)
                    pause = backoff * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
                    backoff = min(2 * backoff, BACKOFF_MAX)
                    await asyncio.sleep(pause)
                else:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._wake.wait(), pause)
        finally:
            self._coordination.drop()
            self._env.alignments.forget(self._identity)
            self._env.metrics.forget(self._identity)

    async def _turn(self) -> float:
        """One turn; returns the seconds after which the next one is due although nothing was heard."""
        await self._observe()
        if self._observed.is_deleted:
            return 0.0
        await self._validate()
        decision = _NOTHING
        if self._desired is not None:
            await self._coordination.turn(self._desired)
            decision = await self._children.turn(self._desired, self._coordination.coordinator)
        self._problems.clear(Reason.INTERNAL_ERROR)
        held_back = await self._write_status(decision)
        metadata_due = self._metadata.pause(self._desired.spec if self._desired is not None else None)
        alignment_due = self._env.alignments.pause(self._identity)
        pauses = (self._env.settings.resync, decision.look_again, held_back, metadata_due, alignment_due)
        return min(pause for pause in pauses if pause is not None)

    async def _observe(self) -> None:
        if time.monotonic() - self._refreshed_at >= self._env.settings.resync:
            await self._observed.refresh(self._env.api)
            self._children.check_again()
            self._refreshed_at = time.monotonic()

    async def _validate(self) -> None:
        """Take over the spec if it is valid; else the last valid one stays in effect."""
        try:
            spec = parse_spec(self._observed.body.get("spec"))
            source = to_source(spec, await self._metadata.read(spec))
            if self._desired is not None:
                check_ends(self._desired.source, source)
        except InvalidSpecError as error:
            self._raise(Reason.INVALID_SPEC, str(error))
            return
        self._problems.clear(Reason.INVALID_SPEC)
        self._raise(Reason.HASH_COLLAPSES, source.assigner.warning(spec.parallelism))
        self._desired = Desired(spec=spec, source=source)

    def _raise(self, reason: Reason, message: str | None) -> None:
        """Set the problem with this reason, or clear it when `message` is None."""
        self._problems.set(reason, None if message is None else Problem(reason=reason, message=message))

    async def _write_status(self, decision: Decision) -> float | None:
        body, coordinator = self._observed.body, self._coordination.coordinator
        enumerator = coordinator.enumerator if coordinator is not None else None
        status = status_of(
            Facts(
                generation=int(body["metadata"].get("generation", 0)),
                selector=self._identity.selector,
                now=time.time(),
                state=coordinator.state if coordinator is not None else None,
                pending_splits=enumerator.pending_splits() if enumerator is not None else 0,
                is_finished=enumerator.is_finished() if enumerator is not None else False,
                discovery=enumerator.problems() if enumerator is not None else {},
                problems=tuple(self._problems),
                application=decision,
                waiting_for=coordinator.waiting_for if coordinator is not None else (),
                is_overdue=self._waiting.is_over(),
                previous=self._status.conditions or body.get("status", {}).get("conditions", []),
            )
        )
        self._waiting.note(waits=any(c.reason in WAITS_FOR_READERS for c in status.conditions))
        self._env.metrics.observe(self._identity, status)
        return await self._status.write(status)

    async def _failed(self, error: Exception) -> None:
        """A turn did not come to its end. What is known stays, unless it may have been left half-changed."""
        self._refreshed_at = -float("inf")
        if isinstance(error, KubernetesError):
            self._log.warning("turn cut off; trying again", error=str(error))
            return
        self._coordination.drop()
        if isinstance(error, StateConflictError):
            await self._events.post("StateConflict", f"{error}: read again", warning=True)
            return
        self._log.error("turn failed; starting over from the stored state", exc_info=error)
        self._raise(Reason.INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        with contextlib.suppress(KubernetesError):
            await self._write_status(_NOTHING)
