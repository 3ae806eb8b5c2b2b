"""One topic that the user may not see.

The others of its cluster continue, and the condition names it.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AclOperation

from balanced_source.connectors.kafka import (
    DiscoverKafka,
    KafkaCluster,
    PartitionSet,
    TopicList,
    TopicPattern,
)
from balanced_source.errors import RefusedDiscoveryError
from balanced_source_adapters.kafka import client as kafka_client
from balanced_source_adapters.kafka import topics as kafka_topics
from balanced_source_adapters.kafka.admin import KafkaAdmin
from support.offsets_admin import together
from support.stage import Stage, splits
from support.world import kafka_source

ORDERS, PAYMENTS = ("c", "orders", 0), ("c", "payments", 0)
CLUSTER = KafkaCluster(name="c", bootstrap_servers="nowhere:1")


def done(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
    return future


class Library:
    """What `OffsetsAdmin` answers to a user without rights on some topics.

    Each has one partition of 7 records.
    """

    refused: frozenset[str] = frozenset({"payments"})
    unreadable: frozenset[str] = frozenset()

    def __init__(self, _config: Mapping[str, Any]) -> None:
        """Nothing is connected."""

    def _told(self, topic: str, told: Any) -> Any:
        is_refused = topic in self.refused
        return (
            KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
            if is_refused
            else told
        )

    def describe_topics(self, names: Any, **_: Any) -> Mapping[str, Future[Any]]:
        def told(name: str) -> Any:
            rights = [AclOperation.DESCRIBE, *([AclOperation.READ] * (name not in self.unreadable))]
            return SimpleNamespace(
                partitions=[SimpleNamespace(id=0)], topic_id="id", authorized_operations=rights
            )

        return {name: done(self._told(name, told(name))) for name in names}

    def list_together(
        self, wanted: list[TopicPartition], **_: Any
    ) -> Future[Mapping[TopicPartition, Any]]:
        told = SimpleNamespace(offset=7, timestamp=0, leader_epoch=1)
        return together({tp: self._told(tp.topic, told) for tp in wanted})

    def list_topics(self, *_: Any, **__: Any) -> Any:
        topic = SimpleNamespace(error=None, partitions={0: SimpleNamespace(leader=1)})
        return SimpleNamespace(topics={"orders": topic, "payments": topic})

    def poll(self, _timeout: float) -> None:
        """Nothing to deliver."""


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_client, "OffsetsAdmin", Library)
    monkeypatch.setattr(kafka_topics, "TopicCollection", list)


@pytest.mark.parametrize(
    "subscriber",
    [
        TopicList(("orders", "payments")),
        TopicPattern("orders|payments"),
        PartitionSet(frozenset({("orders", 0), ("payments", 0)})),
    ],
)
def test_the_other_topics_are_found(subscriber: Any) -> None:
    found = KafkaAdmin().discover(
        DiscoverKafka(scope="c", round=0, cluster=CLUSTER, subscriber=subscriber)
    )

    assert found.split_ids == {ORDERS}
    assert found.problem is not None
    assert found.problem.reason == "NotAuthorized"
    assert str(found.problem).startswith("cluster c refuses topic payments (")
    assert "grant the user Describe and Read on it" in str(found.problem)
    assert "does not exist" not in str(found.problem)
    assert found.without_refused({ORDERS, PAYMENTS}) == {ORDERS}


def test_a_topic_without_read_permission_counts_as_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Assigned, it would fail the tasks of every micro-batch, and all other topics with them."""
    monkeypatch.setattr(Library, "refused", frozenset())
    monkeypatch.setattr(Library, "unreadable", frozenset({"payments"}))
    wanted = TopicList(("orders", "payments"))

    found = KafkaAdmin().discover(
        DiscoverKafka(scope="c", round=0, cluster=CLUSTER, subscriber=wanted)
    )

    assert found.split_ids == {ORDERS}
    assert str(found.problem).startswith("cluster c refuses topic payments (")


def test_a_missing_topic_is_reported_beside_a_refused_one() -> None:
    wanted = TopicList(("orders", "payments"))
    found = wanted.select("c", {}, {"payments"})

    assert "topic orders does not exist" in str(found.problem)


def test_a_cluster_that_refuses_everything_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Library, "refused", frozenset({"orders", "payments"}))

    call = DiscoverKafka(
        scope="c", round=0, cluster=CLUSTER, subscriber=TopicList(("orders", "payments"))
    )

    with pytest.raises(RefusedDiscoveryError, match="refuses topic orders, payments") as caught:
        KafkaAdmin().discover(call)
    assert caught.value.reason == "NotAuthorized"


def test_the_ends_of_the_other_topics_are_known() -> None:
    with pytest.raises(RefusedDiscoveryError, match="refuses topic payments") as caught:
        KafkaAdmin().ends(CLUSTER, [ORDERS, PAYMENTS])

    assert {s: answer.end for s, answer in caught.value.answers.items()} == {ORDERS: 7}


def test_a_topic_that_is_refused_while_it_is_read_stays_assigned_and_the_others_grow() -> None:
    """Refused is not deleted.

    Its splits keep their owners and positions until the rights are back.
    """
    stage = Stage(readers=2, hosts=1, source=kafka_source("c"))
    stage.topic("orders", 2).topic("payments", 2).running().adopts()
    owners = dict(stage.owners)
    stage.broker.refused.add(("c", "payments"))
    stage.broker.delete(splits("payments", 2))
    stage.topic("orders", 4)

    stage.looks_again(5).adopts()
    assert stage.owners.keys() == {*owners, *splits("orders", 4)}
    assert {s: stage.owners[s] for s in owners} == owners

    stage.broker.refused.clear()
    stage.looks_again(5).adopts()
    assert stage.owners.keys() == set(splits("orders", 4)), "now it is known that the topic is gone"
