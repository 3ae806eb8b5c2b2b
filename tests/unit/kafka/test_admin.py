"""What the admin of a cluster asks and passes on, with clients that ask no one."""

import json
from typing import Any
from unittest.mock import Mock

import pytest

from balanced_source.connectors.kafka import LATEST, InitializeKafka, KafkaCluster
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError
from balanced_source.reasons import Reason
from balanced_source_adapters.kafka import admin as admin_module
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_adapters.kafka.client import ClusterClient
from balanced_source_adapters.kafka.client_statistics import BrokerStatistics, parse
from balanced_source_adapters.kafka.config import NoSecrets
from balanced_source_adapters.kafka.tokens import TokenCallback
from balanced_source_adapters.kafka.topics import Topic


@pytest.mark.parametrize(
    "text", ["", "no JSON", "[]", '{"brokers": []}', '{"brokers": {"a": 1}}', "[" * 100_000]
)
def test_statistics_of_another_form_are_zeros(text: str) -> None:
    assert parse(text) == BrokerStatistics()


def test_only_clients_that_have_told_something_have_statistics() -> None:
    class Client:
        def __init__(self, statistics: BrokerStatistics | None) -> None:
            self.statistics = statistics

    admin = KafkaAdmin(has_statistics=True)
    told = BrokerStatistics(connected=3)
    clients: Any = {"east": ({}, Client(told)), "west": ({}, Client(None))}
    admin._clients = clients
    assert admin.statistics() == {"east": told}
    clients.clear()


def test_statistics_of_a_client_are_the_newest_that_it_has_queued() -> None:
    client = ClusterClient("c", {"bootstrap.servers": ""})
    polled: list[float] = []

    class Library:
        def poll(self, seconds: float) -> int:
            polled.append(seconds)
            client._notes.on_statistics(json.dumps({"brokers": {"a": {"state": "UP"}}}))
            return 1

    library: Any = Library()
    client._admin = library
    found = client.statistics
    assert found is not None
    assert (found.connected, polled) == (1, [0])


def test_properties_that_the_client_does_not_know_are_refused_without_their_values() -> None:
    with pytest.raises(DiscoveryError) as found:
        ClusterClient("c", {"bootstrap.servers": "b:1", "security.protocol": "hidden-value"})
    assert "hidden-value" not in str(found.value)
    assert found.value.__cause__ is None


def test_where_no_secrets_can_be_read_a_cluster_that_names_one_is_refused() -> None:
    cluster = KafkaCluster(name="c", bootstrap_servers="b:1", secrets=("s",))
    with pytest.raises(LookupError, match="secret s: no place to read secrets from"):
        NoSecrets().read("s")
    with pytest.raises(RefusedDiscoveryError, match="secret s: no place") as found:
        KafkaAdmin().begins(cluster, [("c", "t", 0)])
    assert found.value.reason == Reason.SECRET_NOT_FOUND


def test_a_secret_with_what_is_reserved_is_refused() -> None:
    class Reserved:
        def read(self, name: str) -> dict[str, str]:
            return {"bootstrap.servers": name}

    cluster = KafkaCluster(name="c", bootstrap_servers="b:1", secrets=("s",))
    with pytest.raises(RefusedDiscoveryError, match=r"Secret s.*bootstrap\.servers") as found:
        KafkaAdmin(Reserved()).begins(cluster, [("c", "t", 0)])
    assert found.value.reason == Reason.INVALID_PROPERTIES


def test_an_admin_passes_requests_to_the_client_of_the_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = KafkaCluster(name="c", bootstrap_servers="b:1")
    client, partition = Mock(), ("c", "t", 0)
    client.high_watermarks.return_value = {partition: 7}
    monkeypatch.setattr(KafkaAdmin, "_client", lambda *_: client)
    admin = KafkaAdmin()

    assert admin.high_watermarks(cluster, [partition]) == {partition: 7}
    admin.commit(cluster, "group", {partition: 5})
    client.high_watermarks.assert_called_once_with([partition])
    client.commit.assert_called_once_with("group", {partition: 5})


def test_partitions_without_an_offset_are_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Mock()
    client.topics.return_value = {"t": Topic(partitions=frozenset({0, 1}), topic_id="x")}
    client.ends.return_value = {("c", "t", 0): 7}
    monkeypatch.setattr(KafkaAdmin, "_client", lambda *_: client)
    call = InitializeKafka(
        scope="c",
        split_ids=(("c", "t", 0), ("c", "t", 1)),
        cluster=KafkaCluster(name="c", bootstrap_servers="b:1"),
        starting_offsets=LATEST,
    )
    with pytest.raises(DiscoveryError, match=r"1 partition, .* t/1, without a leader"):
        KafkaAdmin().initialize(call)


def test_two_problems_of_a_discovery_are_one_that_says_both() -> None:
    first = RefusedDiscoveryError("no right", scope="c", reason=Reason.SECRET_NOT_FOUND)
    second = RefusedDiscoveryError("no topic", scope="d")
    found = admin_module._both(first, second)
    assert isinstance(found, RefusedDiscoveryError)
    assert (str(found), found.scope, found.reason) == (
        "no right; no topic",
        "c",
        Reason.SECRET_NOT_FOUND,
    )
    assert admin_module._both(first, None) is first
    assert admin_module._both(None, second) is second


def test_a_function_for_tokens_is_named_in_messages() -> None:
    assert str(TokenCallback("module:function")) == "module:function"
