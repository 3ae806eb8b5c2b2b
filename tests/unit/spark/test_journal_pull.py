"""Readers that ask for splits, and whose splits end where only reading tells.

Everything once, or an error in words.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pytest

from balanced_source.api import AsyncCall, BoundedSplit, Position, SplitId
from balanced_source.connectors.pull import ListSplits, PullSource
from balanced_source.errors import InvalidSpecError
from support.journal_query import JournalQuery
from support.tapes import SHELF, Shelf, TapeHalf
from testbed.waiting import wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Reel(BoundedSplit):
    """A tape that ends; where, only reading tells."""

    name: str
    next: int = 0

    @property
    def split_id(self) -> SplitId:
        return (SHELF, self.name)

    @property
    def position(self) -> Position:
        return self.next

    @property
    def stopping_position(self) -> Position:
        return None

    def at(self, position: Position) -> Self:
        return replace(self, next=int(position or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListReels(ListSplits):
    """List all of them."""

    scope: str
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReelSource(PullSource[Reel]):
    """All tapes of the shelf, one by one."""

    @property
    def kind(self) -> str:
        return "tapes"

    def list_splits(self, round_number: int) -> ListReels:
        return ListReels(scope=SHELF, round=round_number)

    def create_split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Any]
    ) -> Reel:
        return Reel(name=str(split_id[1]), next=int(position or 0))

    def reader_settings(self) -> Mapping[str, Any]:
        return {"tapes": {}}


class Reels(Shelf):
    """Lists itself."""

    def execute(self, call: AsyncCall) -> Any:
        return [Reel(name=name) for name in self.lengths] if isinstance(call, ListReels) else None


@pytest.fixture
def query(tmp_path: Path) -> Iterator[JournalQuery]:
    lengths = {f"tape-{number}": 5 + number for number in range(9)}
    half = TapeHalf(Reels(lengths=lengths, ends=dict(lengths)))
    made = JournalQuery(tmp_path / "journal", half, source=ReelSource())  # type: ignore[arg-type]
    yield made
    made.close()


def test_a_stream_ends_when_everything_is_read(query: JournalQuery) -> None:
    query.trigger_until(lambda: bool(query.offsets and query.last.closings), "the closing one")

    assert query.records == Counter(query.half.shelf.records())
    wait_until(
        query.channel.coordinator.enumerator.is_finished,
        20,
        "the enumerator to know",
        interval=0.01,
    )


def test_available_now_reads_everything(query: JournalQuery) -> None:
    """Also what is assigned only when a former split was read.

    It ended when its first splits were, without a word.
    """
    query.planner.prepareForTriggerAvailableNow()
    while query.trigger():
        pass

    assert query.records == Counter(query.half.shelf.records())


def test_available_now_continues_after_a_restart(query: JournalQuery) -> None:
    query.planner.prepareForTriggerAvailableNow()
    for _ in range(3):
        assert query.trigger()
    query.restart()
    query.planner.prepareForTriggerAvailableNow()
    while query.trigger():
        pass

    assert query.records == Counter(query.half.shelf.records())


def test_one_micro_batch_is_refused(query: JournalQuery) -> None:
    """It read nothing, without a word."""
    with pytest.raises(InvalidSpecError, match="trigger Once would read only a part"):
        query.once()


def plan_batch(query: JournalQuery) -> None:
    query.planner._journal = replace(query.planner._journal, is_batch=True)
    query.planner.prepareForTriggerAvailableNow()


def test_a_batch_query_is_refused(query: JournalQuery) -> None:
    """It returned no rows, without a word."""
    with pytest.raises(
        InvalidSpecError, match=r"a batch query cannot read connector 'tapes'.*Use a stream"
    ):
        plan_batch(query)
