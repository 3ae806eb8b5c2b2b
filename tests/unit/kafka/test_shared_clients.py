"""Sources share a client if they reach a cluster in the very same way, and never otherwise."""

import gc
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import Caller
from balanced_source.connectors.kafka import DiscoverKafka, KafkaCluster
from balanced_source_adapters.kafka import admin as module
from balanced_source_adapters.kafka.admin import KafkaAdmin, SharedClients
from balanced_source_adapters.kafka.connector import KafkaConnector
from balanced_source_spark.kafka.hooks import KafkaHooks
from balanced_source_spark.options import client_id, parse_options, query_of
from support.planner_context import CONTEXT


class Client:
    """Stands for a `ClusterClient`."""

    made: list[Mapping[str, Any]] = []
    levels: list[bool] = []

    def __init__(
        self, cluster: str, config: Mapping[str, Any], *, is_read_committed: bool, **_: Any
    ) -> None:
        self.cluster = cluster
        Client.made.append(config)
        Client.levels.append(is_read_committed)

    def tend(self) -> None:
        """Nothing is queued."""


class Secrets:
    """One Secret, whose values a test may change."""

    def __init__(self, **values: str) -> None:
        self.values = values

    def read(self, name: str) -> Mapping[str, str]:
        return dict(self.values)


@pytest.fixture(autouse=True)
def _clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ClusterClient", Client)
    Client.made, Client.levels = [], []


def cluster(name: str = "main", server: str = "broker:9092", **changes: Any) -> KafkaCluster:
    return KafkaCluster(name=name, bootstrap_servers=server, **changes)


def secured(name: str = "main") -> KafkaCluster:
    return cluster(name, secrets=("login",))


def admin(shared: SharedClients, login: str = "same") -> KafkaAdmin:
    secrets = Secrets(**{"sasl.username": "shop", "sasl.password": login})
    return KafkaAdmin(secrets, client_id="operator", clients=shared)


def test_the_same_cluster_with_the_same_credentials_has_one_client() -> None:
    shared = SharedClients()
    first, second = admin(shared), admin(shared)
    assert first._client(secured()) is second._client(secured())
    assert len(Client.made) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (cluster(), cluster(server="elsewhere:9092")),
        (cluster(), cluster("another")),
        (cluster(), cluster(properties={"security.protocol": "SSL"})),
        (cluster(), secured()),
        (cluster(properties={"isolation.level": "read_uncommitted"}), cluster()),
    ],
)
def test_another_way_to_reach_a_cluster_is_another_client(
    one: KafkaCluster, other: KafkaCluster
) -> None:
    shared = SharedClients()
    assert admin(shared)._client(one) is not admin(shared)._client(other)


def test_a_client_is_never_shared_between_passwords() -> None:
    shared = SharedClients()
    first, second = admin(shared, "one"), admin(shared, "two")
    assert first._client(secured()) is not second._client(secured())
    assert [config["sasl.password"] for config in Client.made] == ["one", "two"]


def test_a_source_whose_secret_is_rotated_leaves_the_client_to_the_others() -> None:
    shared, rotated = SharedClients(), Secrets(**{"sasl.password": "old"})
    first = KafkaAdmin(rotated, clients=shared)
    second = KafkaAdmin(Secrets(**{"sasl.password": "old"}), clients=shared)
    before = first._client(secured())
    assert second._client(secured()) is before
    rotated.values["sasl.password"] = "new"
    assert first._client(secured()) is not before
    assert second._client(secured()) is before


def test_a_client_ends_with_its_last_user() -> None:
    shared = SharedClients()
    first, second = admin(shared), admin(shared)
    first._client(secured())
    second._client(secured())
    first.close()
    gc.collect()
    assert len(shared._clients) == 1
    second.close()
    gc.collect()
    assert len(shared._clients) == 0


def test_the_operator_shares_clients_among_all_sources_and_a_driver_shares_none() -> None:
    connector, made = KafkaConnector(), []

    class Recorder(KafkaAdmin):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            made.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "KafkaAdmin", Recorder)
        for caller in (Caller.OPERATOR, Caller.OPERATOR, Caller.OWNER):
            connector.executor(Secrets(), caller=caller, client_id="a")
    one, two, driver = (found._client(cluster()) for found in made)
    assert (one is two, one is driver) == (True, False)


@pytest.mark.parametrize("level", ["read_uncommitted", "READ_COMMITTED"])
def test_planning_takes_the_isolation_level_from_where_readers_take_it(level: str) -> None:
    """Ends of other records than those that are read would hold tasks up, or leave records out."""
    made = KafkaAdmin(Secrets(**{"isolation.level": level}), client_id="driver")

    made._client(secured())

    assert Client.levels == [level == "READ_COMMITTED"]


def test_who_assigns_and_who_plans_in_one_process_have_one_client() -> None:
    options = parse_options({"kafka.bootstrap.servers": "b:9", "subscribe": "t"})
    source: Any = options.embedded
    (c,) = source.clusters
    settings = source.reader_settings()
    context: Any = replace(CONTEXT, query=query_of(options), known_settings=lambda: settings)
    executor = KafkaConnector().executor(
        options.secrets, caller=Caller.OWNER, client_id=client_id(options)
    )
    planner = KafkaHooks(context)

    for ask in (
        lambda: executor(
            DiscoverKafka(scope=c.name, round=0, cluster=c, subscriber=source.subscriber)
        ),
        lambda: planner.ends(c.name, [(c.name, "t", 0)], {}),
    ):
        with pytest.raises(AttributeError, match="Client"):  # this one answers nothing
            ask()

    assert len(Client.made) == 1
