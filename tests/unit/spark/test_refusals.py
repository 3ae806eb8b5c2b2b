"""A query that ends by itself is told at once why it cannot begin; Spark's own source does so too."""

from collections.abc import Callable
from typing import Any

import pytest

from balanced_source.api import AsyncCall
from balanced_source.connectors.discovery import Discovered
from balanced_source.connectors.kafka import DiscoverKafka, KafkaPartitionSplit
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError, TransientDiscoveryError
from balanced_source_spark.channels.embedded import EmbeddedChannel
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.host_runtime import HostRuntime
from support.world import kafka_source

SPLIT = ("c", "t", 0)
Answer = Callable[[bool], Any]


def runtime(answer: Answer) -> HostRuntime:
    """`answer` is asked whether this is a discovery; what it returns is the answer, an error is raised."""

    def execute(call: AsyncCall) -> Any:
        told = answer(isinstance(call, DiscoverKafka))
        if isinstance(told, Exception):
            raise told
        return told

    return HostRuntime(EmbeddedChannel(kafka_source("c"), execute, parallelism=1))


def listed(problem: DiscoveryError | None = None) -> Discovered:
    return Discovered(split_ids=frozenset({SPLIT}), problem=problem)


@pytest.mark.parametrize("discovers", [True, False])
def test_what_is_refused_is_said_at_once(discovers: bool) -> None:
    """The discovery, or the look-up of start offsets."""
    refused = RefusedDiscoveryError("no record at or after the moment", scope="c")
    made = runtime(lambda is_discovery: listed() if is_discovery and not discovers else refused)
    try:
        with pytest.raises(ChannelError, match="no record at or after"):
            made.first_assignment(timeout=60)
    finally:
        made.close()


def test_what_may_pass_is_waited_for() -> None:
    made = runtime(lambda _: TransientDiscoveryError("not now", scope="c"))
    try:
        with pytest.raises(ChannelError, match="no assignment was seen within 1 s"):
            made.first_assignment(timeout=1)
    finally:
        made.close()


def test_a_problem_beside_what_was_found_is_no_refusal() -> None:
    """One topic is missing; the others are read."""
    problem = RefusedDiscoveryError("topic u does not exist", scope="c")
    split = KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=0)
    made = runtime(lambda is_discovery: listed(problem) if is_discovery else (split,))
    try:
        assert made.first_assignment(timeout=60).owners == {SPLIT: 0}
    finally:
        made.close()
