"""Leaders that change under a client that looks up offsets.

Each partition gets an answer of its own.
"""

from collections.abc import Iterator, Mapping

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import DiscoverKafka, TopicList
from balanced_source.connectors.kafka import KafkaCluster as Cluster
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.ends import Mark
from balanced_source.host.observation import observe
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_spark.ends import Ends
from testbed import kafka as testbed_kafka
from testbed.waiting import wait_until


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[testbed_kafka.KafkaCluster]:
    with testbed_kafka.KafkaCluster(
        "leaders", tmp_path_factory.mktemp("leaders"), nodes=3, heap="256m"
    ) as cluster:
        yield cluster


class Looking:
    """A driver's look at the ends of splits, with the ids of their topics, as in an assignment."""

    def __init__(self, three: testbed_kafka.KafkaCluster) -> None:
        self._three = three
        self._cluster = Cluster(name="c", bootstrap_servers=three.bootstrap)
        self._admin = KafkaAdmin()
        self._marks: dict[SplitId, Mark] = {}
        self.ends = Ends(
            lambda _, split_ids: self._admin.ends(self._cluster, split_ids, self._marks)
        )

    def create(self, name: str, replicas: list[list[int]]) -> list[SplitId]:
        """Make a topic with one record in each partition, and poll it until all ends are known."""
        self._three.admin.place_topic(name, replicas)
        for partition in range(len(replicas)):
            self._three.admin.produce(name, [b"x"], partition=partition)
        call = DiscoverKafka(
            scope="c", round=1, cluster=self._cluster, subscriber=TopicList((name,))
        )
        found = self._admin.discover(call).identities
        self._marks |= {s: Mark(position=0, identity=topic_id) for s, topic_id in found.items()}
        splits = sorted(found)
        wait_until(lambda: self.known(splits) == dict.fromkeys(splits, 1), 30, "the ends")
        return splits

    def known(self, splits: list[SplitId]) -> Mapping[SplitId, int]:
        """Ends that may be read to now."""
        answers = self.ends.get(splits)
        return {s: answers[s].end for s in splits if s in answers and s not in self.ends.silent}


@pytest.fixture
def look(three: testbed_kafka.KafkaCluster) -> Iterator[Looking]:
    looking = Looking(three)
    yield looking
    looking.ends.close()


def test_a_broker_that_restarts_does_not_silence_its_partitions(
    three: testbed_kafka.KafkaCluster, look: Looking
) -> None:
    """The leader is the same as before, in a newer epoch.

    What the client knows of it is refused until it asks.
    """
    splits = look.create("restarted", [[1], [2], [3]])

    three.kill(1)
    three.start_node(1)
    wait_until(
        lambda: three.admin.produce("restarted", [b"y"], partition=0),
        60,
        "the partition to be written again",
    )

    wait_until(
        lambda: look.known(splits) == {splits[0]: 2, splits[1]: 1, splits[2]: 1}, 60, "the new ends"
    )


def test_replicas_that_move_do_not_silence_the_partition(
    three: testbed_kafka.KafkaCluster, look: Looking
) -> None:
    splits = look.create("reassigned", [[1, 2]])

    three.reassign("reassigned", {0: [1, 3]})
    three.admin.produce("reassigned", [b"y"], partition=0)

    wait_until(lambda: look.known(splits) == {splits[0]: 2}, 60, "the new end")


def test_a_partition_without_a_leader_stops_no_other(
    three: testbed_kafka.KafkaCluster, look: Looking
) -> None:
    """Its lag is unknown meanwhile; the others of its topic are read on."""
    splits = look.create("leaderless", [[1], [2], [3]])

    three.kill(2)
    for partition in (0, 2):
        three.admin.produce("leaderless", [b"y"], partition=partition)
    wait_until(
        lambda: look.known(splits) == {splits[0]: 2, splits[2]: 2}, 60, "the ends of the others"
    )
    assert look.ends.silent == {splits[1]}
    position = StreamOffset(
        parallelism=1,
        readers=(0,),
        owners=dict.fromkeys(splits, 0),
        positions=dict.fromkeys(splits, 0),
    )
    seen = observe(position, position, look.known(splits))
    assert (seen.lag, seen.lags[splits[0]], seen.lags[splits[1]]) == (None, 2, None)

    three.start_node(2)
    wait_until(
        lambda: look.known(splits) == {splits[0]: 2, splits[1]: 1, splits[2]: 2}, 60, "all ends"
    )
