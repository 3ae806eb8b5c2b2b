from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, ResourceType

from testbed.kafka import KafkaCluster, KafkaSecurity, Listener, Mechanism

pytestmark = pytest.mark.integration


def read(config: dict[str, str], topic: str, count: int) -> set[bytes]:
    """Read `count` records of a topic's partition 0, with a deadline."""
    settings = {"group.id": "test", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({**config, **settings})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages = consumer.consume(count, timeout=30)
        return {message.value() for message in messages if message.error() is None}
    finally:
        consumer.close()


def test_records_go_in_and_come_out(kafka: KafkaCluster) -> None:
    kafka.admin.create_topic("letters")
    assert kafka.admin.produce("letters", [b"a", b"b", b"c"]) == 3
    assert read(kafka.client_config(), "letters", 3) == {b"a", b"b", b"c"}


def test_topics_grow_lose_records_and_go(kafka: KafkaCluster) -> None:
    admin = kafka.admin
    admin.create_topics({"one": 1, "two": 2})
    admin.produce("one", [b"x"] * 10, partition=0)
    admin.add_partitions("one", 3)
    admin.delete_records("one", {0: 4})
    assert admin.offsets("one") == {0: (4, 10), 1: (0, 0), 2: (0, 0)}
    admin.delete_topic("one", "two")
    assert not {"one", "two"} & admin.client.list_topics(timeout=10).topics.keys()


def test_a_killed_broker_comes_back_on_its_port_with_its_records(kafka: KafkaCluster) -> None:
    kafka.admin.create_topic("durable")
    kafka.admin.produce("durable", [b"kept"])
    before = kafka.bootstrap
    kafka.kill()
    assert kafka.admin.brokers() == 0
    kafka.start_node()
    assert kafka.bootstrap == before
    assert read(kafka.client_config(), "durable", 1) == {b"kept"}


def test_three_nodes_live_through_the_loss_of_one(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with KafkaCluster("three", tmp_path_factory.mktemp("kafka-three"), nodes=3) as cluster:
        cluster.admin.create_topic("t", 3, {"min.insync.replicas": "2"})
        cluster.kill(2)
        assert cluster.admin.produce("t", [b"v"] * 30) == 30
        cluster.start_node(2)
        assert cluster.admin.brokers() == 3


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    security = KafkaSecurity(users={"alice": "secret"}, acls=True)
    with KafkaCluster(
        "secured", tmp_path_factory.mktemp("kafka-secured"), security=security
    ) as cluster:
        cluster.admin.create_topics({"hers": 1, "other": 1})
        rights = (AclOperation.READ, AclOperation.DESCRIBE)
        cluster.admin.allow("alice", ResourceType.TOPIC, "hers", *rights)
        cluster.admin.allow("alice", ResourceType.GROUP, "test", AclOperation.READ)
        cluster.admin.produce("hers", [b"secret"])
        yield cluster


@pytest.mark.parametrize("mechanism", list(Mechanism))
@pytest.mark.parametrize("listener", [Listener.SASL, Listener.SASL_TLS])
def test_a_user_sees_and_reads_only_her_topic_by_sasl(
    secured: KafkaCluster, listener: Listener, mechanism: Mechanism
) -> None:
    config = secured.client_config(listener, user="alice", mechanism=mechanism)
    topics = AdminClient({**config, "log_level": 0}).list_topics(timeout=20).topics
    assert set(topics) == {"hers"}
    assert read(config, "hers", 1) == {b"secret"}


def test_a_client_certificate_is_a_user(secured: KafkaCluster) -> None:
    config = secured.client_config(Listener.MTLS, user="alice")
    assert read(config, "hers", 1) == {b"secret"}


def test_strangers_are_refused(secured: KafkaCluster) -> None:
    wrong = secured.client_config(Listener.SASL_TLS, user="alice") | {"sasl.password": "guess"}
    no_certificate = secured.client_config(Listener.MTLS)
    for config in (wrong, no_certificate):
        with pytest.raises(KafkaException):
            AdminClient({**config, "log_level": 0}).list_topics(timeout=3)
