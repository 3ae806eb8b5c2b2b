"""Runs a whole source in one process: enumerator, documents, readers.

For development and tests.

Nothing is stood in for: coordinator and reader host are the product's, and they talk through
encoded documents. Time between two steps is the caller's, or that of `run`.
"""

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from balanced_source.api import CallExecutor, CallFailure, Source, SourceReader, SourceReaderContext
from balanced_source.coordinator import (
    CallCompleted,
    Effect,
    Event,
    ExecuteCall,
    ParallelismChanged,
    PersistState,
    PublishAssignment,
    ReportFact,
    ReportReceived,
    SourceCoordinator,
    perform,
    state_codec,
)
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.testing.reader_group import ReaderGroup

T = TypeVar("T")

_UID = "local"
_PATIENCE = 0.05
"""Seconds between two looks at readers that have nothing; they say so when they have."""


@dataclass
class LocalRun(Generic[T]):
    """One source.

    To continue after a crash make another one with the `state`, `offset` and `incarnation` of the
    first.

    Attributes:
        source: what is read.
        create_reader: see `ReaderGroup`.
        execute: for the enumerator's calls; called inline.
        collect: gets each record: subtask, record, timestamp.
        commit: called when everything that `collect` got so far is covered by the stored `offset`.
        parallelism: number of readers; `rescale` changes it.
        state: the enumerator's stored state; None for a fresh start.
        offset: the readers' stored checkpoint.
        incarnation: of the reader host; `start` adds one.
        clock: seconds since the epoch.
        idle_timeout: see `ReaderGroup`.
    """

    source: Source[Any, Any]
    create_reader: Callable[[SourceReaderContext], SourceReader[T, Any]]
    execute: CallExecutor
    collect: Callable[[int, T, int | None], None]
    commit: Callable[[], None] = lambda: None
    parallelism: int = 1
    state: str | None = None
    offset: StreamOffset = field(default_factory=StreamOffset)
    incarnation: int = 0
    clock: Callable[[], float] = time.time
    idle_timeout: float | None = None
    coordinator: SourceCoordinator[Any, Any] = field(init=False)
    group: ReaderGroup[T] = field(init=False)
    _assignment: str | None = None
    _calls: list[tuple[float, int, ExecuteCall]] = field(default_factory=list)
    _order: "itertools.count[int]" = field(default_factory=itertools.count)
    _available: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Begin, or continue from `state` and `offset`."""
        self.start_coordinator()
        self.incarnation += 1
        self.group = ReaderGroup(
            source=self.source,
            create_reader=self.create_reader,
            incarnation=self.incarnation,
            collect=self.collect,
            restored=self.offset,
            location="localhost",
            notify=self._available.set,
            idle_timeout=self.idle_timeout,
        )
        self._exchange()

    def start_coordinator(self) -> None:
        """Begin the deciding part again from `state`, while the readers continue.

        An operator that was restarted.
        """
        self._calls.clear()
        restored = (
            state_codec.decode(self.state, self.source, uid=_UID)
            if self.state is not None
            else None
        )
        self.coordinator = SourceCoordinator(
            self.source, parallelism=self.parallelism, restored=restored
        )
        self._do(self.coordinator.start(now=self.clock()))
        self._handle(ParallelismChanged(self.parallelism))

    def step(self, limit: int = 1000) -> bool:
        """Do what is due, read at most `limit` times per reader, checkpoint, exchange documents.

        Returns: whether there is more to do at once.
        """
        self._execute_due()
        has_more = self.group.poll(limit, now=self.clock())
        epoch = self.group.host.durable.epoch
        self.group.checkpoint(self._store)
        self._exchange()
        return has_more or epoch != self.group.host.durable.epoch or self._is_news()

    def run(self, *, timeout: float, limit: int = 1000) -> None:
        """Run a bounded source to its end, in steps of `limit`.

        Raises:
            TimeoutError: it has not ended within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while not self.group.is_finished:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"not at its end after {timeout:.0f} s: {self.group.host.durable.positions}"
                )
            self._available.clear()
            if not self.step(limit):
                self._available.wait(_PATIENCE)

    def rescale(self, parallelism: int) -> None:
        """Change the number of readers while they read."""
        self.parallelism = parallelism
        self._handle(ParallelismChanged(parallelism))

    def close(self) -> None:
        """Close readers and enumerator."""
        self.group.close()
        self.coordinator.close()

    # --- documents --------------------------------------------------------------------------------

    def _exchange(self) -> None:
        """The report to the coordinator, the assignment to the readers.

        As text, as in a cluster.
        """
        if (report := self.group.report()) is not None:
            text = report_document.encode(report, source=_UID)
            self._handle(ReportReceived(report_document.decode(text, source=_UID)))
        if self._assignment is not None:
            self.group.on_assignment(assignment_document.decode(self._assignment, source=_UID))

    def _is_news(self) -> bool:
        return self.coordinator.state.epoch > self.group.host.durable.epoch or bool(self._due())

    def _store(self, offset: StreamOffset) -> None:
        self.offset = offset
        self.commit()

    # --- the coordinator --------------------------------------------------------------------------

    def _due(self) -> bool:
        return bool(self._calls) and self._calls[0][0] <= self.clock()

    def _execute_due(self) -> None:
        while self._due():
            effect = heapq.heappop(self._calls)[2]
            try:
                result = self.execute(effect.call)
            except Exception as error:  # noqa: BLE001
                # Whatever it was, the enumerator decides what it means
                result = CallFailure(error)
            self._handle(CallCompleted(effect.call_id, result))

    def _handle(self, event: Event) -> None:
        self._do(self.coordinator.handle(event, now=self.clock()))

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            perform(effect, self)

    def persist_state(self, effect: PersistState) -> None:
        """See `balanced_source.coordinator.EffectPorts`."""
        self.state = state_codec.encode(effect.checkpoint, self.source, uid=_UID)

    def publish_assignment(self, effect: PublishAssignment) -> None:
        """See `balanced_source.coordinator.EffectPorts`."""
        self._assignment = assignment_document.encode(effect.assignment, source=_UID)

    def execute_call(self, effect: ExecuteCall) -> None:
        """See `balanced_source.coordinator.EffectPorts`."""
        heapq.heappush(self._calls, (self.clock() + effect.delay, next(self._order), effect))

    def report_fact(self, effect: ReportFact) -> None:
        """Facts are for people who watch."""
