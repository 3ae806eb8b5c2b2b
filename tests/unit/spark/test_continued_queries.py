"""A query that continues from its Spark checkpoint, although its options do not fit any more."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.connectors.kafka import (
    EARLIEST,
    LATEST,
    AtOffset,
    FromTime,
    KafkaSource,
    OffsetsInitializer,
    OnDataLoss,
    PerPartition,
    TopicList,
)
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import FINISHED
from balanced_source.errors import ForeignCheckpointError
from balanced_source_spark.channels.embedded import MOST_RETAINED
from balanced_source_spark.channels.errors import NothingAssignedError
from balanced_source_spark.options import Options, parse_options
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


def at(offset: int) -> OffsetsInitializer:
    """The end of partition 0; others end at their latest offset."""
    return PerPartition(listed={("t", 0): AtOffset(offset)}, default=LATEST)


def with_ends(query: PlannedQuery | None, ends: OffsetsInitializer | None) -> PlannedQuery:
    """A new query to these ends, or one that continues with them."""
    interval = 0.05 if ends is None else None
    source = kafka_source("c", stopping_offsets=ends, discovery_interval=interval)
    options = Options(start_timeout=5.0, embedded=source)
    if query is None:
        broker = ResolvingBroker()
        broker.create("c", "t", [0], end=10)
        return PlannedQuery(source=source, broker=broker, options=options)
    query.source, query.options = source, options
    query.broker.ends = dict.fromkeys(query.broker.ends, 20)
    query.restart()
    return query


OTHER_ENDS = {
    "a later end": (at(5), at(8), "has offset 5 as the end of c/t/0.* ask for offset 8"),
    "none any more": (at(5), None, "has offset 5 as the end of c/t/0.* ask for no end"),
    "one that is new": (None, at(15), "has no end as the end of c/t/0.* ask for offset 15"),
    "the latest": (None, LATEST, "has no end as the end of c/t/0.* ask for another end"),
}


@pytest.mark.parametrize(("before", "after", "text"), OTHER_ENDS.values(), ids=OTHER_ENDS)
@pytest.mark.parametrize("is_replay", [True, False], ids=["replay", "no replay"])
def test_other_ends_than_those_of_the_checkpoint_end_the_query_in_words(
    before: OffsetsInitializer | None,
    after: OffsetsInitializer | None,
    text: str,
    *,
    is_replay: bool,
) -> None:
    """The splits of the checkpoint keep their ends, so the new ones would silently be ignored."""
    query = with_ends(None, before)
    query.trigger_until(lambda: query.records.total() == (10 if before is None else 5), "all")
    query.committed -= is_replay

    with pytest.raises(ForeignCheckpointError, match=f"{text}.*set endingOffsets as before"):
        with_ends(query, after).trigger()
    query.close()


@pytest.mark.parametrize("ends", [None, at(5), LATEST], ids=["none", "offset", "latest"])
def test_a_query_with_the_same_ends_continues(ends: OffsetsInitializer | None) -> None:
    """The latest offset is that of the first start."""
    query = with_ends(None, ends)
    count = 5 if ends == at(5) else 10
    query.trigger_until(lambda: query.records.total() == count, "all")

    with_ends(query, ends).available_now()
    query.close()

    assert query.records.total() == (20 if ends is None else count)


def test_a_checkpoint_of_another_connector_is_refused_in_words() -> None:
    query = with_ends(None, None)
    query.trigger_until(lambda: query.records.total() == 10, "all")
    files = parse_options({"connector": "files", "path": "/data"}, schema=None)
    query.planner.stop()
    query.options = Options(start_timeout=5.0, embedded=files.embedded)

    query.start()

    with pytest.raises(
        ForeignCheckpointError, match=r"split c/t/0, which is none of connector 'files'"
    ):
        query.trigger()
    query.close()


@pytest.mark.parametrize("topic", ["t", "u"], ids=["the same topic", "another topic"])
def test_a_topic_that_appears_while_a_query_without_splits_is_down_is_read_from_its_start(
    topic: str,
) -> None:
    """All topics were deleted: the epoch alone shows that the query saw the first discovery."""
    broker = ResolvingBroker()
    broker.create("c", "t", [0], end=10)
    broker.topic_ids = {("c", "t"): "first"}
    source = kafka_source(
        "c",
        starting_offsets=LATEST,
        discovery_interval=0.05,
        on_data_loss=OnDataLoss.CONTINUE,
    )
    query = PlannedQuery(source=source, broker=broker)
    query.trigger_until(lambda: bool(query.last.positions), "the topic")
    broker.delete([("c", "t", 0)])
    query.trigger_until(lambda: not query.last.positions, "the topic to leave")
    for number in (3, 4, 5):  # what has left is retained for an epoch or two
        query.channel.rescale(number)
        query.trigger_until(lambda n=number: query.last.parallelism == n, "the epoch")  # type: ignore[misc]
    assert not query.last.retained
    query.planner.stop()
    broker.topic_ids = {("c", "t"): "second", ("c", "u"): "third"}
    broker.create("c", topic, [0], end=5)

    query.start()
    query.trigger_until(lambda: query.records.total() == 5, "the new topic")
    query.close()


def test_positions_of_a_topic_that_is_not_subscribed_any_more_are_dropped_in_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing but the checkpoint knows them; subscribed again, the topic is read once more."""
    broker = ResolvingBroker()
    for topic in ("t", "u"):
        broker.create("c", topic, [0], end=10)
    query = PlannedQuery(source=kafka_source("c", discovery_interval=0.05), broker=broker)
    query.trigger_until(lambda: query.records.total() == 20, "both topics")
    only = kafka_source("c", subscriber=TopicList(("t",)), discovery_interval=0.05)
    query.source = only

    query.restart()
    query.trigger_until(
        lambda: query.last.positions.keys() == {("c", "t", 0)}, "the other to leave"
    )
    query.close()

    warning = "1 split not subscribed any more after being read: c/u/0. Positions are dropped"
    assert capsys.readouterr().out.count(warning) == 1


