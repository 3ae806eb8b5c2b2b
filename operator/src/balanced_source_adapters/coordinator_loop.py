"""Runs a coordinator in a thread: for hosts without an event loop (a Spark driver, local mode)."""

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import structlog

from balanced_source.api import AsyncCall, CallFailure
from balanced_source.connectors.discovery import Alarm
from balanced_source.connectors.kafka import DiscoverKafka, InitializeKafka
from balanced_source.coordinator import (
    CallCompleted,
    Checkpoint,
    Effect,
    Event,
    ExecuteCall,
    PersistState,
    PublishAssignment,
    ReportFact,
    SourceCoordinator,
)
from balanced_source.documents.assignment import Assignment
from balanced_source.errors import ContractViolationError
from balanced_source_adapters.kafka_admin import KafkaAdmin

_IDLE: Final = 60.0

log = structlog.get_logger(__name__)

CallExecutor = Callable[[AsyncCall], Any]
"""Executes a call; blocking. Raises what the call's completion handler shall see as a failure."""


def kafka_executor(admin: KafkaAdmin) -> CallExecutor:
    """Executes the Kafka connector's calls."""

    def execute(call: AsyncCall) -> Any:
        match call:
            case DiscoverKafka():
                return admin.discover(call)
            case InitializeKafka():
                return admin.initialize(call)
            case Alarm():
                return None
            case _:
                raise ContractViolationError(f"nobody executes {type(call).__name__}")

    return execute


class CoordinatorLoop:
    """Events may be put from any thread; effects are executed by the loop's thread, in their order.

    Args:
        coordinator: not started yet.
        execute: for its calls; each runs in a thread of its own, so that a cluster that does not answer does not hold
            up the others.
        publish: gets each assignment.
        persist: gets each checkpoint, before the assignment that it implies.
    """

    def __init__(
        self,
        coordinator: SourceCoordinator[Any, Any],
        execute: CallExecutor,
        *,
        publish: Callable[[Assignment], None],
        persist: Callable[[Checkpoint[Any, Any]], None] = lambda _: None,
    ) -> None:
        self.coordinator = coordinator
        self._execute = execute
        self._publish = publish
        self._persist = persist
        self._items: list[tuple[float, int, Event | ExecuteCall]] = []
        self._order = itertools.count()
        self._wake = threading.Condition()
        self._is_closed = False

    def start(self) -> threading.Thread | None:
        """Begin, in the background; returns the thread, or None if the loop was closed before: nothing happens then."""
        if self._is_closed:
            return None
        thread = threading.Thread(target=self._run, name="bsrc-coordinator", daemon=True)
        thread.start()
        return thread

    def put(self, event: Event) -> None:
        """Have an event handled."""
        self._put(event)

    def close(self) -> None:
        """Handle nothing any more."""
        with self._wake:
            self._is_closed = True
            self._wake.notify_all()

    def _put(self, item: Event | ExecuteCall, *, delay: float = 0.0) -> None:
        with self._wake:
            heapq.heappush(self._items, (time.monotonic() + delay, next(self._order), item))
            self._wake.notify_all()

    def _run(self) -> None:
        self._do(self.coordinator.start(now=time.time()))
        while (item := self._next()) is not None:
            if isinstance(item, ExecuteCall):
                threading.Thread(target=self._call, args=(item,), name="bsrc-call", daemon=True).start()
            else:
                self._do(self.coordinator.handle(item, now=time.time()))
        self.coordinator.close()

    def _next(self) -> Event | ExecuteCall | None:
        with self._wake:
            while not self._is_closed:
                left = self._items[0][0] - time.monotonic() if self._items else _IDLE
                if left <= 0:
                    return heapq.heappop(self._items)[2]
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
                case PersistState():
                    self._persist(effect.checkpoint)
                case PublishAssignment():
                    self._publish(effect.assignment)
                case ExecuteCall():
                    self._put(effect, delay=effect.delay)
                case ReportFact():
                    log.info(effect.message, reason=effect.reason)
