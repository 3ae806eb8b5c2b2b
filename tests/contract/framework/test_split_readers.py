"""The split reader that tests of the framework use: one that blocks, and one that does not."""

import threading
from collections.abc import Sequence

import pytest

from balanced_source.api import BoundedSplit
from balanced_source.reader import RecordsBySplits
from balanced_source.testing.split_reader import SplitReaderContract
from support.numbers import NumbersReader, NumbersSplit


class TestNumbers(SplitReaderContract):
    may_block = False

    def make_reader(self) -> NumbersReader:
        return NumbersReader()

    def splits(self) -> Sequence[BoundedSplit]:
        return [
            NumbersSplit(name=name, next=start, stop=start + 7)
            for name, start in (("a", 0), ("b", 5), ("c", 1))
        ]

    def elements(self, split: BoundedSplit) -> Sequence[int]:
        return range(int(split.position or 0), int(split.stopping_position or 0))

    def later(self, split: BoundedSplit) -> BoundedSplit:
        return split.at(int(split.position or 0) + 1)


class TestNumbersThatCome(TestNumbers):
    """Nothing is there until someone opens the gate; in the tests of waking up no one does."""

    may_block = True
    gate: threading.Event | None = None

    def make_reader(self) -> NumbersReader:
        if self.gate is None:
            self.gate = threading.Event()
            self.gate.set()
        return NumbersReader(gate=self.gate)

    def unread(self) -> BoundedSplit:
        self.gate = threading.Event()
        return self.splits()[0]


class Deaf(NumbersReader):
    """Waits for its gate, whoever calls it."""

    def wake_up(self) -> None:
        """Does nothing, which breaks the contract."""


class Napping(NumbersReader):
    """Waits a while where there is nothing to read, and does not hear a call either."""

    def fetch(self) -> RecordsBySplits[int]:
        threading.Event().wait(0.02)
        return super().fetch()


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> TestNumbersThatCome:
    """A suite that does not wait long."""
    monkeypatch.setattr("balanced_source.testing.wake_up.DEADLINE", 0.1)
    return TestNumbersThatCome()


def test_the_suite_finds_a_reader_that_is_not_woken_up(
    monkeypatch: pytest.MonkeyPatch, suite: TestNumbersThatCome
) -> None:
    monkeypatch.setattr(suite, "make_reader", lambda: Deaf(gate=suite.gate))

    try:
        with pytest.raises(AssertionError, match="wake_up did not end a fetch that waits"):
            suite.test_a_fetch_that_blocks_is_woken_up()
    finally:
        assert suite.gate is not None
        suite.gate.set()


def test_the_suite_finds_a_reader_that_only_ends_by_itself(
    monkeypatch: pytest.MonkeyPatch, suite: TestNumbersThatCome
) -> None:
    monkeypatch.setattr(suite, "make_reader", lambda: Napping(gate=suite.gate))

    with pytest.raises(AssertionError, match="although wake_up was called before each"):
        suite.test_a_wake_up_before_the_fetch_is_not_lost()


def test_the_suite_finds_a_reader_that_waits_and_says_that_it_does_not(
    monkeypatch: pytest.MonkeyPatch, suite: TestNumbersThatCome
) -> None:
    monkeypatch.setattr(suite, "may_block", False)
    monkeypatch.setattr(suite, "make_reader", Napping)

    with pytest.raises(AssertionError, match="although may_block is False"):
        suite.test_a_reader_that_never_blocks_does_not_wait()


def test_a_suite_says_whether_its_reader_blocks(
    monkeypatch: pytest.MonkeyPatch, suite: TestNumbersThatCome
) -> None:
    monkeypatch.setattr(suite, "unread", lambda: None)

    with pytest.raises(AssertionError, match="or set may_block = False"):
        suite.test_a_fetch_that_blocks_is_woken_up()


def test_the_split_of_a_suite_that_has_records_is_named(
    monkeypatch: pytest.MonkeyPatch, suite: TestNumbersThatCome
) -> None:
    monkeypatch.setattr(suite, "make_reader", NumbersReader)

    with pytest.raises(AssertionError, match="the split of unread: it has records"):
        suite.test_a_fetch_that_blocks_is_woken_up()
