"""What every `SourceReader` of bounded splits must do."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from balanced_source.api import (
    BoundedSplit,
    InputStatus,
    SourceEvent,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from balanced_source.reader import SplitOutputs
from balanced_source.testing.waiting import wait_until

DEADLINE = 20.0
"""Seconds until a reader that should have emitted something fails the test."""


@dataclass
class Context(SourceReaderContext):
    """Of a reader under test: notes what it says."""

    subtask_id: int = 0
    location: str = "here"
    requests: int = 0
    events: list[SourceEvent] = field(default_factory=list)
    available: threading.Event = field(default_factory=threading.Event)

    def current_parallelism(self) -> int:
        return 1

    def send_split_request(self) -> None:
        self.requests += 1

    def send_source_event_to_coordinator(self, event: SourceEvent) -> None:
        self.events.append(event)

    def notify_available(self) -> None:
        self.available.set()


class SourceReaderContract:
    """Derive, implement the hooks, and name the class ``Test…``."""

    def make_reader(self, context: SourceReaderContext) -> SourceReader[Any, Any]:
        """A fresh reader, not started."""
        raise NotImplementedError

    def splits(self) -> Sequence[BoundedSplit]:
        """Two splits or more with some records each; the same at each call within a test."""
        raise NotImplementedError

    def records(self, split: SourceSplit) -> Sequence[Any]:
        """What is to come out of a split, from its position on.

        Records of different splits are different.
        """
        raise NotImplementedError

    def all_records(self) -> list[Any]:
        """Of all splits."""
        return [record for split in self.splits() for record in self.records(split)]

    def test_all_records_of_each_split_in_their_order(self) -> None:
        with self._running(self.splits()) as running:
            running.to_the_end()

        for split in self.splits():
            wanted = list(self.records(split))
            assert [record for record in running.records if record in wanted] == wanted
        assert len(running.records) == len(self.all_records())

    def test_the_end_comes_only_when_nothing_more_will_be_given(self) -> None:
        first, second = self.splits()[:2]
        with self._running([first]) as running:
            running.until(lambda: len(running.records) == len(self.records(first)))
            for _ in range(3):
                assert running.poll() is not InputStatus.END_OF_INPUT
            running.reader.add_splits([second])
            running.to_the_end()

        assert sorted(running.records) == sorted([*self.records(first), *self.records(second)])
        assert list(running.reader.snapshot_state(1)) == []

    def test_from_any_snapshot_on_exactly_the_rest_comes(self) -> None:
        total = len(self.all_records())
        for count in sorted({0, 1, 2, total // 2, total - 1, total}):
            with self._running(self.splits()) as first:
                first.until(partial(first.has, count))
                snapshot = first.reader.snapshot_state(1)
                again = first.reader.snapshot_state(2)
            with self._running(snapshot) as second:
                second.to_the_end()

            assert list(again) == list(snapshot), "a snapshot changes nothing"
            # All of the first: a reader may emit several records in a poll.
            assert sorted(first.records + second.records) == sorted(self.all_records())

    def test_a_removed_split_continues_in_another_reader(self) -> None:
        moving = self.splits()[0]
        with self._running(self.splits()) as first, self._running([]) as second:
            first.until(lambda: bool(first.records))
            if moved := first.reader.remove_splits([moving.split_id]):
                second.reader.add_splits(moved)
            first.to_the_end()
            second.to_the_end()

        assert sorted(first.records + second.records) == sorted(self.all_records())

    def test_what_is_unknown_is_nothing_to_take_away(self) -> None:
        with self._running([]) as running:
            assert (
                list(running.reader.remove_splits([split.split_id for split in self.splits()]))
                == []
            )

    def test_who_waits_is_told(self) -> None:
        """After NOTHING_AVAILABLE the host does not ask again until it is told.

        No record is left behind by that.
        """
        with self._running(self.splits()) as running:
            running.reader.notify_no_more_splits()
            while (status := running.poll()) is not InputStatus.END_OF_INPUT:
                if status is InputStatus.NOTHING_AVAILABLE:
                    running.context.available.wait(0.05)
                    running.context.available.clear()

        assert sorted(running.records) == sorted(self.all_records())

    @contextmanager
    def _running(self, splits: Sequence[SourceSplit]) -> "Iterator[_Running]":
        context = Context()
        running = _Running(self.make_reader(context), context)
        running.reader.start()
        try:
            if splits:
                running.reader.add_splits(splits)
            yield running
        finally:
            running.reader.close()


class _Running:
    def __init__(self, reader: SourceReader[Any, Any], context: Context) -> None:
        self.reader = reader
        self.context = context
        self.records: list[Any] = []
        self.output: SplitOutputs[Any] = SplitOutputs(lambda record, _: self.records.append(record))

    def has(self, count: int) -> bool:
        return len(self.records) >= count

    def poll(self) -> InputStatus:
        return self.reader.poll_next(self.output)

    def until(self, condition: Callable[[], bool]) -> None:
        def polled() -> bool:
            while not condition():
                if self.poll() is not InputStatus.MORE_AVAILABLE:
                    return condition()
            return True

        wait_until(polled, DEADLINE, "records")

    def to_the_end(self) -> None:
        self.reader.notify_no_more_splits()

        def has_ended() -> bool:
            while (status := self.poll()) is InputStatus.MORE_AVAILABLE:
                pass
            return status is InputStatus.END_OF_INPUT

        wait_until(has_ended, DEADLINE, "the end of input")
