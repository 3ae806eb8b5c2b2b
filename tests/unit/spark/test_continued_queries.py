"""A query that continues from its Spark checkpoint, although its options do not fit any more."""

from collections.abc import Callable

import pytest

from balanced_source.connectors.kafka import EARLIEST, AtOffset, FromTime, PerPartition
from balanced_source_spark.channels.errors import NothingAssignedError
from balanced_source_spark.stream_reader import UNLIMITED
from support.planned_query import PlannedQuery
from support.resolving_broker import ResolvingBroker
from support.world import kafka_source
from testbed.waiting import wait_until

RETAINED = 6
"""First offset that retention has left when the query starts again."""

Continue = Callable[[PlannedQuery], None]


def begun_at_three() -> PlannedQuery:
    """A query that was told to start at offset 3 of a partition, and has read all of it."""
    broker = ResolvingBroker()
    broker.create("c", "t", [0, 1], end=7)
    start = PerPartition(listed={("t", 0): AtOffset(3)}, default=EARLIEST)
    source = kafka_source("c", starting_offsets=start, discovery_interval=0.05)
    query = PlannedQuery(source=source, broker=broker)
    query.trigger_until(lambda: query.records.total() == 11, "what was there")
    return query


def retained(query: PlannedQuery) -> None:
    """Retention passes the offset where the query was told to start, and records arrive."""
    query.broker.begins = dict.fromkeys(query.broker.begins, RETAINED)
    query.broker.ends = dict.fromkeys(query.broker.ends, 20)


def stream(query: PlannedQuery) -> None:
    query.trigger_until(lambda: query.records.total() == 37, "the new records")


CONTINUED: dict[str, Continue] = {
    "stream": stream,
    "available now": PlannedQuery.available_now,
    "once": lambda query: None if query.once() else pytest.fail("nothing was read"),
}


@pytest.mark.parametrize("continues", CONTINUED.values(), ids=CONTINUED)
def test_start_offsets_that_are_gone_do_not_keep_a_query_from_continuing(
    continues: Continue,
) -> None:
    """They count only in a query without a past. The migration guide has people set them."""
    query = begun_at_three()
    retained(query)
    query.restart()
    loop = query.channel._loop
    assert loop is not None
    wait_until(lambda: loop.problems, 20, "the start offset to be refused")

    continues(query)
    query.close()

    assert query.records.total() == 37
    assert set(query.records.values()) == {1}


def test_a_micro_batch_is_replayed_although_the_start_offsets_are_gone() -> None:
    query = begun_at_three()
    query.broker.ends = dict.fromkeys(query.broker.ends, 10)
    query.offsets.append(query.planner.latestOffset(query.offsets[-1], UNLIMITED))
    retained(query)
    query.restart()

    stream(query)
    query.close()

    assert set(query.records.values()) == {1}


def test_a_replay_is_planned_while_no_broker_answers() -> None:
    """Its offsets say everything: only its tasks need brokers."""
    query = begun_at_three()
    query.broker.ends = dict.fromkeys(query.broker.ends, 10)
    query.offsets.append(query.planner.latestOffset(query.offsets[-1], UNLIMITED))
    query.broker.down = {"c"}

    query.restart()
    query.close()

    assert query.records.total() == 17


@pytest.mark.parametrize("is_once", [True, False], ids=["once", "available now"])
def test_a_time_that_no_record_is_at_keeps_only_a_new_query_from_starting(*, is_once: bool) -> None:
    """Retention may have emptied a quiet partition since."""
    broker = ResolvingBroker()
    broker.create("c", "t", [0, 1], end=7)
    query = PlannedQuery(source=kafka_source("c", discovery_interval=0.05), broker=broker)
    query.trigger_until(lambda: query.records.total() == 14, "what was there")
    late = FromTime(1_700_000_000_000, reset=None)
    query.source = kafka_source("c", starting_offsets=late, discovery_interval=0.05)
    query.restart()
    broker.ends = dict.fromkeys(broker.ends, 9)
    if is_once:
        query.once()
    else:
        query.available_now()
    query.close()
    assert query.records.total() == 18

    new = PlannedQuery(source=query.source, broker=broker)
    with pytest.raises(NothingAssignedError, match="no record at or after"):
        new.once() if is_once else new.available_now()
    new.close()
