"""What a cluster answers about offsets.

The same contract for the fake of the unit tests and for a real broker.
"""

import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pytest
from confluent_kafka import Producer

from balanced_source.api import IDENTITY, SplitId
from balanced_source.connectors.kafka import (
    EARLIEST,
    LATEST,
    Anchor,
    DiscoverKafka,
    FromCommit,
    FromTime,
    InitializeKafka,
    KafkaCluster,
    OffsetLookup,
    OffsetsInitializer,
    TopicList,
    TopicPattern,
    resolve_start,
)
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import TransientDiscoveryError
from balanced_source.host.ends import Look, SplitEnd, look
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_adapters.kafka.client import ClusterClient
from balanced_source_adapters.kafka.config import NoSecrets
from balanced_source_spark.kafka.record_sizes import sampled
from balanced_source_spark.kafka.settings import consumer_config
from support.kafka_lookup import FakeLookup, Log
from testbed import kafka as testbed_kafka
from testbed.waiting import wait_until

TIMES = (1_000, 1_100, 1_050, 1_300)


@dataclass
class World:
    """Partition 0 has the records of `TIMES`, the first deleted; 1 is empty; 2 has one record.

    Group `g` is in 0.
    """

    lookup: OffsetLookup
    split: Callable[[int], SplitId]
    absent: SplitId = ("c", "absent", 0)
    logs: Mapping[SplitId, Log] = field(default_factory=dict)


