"""What a micro-batch costs the planning process, counted exactly: decodings, encodings, bytes.

Times are measured by `make bench-planner`.
"""

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from balanced_source.documents import columns, stream_offset
from balanced_source.host import SplitRange, ends, planning
from balanced_source_spark.options import Options
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.stream_reader import UNLIMITED
from support.planned_query import PlannedQuery, all_of
from support.world import Broker, kafka_source
from testbed.waiting import wait_until

PARTITIONS = 50


class Counted:
    """Counts the calls of a function."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
        self.arguments: list[tuple[Any, ...]] = []
        function = getattr(module, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.arguments.append(args)
            return function(*args, **kwargs)

        monkeypatch.setattr(module, name, counted)

    @property
    def calls(self) -> int:
        return len(self.arguments)


@pytest.fixture(name="query")
def fixture_query() -> Iterator[PlannedQuery]:
    broker = Broker()
    broker.create("c", "t", range(PARTITIONS), end=1)
    broker.topic_ids["c", "t"] = "T"
    query = PlannedQuery(kafka_source("c"), broker)
    try:
        query.trigger_until(lambda: len(query.records) == PARTITIONS, "the first records")
        yield query
    finally:
        query.close()


def batch_by_text(query: PlannedQuery) -> tuple[str, list[bytes]]:
    """A micro-batch with new records in all splits, called as Spark's runner calls the planner."""
    for split_id in query.broker.ends:
        query.broker.ends[split_id] += 1
    start = json.dumps(query.offsets[-1])
    found: list[str] = []

    def is_planned() -> bool:
        end = query.planner.latestOffset(json.loads(start), UNLIMITED)
        found[:] = [json.dumps(end)]
        return found[0] != start

    wait_until(is_planned, 20, "a micro-batch", interval=0.01)
    query.planner.commit(json.loads(start))
    parts = query.planner.partitions(json.loads(start), json.loads(found[0]))
    query.offsets.append(json.loads(found[0]))
    return found[0], [pickle.dumps(part) for part in parts]


def test_a_micro_batch_decodes_nothing_encodes_what_moved_and_is_planned_once(
    query: PlannedQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_by_text(query)  # the one that adopted the epoch still had starts
    decoded = Counted(monkeypatch, stream_offset, "from_json")
    planned = Counted(monkeypatch, planning, "plan")
    marks = Counted(monkeypatch, ends, "mark_of")
    encoded = Counted(monkeypatch, columns.TableEncoder, "__call__")

    batch_by_text(query)

    assert decoded.calls == 0
    assert planned.calls == 1
    assert marks.calls == 0
    owners = query.planner._codec.decode(query.offsets[-1]).owners
    assert encoded.calls
    assert not any(table is owners for _, table in encoded.arguments)


def test_a_micro_batch_costs_a_few_bytes_per_split(query: PlannedQuery) -> None:
    text, pickled = batch_by_text(query)

    assert len(text) <= 400 + 10 * PARTITIONS
    assert sum(map(len, pickled)) <= 1200 + 30 * PARTITIONS


def test_a_drip_on_ten_thousand_partitions_is_read_to_the_last_record() -> None:
    broker = Broker()
    for topic in range(100):
        broker.create("c", f"t{topic}", range(100), end=1)
    query = PlannedQuery(kafka_source("c"), broker, options=Options(start_timeout=60.0))
    try:
        query.trigger_until(lambda: len(query.records) == 10_000, "the first records", timeout=120)
        for split_id in list(broker.ends)[::7]:
            broker.ends[split_id] += 1

        query.trigger_until(
            lambda: query.records == all_of(broker), "the records of the drip", timeout=120
        )
    finally:
        query.close()


def test_what_tasks_get_is_what_was_planned() -> None:
    ranges = (
        SplitRange(split_id=("c", "t", 0), start=0, end=3, identity="T", term=2),
        SplitRange(split_id=("c", "t", 1), start=None, end=5),
    )
    for part in (
        ReaderPartition(subtask_id=1, ranges=ranges, splits=4, settings={"kafka": {"a": 1}}),
        ReaderPartition(subtask_id=0, ranges=()),
    ):
        found = pickle.loads(pickle.dumps(part))  # noqa: S301 - as Spark does

        assert found == part
        assert found.value == part.value
