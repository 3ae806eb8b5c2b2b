"""A query that ends by itself reads all that it found at its start, also what is assigned late."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import LATEST
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.expected_splits import ExpectedSplits, _of_host
from balanced_source_spark.host_runtime import HostRuntime
from support.planned_query import PlannedQuery, all_of
from support.world import Broker, kafka_source

A, B, C = ("c", "t", 0), ("c", "t", 1), ("c", "u", 0)


class Epochs:
    """A runtime that adopts one assignment after the other.

    Args:
        assignments: in their order.
        settled: epoch in which everything that is there has an owner; None: not known.
    """

    def __init__(self, *assignments: Assignment | None, settled: int | None = None) -> None:
        self.settled_epoch = settled
        self._left: Iterator[Assignment | None] = iter(assignments)
        self._newest: Assignment | None = None

    def base(self) -> StreamOffset | None:
        self._newest = next(self._left, self._newest)
        if self._newest is None:
            return None
        return StreamOffset(positions=dict.fromkeys(self._newest.owners, 0))

    def newest_assignment(self, *, timeout: float) -> Assignment | None:
        del timeout
        return self._newest


def assignment(*splits: SplitId, **others: Any) -> Assignment:
    known = {"epoch": 1, "parallelism": 1, "incarnations": {"0": 1}}
    return Assignment(**{**known, "owners": dict.fromkeys(splits, 0), **others})


def wait(expected: ExpectedSplits, runtime: Epochs, *delivered: Any) -> StreamOffset | None:
    offset = StreamOffset(positions=dict.fromkeys(delivered, 0))
    return expected.base(cast("HostRuntime", runtime), offset)


def expecting(found: Assignment, timeout: float = 20.0) -> ExpectedSplits:
    expected = ExpectedSplits(host="0", timeout=timeout)
    expected.expect(found)
    return expected


def test_an_epoch_without_new_splits_is_not_enough() -> None:
    found = wait(
        expecting(assignment(A, B, C)), Epochs(None, assignment(A), assignment(A, B, C)), A
    )

    assert found is not None
    assert found.positions.keys() == {A, B, C}


def test_splits_of_the_checkpoint_and_of_other_hosts_are_not_waited_for() -> None:
    two_hosts: dict[str, Any] = {"parallelism": 2, "incarnations": {"0": 1, "1": 1}}
    first = assignment(A, B, C, **two_hosts)
    moved = assignment(A, C, **two_hosts, owners={A: 0, C: 1})

    found = wait(expecting(first), Epochs(moved), B)

    assert found is not None
    assert found.positions.keys() == {A, C}


def test_what_was_guessed_before_the_report_is_not_waited_for_once_all_is_known() -> None:
    """Such as a shard that was read and has left the checkpoint."""
    guess, first, all_there = assignment(A, C), assignment(B, epoch=6), assignment(A, B, epoch=7)

    found = wait(expecting(guess), Epochs(None, first, all_there, settled=7), B)

    assert found is not None
    assert found.positions.keys() == {A, B}


def test_a_split_that_is_never_assigned_is_named() -> None:
    with pytest.raises(ChannelError, match=r"1 split, such as c/u/0, there when"):
        wait(expecting(assignment(A, C), timeout=0.0), Epochs(assignment(A)))


@pytest.mark.parametrize("is_once", [True, False], ids=["Once", "AvailableNow"])
@pytest.mark.parametrize("is_bounded", [True, False], ids=["bounded", "unbounded"])
def test_a_topic_that_is_new_at_a_restart_is_read_at_once(
    *, is_bounded: bool, is_once: bool
) -> None:
    """Ten times: which epoch comes first is a matter of time."""
    for _ in range(10):
        broker = Broker(is_bounded=is_bounded)
        broker.create("c", "t", [0], end=7)
        stops = LATEST if is_bounded else None
        query = PlannedQuery(
            source=kafka_source("c", stopping_offsets=stops, discovery_interval=0.05), broker=broker
        )
        query.trigger_until(lambda q=query: q.records == all_of(q.broker), "all")  # type: ignore[misc]
        broker.create("c", "new", range(2), end=7)
        query.restart()

        if is_once:
            query.once()
        else:
            query.available_now()
        query.close()

        assert query.records == all_of(broker)


def test_only_splits_of_readers_on_this_host_are_expected() -> None:
    shared = assignment(parallelism=3, incarnations={"0": 1, "1": 1}, owners={A: 0, B: 1, C: 2})

    assert _of_host(shared, "0") == {A, C}
    assert _of_host(shared, "1") == {B}
