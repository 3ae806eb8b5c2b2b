"""Runs a connector's reader in a task.

To fetch up to limits, or to read a sealed range once more.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final, Self

import pyarrow as pa

from balanced_source.api import (
    STOP,
    BoundedSplit,
    InputStatus,
    Position,
    SourceReader,
    SplitId,
)
from balanced_source.documents.journal import FetchLimits, JournalRecord
from balanced_source.errors import ContractViolationError, JournalError
from balanced_source.host.journaling import Share
from balanced_source.names import counted, split_name
from balanced_source.reader import SplitOutputs
from balanced_source_adapters.mistakes import package_of
from balanced_source_spark.contract.half import Query
from balanced_source_spark.contract.readers import ReadersHalf
from balanced_source_spark.journal.buffer import Buffer
from balanced_source_spark.journal.event_times import EventTimes, Unaligned
from balanced_source_spark.journal.exactness import (
    check_emitted,
    check_forward,
    check_known,
    check_moves,
    checked_gaps,
    checked_millis,
    checked_split,
)
from balanced_source_spark.journal.task_context import TaskContext
from balanced_source_spark.task_log import tell

SETTLE: Final = 100
"""Records after which it is looked where all splits are, if none of them has a stop."""

CHECKED: Final = 1000
"""First records of a task of which each one must move its split on; after that it takes too long.
"""

PAUSE: Final = 0.01
"""Seconds between two polls of which the first brought nothing."""

BETWEEN_FETCHES: Final = 2
"""Polls in a row without a record that say nothing: the end of one fetch, and an empty one."""

NAMED: Final = 20
"""Ranges that a line about lost records names."""

STALL: Final = 120.0
"""Seconds without any record after which a sealed range, or a target, cannot be reached."""


class Reading:
    """One reader on some splits, and what it has read. Use it in a `with` statement.

    Args:
        half: of the connector.
        query: see `Query`.
        settings: how the reader connects.
        share: what it reads.
        stops: split → where to stop; the others are read on.
        may_end: whether a split without a stop may come to an end.
    """

    def __init__(
        self,
        half: ReadersHalf[Any, Any, Any],
        query: Query[Any],
        settings: Mapping[str, Any],
        share: Share,
        stops: Mapping[SplitId, Position],
        *,
        may_end: bool = True,
    ) -> None:
        self._share = share
        self._stops = stops
        self._context = TaskContext(share)
        self.buffer: Buffer[Any] = Buffer(
            half.rows, query.schema, schema=partial(half.schema, query.read)
        )
        self._moved: set[SplitId] = set()
        self._times = (
            Unaligned(self.buffer.add)
            if share.beyond is None
            else EventTimes(share.beyond, self.buffer.add)
        )
        self._output = SplitOutputs[Any](
            self._times.on_record,
            # Of each record: without alignment it costs one call.
            on_split=self._moved.add if share.beyond is None else self._note_split,
            on_release=self._note_end,
            on_flush=self._flush,
        )
        self._at: dict[SplitId, Position] = dict(share.starts)
        self._left: set[SplitId] = set(share.starts)
        self._finished: set[SplitId] = set()
        self._released: set[SplitId] = set()
        self._may_end = may_end
        self._early: frozenset[SplitId] = frozenset()
        self._empty = 0
        self._has_ended = False
        self._splits = [
            checked_split(half, s, p, self._attributes(s)) for s, p in share.starts.items()
        ]
        self._reader: SourceReader[Any, Any] = half.reader(query, settings, self._context)

    def __enter__(self) -> Self:
        self._reader.start()
        self._reader.add_splits(self._splits)
        # A task gets no further splits, so a reader that has read its own may say that it is done.
        self._reader.notify_no_more_splits()
        if not self.has_stops:
            behind = self._reader.millis_behind()
            self._early = frozenset(s for s, millis in behind.items() if millis == 0)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._reader.close()
        finally:
            self.buffer.close()

    @property
    def has_stops(self) -> bool:
        """Whether any split stops somewhere."""
        return bool(self._stops)

    @property
    def is_done(self) -> bool:
        """Whether the reader has ended, or no split is left to be read as far as `settle` knows."""
        return self._has_ended or not self._left

    @property
    def is_idle(self) -> bool:
        """Whether several polls in a row brought nothing; one does between two fetches."""
        return self._empty > BETWEEN_FETCHES

    @property
    def is_catching_up(self) -> bool:
        """Whether silence does not mean that everything is read."""
        return self._reader.is_catching_up()

    @property
    def is_at_tip(self) -> bool:
        """Whether the source says that everything is read.

        No need to wait whether something comes.
        A reader that says so of a split before anything was fetched has not measured it. It is
        believed then only when a fetch of the split brought nothing.
        """
        if self.has_stops or self.is_catching_up:
            return False
        behind = self._reader.millis_behind()
        return all(behind.get(s) == 0 and self._has_looked(s) for s in self._left)

    def _has_looked(self, split_id: SplitId) -> bool:
        if split_id not in self._early:
            return True
        return self.is_idle and self._reader.is_drained(split_id)

    def poll(self) -> bool:
        """Poll once; returns whether that brought any record. Waits a little if nothing comes.

        A split is let go of as soon as it has reached its stop. So a reader that ignores stops
        reads past one by the rest of that poll at most: by nothing if a poll brings one record, as
        with `SourceReaderBase`.
        """
        before = self.buffer.count
        self._moved.clear()
        status = self._reader.poll_next(self._output)
        self._take()
        # A reader may end with its last record, and is not polled again then.
        self._has_ended = status is InputStatus.END_OF_INPUT
        if self.buffer.count > before:
            self._empty = 0
            if self._has_ended:
                self.settle()
            elif (
                self.has_stops
                or self._share.beyond is not None
                or (self._moved and before < CHECKED)
            ):
                self._settle_moved()
            elif self.buffer.count // SETTLE > before // SETTLE:
                self.settle()
            return True
        self._empty += 1
        if status is InputStatus.NOTHING_AVAILABLE:
            self._context.wait(PAUSE)
        elif status is InputStatus.MORE_AVAILABLE and self.is_idle:
            time.sleep(PAUSE)  # a reader that fetches when it is polled, and has found nothing
        self.settle()
        return False

    def settle(self) -> None:
        """Take note of positions, and let go of splits that have reached their stop."""
        found = {split.split_id: split.position for split in self._reader.snapshot_state(1)}
        # Before anything is believed: a split that is missing counts as read to its end.
        check_known(found, self._share.starts)
        for split_id in list(self._left):
            if split_id in found:
                self._advance(split_id, found[split_id])
            else:
                self._finish(split_id)
        self._let_go([s for s in self._left if s in self._stops and self._is_at(s)])

    def _note_split(self, split_id: SplitId) -> None:
        self._moved.add(split_id)
        self._times.on_split(split_id)

    def _flush(self) -> None:
        self._take()
        self.buffer.convert()

    def _take(self) -> None:
        """Take what the poll has brought, but let go of splits beyond the aligned time."""
        for split_id in self._times.take():
            self._moved.discard(split_id)
            if split_id in self._left:
                self._left.discard(split_id)
                # A reader may have ended it with the records that are kept back.
                if self._reader.snapshot_split(split_id) is not None:
                    self._reader.remove_splits([split_id])

    def _settle_moved(self) -> None:
        """Do the same for the splits of which the newest poll brought records.

        Asking for all takes too long.
        """
        if not self._moved:  # the reader does not say of which split a record is
            self.settle()
        for split_id in self._moved & self._left:
            split = self._reader.snapshot_split(split_id)
            if split is None:
                self._finish(split_id)
                continue
            check_emitted(split_id, self._at[split_id], split.position)
            self._advance(split_id, split.position)
            self._let_go([split_id] if split_id in self._stops and self._is_at(split_id) else [])

    def _advance(self, split_id: SplitId, position: Position) -> None:
        check_forward(split_id, self._at[split_id], position)
        self._at[split_id] = position

    def _let_go(self, reached: Collection[SplitId]) -> None:
        if reached:
            self._reader.remove_splits(reached)
            self._left.difference_update(reached)

    def record(self, *, has_more: bool) -> JournalRecord:
        """Return what was read so far.

        Raises:
            ContractViolationError: it cannot be read again. A record is never changed, so it is not
                even written.
        """
        # Before it is sealed: rows that cannot be made would fail at every replay.
        self.buffer.convert()
        self.settle()
        starts = self._share.starts
        moved = {s: p for s, p in self._at.items() if p != starts[s]}
        # Before it is sealed: a record is never changed, and a wrong one would fail at every
        # replay.
        check_moves(starts, moved)
        self._check_unmoved(moved)
        unmoved = self._left.difference(moved)
        # Mostly all have moved: then another look at them is saved.
        resting = self._reader.snapshot_state(1) if unmoved else ()
        return JournalRecord(
            key=self._share.key,
            # Only of splits that moved: a replay need not open the others.
            starts={s: starts[s] for s in sorted({*moved, *self._finished})},
            ends=dict(sorted(moved.items())),
            finished=frozenset(self._finished),
            # What is kept back because of its time is left for another micro-batch, too.
            has_more=has_more or bool(self._times.kept_back),
            records=self.buffer.count,
            behind={
                s: millis
                for s, millis in sorted(checked_millis(self._reader).items())
                if s in self._left
            },
            times=self._times.known(),
            # Also of splits that did not move: what comes next may look as if nothing were missing.
            gaps=dict(sorted(checked_gaps(self._reader).items())),
            read_up_to=self._share.quiet(s for s in resting if s.split_id in unmoved),
        )

    def check_exact(self) -> None:
        """Check that no split is past its stop, of those that moved last.

        Raises:
            ContractViolationError: the reader is not exact.
        """
        for split_id in self._moved or self._stops:
            stop = self._stops.get(split_id)
            if stop is None:
                continue
            if (self._at[split_id] or 0) > stop:
                raise ContractViolationError(
                    f"split {split_id} was sealed up to position {stop}, and reading it again leads"
                    f" to {self._at[split_id]}: the connector's positions are not exact"
                )

    def _check_unmoved(self, moved: Collection[SplitId]) -> None:
        """Check that no split has emitted records and stays where it was.

        They would come again, and never replay.

        Raises:
            ContractViolationError: one has.
        """
        emitted = self._output.records()
        stuck = sorted(s for s in self._left if emitted.get(s) and s not in moved)
        if stuck or (self.buffer.count and not moved and not self._finished):
            where = (
                f"split {stuck[0]} stays at {self._at[stuck[0]]!r}"
                if stuck
                else "no split has moved"
            )
            raise ContractViolationError(
                f"the reader has emitted records, and {where}: move the position of a split behind"
                " each record that it emits"
            )

    def _note_end(self, split_id: SplitId) -> None:
        """Note where a split ends: the snapshots after this one do not have it any more."""
        if split_id in self._times.kept_back:
            return
        for split in self._reader.snapshot_state(1):
            if split.split_id == split_id:
                self._at[split_id] = split.position
                # A reader that forgets a split first has not said where it ended it.
                self._released.add(split_id)

    def _is_at(self, split_id: SplitId) -> bool:
        return (self._at[split_id] or 0) >= (self._stops[split_id] or 0)

    def _finish(self, split_id: SplitId) -> None:
        """The reader has ended a split: at the split's own end, or at a stop that was set here."""
        self._left.discard(split_id)
        stop = self._share.attributes.get(split_id, {}).get(STOP)
        if split_id in self._stops and self._stops[split_id] != stop:
            if not self._is_short(split_id):
                self._at[split_id] = self._stops[split_id]
            return
        if stop is None:
            self._check_end(split_id)
        self._finished.add(split_id)
        if stop is not None:
            self._at[split_id] = stop

    def _check_end(self, split_id: SplitId) -> None:
        """Check that a split without a stop may end. Nothing more of it would ever be read.

        Raises:
            ContractViolationError: the source says that its splits do not end.
        """
        if self._may_end or any(
            split.split_id == split_id
            and isinstance(split, BoundedSplit)
            and split.stopping_position is not None
            for split in self._splits
        ):
            return
        raise ContractViolationError(
            f"the reader has ended split {split_id} at position {self._at[split_id]}: it was in"
            " finished_splits, or snapshot_state left it out. The split has no stop, and"
            " has_ending_splits of the source is False. Return True there if splits of the source"
            " end. If not, keep the split in snapshot_state, and do not name it in finished_splits"
        )

    def _is_short(self, split_id: SplitId) -> bool:
        """Whether a split was ended before its stop, and the rest may still be there.

        Then the next micro-batch looks again. If nothing comes there, nothing is there: positions
        may have gaps. Where the reader has not said where it ended the split, its word counts.
        """
        has_moved = self._at[split_id] != self._share.starts[split_id]
        return has_moved and split_id in self._released and not self._is_at(split_id)

    def _attributes(self, split_id: SplitId) -> Mapping[str, Any]:
        known = self._share.attributes.get(split_id, {})
        return {**known, STOP: self._stops[split_id]} if split_id in self._stops else known


