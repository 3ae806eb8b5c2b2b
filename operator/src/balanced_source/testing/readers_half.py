"""What every `ReadersHalf` must do.

A half whose tasks get readers, and seal where these have stopped.

The suite drives the half as a task does: it makes splits and a reader, polls, takes snapshots, and
turns records into rows. It needs pyarrow, as the half itself does, but no Spark.
"""

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

from balanced_source.api import STOP, InputStatus, Json, Position, SplitId
from balanced_source.names import counted
from balanced_source.reader import SplitOutputs, kept
from balanced_source.testing.planner_hooks import PlannerHooksContract
from balanced_source.testing.source_reader import DEADLINE, Context
from balanced_source.testing.waiting import wait_until

Row = Mapping[str, Any]

SILENT_POLLS = 20
"""Polls after the last record in which a split may still end."""

SILENCE = 0.005
"""Seconds between two of them, unless the reader says that something is there."""


class ReadersHalfContract(PlannerHooksContract):
    """Derive, implement the hooks, and name the class ``Test…``.

    Attributes:
        has_ending_splits: what `Source.has_ending_splits` returns.
    """

    has_ending_splits: bool = False

    def settings(self) -> Mapping[str, Any]:
        """What `Source.reader_settings` returns."""
        raise NotImplementedError

    def splits(self) -> Mapping[SplitId, Mapping[str, Json]]:
        """Two splits or more that have records now → their attributes.

        The same at each call within a test.
        """
        raise NotImplementedError

    def first(self, split_id: SplitId) -> Position:
        """Where the enumerator lets reading of a split begin."""
        del split_id
        return None

    def rows(self, split_id: SplitId) -> Sequence[Row]:
        """The rows of all records that a split has now: column → value, in their order.

        Three or more.
        """
        raise NotImplementedError

    def test_tasks_can_unpickle_it(self) -> None:
        """Half and query travel to the executors with each micro-batch."""
        # Its own bytes
        half, query = pickle.loads(pickle.dumps((self.half(), self.query())))  # noqa: S301

        split_id = self._one()
        rows = self._rows(split_id)
        assert _Task(self, [split_id], half=half, query=query).read(len(rows)) == rows

    def test_settings_and_splits_travel_as_json(self) -> None:
        settings = json.loads(json.dumps(dict(self.settings())))
        assert settings == self.settings()
        for split_id, attributes in self.splits().items():
            assert tuple(json.loads(json.dumps(split_id))) == split_id
            assert json.loads(json.dumps(dict(attributes))) == attributes

    def test_a_split_is_what_was_asked_for(self) -> None:
        half = self.half()
        for split_id, attributes in self.splits().items():
            for position in [self.first(split_id), *self._positions(split_id)]:
                made = half.split(split_id, position, attributes)
                assert made.split_id == split_id
                assert position is None or made.position == position
                assert made.at(position).split_id == split_id

    def test_every_record_is_a_row_in_its_order(self) -> None:
        for split_id in self.splits():
            rows = self._rows(split_id)
            assert _Task(self, [split_id]).read(len(rows)) == rows

    def test_batches_of_any_size_have_the_same_columns(self) -> None:
        split_id = self._one()
        count, whole = len(self.rows(split_id)), _Task(self, [split_id])
        rows = whole.read(count)

        for size in (1, 2):
            task = _Task(self, [split_id], size=size)
            assert task.read(count) == rows
            assert all(part.schema == whole.batches[0].schema for part in task.batches)

    def test_the_columns_are_those_of_its_schema(self) -> None:
        split_id, half = self._one(), self.half()
        task = _Task(self, [split_id])
        task.read(1)
        schema = half.schema(self.query().read)
        named = getattr(schema, "names", None)
        wanted = list(named) if named is not None else _names(str(schema))

        assert task.batches[0].schema.names == wanted

    def test_positions_are_numbers_that_grow_behind_each_record(self) -> None:
        """A reader may emit several records in a poll: its split moves by as many then, or more."""
        for split_id in self.splits():
            total, marks = len(self.rows(split_id)), self._marks(split_id)
            lost = [
                mark.records for mark in marks if mark.position is None and mark.records < total
            ]
            assert not lost, (
                f"after {lost} of {counted(total, 'record')}, snapshot_state has no {split_id}"
            )

            marks = [*self._begin(split_id), *_known(marks)]
            assert all(type(mark.position) is int for mark in marks), marks
            for before, after in pairwise(marks):
                moved = after.position - before.position
                assert moved >= after.records - before.records, "each record moves its split"

    def test_from_each_position_on_exactly_the_rest_comes(self) -> None:
        for split_id in self.splits():
            rows = self._rows(split_id)
            for count, position in _known(self._marks(split_id)):
                again = _Task(self, [split_id], starts={split_id: position})
                if count < len(rows):
                    assert again.read(len(rows) - count) == rows[count:]

    def test_a_sealed_range_is_read_again_record_by_record(self) -> None:
        """Whether the reader honours `STOP` or not: the task ends it where it was sealed."""
        for split_id in self.splits():
            rows, marks = self._rows(split_id), _known(self._marks(split_id))
            for index in sorted({0, len(marks) // 2 - 1, len(marks) - 2, len(marks) - 1}):
                if not 0 <= index < len(marks):
                    continue
                count, position = marks[index]
                task = _Task(self, [split_id], stops={split_id: position})
                assert task.read(count) == rows[:count]
                assert task.position(split_id) in (position, None), "it is there, or has ended"

    def test_a_split_that_ends_before_its_stop_says_where(self) -> None:
        """A task that is not told believes that the split was read up to its stop.

        Release the output of the split first: `snapshot_state` says then where it ends.
        """
        for split_id, attributes in self.splits().items():
            if STOP in attributes:
                continue
            rows, beyond = self._rows(split_id), self._behind(split_id) + 1
            task = _Task(self, [split_id], stops={split_id: beyond})
            assert task.read(len(rows), reads_on=True) == rows
            where = task.position(split_id), task.ended.get(split_id)
            assert where != (None, None), f"{split_id} has ended, and nothing says where"

    def test_a_split_ends_only_if_splits_of_the_source_end(self) -> None:
        """A split that is in `finished_splits`, or missing in a snapshot, is never read again."""
        split_ids = [s for s, known in self.splits().items() if STOP not in known]
        if self.has_ending_splits:
            return
        for split_id in split_ids:
            count = len(self.rows(split_id))
            for number in (0, count):
                task = _Task(self, [split_id])
                task.read(number, reads_on=number == count)
                assert task.position(split_id) is not None, (
                    f"{split_id} has ended after {counted(number, 'record')}, and has_ending_splits"
                    " is False"
                )

    def test_splits_beside_each_other_are_read_as_one_by_one(self) -> None:
        split_ids = list(self.splits())
        wanted = {split_id: self._rows(split_id) for split_id in split_ids}

        task = _Task(self, split_ids)
        found = task.read(sum(map(len, wanted.values())))

        for split_id, rows in wanted.items():
            assert [row for row in found if row in rows] == rows, split_id
        assert len(found) == sum(map(len, wanted.values()))

    def test_what_it_says_of_time_is_in_whole_milliseconds(self) -> None:
        split_id = self._one()
        task = _Task(self, [split_id])
        task.read(1)

        assert task.behind.keys() <= {split_id}
        assert all(type(millis) is int and millis >= 0 for millis in task.behind.values()), (
            task.behind
        )

    def test_each_record_has_its_time_if_splits_can_be_aligned(self) -> None:
        with self._closing() as hooks:
            if not hooks.tells_event_times:
                return
        task = _Task(self, [self._one()])
        task.read(1)

        assert task.times, "no record came by the output of its split"
        assert all(type(time) is int for time in task.times), task.times

    def test_it_is_not_at_its_tip_while_records_are_left(self) -> None:
        """A task ends when all splits are 0 behind and a poll brings nothing."""
        for split_id in self.splits():
            task = _Task(self, [split_id])
            task.read(len(self.rows(split_id)))
            assert task.tip is None, (
                f"millis_behind of {split_id} is 0 after {counted(task.tip, 'record')},"
                " is_catching_up is False, and more records come"
            )

    def test_a_task_may_end_at_any_time(self) -> None:
        """It is killed, overtaken, or at its limit.

        What was fetched and not emitted is read again.
        """
        split_id = self._one()
        for count in (0, 1):
            _Task(self, [split_id]).read(count)

        rows = self._rows(split_id)
        assert _Task(self, [split_id]).read(len(rows)) == rows

    def _settings(self) -> Mapping[str, Any]:
        return self.settings()

    def _bounds(self) -> Mapping[SplitId, tuple[int, int]]:
        return {s: (int(self.first(s) or 0), self._behind(s)) for s in self.splits()}

    def _one(self) -> SplitId:
        return next(iter(self.splits()))

    def _rows(self, split_id: SplitId) -> list[Row]:
        return [dict(row) for row in self.rows(split_id)]

    def _begin(self, split_id: SplitId) -> "list[_SplitMark]":
        first = self.first(split_id)
        return [] if first is None else [_SplitMark(0, first)]

    def _marks(self, split_id: SplitId) -> "list[_SplitMark]":
        """Where a split is after each poll that brings records."""
        task = _Task(self, [split_id])
        task.read(len(self.rows(split_id)))
        return task.marks

    def _positions(self, split_id: SplitId) -> list[Any]:
        return [mark.position for mark in _known(self._marks(split_id))]

    def _behind(self, split_id: SplitId) -> int:
        """The position behind the last record; the least it can be, if the reader does not say."""
        least = int(self.first(split_id) or 0) + len(self.rows(split_id))
        last: int = max([least, *self._positions(split_id)])
        return last


class _SplitMark(NamedTuple):
    """How many records a split has brought, and where it is then; None if that is unknown."""

    records: int
    position: Any


def _known(marks: "Sequence[_SplitMark]") -> "list[_SplitMark]":
    return [mark for mark in marks if mark.position is not None]


class _Task:
    """A task on some splits; reads once.

    Attributes:
        batches: rows of what it has read.
        count: records that it has read.
        marks: of each poll that brought anything; for a task on one split.
        ended: where splits were when their outputs were released; None if that is unknown.
        behind: what the reader said of time in the end.
        tip: records after which the reader said, without any in that poll, that it is at its tip;
            None if it never did.
    """

    def __init__(
        self,
        suite: ReadersHalfContract,
        split_ids: Sequence[SplitId],
        *,
        half: Any = None,
        query: Any = None,
        starts: Mapping[SplitId, Position] | None = None,
        stops: Mapping[SplitId, Position] | None = None,
        size: int = 2**62,
    ) -> None:
        self._size = size
        self._half, self._query, self._suite = half or suite.half(), query or suite.query(), suite
        self._stops = stops or {}
        self._starts = {s: suite.first(s) for s in split_ids} | dict(starts or {})
        self._at: Mapping[SplitId, Position] = {}
        self._status = InputStatus.MORE_AVAILABLE
        self._context = Context()
        self._output: SplitOutputs[Any] = SplitOutputs(
            self._add,
            on_split=self._note_split,
            on_release=self._note_end,
            on_flush=self._convert,
        )
        self._is_of_split = False
        self.times: list[int | None] = []
        self._records: list[Any] = []
        self.batches: list[Any] = []
        self.count = 0
        self.tip: int | None = None
        self.marks: list[_SplitMark] = []
        self.ended: dict[SplitId, Position] = {}
        self.behind: Mapping[SplitId, int] = {}

    def read(self, count: int, *, reads_on: bool = False) -> list[Row]:
        """Read until there are so many records; returns all rows.

        Args:
            count: records.
            reads_on: whether to continue until nothing comes any more.
        """
        with self._running() as self._reader:
            self._at = self._snapshot()
            self._note_tip()
            wait_until(lambda: self._has(count), DEADLINE, counted(count, "record"))
            if reads_on:
                self._read_on()
            self.behind = self._reader.millis_behind()
        self._convert()
        return [row for batch in self.batches for row in batch.to_pylist()]

    def position(self, split_id: SplitId) -> Position:
        """Where a split is; None if the reader had ended it."""
        return self._at.get(split_id)

    @contextmanager
    def _running(self) -> Iterator[Any]:
        splits = [
            self._half.split(s, position, self._attributes(s))
            for s, position in self._starts.items()
        ]
        settings = json.loads(json.dumps(dict(self._suite.settings())))
        reader = self._half.reader(self._query, settings, self._context)
        try:
            reader.start()
            reader.add_splits(splits)
            reader.notify_no_more_splits()
            yield reader
        finally:
            reader.close()

    def _attributes(self, split_id: SplitId) -> Mapping[str, Json]:
        known = self._suite.splits()[split_id]
        return {**known, STOP: self._stops[split_id]} if split_id in self._stops else known

    def _has(self, count: int) -> bool:
        while self.count < count:
            before = self.count
            self._poll()
            if self.count == before:
                self._note_tip()
                return False
        return True

    def _note_split(self, _: SplitId) -> None:
        self._is_of_split = True

    def _add(self, record: Any, timestamp: int | None) -> None:
        if self._is_of_split:
            self.times.append(timestamp)
        # As a task does: the reader may change the record afterwards.
        self._records.append(kept(record))
        self.count += 1
        if len(self._records) >= self._size:
            self._convert()

    def _convert(self) -> None:
        if self._records:
            self.batches.append(self._half.rows(self._records))
            self._records = []

    def _read_on(self) -> None:
        """A split may end in a poll that brings nothing, or not at all."""
        for _ in range(SILENT_POLLS):
            if self._status is InputStatus.END_OF_INPUT:
                return
            self._context.available.wait(SILENCE)
            self._context.available.clear()
            self._poll()

    def _poll(self) -> None:
        # As a task does: a reader that has ended is not polled again.
        assert self._status is not InputStatus.END_OF_INPUT, (
            f"the reader has ended after {counted(self.count, 'record')}"
        )
        before = self.count
        self._status = self._reader.poll_next(self._output)
        self._at = self._snapshot()
        if self.count > before:
            split_id = next(iter(self._starts))
            position = self._at.get(split_id, self.ended.get(split_id))
            self.marks.append(_SplitMark(self.count, position))

    def _snapshot(self) -> Mapping[SplitId, Position]:
        return {split.split_id: split.position for split in self._reader.snapshot_state(1)}

    def _note_tip(self) -> None:
        behind = self._reader.millis_behind()
        if self._reader.is_catching_up() or not self._at:
            return
        if all(behind.get(split_id) == 0 for split_id in self._at):
            self.tip = self.count

    def _note_end(self, split_id: SplitId) -> None:
        self.ended[split_id] = self._snapshot().get(split_id)


def _names(ddl: str) -> list[str]:
    """The names of columns in DDL such as ``number BIGINT, price DECIMAL(10, 2)``."""
    columns, depth = [""], 0
    for character in ddl:
        depth += (character in "(<") - (character in ")>")
        if character == "," and not depth:
            columns.append("")
        else:
            columns[-1] += character
    return [column.split()[0].rstrip(":").strip("`") for column in columns]
