"""Queries that end by themselves: what they wait for, what they warn of, and what they plan."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.api import InputStatus
from balanced_source.documents.journal import FetchLimits, RecordKey
from balanced_source.errors import JournalError
from balanced_source.host.journaling import Share
from balanced_source_spark.batch_reader import _planned
from balanced_source_spark.contract.half import Query
from balanced_source_spark.journal import planner as planner_module
from balanced_source_spark.journal.reading import Reading
from balanced_source_spark.journal_stores.folder import FolderJournal
from balanced_source_spark.kafka.native import _key
from balanced_source_spark.kafka.settings import RangeReaderSettings
from support.journal_query import Make
from support.tapes import SHELF, Shelf, TapeHalf, shelf

A, B, C = (SHELF, "tape-0"), (SHELF, "tape-1"), (SHELF, "tape-2")


def test_a_query_that_ends_by_itself_asks_for_its_journal_until_it_is_made(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To return without a micro-batch would end it, as if everything had been read."""
    monkeypatch.setattr(planner_module, "_RETRY", 0.0)
    create, failures = FolderJournal.create, ["no route", "no route"]

    def late(self: FolderJournal, name: str) -> None:
        if failures:
            raise JournalError(failures.pop())
        create(self, name)

    monkeypatch.setattr(FolderJournal, "create", late)
    query = make(TapeHalf(shelf(), knows_ends=True))
    query.planner.prepareForTriggerAvailableNow()

    while query.trigger():
        pass

    assert failures == []
    assert set(query.records) == shelf().records()


class EndClock:
    """The planner's clock."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_a_query_whose_time_is_over_says_so_once_with_what_is_left(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = EndClock()
    query = make(TapeHalf(shelf()), end_after=60.0)
    planner: Any = query.planner
    monkeypatch.setattr(planner_module, "time", clock)
    planner._begun_at, planner._done = 100.0, frozenset({A})

    with capture_logs() as lines:
        clock.now = 159.9
        assert not planner._is_time_over([A, B, C])
        clock.now = 160.0
        assert planner._is_time_over([A, B, C])
        assert planner._is_time_over([B])

    assert [line["splits"] for line in lines] == [2]
    planner._journal = replace(planner._journal, end_after=None)
    assert not planner._is_time_over([B]), "without the option there is no such time"


def test_a_batch_query_plans_every_micro_batch_and_leaves_out_tasks_without_ranges() -> None:
    """Where readers ask for splits, one task each, of every micro-batch."""
    ends = iter([{"n": 1}, {"n": 2}, {"n": 2}])
    part = {n: SimpleNamespace(ranges=(n,)) for n in range(3)}
    parts = {1: [part[0], SimpleNamespace(ranges=()), part[1]], 2: [part[2]]}
    planner: Any = SimpleNamespace(
        is_pulling=True,
        latestOffset=lambda *_: next(ends),
        partitions=lambda _, end: parts[end["n"]],
    )

    assert _planned(planner, {"n": 0}) == [part[0], part[1], part[2]]


def test_consumers_of_other_readers_are_the_same_whatever_the_order_of_their_settings() -> None:
    config = {"bootstrap.servers": "b:9", "check.crcs": True}
    one, other, third = (
        RangeReaderSettings(cluster="c", config=given)
        for given in (
            {**config, "client.id": "r-0"},
            {"client.id": "r-1", **dict(reversed(config.items()))},
            {**config, "client.id": "r-0", "check.crcs": False},
        )
    )

    assert _key(one) == _key(other)
    assert _key(one) != _key(third)
    assert ("check.crcs", "true") in _key(one)[-1]


@pytest.mark.parametrize(
    ("brings", "idle"),
    [("....", [False, False, True, True]), ("..r..", [False] * 2 + [None] + [False] * 2)],
)
def test_a_reader_is_idle_after_three_polls_without_a_record_since_the_last_one(
    brings: str, idle: list[bool | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One poll brings nothing between two fetches."""
    monkeypatch.setattr("balanced_source_spark.journal.reading.PAUSE", 0.0)
    limits = FetchLimits(wait_millis=20)
    share = Share(key=RecordKey("j", 1, 0), parallelism=1, limits=limits, starts={A: 0})
    half, found = TapeHalf(Shelf(lengths={"tape-0": 0})), list[bool | None]()
    with Reading(half, Query(client_id="c", read=None), {"tapes": {}}, share, {}) as reading:

        def poll_next(_: object) -> InputStatus:
            if brings[len(found)] == "r":
                reading.buffer.count += 1
            return InputStatus.NOTHING_AVAILABLE

        monkeypatch.setattr(reading._reader, "poll_next", poll_next)
        monkeypatch.setattr(reading, "_take", lambda: None)
        for _ in brings[: len(idle)]:
            found.append(None if reading.poll() else reading.is_idle)

    assert found == idle