def both_topics(**changes: Any) -> KafkaSource:
    """As the options make it, and faster."""
    given = {"kafka.bootstrap.servers": "nowhere:1", "subscribe": "t,u"}
    made = parse_options(given).embedded
    assert isinstance(made, KafkaSource)
    return kafka_source("c", discovery_interval=0.05, retention=made.retention, **changes)


def read_both() -> PlannedQuery:
    broker = ResolvingBroker()
    for topic in ("t", "u"):
        broker.create("c", topic, [0], end=10)
    query = PlannedQuery(source=both_topics(), broker=broker)
    query.trigger_until(lambda: query.records.total() == 20, "both topics")
    return query


def leaves(query: PlannedQuery) -> None:
    query.trigger_until(
        lambda: query.last.positions.keys() == {("c", "t", 0)}, "the other one to leave"
    )


def continues_once(query: PlannedQuery) -> None:
    query.broker.create("c", "u", [0], end=13)
    query.broker.ends["c", "u", 0] = 13
    query.trigger_until(lambda: query.records.total() == 23, "what was produced meanwhile")
    query.close()
    assert set(query.records.values()) == {1}


def test_a_topic_that_is_subscribed_again_continues_where_it_was() -> None:
    query = read_both()
    query.source = both_topics(subscriber=TopicList(("t",)))
    query.restart()
    leaves(query)

    query.source = both_topics()
    query.restart()

    continues_once(query)


def test_a_topic_that_is_hidden_for_a_while_is_not_read_again() -> None:
    """A right that is lost hides it: brokers say of it what they say of one that does not exist."""
    query = read_both()
    query.broker.delete([("c", "u", 0)])
    leaves(query)

    continues_once(query)


def test_a_checkpoint_does_not_keep_the_positions_of_ever_more_topics() -> None:
    query = read_both()
    kept = {("c", "gone", number): 5 for number in range(MOST_RETAINED)}
    few = HostReport(host="0", incarnation=1, retained=kept)
    many = replace(few, retained={**kept, ("c", "gone", MOST_RETAINED): 5})

    assert query.channel._bounded(few) is few
    assert query.channel._bounded(many).retained == {}
    query.close()


def test_a_closing_micro_batch_that_is_repeated_after_a_restart_ends_the_query_too() -> None:
    """No second one follows: it would be an empty micro-batch more at each such restart."""
    broker = ResolvingBroker(is_bounded=True)
    broker.create("c", "t", [0], end=7)
    query = PlannedQuery(source=kafka_source("c", stopping_offsets=LATEST), broker=broker)
    query.trigger_until(lambda: query.last.closings > 0, "the closing micro-batch")
    closed = len(query.offsets)

    query.committed -= 1
    query.restart()
    runtime = query.planner._runtime
    query.trigger_until(lambda: runtime.is_finished(query.last), "it to know that all is read")

    while query.trigger():
        pass
    assert not any(offset.get(FINISHED) for offset in query.offsets[closed:])
    query.close()
    assert query.records.total() == 7
