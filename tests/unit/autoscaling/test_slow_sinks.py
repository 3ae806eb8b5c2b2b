"""Sinks that take a little less than what arrives."""

from dataclasses import dataclass
from itertools import pairwise

import pytest

from balanced_source.reasons import Reason
from balanced_source_operator.controller.autoscaling.memory import AutoscalerMemory, Capacity
from support.batch_query import Query, policy
from support.reading_source import ReadingSource, with_most


@dataclass
class SlowSink(Query):
    """Readers that share a sink, which takes so many records per second."""

    sink: float = 5000.0

    def _begin(self) -> None:
        self.capacity = min(1000.0, self.sink / self.readers)
        super()._begin()


def slow(load: float) -> SlowSink:
    return SlowSink(
        load=load,
        capacity=1000,
        readers=8,
        cost=0.1,
        policy=policy(1.0, most=16),
        tick=0.25,
        spacing=2.0,
        is_timed=True,
    )


@pytest.mark.parametrize("load", [5200, 5400])
def test_a_load_that_a_sink_cannot_quite_take_is_not_said_to_be_kept_up_with(load: float) -> None:
    query = slow(load).run(5 * 3600)

    late = [v for v in query.verdicts if "as always" in v.message]
    assert len(late) < len(query.verdicts) / 5
    assert query.verdicts[-1].reason is Reason.DOWNSTREAM_LIMIT
    assert "hardly raised the throughput" in query.verdicts[-1].message
    changes = sum(a.readers != b.readers for a, b in pairwise(query.verdicts))
    assert changes <= 8


def restarted() -> ReadingSource:
    """A source with a slow sink, whose operator has restarted and knows the capacity alone."""
    source = ReadingSource(readers=2, splits=48, limit=200, policy=with_most(6))
    capacity = Capacity(rate=100, at=source.now, is_measured=True, proven_at=source.now)
    source.memory = AutoscalerMemory(capacity=capacity)
    return source


def test_more_readers_than_allowed_are_advised_only_if_an_increase_has_helped() -> None:
    source = restarted()
    source.readers = 6

    source.run(600, 900)

    assert source.reason is Reason.AT_MAXIMUM
    assert not any("Raise" in v.message for v in source.verdicts), "no increase was judged yet"

    quick = restarted()
    quick.limit = 1e9
    quick.run(60, 150).run(600, 900)
    assert quick.reason is Reason.AT_MAXIMUM
    assert quick.message.endswith("Raise spec.autoscaling.maxReaders")