@pytest.fixture(params=["fake", "real"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "fake":
        logs = {
            ("c", "t", 0): Log(first=1, times=TIMES[1:]),
            ("c", "t", 1): Log(),
            ("c", "t", 2): Log(times=(5_000,)),
        }
        yield World(FakeLookup(logs, {"g": {("c", "t", 0): 2}}), lambda p: ("c", "t", p))
        return
    kafka: testbed_kafka.KafkaCluster = request.getfixturevalue("kafka")
    topic: str = request.getfixturevalue("topic")
    produce(kafka, topic, {0: TIMES, 2: (5_000,)})
    kafka.admin.delete_records(topic, {0: 1})
    client = ClusterClient("c", {"bootstrap.servers": kafka.bootstrap})
    committed = {("c", topic, 0): 2}
    wait_until(
        lambda: client.commit("g", committed) is None,
        30,
        "a group coordinator",
        ignoring=(TransientDiscoveryError,),
    )
    yield World(client, lambda p: ("c", topic, p))


def produce(
    kafka: testbed_kafka.KafkaCluster, topic: str, times: Mapping[int, tuple[int, ...]]
) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for partition, stamps in times.items():
        for stamp in stamps:
            producer.produce(topic, b"x", partition=partition, timestamp=stamp)
    assert producer.flush(30) == 0


def test_ends_are_the_first_and_the_next_offset(world: World) -> None:
    splits = [world.split(p) for p in range(3)]

    assert list(world.lookup.ends(splits, Anchor.EARLIEST).items()) == list(
        zip(splits, (1, 0, 0), strict=True)
    )
    assert dict(world.lookup.ends(splits, Anchor.LATEST)) == dict(
        zip(splits, (4, 0, 1), strict=True)
    )


def test_missing_partitions_are_left_out(world: World) -> None:
    for anchor in Anchor:
        assert world.absent not in world.lookup.ends([world.split(0), world.absent], anchor)


@pytest.mark.parametrize(
    ("moment", "want"), [(0, 1), (1_060, 1), (1_100, 1), (1_101, 3), (1_300, 3)]
)
def test_a_moment_is_the_first_record_at_or_after_it(world: World, moment: int, want: int) -> None:
    assert world.lookup.at_times({world.split(0): moment}) == {world.split(0): want}


def test_a_moment_after_the_last_record_has_no_answer(world: World) -> None:
    assert world.lookup.at_times({world.split(0): 1_301, world.split(1): 0}) == {}


def test_commits_are_answered_where_there_are_any(world: World) -> None:
    splits = [world.split(p) for p in range(3)]

    assert world.lookup.committed("g", splits) == {world.split(0): 2}
    assert world.lookup.committed("nobody", splits) == {}


# --- the adapter ----------------------------------------------------------------------------------


@pytest.fixture
def admin() -> KafkaAdmin:
    return KafkaAdmin()


@pytest.fixture
def cluster(kafka: testbed_kafka.KafkaCluster) -> KafkaCluster:
    return KafkaCluster(name="c", bootstrap_servers=kafka.bootstrap)


@pytest.mark.scenario("A9", "I2")
def test_latest_is_resolved_when_the_split_is_found(
    admin: KafkaAdmin, cluster: KafkaCluster, kafka: testbed_kafka.KafkaCluster, topic: str
) -> None:
    """What is produced after the discovery is read, however late the split gets its owner."""
    kafka.admin.produce(topic, [b"x"] * 5, partition=0)
    found = admin.discover(
        DiscoverKafka(scope="c", round=1, cluster=cluster, subscriber=TopicList((topic,)))
    )
    assert found.split_ids == {("c", topic, p) for p in range(3)}

    def initialize(offsets: OffsetsInitializer) -> dict[int, int]:
        call = InitializeKafka(
            scope="c",
            split_ids=tuple(sorted(found.split_ids)),
            cluster=cluster,
            starting_offsets=offsets,
        )
        return {split.partition: split.offset for split in admin.initialize(call)}

    assert initialize(LATEST) == {0: 5, 1: 0, 2: 0}
    assert initialize(EARLIEST) == {0: 0, 1: 0, 2: 0}


def test_stops_are_resolved_with_the_starts(
    admin: KafkaAdmin, cluster: KafkaCluster, kafka: testbed_kafka.KafkaCluster, topic: str
) -> None:
    produce(kafka, topic, {0: TIMES})

    splits = admin.initialize(
        InitializeKafka(
            scope="c",
            split_ids=(("c", topic, 0), ("c", topic, 1)),
            cluster=cluster,
            starting_offsets=FromTime(1_100),
            stopping_offsets=LATEST,
        )
    )

    assert {(s.partition, s.offset, s.stopping_offset) for s in splits} == {(0, 1, 4), (1, 0, 0)}
    held = StreamOffset(
        positions={s.split_id: 0 for s in splits},
        attributes={s.split_id: s.attributes() for s in splits},
    )
    kafka.admin.produce(topic, [b"x"] * 5, partition=0)
    assert look(held, admin.ends(cluster, held.positions)).ends == {
        ("c", topic, 0): 4,
        ("c", topic, 1): 0,
    }


def test_the_end_of_a_new_topic_is_never_taken_for_that_of_the_previous_one(
    admin: KafkaAdmin, cluster: KafkaCluster, kafka: testbed_kafka.KafkaCluster, topic: str
) -> None:
    """Asked a moment after a look at the former one: nothing of what was known then may count."""
    kafka.admin.produce(topic, [b"x"] * 5, partition=0)
    found = admin.discover(
        DiscoverKafka(scope="c", round=1, cluster=cluster, subscriber=TopicList((topic,)))
    )
    split: SplitId = ("c", topic, 0)
    former = StreamOffset(
        positions={split: 0}, attributes={split: {IDENTITY: found.identities[split]}}
    )
    assert look(former, admin.ends(cluster, [split])).ends == {split: 5}

    kafka.admin.delete_topic(topic)
    assert look(former, admin.ends(cluster, [split])) == Look()
    kafka.admin.create_topic(topic, partitions=3)
    kafka.admin.produce(topic, [b"y"] * 50, partition=0)

    def answered() -> Mapping[SplitId, SplitEnd]:
        """Until all brokers know the new topic, there may be no answer.

        A former one is never given.
        """
        answer = admin.ends(cluster, [split])
        assert not look(former, answer).ends
        return answer

    found_again = wait_until(answered, 30, "the end of the new topic")
    assert found_again[split].end == 50
    assert look(former, found_again) == Look(recreated=frozenset({split}))


def test_the_latest_offset_is_before_an_open_transaction(
    admin: KafkaAdmin, cluster: KafkaCluster, kafka: testbed_kafka.KafkaCluster, topic: str
) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0)
    producer.flush(30)
    split: SplitId = ("c", topic, 0)
    dirty = KafkaCluster(
        name="d",
        bootstrap_servers=kafka.bootstrap,
        properties={"isolation.level": "read_uncommitted"},
    )

    assert [admin.ends(c, [split])[split].end for c in (cluster, dirty)] == [0, 1]
    producer.commit_transaction(30)
    wait_until(
        lambda: admin.ends(cluster, [split])[split].end == 2,
        30,
        "the record and its marker to be readable",
    )


@pytest.mark.scenario("H10")
def test_commits_with_and_without_reset(kafka: testbed_kafka.KafkaCluster, topic: str) -> None:
    """Earliest → 0, latest → 10, as upstream.

    Without a reset the discovery is refused (unit tests).
    """
    kafka.admin.produce(topic, [b"x"] * 10, partition=0)
    client = ClusterClient("c", {"bootstrap.servers": kafka.bootstrap})
    split: SplitId = ("c", topic, 0)

    assert resolve_start(FromCommit("none", Anchor.EARLIEST), [split], client) == {split: 0}
    assert resolve_start(FromCommit("none", Anchor.LATEST), [split], client) == {split: 10}


def test_a_commit_that_retention_has_overtaken_is_told_with_the_start(
    admin: KafkaAdmin, cluster: KafkaCluster, kafka: testbed_kafka.KafkaCluster, topic: str
) -> None:
    kafka.admin.produce(topic, [b"x"] * 10, partition=0)
    client = ClusterClient("c", {"bootstrap.servers": kafka.bootstrap})
    committed: dict[SplitId, int] = {("c", topic, 0): 3, ("c", topic, 1): 0}
    wait_until(lambda: client.commit(f"g-{topic}", committed) is None, 30, "commits of the group")
    kafka.admin.delete_records(topic, {0: 5})

    def initialize(reset: Anchor) -> dict[int, tuple[int, int | None]]:
        call = InitializeKafka(
            scope="c",
            split_ids=tuple(sorted(committed)),
            cluster=cluster,
            starting_offsets=FromCommit(f"g-{topic}", reset),
        )
        return {s.partition: (s.offset, s.void_commit) for s in admin.initialize(call)}

    assert initialize(Anchor.EARLIEST) == {0: (5, 3), 1: (0, None)}
    assert initialize(Anchor.LATEST) == {0: (10, 3), 1: (0, None)}


@pytest.mark.scenario("I7", "I8")
def test_lists_name_what_is_missing_and_patterns_match_whole_names(
    admin: KafkaAdmin, cluster: KafkaCluster, topic: str
) -> None:
    """A missing topic is a problem for people, not an error: the others are read.

    Upstream fails the job.
    """
    listed = admin.discover(
        DiscoverKafka(
            scope="c", round=1, cluster=cluster, subscriber=TopicList((topic, "missing-topic"))
        )
    )
    assert listed.split_ids == {("c", topic, p) for p in range(3)}
    assert "missing-topic does not exist" in str(listed.problem)

    matched = admin.discover(
        DiscoverKafka(
            scope="c", round=1, cluster=cluster, subscriber=TopicPattern(topic + "|opic.*")
        )
    )
    assert matched.split_ids == listed.split_ids


def test_a_sample_gives_the_size_of_records(
    cluster: KafkaCluster, kafka: testbed_kafka.KafkaCluster, topic: str
) -> None:
    """Keys, values and headers count; a partition without records tells nothing."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for _ in range(50):
        producer.produce(
            topic, key=b"k" * 10, value=b"v" * 80, headers=[("head", b"h" * 6)], partition=0
        )
    assert producer.flush(30) == 0
    config = consumer_config(cluster, NoSecrets(), client_id="sizes")

    assert sampled(config, ("c", topic, 0), 0) == 100.0
    assert sampled(config, ("c", topic, 1), 0) is None


def test_statistics_of_brokers_are_exported(cluster: KafkaCluster, topic: str) -> None:
    """One client per cluster, whatever is asked how often.

    Before the first statistics, nothing is known: no zeros.
    """
    admin = KafkaAdmin(has_statistics=True)
    quick = replace(cluster, properties={"statistics.interval.ms": "100"})

    def told() -> bool:
        admin.ends(quick, [("c", topic, 0)])
        return "c" in admin.statistics() and admin.statistics()["c"].connected >= 1

    wait_until(told, 30, "statistics with a connected broker", ignoring=(TransientDiscoveryError,))
    assert list(admin.statistics()) == ["c"]


def test_looks_at_offsets_leave_no_topic_ids_behind(
    admin: KafkaAdmin, cluster: KafkaCluster, kafka: testbed_kafka.KafkaCluster, topic: str
) -> None:
    """The client library leaks a reference to each id."""
    kafka.admin.produce(topic, [b"x"], partition=0)
    split: SplitId = ("c", topic, 0)

    def ids_in_memory() -> int:
        gc.collect()
        return sum(type(each).__name__ == "Uuid" for each in gc.get_objects())

    admin.ends(cluster, [split])
    before = ids_in_memory()
    for _ in range(5):
        admin.ends(cluster, [split])
    assert ids_in_memory() <= before
