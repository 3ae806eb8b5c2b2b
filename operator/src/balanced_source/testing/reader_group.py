"""All readers of one reader host, driven by the documents: for any connector, and without Spark.

It does with `SourceReader`s what the Spark data source does with ranges: it registers with what its
checkpoint holds, adopts each assignment at a checkpoint, passes custom events on, and reports.
Pure: the caller moves documents, stores checkpoints, and decides when.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from balanced_source.api import (
    SPLIT_REQUEST,
    BoundedSplit,
    InputStatus,
    Position,
    Source,
    SourceEvent,
    SourceReader,
    SourceReaderContext,
    SplitId,
)
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host import ReaderHost
from balanced_source.reader import SplitOutputs
from balanced_source.testing.alignment import AlignmentGroup, SplitAlignment
from balanced_source.testing.idleness import SplitIdleness

T = TypeVar("T")


@dataclass(slots=True)
class _Reader(Generic[T]):
    reader: SourceReader[T, Any]
    output: SplitOutputs[T]
    idleness: SplitIdleness | None = None
    alignment: SplitAlignment = field(default_factory=SplitAlignment)
    member: object = field(default_factory=object)
    has_ended: bool = False

    def look(self, now: float, *, is_held_up: bool) -> None:
        """Mark splits idle of which nothing came, though it could have."""
        if self.idleness is not None:
            activity = self.output.activity()
            held = activity.keys() if is_held_up else self.alignment.paused
            self.output.mark_splits_idle(self.idleness.look(now, activity, held=held))

    def align(self, max_allowed: int) -> None:
        """Pause splits that are too far ahead, continue with those that are not any more."""
        if change := self.alignment.check(self.output.split_watermarks(), max_allowed):
            self.reader.pause_or_resume_splits(change.to_pause, change.to_resume)


@dataclass(slots=True)
class ReaderGroup(Generic[T]):
    """See the module; used by one thread.

    Attributes:
        source: makes the splits.
        create_reader: makes a reader without splits (FLIP-27 ``Source.createReader``). Its splits
            come by `SourceReader.add_splits`, also after a restore.
        incarnation: number of this attempt, one more than any seen before in the documents.
        collect: gets each record: subtask, record, timestamp. What it got counts as delivered at
            the next checkpoint.
        restored: the checkpoint to continue from; empty for a fresh start.
        name: of the host within its source.
        location: host name, for readers and reports.
        notify: called by any thread when `poll` is worth calling.
        alignment: what these readers, and maybe those of other groups and sources in this process,
            are members of; None lets splits drift apart.
        idle_timeout: seconds without anything from a split after which no one waits for its
            watermark; None: forever.
    """

    source: Source[Any, Any]
    create_reader: Callable[[SourceReaderContext], SourceReader[T, Any]]
    incarnation: int
    collect: Callable[[int, T, int | None], None]
    restored: StreamOffset = field(default_factory=StreamOffset)
    name: str = "0"
    location: str = ""
    notify: Callable[[], None] = lambda: None
    alignment: AlignmentGroup[object] | None = None
    idle_timeout: float | None = None
    host: ReaderHost = field(init=False)
    _readers: dict[int, _Reader[T]] = field(default_factory=dict)
    _sequence: int = 0
    _completed: int = 0

    def __post_init__(self) -> None:
        # What was restored is committed: the host reports it, and reads nothing before it is
        # addressed.
        self.host = ReaderHost(name=self.name, incarnation=self.incarnation).on_committed(
            self.restored
        )

    @property
    def is_finished(self) -> bool:
        """Whether all readers have come to the end of a bounded source."""
        return bool(self._readers) and all(entry.has_ended for entry in self._readers.values())

    def on_assignment(self, assignment: Assignment) -> None:
        """A document was seen; it takes effect at the next checkpoint."""
        self.host = self.host.on_assignment(assignment)

    def poll(self, limit: int = 1000, *, now: float = 0.0, is_held_up: bool = False) -> bool:
        """Let each reader emit up to `limit` times; whether any of them has more at once.

        Args:
            limit: see above.
            now: seconds, never less than before; counts with an `idle_timeout` only.
            is_held_up: whether the time since the last call was spent downstream: then no split was
                silent.

        Raises:
            Exception: a reader failed; close the group and begin again from the last checkpoint.
        """
        has_more = [self._poll(subtask, limit) for subtask in list(self._readers)]
        for entry in self._readers.values():
            entry.look(now, is_held_up=is_held_up)
        if self.alignment is not None:
            self._align(self.alignment)
        return any(has_more)

    def checkpoint(self, store: Callable[[StreamOffset], None]) -> None:
        """Store positions behind everything that was emitted.

        Then adopt the newest assignment, and store that too.

        Args:
            store: makes an offset durable, together with the records before it if the sink can.
        """
        # Where everything stands comes first: it is the last word about splits that go away by
        # adopting.
        self._commit(replace(self.host.durable, positions=self._positions(), starts={}), store)
        self.host, base = self.host.base()
        if base is not None and base.epoch > self.host.durable.epoch:
            before = self.host.durable
            # Stored before readers get their splits: what is adopted is acknowledged by the next
            # report.
            self._commit(base, store)
            self._adopt(before, base)
        # After adopting, because a reader has its splits before it hears of them.
        self._hand_over_events()

    def report(self, **numbers: Any) -> HostReport | None:
        """What to write: registration, acknowledgement, positions and events.

        See `ReaderHost.report`.
        """
        self._sequence += 1
        return self.host.report(sequence=self._sequence, location=self.location, **numbers)

    def send_event(self, subtask_id: int, event: SourceEvent) -> None:
        """A reader says something; it goes with the next reports."""
        self.host = self.host.send_event(subtask_id, event)
        self.notify()

    def close(self) -> None:
        """Close all readers; no one of their alignment group waits for them any more."""
        for entry in self._readers.values():
            self._close(entry)
        self._readers.clear()

    # --- reading ----------------------------------------------------------------------------------

    def _poll(self, subtask: int, limit: int) -> bool:
        entry = self._readers[subtask]
        for _ in range(limit):
            if entry.has_ended:
                return False
            status = entry.reader.poll_next(entry.output)
            entry.has_ended = status is InputStatus.END_OF_INPUT
            if status is InputStatus.NOTHING_AVAILABLE:
                return False
        return True

    def _close(self, entry: _Reader[T]) -> None:
        entry.reader.close()
        if self.alignment is not None:
            self.alignment.leave(entry.member)

    def _align(self, group: AlignmentGroup[object]) -> None:
        # All report before anybody is held, or the first would be compared with old watermarks.
        for entry in self._readers.values():
            watermarks = entry.output.watermarks
            if entry.has_ended:
                group.leave(entry.member)
            else:
                group.report(entry.member, watermarks.watermark, is_idle=watermarks.is_idle)
        for entry in self._readers.values():
            entry.align(group.max_allowed)

    def _positions(self) -> Mapping[SplitId, Position]:
        """Where each split continues.

        One that its reader does not have any more was read to its end.
        """
        held: dict[SplitId, Position] = {}
        for entry in self._readers.values():
            held.update(
                (s.split_id, s.position) for s in entry.reader.snapshot_state(self._completed + 1)
            )
        durable = self.host.durable
        return {s: held[s] if s in held else self._end(durable, s) for s in durable.positions}

    def _end(self, offset: StreamOffset, split_id: SplitId) -> Position:
        if offset.owners[split_id] not in self._readers:
            return offset.positions[split_id]  # no one reads before the first assignment
        split = self._split(offset, split_id)
        return split.stopping_position if isinstance(split, BoundedSplit) else split.position

    def _commit(self, offset: StreamOffset, store: Callable[[StreamOffset], None]) -> None:
        store(offset)
        self.host = self.host.on_planned(offset).on_committed(offset)
        self._completed += 1
        for entry in self._readers.values():
            entry.reader.notify_checkpoint_complete(self._completed)

    # --- adopting ---------------------------------------------------------------------------------

    def _adopt(self, before: StreamOffset, now: StreamOffset) -> None:
        # Readers let go first: a split that moves between them must never have two.
        for subtask, entry in self._readers.items():
            gone = [
                s
                for s, owner in before.owners.items()
                if owner == subtask and now.owners.get(s) != subtask
            ]
            entry.reader.remove_splits(gone)
            entry.alignment.forget(gone)
            for split_id in gone:
                entry.output.release_output_for_split(split_id)
        for subtask in [s for s in self._readers if s not in now.readers]:
            self._close(self._readers.pop(subtask))
        fresh = [subtask for subtask in now.readers if subtask not in self._readers]
        for subtask in fresh:
            self._open(subtask)
        for subtask in now.readers:
            held = (
                ()
                if subtask in fresh
                else (s for s, owner in before.owners.items() if owner == subtask)
            )
            self._give(subtask, now, frozenset(held))

    def _open(self, subtask: int) -> None:
        def on_record(record: T, timestamp: int | None) -> None:
            self.collect(subtask, record, timestamp)

        reader = self.create_reader(_Context(self, subtask))
        idleness = None if self.idle_timeout is None else SplitIdleness(self.idle_timeout)
        self._readers[subtask] = _Reader(reader, SplitOutputs(on_record), idleness)
        reader.start()

    def _give(self, subtask: int, now: StreamOffset, held: Iterable[SplitId]) -> None:
        entry = self._readers[subtask]
        owned = sorted(
            s for s, owner in now.owners.items() if owner == subtask and s not in frozenset(held)
        )
        splits = [
            split for split in (self._split(now, s) for s in owned) if not _is_finished(split)
        ]
        if splits:
            entry.reader.add_splits(splits)
            entry.has_ended = False
        assignment = self.host.assignment
        # After the splits: a reader that was told the end must not get more.
        if assignment is not None and subtask in assignment.no_more_splits:
            entry.reader.notify_no_more_splits()

    def _split(self, offset: StreamOffset, split_id: SplitId) -> Any:
        return self.source.create_split(
            split_id, offset.positions[split_id], offset.attributes.get(split_id, {})
        )

    def _hand_over_events(self) -> None:
        self.host, fresh = self.host.take_events()
        for numbered in fresh:
            self._readers[numbered.subtask_id].reader.handle_source_event(numbered.event)


@dataclass(frozen=True, slots=True)
class _Context(SourceReaderContext):
    group: ReaderGroup[Any]
    subtask: int

    @property
    def subtask_id(self) -> int:
        return self.subtask

    @property
    def location(self) -> str:
        return self.group.location

    def current_parallelism(self) -> int:
        return self.group.host.durable.parallelism

    def send_split_request(self) -> None:
        self.group.send_event(self.subtask, SPLIT_REQUEST)

    def send_source_event_to_coordinator(self, event: SourceEvent) -> None:
        self.group.send_event(self.subtask, event)

    def notify_available(self) -> None:
        self.group.notify()


def _is_finished(split: Any) -> bool:
    return isinstance(split, BoundedSplit) and split.is_finished
