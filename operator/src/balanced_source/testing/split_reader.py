"""What every `SplitReader` must do."""

from collections.abc import Sequence
from typing import Any

import pytest

from balanced_source.api import BoundedSplit, SplitId, SplitReader, SplitsAddition, SplitsRemoval
from balanced_source.errors import ContractViolationError
from balanced_source.testing.waiting import wait_until
from balanced_source.testing.wake_up import DEADLINE, WakeUpContract


class SplitReaderContract(WakeUpContract):
    """Derive, implement the hooks, and name the class ``Test…``.

    All splits end; of some, only reading may tell where. Splits of a source that never ends get a
    stop here, behind what the test has written.

    Attributes:
        can_pause: whether the reader supports `pause_or_resume_splits`.
    """

    can_pause: bool = True

    def splits(self) -> Sequence[BoundedSplit]:
        """Exactly three splits with some elements each; the same at each call within a test."""
        raise NotImplementedError

    def elements(self, split: BoundedSplit) -> Sequence[Any]:
        """What is to come out of a split, from its position on."""
        raise NotImplementedError

    def later(self, split: BoundedSplit) -> BoundedSplit:
        """The same split behind its first element."""
        raise NotImplementedError

    # --- reading ----------------------------------------------------------------------------------

    def test_everything_in_its_order_and_then_the_end(self) -> None:
        reading = _ReaderUnderTest(self.make_reader())
        reading.add(*self.splits())

        reading.to_the_end(self.splits())

        for split in self.splits():
            assert reading.elements[split.split_id] == list(self.elements(split))
        assert sorted(reading.finished) == sorted(s.split_id for s in self.splits()), "each once"
        reading.reader.close()

    def test_reading_begins_at_the_position(self) -> None:
        split = self.later(self.splits()[0])
        reading = _ReaderUnderTest(self.make_reader())
        reading.add(split)

        reading.to_the_end([split])

        assert reading.elements[split.split_id] == list(self.elements(split))
        assert len(self.elements(split)) == len(self.elements(self.splits()[0])) - 1
        reading.reader.close()

    def test_a_split_that_is_at_its_end_already_just_finishes(self) -> None:
        split = self.splits()[0]
        if (stop := getattr(split, "stopping_position", None)) is None:
            pytest.skip("only reading tells where this split ends")
        split = split.at(stop)
        reading = _ReaderUnderTest(self.make_reader())
        reading.add(split)

        reading.to_the_end([split])

        assert reading.elements.get(split.split_id, []) == []
        assert reading.finished == [split.split_id]
        reading.reader.close()

    def test_splits_may_come_later(self) -> None:
        first, *rest = self.splits()
        reading = _ReaderUnderTest(self.make_reader())
        reading.add(first)
        reading.fetch()
        reading.add(*rest)

        reading.to_the_end(self.splits())

        for split in self.splits():
            assert reading.elements[split.split_id] == list(self.elements(split))
        reading.reader.close()

    def test_what_was_removed_is_not_read_any_more(self) -> None:
        kept, removed, _ = self.splits()
        reading = _ReaderUnderTest(self.make_reader())
        reading.add(kept, removed)
        reading.remove(removed)
        reading.remove(removed)  # it may be told of splits that it does not have

        reading.to_the_end([kept])

        assert removed.split_id not in reading.elements
        assert removed.split_id not in reading.finished
        reading.reader.close()

    def test_a_split_that_comes_back_is_read_from_its_new_position(self) -> None:
        split = self.splits()[0]
        reading = _ReaderUnderTest(self.make_reader())
        reading.add(split)
        reading.fetch()
        reading.remove(split)
        reading.elements.clear()
        reading.finished.clear()
        reading.add(self.later(split))

        reading.to_the_end([split])

        assert reading.elements[split.split_id] == list(self.elements(self.later(split)))
        reading.reader.close()

    # --- waking up --------------------------------------------------------------------------------

    def test_wake_ups_lose_nothing(self) -> None:
        reading = _ReaderUnderTest(self.make_reader())
        reading.add(*self.splits())
        for _ in range(3):
            reading.reader.wake_up()
            reading.fetch()

        reading.to_the_end(self.splits())

        for split in self.splits():
            assert reading.elements[split.split_id] == list(self.elements(split))
        reading.reader.close()

    # --- pausing ----------------------------------------------------------------------------------

    def test_a_paused_split_waits_and_continues_where_it_stopped(self) -> None:
        first, second, _ = self.splits()
        reading = _ReaderUnderTest(self.make_reader())
        reading.add(first, second)
        if not self.can_pause:
            with pytest.raises(ContractViolationError):
                reading.reader.pause_or_resume_splits([second], [])
            reading.reader.close()
            return
        reading.reader.pause_or_resume_splits([second], [])
        reading.reader.pause_or_resume_splits([second], [first])  # neither changes anything

        reading.to_the_end([first])
        assert second.split_id not in reading.elements

        reading.reader.pause_or_resume_splits([], [second])
        reading.to_the_end([second])
        assert reading.elements[second.split_id] == list(self.elements(second))
        reading.reader.close()


class _ReaderUnderTest:
    """A reader, and what came out of it."""

    def __init__(self, reader: SplitReader[Any, Any]) -> None:
        self.reader = reader
        self.elements: dict[SplitId, list[Any]] = {}
        self.finished: list[SplitId] = []

    def add(self, *splits: BoundedSplit) -> None:
        self.reader.handle_splits_changes(SplitsAddition(splits))

    def remove(self, *splits: BoundedSplit) -> None:
        self.reader.handle_splits_changes(SplitsRemoval(splits))

    def fetch(self) -> None:
        records = self.reader.fetch()
        while (split_id := records.next_split()) is not None:
            assert split_id not in self.finished, "records behind the end"
            found = self.elements.setdefault(split_id, [])
            while (element := records.next_record_from_split()) is not None:
                found.append(element)
        self.finished += records.finished_splits()
        records.recycle()

    def to_the_end(self, splits: Sequence[BoundedSplit]) -> None:
        wanted = {split.split_id for split in splits}

        def is_over() -> bool:
            if not wanted <= set(self.finished):
                self.fetch()
            return wanted <= set(self.finished)

        wait_until(is_over, DEADLINE, f"the end of {sorted(wanted)}")
