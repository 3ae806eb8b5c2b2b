"""No operator: the driver runs the coordinator itself, in a thread. Nothing is stored outside Spark's checkpoint."""

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import structlog

from balanced_source.api import AsyncCall, CallFailure
from balanced_source.connectors.kafka import KafkaSource
from balanced_source.coordinator import (
    CallCompleted,
    Effect,
    Event,
    ExecuteCall,
    ParallelismChanged,
    PublishAssignment,
    ReportFact,
    ReportReceived,
    SourceCoordinator,
)
from balanced_source.documents.report import HostReport
from balanced_source_spark.channels.channel import AssignmentListener

_IDLE: Final = 60.0

log = structlog.get_logger(__name__)

CallExecutor = Callable[[AsyncCall], Any]
"""Executes a call; blocking. Raises what the call's completion handler shall see as a failure."""


class EmbeddedChannel:
    """See `AssignmentChannel`; both sides of it are here."""

    def __init__(self, source: KafkaSource, execute: CallExecutor, *, parallelism: int) -> None:
        self._coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(source, parallelism=parallelism)
        self._execute = execute
        self._events: list[tuple[float, int, Event | ExecuteCall]] = []
        self._order = itertools.count()
        self._wake = threading.Condition()
        self._is_closed = False
        self._listener: AssignmentListener = lambda _: None

    def start(self, listener: AssignmentListener) -> None:
        self._listener = listener
        threading.Thread(target=self._run, name="bsrc-coordinator", daemon=True).start()

    def claim(self, host: str) -> int:
        return 1

    def write(self, report: HostReport) -> None:
        self._put(ReportReceived(report))

    def rescale(self, parallelism: int) -> None:
        """Change the number of readers while the query runs."""
        self._put(ParallelismChanged(parallelism))

    def close(self) -> None:
        with self._wake:
            self._is_closed = True
            self._wake.notify_all()

    def _put(self, item: Event | ExecuteCall, *, delay: float = 0.0) -> None:
        with self._wake:
            heapq.heappush(self._events, (time.monotonic() + delay, next(self._order), item))
            self._wake.notify_all()

    def _run(self) -> None:
        self._do(self._coordinator.start(now=time.time()))
        while (item := self._next()) is not None:
            if isinstance(item, ExecuteCall):
                # A thread each: a cluster that does not answer must not hold up the others.
                threading.Thread(target=self._call, args=(item,), name="bsrc-call", daemon=True).start()
            else:
                self._do(self._coordinator.handle(item, now=time.time()))

    def _next(self) -> Event | ExecuteCall | None:
        with self._wake:
            while not self._is_closed:
                left = self._events[0][0] - time.monotonic() if self._events else _IDLE
                if left <= 0:
                    return heapq.heappop(self._events)[2]
                self._wake.wait(left)
            return None

    def _call(self, effect: ExecuteCall) -> None:
        try:
            result = self._execute(effect.call)
        except Exception as error:  # noqa: BLE001 - whatever it was, the enumerator decides what it means
            result = CallFailure(error)
        self._put(CallCompleted(effect.call_id, result))

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case PublishAssignment():
                    self._listener(effect.assignment)
                case ExecuteCall():
                    self._put(effect, delay=effect.delay)
                case ReportFact():
                    log.info(effect.message, reason=effect.reason)
                case _:
                    pass  # PersistState: Spark's checkpoint is the only store here
