"""Consumers of readers.

Errors of their configuration end in the query's error, and show nothing secret.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from balanced_source.connectors.kafka import KafkaCluster
from balanced_source.errors import BalancedSourceError
from balanced_source_adapters.kafka.config import NoSecrets
from balanced_source_spark.kafka import consumers
from balanced_source_spark.kafka.consumers import TaskConsumer, borrowed_consumer
from balanced_source_spark.kafka.pool import Pool
from balanced_source_spark.kafka.settings import consumer_config

CLUSTER = KafkaCluster(name="c", bootstrap_servers="127.0.0.1:1")


@pytest.mark.parametrize(
    ("name", "value"),
    [("security.protocol", "hunter2"), ("ssl.key.pem", "hunter2"), ("sasl.passwords", "hunter2")],
)
def test_an_invalid_configuration_is_reported_without_its_values(name: str, value: str) -> None:
    config = consumer_config(CLUSTER, NoSecrets(), client_id="x") | {
        "security.protocol": "SSL",
        name: value,
    }

    with pytest.raises(BalancedSourceError) as caught, borrowed_consumer(config):
        pass

    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


class Asked(TaskConsumer):
    """Notes which topics it asks about; with `is_silent`, no broker answers."""

    is_silent = False

    def __init__(self) -> None:
        super().__init__({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
        self.topics: list[str | None] = []

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        self.topics.append(topic)
        if self.is_silent:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))


@pytest.fixture
def consumer() -> Iterator[Asked]:
    asked = Asked()
    yield asked
    asked.close()


def test_a_consumer_asks_once_about_each_topic_that_is_new_to_it(consumer: Asked) -> None:
    """Else its first read waits for librdkafka, which looks for new topics once a second."""
    consumer.introduce(set("hgfedcba"))
    consumer.introduce(set("abchij"))
    consumer.introduce({"c"})

    assert consumer.topics == list("abcdefghij")


def test_a_cluster_that_is_silent_is_asked_once_per_micro_batch(consumer: Asked) -> None:
    consumer.is_silent = True

    consumer.introduce({"a", "b", "c"})

    assert consumer.topics == ["a"], "each question would wait for as long"


def test_without_time_left_the_client_asks_by_itself(consumer: Asked) -> None:
    consumer.introduce({"a"}, patience=0.0)

    assert consumer.topics == []


def test_consumers_of_one_configuration_serve_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order of the properties is; the client id only names the reader."""

    class Made:
        def __init__(self, config: Any) -> None:
            self.config = config

        def unassign(self) -> None:
            """It forgets its positions."""

        def close(self) -> None:
            """Nothing is open."""

    monkeypatch.setattr(consumers, "_pool", Pool(max_kept=1))
    monkeypatch.setattr(consumers, "TaskConsumer", Made)

    def borrowed(**config: Any) -> object:
        with borrowed_consumer({name.replace("_", "."): v for name, v in config.items()}) as found:
            return found

    first = borrowed(client_id="reader-0", a=1, b="x")
    assert borrowed(client_id="reader-1", b="x", a=1) is first
    assert borrowed(client_id="reader-0", a=2, b="x") is not first
