"""A query with a journal.

Where it ends, what a journal must have, and wrong figures of a connector.
"""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from balanced_source.errors import ForeignJournalError
from balanced_source_spark.contract.readers import ReaderHooks
from support.journal_query import Make
from support.tapes import SHELF, TapeHalf, TapeSource, shelf
from testbed.waiting import wait_until


def test_a_query_that_ends_by_itself_ends_although_records_keep_coming(make: Make) -> None:
    """The source says each time that everything is read; then it continues."""
    query = make(TapeHalf(replace(shelf(), timed={"tape-0", "tape-1", "tape-2"})))
    begun = shelf().records()
    query.planner.prepareForTriggerAvailableNow()
    for _ in range(60):
        if not query.trigger():
            break
        query.half.shelf.lengths["tape-0"] += 1
    else:
        pytest.fail("it does not end")

    assert query.records.keys() >= begun


def test_a_journal_that_is_older_than_its_checkpoint_is_refused(make: Make, tmp_path: Path) -> None:
    """What the last micro-batch delivered is unknown: reading on would repeat it."""
    query = make(max_records=1)
    query.trigger_until(lambda: len(query.offsets) > 3, "some micro-batches")
    shutil.copytree(tmp_path / "journal", tmp_path / "copy")
    query.trigger_until(lambda: len(query.offsets) > 7, "more micro-batches")
    shutil.rmtree(tmp_path / "journal")
    (tmp_path / "copy").rename(tmp_path / "journal")
    query.restart()

    with pytest.raises(ForeignJournalError, match="the journal is older than the Spark checkpoint"):
        query.trigger()


def test_micro_batches_without_anything_to_read_are_in_the_journal_too(make: Make) -> None:
    """Or a restart could not tell them from those of a lost journal."""
    world = shelf(count=1, length=2)
    world.stops = {"tape-0": 2}
    query = make(TapeHalf(world))
    query.read_all()
    for parallelism in (3, 1, 3, 1):
        query.channel.rescale(parallelism)
        query.trigger_until(
            lambda parallelism=parallelism: query.last.parallelism == parallelism, "the change"
        )
    query.parallelism = 1
    query.restart()

    query.trigger()
    assert query.problems() == []


class WrongFigures(ReaderHooks):
    """Figures for people, each wrong in another way."""

    def __init__(self, numbers: Callable[[], Any]) -> None:
        self.numbers = numbers  # type: ignore[method-assign]


def _fails() -> None:
    raise KeyError("x")


@pytest.mark.parametrize(
    "numbers", [lambda: {"rows": 1.5}, lambda: {"rows": b"1"}, lambda: None, _fails]
)
def test_wrong_numbers_of_a_connector_end_no_query(
    make: Make, numbers: Callable[[], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """They are for people. A report that could not be written would cost the driver its source."""
    query = make()
    query.planner._hooks = WrongFigures(numbers)
    query.read_all()
    query.trigger()

    assert set(query.planner._runtime._progress.metrics()) >= {"skew"}
    assert "rows" not in query.planner._runtime._progress.metrics()
    assert capsys.readouterr().out.count("return no valid figures: they are left out") == 1


def test_numbers_of_a_connector_are_in_the_report(make: Make) -> None:
    query = make()
    query.planner._hooks = WrongFigures(lambda: {"rows": 3})
    query.read_all()
    query.trigger()

    assert query.planner._runtime._progress.metrics()["rows"] == 3


def test_an_end_that_only_the_reader_knows_reaches_the_enumerator(make: Make) -> None:
    """With the exact position: another host would read the split again from there."""
    world = shelf(length=12)
    world.ends = {"tape-0": 7, "tape-1": 12, "tape-2": 1}
    query = make(
        TapeHalf(world),
        source=TapeSource(is_bounded=True, discovery_interval=None),
        max_records=None,
    )
    query.trigger_until(lambda: bool(query.offsets and query.last.closings), "the closing one")

    assert query.records == Counter(
        {(name, n): 1 for name, end in world.ends.items() for n in range(end)}
    )
    assert query.last.positions == {(SHELF, name): end for name, end in world.ends.items()}
    coordinator = query.channel.coordinator
    wait_until(coordinator.enumerator.is_finished, 20, "the enumerator to know", interval=0.01)
    assert coordinator.enumerator.snapshot_state().finished == set(query.last.positions)
