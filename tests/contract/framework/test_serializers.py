"""Serializers of the product, and the one of a test's connector."""

from balanced_source.connectors.discovery import DiscoveryState
from balanced_source.connectors.discovery.values import Retained
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.testing.serializer import (
    JsonSerializer,
    SerializerContract,
    split_serializer,
    state_serializer,
)
from support.numbers import NumbersSplit
from support.numbers_source import NumbersSource
from support.world import kafka_source

A, B = (
    KafkaPartitionSplit(cluster="main", topic="orders", partition=p, offset=7 * p) for p in (0, 11)
)


class TestKafkaSplits(SerializerContract):
    serializer = split_serializer(kafka_source())
    values = (A, B, KafkaPartitionSplit(cluster="ü", topic='quo"te', partition=0, offset=2**62))
    released = {1: {b'[["main","orders",11],77,{}]': B}}


class TestNumbers(SerializerContract):
    serializer = split_serializer(NumbersSource(()))
    values = (NumbersSplit(name="a", next=3, stop=9),)
    released = {1: {b'[["a"],3,{"stop":9}]': NumbersSplit(name="a", next=3, stop=9)}}


class TestStateOfAConnector(SerializerContract):
    serializer = state_serializer(NumbersSource(()))
    values = ((NumbersSplit(name="a", next=3, stop=9),), ())
    released = {1: {b'[["a",3,9]]': (NumbersSplit(name="a", next=3, stop=9),)}}


class TestTwoVersions(SerializerContract):
    """A format that has changed once: the old bytes stay readable."""

    serializer: JsonSerializer[tuple[int, ...]] = JsonSerializer(
        "numbers",
        2,
        list,
        lambda version, data: tuple(map(int, data.split(",") if version == 1 else _list(data))),
    )
    values = ((1, 2), ())
    released = {1: {b'"1,2"': (1, 2)}, 2: {b"[1,2]": (1, 2)}}


def _list(data: object) -> list[int]:
    if not isinstance(data, list):
        raise TypeError(f"a list, not {data!r}")
    return data


def test_the_state_of_a_discovering_source_survives() -> None:
    source = kafka_source("main")
    state = DiscoveryState(
        unassigned={A.split_id: A},
        finished=frozenset({B.split_id}),
        retained={B.split_id: Retained(split=B, until=12.5)},
        preferred={A.split_id: 3},
        discovered=frozenset({"main", "gone"}),
        removed={"gone": 12.5},
        rebalance_due=True,
    )
    serializer = state_serializer(source)

    assert serializer.deserialize(serializer.version, serializer.serialize(state)) == state
