"""What a planner refuses, and what it tells of splits that leave."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.documents import stream_offset
from balanced_source.documents.journal import JournalPoint
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import ForeignCheckpointError
from balanced_source.host.ends import Look, SplitEnd
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.options import Options
from support.planned_query import PlannedQuery
from support.world import Broker, kafka_source

A, B, C = ("c", "t", 0), ("c", "t", 1), ("c", "t", 2)


@pytest.fixture
def query() -> Iterator[PlannedQuery]:
    broker = Broker()
    broker.create("c", "t", range(2), end=7)
    made = PlannedQuery(source=kafka_source("c"), broker=broker)
    yield made
    made.close()


def test_a_checkpoint_with_a_journal_is_refused_without_one(query: PlannedQuery) -> None:
    """Its positions are where the last micro-batch began."""
    query.trigger_until(lambda: query.records.total() == 14, "all records")
    journal = JournalPoint(journal="j", number=1)
    offset = stream_offset.to_json(replace(query.last, journal=journal))

    with pytest.raises(
        ForeignCheckpointError,
        match="was written with a journal, but connector 'kafka' reads without one: give the query",
    ):
        query.planner.partitions(query.planner.initialOffset(), offset)


@pytest.mark.parametrize("refusal", [None, "the topic is not there"])
def test_a_query_that_ends_by_itself_fails_where_nothing_is_assigned_again(
    query: PlannedQuery, refusal: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has its targets, and what it is to read is assigned to no one."""
    query.planner.prepareForTriggerAvailableNow()
    query.planner._take_targets()
    runtime = query.planner._runtime
    monkeypatch.setattr(runtime, "wait_until_assigned", lambda timeout: timeout != 5.0)
    monkeypatch.setattr(query.channel, "refusal", lambda: refusal)

    with pytest.raises(ChannelError) as caught:
        query.planner._based_on(StreamOffset(epoch=1))

    silence = "no server of the source has answered. Check their addresses and the network."
    waited = " The query waited 5 s: option startTimeoutSeconds"
    assert str(caught.value) == (refusal or silence + waited)


@pytest.mark.parametrize(
    ("epoch", "is_embedded", "told"),
    [(2, True, [Look(deleted={B: 9})]), (1, True, []), (2, False, [])],
    ids=["left", "as before", "an operator assigns"],
)
def test_records_of_a_split_that_leaves_unread_are_told_of(
    query: PlannedQuery, *, epoch: int, is_embedded: bool, told: list[Look]
) -> None:
    """A stays, B leaves with two records that are not read, and C was read to its end."""
    planner: Any = query.planner
    looks: list[Look] = []
    known = {split_id: SplitEnd(end=9) for split_id in (A, B, C)}
    planner._options = Options(embedded=query.source if is_embedded else None)
    planner.__dict__["_ends"].close()
    planner.__dict__["_ends"] = SimpleNamespace(known=known, close=lambda: None)
    planner._hooks = SimpleNamespace(
        note_look=lambda _, look: looks.append(look), close=lambda: None
    )

    begin = StreamOffset(epoch=1, positions={A: 7, B: 7, C: 9})
    planner._tell_left(begin, StreamOffset(epoch=epoch, positions={A: 7}))

    assert looks == told