def fetch(reading: Reading, limits: FetchLimits) -> JournalRecord:
    """Read until a limit is met, or until the reader is caught up."""
    begun = last = time.monotonic()
    # Up to a stop records are known to be there, so silence means that they are late.
    patience = STALL if reading.has_stops else limits.wait_millis / 1000
    while not reading.is_done:
        if reading.poll():
            last = time.monotonic()
            if _is_full(reading.buffer, limits) or _is_late(begun, last, limits):
                return reading.record(has_more=not reading.is_done)
        elif _is_late(begun, time.monotonic(), limits):
            return reading.record(has_more=reading.is_catching_up or reading.buffer.count > 0)
        elif _is_caught_up(reading, time.monotonic() - last, patience):
            break
    return reading.record(has_more=False)


def read_again(
    reading: Reading, record: JournalRecord, *, connector: str, may_skip: Callable[[], bool]
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a sealed range.

    Those that are gone are skipped if the user accepts that, and said.

    Args:
        reading: of the range.
        record: what was sealed.
        connector: its kind, for messages.
        may_skip: whether the user accepts that; asked when rows are gone.

    Raises:
        JournalError: they are not there any more, at least for now. The task fails, and the
            micro-batch with it.
        ContractViolationError: the reader is not exact.
    """
    last = time.monotonic()
    while not reading.is_done:
        if reading.poll():
            last = time.monotonic()
            # After each poll: more than what was sealed must never be emitted.
            reading.check_exact()
        elif time.monotonic() - last >= STALL:
            break
    _check_count(reading, record)
    if not reading.is_done or reading.buffer.count < record.records:
        if not may_skip():
            raise JournalError(
                f"{_difference(reading, record)}: the source does not have them any more. Restore"
                " them there, or allow that they are skipped, if the connector has an option for"
                f" that. If they are there, connector {connector!r} of {package_of(connector)} does"
                " not read the same range again: report this to the authors of the package"
            )
        tell("warning", _loss(reading, record))
    # Only now: rows that were emitted before a failure could not be taken back.
    yield from reading.buffer.batches()


def _check_count(reading: Reading, record: JournalRecord) -> None:
    """More records than before: which of them were sealed is unknown."""
    if reading.buffer.count > record.records:
        raise ContractViolationError(
            f"{_difference(reading, record)}: the connector's positions are not exact"
        )


def _difference(reading: Reading, record: JournalRecord) -> str:
    return (
        f"micro-batch {record.key.number} of reader {record.key.reader} has"
        f" {counted(record.records, 'record')}, and {reading.buffer.count} when it is read again"
    )


def _loss(reading: Reading, record: JournalRecord) -> str:
    """A reader does not say which records are missing, so all ranges of the task are named."""
    ranges = [
        f"{split_name(s)}: {record.starts[s]} to {end}" for s, end in sorted(record.ends.items())
    ]
    shown = ", ".join(ranges[:NAMED]) + (
        f", and {len(ranges) - NAMED} more" if len(ranges) > NAMED else ""
    )
    return (
        f"{record.records - reading.buffer.count} of {counted(record.records, 'record')} of"
        f" micro-batch {record.key.number} went missing at the source since reader"
        f" {record.key.reader} sealed it, and had to be skipped. What is gone is among {shown}"
    )


def _is_caught_up(reading: Reading, silence: float, patience: float) -> bool:
    """Whether the source says so, or nothing has come for long enough to take it for that."""
    return reading.is_at_tip or (
        reading.is_idle and silence >= patience and not reading.is_catching_up
    )


def _is_full(buffer: Buffer[Any], limits: FetchLimits) -> bool:
    is_many = limits.max_records is not None and buffer.count >= limits.max_records
    return is_many or (limits.max_bytes is not None and buffer.bytes >= limits.max_bytes)


def _is_late(begun: float, now: float, limits: FetchLimits) -> bool:
    return limits.max_millis is not None and now - begun >= limits.max_millis / 1000
