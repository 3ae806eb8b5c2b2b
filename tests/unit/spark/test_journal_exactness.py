"""Mistakes of a connector's reader.

Found before anything is sealed, because a record of the journal never changes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from balanced_source.api import (
    Json,
    Position,
    SourceOutput,
    SourceReader,
    SourceReaderContext,
    SplitId,
)
from balanced_source.documents.journal import FetchLimits, RecordKey
from balanced_source.errors import ContractViolationError
from balanced_source.host.journaling import Share
from balanced_source.testing.inline_fetchers import InlineFetchers
from balanced_source_spark.contract.half import Query
from balanced_source_spark.journal.task import JournalTaskReader
from balanced_source_spark.journal_stores.folder import FolderJournal
from balanced_source_spark.partition import ReaderPartition
from support.tapes import (
    SHELF,
    Record,
    Shelf,
    TapeEmitter,
    TapeHalf,
    TapeReader,
    TapeSourceReader,
    TapeSplit,
)

A, B = (SHELF, "a"), (SHELF, "b")
KEY = RecordKey("j", 1, 0)

Next = Callable[[int], Any]
"""Number of a record → position behind it."""


class Emitter(TapeEmitter):
    def __init__(self, behind: Next) -> None:
        super().__init__(1)
        self._behind = behind

    def emit_record(
        self, element: int, output: SourceOutput[Record], split_state: list[TapeSplit]
    ) -> None:
        output.collect((split_state[0].name, element))
        split_state[0] = replace(split_state[0], next=self._behind(element))


class Reader(TapeSourceReader):
    """Says what the half lets it say."""

    half: "Half"

    def snapshot_state(self, checkpoint_id: int) -> Sequence[TapeSplit]:
        return (*super().snapshot_state(checkpoint_id), *self.half.strangers)

    def millis_behind(self) -> Mapping[SplitId, int]:
        return {} if self.half.behind is None else {A: self.half.behind}


@dataclass
class Half(TapeHalf):
    """A connector with a mistake."""

    next: Next = lambda element: element + 1
    behind: Any = None
    strangers: tuple[TapeSplit, ...] = ()
    made: Callable[[str, Position], Any] | None = None
    of: Callable[[Sequence[Record]], Any] | None = None

    def reader(
        self, query: Query[None], settings: Mapping[str, Any], context: SourceReaderContext
    ) -> SourceReader[Record, TapeSplit]:
        reader = Reader(context, InlineFetchers(lambda: TapeReader(self.shelf)), Emitter(self.next))
        reader.shelf, reader.half = self.shelf, self
        return reader

    def split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Json]
    ) -> TapeSplit:
        made: TapeSplit
        made = (
            super().split(split_id, position, attributes)
            if self.made is None
            else self.made(*split_id[1:], position)
        )
        return made

    def rows(self, records: Sequence[Record]) -> pa.RecordBatch:
        made: pa.RecordBatch = super().rows(records) if self.of is None else self.of(records)
        return made


@pytest.fixture
def journal(tmp_path: Path) -> FolderJournal:
    made = FolderJournal(tmp_path / "j")
    made.create("j")
    return made


def attempt(journal: FolderJournal, half: Half, start: int = 0) -> int:
    """Run the task; return the number of its rows."""
    share = Share(
        key=KEY, parallelism=1, limits=FetchLimits(wait_millis=20), starts={A: start, B: 0}
    )
    part = ReaderPartition(subtask_id=0, ranges=(), settings={"tapes": {}}, share=share)
    query = Query(client_id="c", read=None, journal=journal)
    return sum(batch.num_rows for batch in JournalTaskReader(half, query, "tapes").read(part))


def shelf() -> Shelf:
    return Shelf(lengths={"a": 5, "b": 3})


def test_a_connector_without_a_mistake_is_sealed(journal: FolderJournal) -> None:
    assert attempt(journal, Half(shelf(), behind=0)) == 8
    assert journal.read(KEY) is not None


@pytest.mark.parametrize(
    ("half", "message"),
    [
        (
            Half(shelf(), next=lambda _: 1),
            "split .'shelf', 'a'. stays at 1: move the position of a split behind each",
        ),
        (
            Half(shelf(), next=lambda n: f"p{n}"),
            "position 'p4' of split .*, a str: a position is an int that grows",
        ),
        (Half(shelf(), next=float), "position 4.0 of split .*, a float"),
        (Half(shelf(), next=lambda _: None), "position None of split .*, a NoneType"),
        (Half(shelf(), next=lambda _: True), "position True of split .*, a bool"),
        (
            Half(shelf(), next=lambda n: n - 7),
            "went back from position 1 of split .* to -6: a position only grows",
        ),
        (
            Half(shelf(), behind=1.5),
            "millis_behind of the reader returned 1.5 for split .*: return whole milliseconds",
        ),
        (Half(shelf(), behind=-1), "millis_behind of the reader returned -1 for split .*: return"),
        (
            Half(shelf(), strangers=(TapeSplit(name="c"),)),
            "returned split .'shelf', 'c'., which it was not given",
        ),
        (
            Half(shelf(), made=lambda name, at: TapeSplit(name=f"x{name}", next=at)),
            "return the split with the same id",
        ),
        (
            Half(shelf(), made=lambda name, _: TapeSplit(name=name, next=2)),
            "at position 1, and returned it at 2",
        ),
        (
            Half(shelf(), of=lambda _: pa.table({"n": [1]})),
            "returned a Table: return a pyarrow.RecordBatch",
        ),
        (
            Half(shelf(), of=lambda _: pa.record_batch({"n": []})),
            "returned 0 rows for 1 record: return one row per",
        ),
    ],
)
def test_a_range_that_could_not_be_read_again_is_never_sealed(
    journal: FolderJournal, half: Half, message: str
) -> None:
    """Before, the query could never continue, or lost records.

    Their splits counted as read to their end.
    """
    with pytest.raises(ContractViolationError, match=message):
        attempt(journal, half, start=1)
    assert journal.read(KEY) is None


@pytest.mark.parametrize(
    ("behind", "message"),
    [
        (lambda n: {1: 5, 2: 4, 3: 3, 4: 2}[n], "went back from position 5 of split .* to 4"),
        (lambda n: 1 + max(n, 3), "split .'shelf', 'a'. stays at 4"),
        (lambda n: n, "split .'shelf', 'a'. stays at 1"),
    ],
    ids=["a page in reverse order", "a position for a whole page", "the position of the record"],
)
def test_records_in_another_order_than_their_positions_are_found_at_once(
    journal: FolderJournal, behind: Next, message: str
) -> None:
    """The position that is left at the end may have grown: records were lost and doubled."""
    with pytest.raises(ContractViolationError, match=message):
        attempt(journal, Half(shelf(), next=behind), start=1)
    assert journal.read(KEY) is None


def test_a_position_that_goes_back_later_is_found_before_the_range_is_sealed(
    journal: FolderJournal,
) -> None:
    half = Half(Shelf(lengths={"a": 3000, "b": 0}), next=lambda n: n + 1 if n < 2000 else n - 1500)
    with pytest.raises(ContractViolationError, match="went back from position"):
        attempt(journal, half, start=1)
    assert journal.read(KEY) is None


def test_records_without_a_split_also_need_a_move(
    journal: FolderJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader may collect without the output of a split."""

    def collect(_: Emitter, element: int, output: Any, __: list[TapeSplit]) -> None:
        output.outputs.collect(("a", element))

    monkeypatch.setattr(Emitter, "emit_record", collect)
    with pytest.raises(ContractViolationError, match="emitted records, and no split has moved"):
        attempt(journal, Half(shelf()))
