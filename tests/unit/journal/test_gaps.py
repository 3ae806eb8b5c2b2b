"""Gaps that tasks have skipped, as planning counts them."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.documents.journal import JournalRecord, RecordKey
from balanced_source.documents.report import SKIPPED_GAPS
from balanced_source.errors import ContractViolationError
from balanced_source_spark.journal.exactness import checked_gaps
from balanced_source_spark.journal.gaps import SHOWN, GapCounter


def record(**gaps: int) -> JournalRecord:
    return JournalRecord(
        key=RecordKey("j", 1, 0),
        starts={},
        ends={},
        finished=frozenset(),
        has_more=False,
        gaps={("clicks", shard): count for shard, count in gaps.items()},
    )


def test_the_gaps_of_all_readers_add_up_and_are_logged_with_their_splits() -> None:
    counter = GapCounter()

    with capture_logs() as lines:
        counter.note([record(a=1), record(b=2)])
        counter.note([record()])
        counter.note([record(a=1)])

    assert counter.numbers() == {SKIPPED_GAPS: 4}
    assert [line["splits"] for line in lines] == ["clicks/a, clicks/b", "clicks/a"]


def test_a_line_names_only_a_few_splits() -> None:
    with capture_logs() as lines:
        GapCounter().note([record(**{f"s{n}": 1 for n in range(SHOWN + 3)})])

    assert lines[0]["splits"].endswith(" and 3 more")


def test_nothing_is_reported_without_gaps() -> None:
    assert GapCounter().numbers() == {}


@pytest.mark.parametrize("count", [0, -1, 1.5, True, None])
def test_a_reader_that_returns_no_number_of_gaps_is_told_so(count: Any) -> None:
    class Reader:
        def skipped_gaps(self) -> dict[tuple[str, str], Any]:
            return {("clicks", "a"): count}

    reader: Any = Reader()
    with pytest.raises(ContractViolationError, match="leave out splits without a gap"):
        checked_gaps(reader)
