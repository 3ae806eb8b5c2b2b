"""What is counted of a micro-batch: by the planner, and by the task that seals it."""

from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.documents.journal import FetchLimits, JournalRecord, RecordKey
from balanced_source.host.journaling import Share
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.contract.half import Query
from balanced_source_spark.journal import reading as reading_module
from balanced_source_spark.journal.reading import CHECKED, SETTLE, Reading, fetch
from balanced_source_spark.options import Options
from balanced_source_spark.planner import StreamPlanner
from support.planned_query import PlannedQuery
from support.tapes import Shelf, TapeHalf
from support.world import Broker, kafka_source

A = ("shelf", "a")


def test_the_planner_tells_how_many_records_a_micro_batch_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the first offset of a log on, and from another one."""
    broker, told = Broker(), list[int]()
    broker.create("c", "t", range(3), end=7)
    query = PlannedQuery(source=kafka_source("c"), broker=broker)
    runtime = query.planner._runtime
    planned = runtime.planned

    def note(finish: Any, **how: Any) -> None:
        told.append(how["records"])
        planned(finish, **how)

    monkeypatch.setattr(runtime, "planned", note)
    query.trigger_until(lambda: query.records.total() == 21, "all records")
    broker.ends = dict.fromkeys(broker.ends, 9)
    query.trigger_until(lambda: query.records.total() == 27, "the new ones")
    query.close()

    assert [count for count in told if count] == [21, 6]


@pytest.mark.parametrize("records", [SETTLE - 1, SETTLE + 13, CHECKED + SETTLE + 13])
def test_a_limit_seals_where_the_last_record_was_read(records: int) -> None:
    """Positions are looked up seldom while records come, and once more before they are sealed."""
    limits = FetchLimits(max_records=records, wait_millis=20)
    share = Share(key=RecordKey("j", 1, 0), parallelism=1, limits=limits, starts={A: 0})
    half = TapeHalf(Shelf(lengths={"a": 10 * records}))
    with Reading(half, Query(client_id="c", read=None), {"tapes": {}}, share, {}) as made:
        record = fetch(made, limits)

    assert (record.records, record.ends, record.has_more) == (records, {A: records}, True)


@pytest.mark.parametrize(
    ("count", "is_catching_up", "has_more"),
    [(0, False, False), (1, False, True), (0, True, True), (2, True, True)],
)
def test_a_task_whose_time_is_over_has_more_unless_nothing_ever_came(
    monkeypatch: pytest.MonkeyPatch, *, count: int, is_catching_up: bool, has_more: bool
) -> None:
    times = iter([0.0, 0.0, 5.0])
    monkeypatch.setattr(reading_module, "time", SimpleNamespace(monotonic=lambda: next(times)))
    polls = iter([count > 0, False] if count else [False])
    if not count:
        next(times)
    record = JournalRecord(key=RecordKey("j", 1, 0))
    scene: Any = SimpleNamespace(
        has_stops=False,
        is_done=False,
        is_catching_up=is_catching_up,
        is_at_tip=False,
        is_idle=False,
        buffer=SimpleNamespace(count=count, bytes=count),
        poll=lambda: next(polls),
        record=lambda *, has_more: (record, has_more),
    )

    found: Any = fetch(scene, FetchLimits(max_millis=5_000))

    assert found == (record, has_more)


def test_a_query_whose_readers_get_no_more_splits_fails_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To end in silence would look as if everything had been read."""
    planner: Any = StreamPlanner(Options(start_timeout=0.0))
    problems = [SimpleNamespace(message="a is away"), SimpleNamespace(message="b is away")]
    planner.__dict__["_runtime"] = SimpleNamespace(problems=[], close=lambda: None)
    planner._is_pulling = True
    start = planner.initialOffset()
    monkeypatch.setattr(planner, "_next_offset", lambda *_: start)
    monkeypatch.setattr(planner, "_is_over", lambda _: False)
    waited = ". The query waited 0 s: option startTimeoutSeconds"

    for found, said in (
        ([], "no further splits were assigned"),
        (problems, "a is away; b is away"),
    ):
        planner._runtime.problems = found
        with pytest.raises(ChannelError) as caught:
            planner.latestOffset(start, None)
        assert str(caught.value) == said + waited
    monkeypatch.setattr(planner, "_is_over", lambda _: True)
    assert planner.latestOffset(start, None) == start
