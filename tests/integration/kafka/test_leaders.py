"""Leaders that change under a client that looks up offsets: each partition gets an answer of its own."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaCluster as Cluster
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.observation import observe
from balanced_source_adapters.kafka_admin import KafkaAdmin
from balanced_source_spark.ends import Ends
from testbed import kafka as testbed_kafka
from testbed.waiting import wait_until


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[testbed_kafka.KafkaCluster]:
    with testbed_kafka.KafkaCluster("leaders", tmp_path_factory.mktemp("leaders"), nodes=3, heap="256m") as cluster:
        yield cluster


@pytest.fixture
def create(three: testbed_kafka.KafkaCluster) -> Callable[[str, list[list[int]]], list[SplitId]]:
    """Makes a topic with a replica list per partition; returns its splits, with one record in each."""

    def made(name: str, replicas: list[list[int]]) -> list[SplitId]:
        three.admin.place_topic(name, replicas)
        for partition in range(len(replicas)):
            three.admin.produce(name, [b"x"], partition=partition)
        return [("c", name, partition) for partition in range(len(replicas))]

    return made


@pytest.fixture
def cluster(three: testbed_kafka.KafkaCluster) -> Cluster:
    return Cluster(name="c", bootstrap_servers=three.bootstrap)


@pytest.fixture
def ends(cluster: Cluster) -> Iterator[Ends]:
    admin = KafkaAdmin()
    asked = Ends(lambda _, split_ids: admin.ends(cluster, split_ids))
    yield asked
    asked.close()


def known(ends: Ends, splits: list[SplitId]) -> Mapping[SplitId, int]:
    """Ends that may be read to now."""
    answers = ends.get(splits)
    return {s: answers[s] for s in splits if s in answers and s not in ends.silent}


def test_a_broker_that_restarts_does_not_silence_its_partitions(
    three: testbed_kafka.KafkaCluster, create: Callable[..., list[SplitId]], ends: Ends
) -> None:
    """The leader is the same as before, in a newer epoch: what the client knows of it is refused until it asks."""
    splits = create("restarted", [[1], [2], [3]])
    wait_until(lambda: known(ends, splits) == dict.fromkeys(splits, 1), 30, "the ends")

    three.kill(1)
    three.start_node(1)
    wait_until(lambda: three.admin.produce("restarted", [b"y"], partition=0), 60, "the partition to be written again")

    wait_until(lambda: known(ends, splits) == {splits[0]: 2, splits[1]: 1, splits[2]: 1}, 60, "the new ends")


def test_replicas_that_move_do_not_silence_the_partition(
    three: testbed_kafka.KafkaCluster, create: Callable[..., list[SplitId]], ends: Ends
) -> None:
    splits = create("reassigned", [[1, 2]])
    wait_until(lambda: known(ends, splits) == {splits[0]: 1}, 30, "the end")

    three.reassign("reassigned", {0: [1, 3]})
    three.admin.produce("reassigned", [b"y"], partition=0)

    wait_until(lambda: known(ends, splits) == {splits[0]: 2}, 60, "the new end")


def test_a_partition_without_a_leader_stops_no_other(
    three: testbed_kafka.KafkaCluster, create: Callable[..., list[SplitId]], ends: Ends
) -> None:
    """Its lag is unknown meanwhile; the others of its topic are read on."""
    splits = create("leaderless", [[1], [2], [3]])
    wait_until(lambda: known(ends, splits) == dict.fromkeys(splits, 1), 30, "the ends")

    three.kill(2)
    for partition in (0, 2):
        three.admin.produce("leaderless", [b"y"], partition=partition)
    wait_until(lambda: known(ends, splits) == {splits[0]: 2, splits[2]: 2}, 60, "the ends of the others")
    assert ends.silent == {splits[1]}
    position = StreamOffset(
        parallelism=1, readers=(0,), owners=dict.fromkeys(splits, 0), positions=dict.fromkeys(splits, 0)
    )
    seen = observe(position, position, known(ends, splits))
    assert (seen.lag, seen.lags[splits[0]], seen.lags[splits[1]]) == (None, 2, None)

    three.start_node(2)
    wait_until(lambda: known(ends, splits) == {splits[0]: 2, splits[1]: 1, splits[2]: 2}, 60, "all ends")
