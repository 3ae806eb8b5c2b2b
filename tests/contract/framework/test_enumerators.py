"""The product's enumerators: pushing (Kafka, by discovery), and pulling (the tests' numbers)."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import AsyncCall, SplitId
from balanced_source.connectors.discovery import Discovered
from balanced_source.connectors.kafka import KafkaSource
from balanced_source.testing.enumerator import EnumeratorContract
from support.numbers import NumbersSplit
from support.numbers_source import NumbersSource
from support.world import Broker, kafka_source


class TestKafka(EnumeratorContract):
    def source(self) -> KafkaSource:
        return kafka_source("one", "two")

    def split_ids(self) -> frozenset[SplitId]:
        return frozenset(self._broker().ends)

    def execute(self, call: AsyncCall) -> Any:
        return self._broker().execute(call)

    def _broker(self) -> Broker:
        broker = Broker()
        broker.create("one", "orders", range(7), end=5)
        broker.create("two", "payments", range(4), end=5)
        broker.topic_ids[("one", "orders")] = "oNe"
        return broker


class TestPull(EnumeratorContract):
    is_pull = True

    def source(self) -> NumbersSource:
        return NumbersSource(tuple(NumbersSplit(name=str(n)) for n in range(6)))

    def split_ids(self) -> frozenset[SplitId]:
        return frozenset(split.split_id for split in self.source().ranges)


class Nameless(TestKafka):
    """Its splits have identities, and its listings do not name them."""

    def execute(self, call: AsyncCall) -> Any:
        answer = super().execute(call)
        return replace(answer, identities={}) if isinstance(answer, Discovered) else answer


def test_the_suite_finds_listings_without_the_identities_of_splits() -> None:
    with pytest.raises(AssertionError, match=r"Discovered\.identities has None for it"):
        Nameless().test_listings_name_the_identities_that_splits_have()
