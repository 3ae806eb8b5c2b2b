"""A topic that is deleted with records that a query without an end has not read yet."""

from typing import Any

import pytest

from balanced_source.api import IDENTITY, STOP
from balanced_source.connectors.kafka import OnDataLoss, ReadLimits
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import FatalProblemError
from balanced_source.host.ends import SplitEnd, unread_rests
from balanced_source_spark.options import Options
from support.planned_query import PlannedQuery
from support.world import Broker, kafka_source

A, B, C, D = (("c", name, 0) for name in "abcd")

WHEN: dict[str, float | None] = {"discovery first": 0.05, "the driver first": None}
"""Who notices: a short interval of discovery, or none."""


def begun(policy: OnDataLoss, interval: float | None, *, is_embedded: bool = True) -> PlannedQuery:
    """A query that has read 6 of 100 records of one topic, and all of another."""
    broker = Broker(topic_ids={("c", "a"): "id-a", ("c", "b"): "id-b"})
    broker.create("c", "a", [0], end=100)
    broker.create("c", "b", [0], end=3)
    limits = ReadLimits(max_records_per_split=3)
    source = kafka_source("c", limits=limits, discovery_interval=interval, on_data_loss=policy)
    options = Options(start_timeout=5.0, embedded=source if is_embedded else None)
    query = PlannedQuery(source=source, broker=broker, options=options)
    query.trigger_until(lambda: query.records.total() == 9, "some records")
    return query


@pytest.mark.parametrize("interval", WHEN.values(), ids=WHEN)
def test_without_consent_the_query_ends_and_names_the_offsets(interval: float | None) -> None:
    query = begun(OnDataLoss.FAIL, interval)
    query.broker.delete([A])

    with pytest.raises(
        FatalProblemError,
        match=r"topic a was deleted before it was read to its end.*partition 0 from offset 6 to 99"
        r".*failOnDataLoss to false\) to continue without them",
    ):
        query.trigger_until(lambda: False, "the error")
    query.close()


@pytest.mark.parametrize("interval", WHEN.values(), ids=WHEN)
def test_with_consent_the_offsets_are_named_and_counted_once(
    interval: float | None, capsys: pytest.CaptureFixture[str]
) -> None:
    query = begun(OnDataLoss.CONTINUE, interval)
    query.broker.delete([A])
    query.trigger_until(lambda: query.hooks._losses.total > 0, "the count")

    query.broker.ends[B] = 6
    query.trigger_until(lambda: query.last.positions[B] == 6, "the other topic")
    query.close()

    assert query.hooks._losses.total == 94
    assert capsys.readouterr().out.count("partition 0 from offset 6 to 99") == 1


def test_a_topic_that_was_read_is_no_loss() -> None:
    query = begun(OnDataLoss.FAIL, 0.05)
    query.broker.delete([B])

    query.trigger_until(lambda: B not in query.last.positions, "the topic to leave")
    query.close()


def test_where_someone_else_assigns_a_split_that_leaves_was_not_deleted_for_sure() -> None:
    """It may not be subscribed any more, or be another host's."""
    query = begun(OnDataLoss.FAIL, 0.05, is_embedded=False)
    query.broker.delete([A])

    query.trigger_until(lambda: A not in query.last.positions, "the topic to leave")
    query.close()


def test_only_what_is_known_of_the_very_split_counts() -> None:
    attributes: Any = {A: {IDENTITY: "1"}, B: {IDENTITY: "1"}, C: {IDENTITY: "1", STOP: 20}}
    base = StreamOffset(positions={A: 5, B: 5, C: 5, D: None}, attributes=attributes)
    known = {
        A: SplitEnd(end=9, identity="1"),
        B: SplitEnd(end=9, identity="2"),
        C: SplitEnd(end=9, identity="1"),
        D: SplitEnd(end=1),
    }

    assert unread_rests(base, known, [A, B, C, D]) == {A: 9, D: 1}
    assert unread_rests(base, {**known, A: SplitEnd(end=5, identity="1")}, [A]) == {}
    assert unread_rests(base, {}, [A]) == {}
