"""What the connector makes of the service's answers."""

from collections.abc import Mapping
from typing import Any

import pytest

from balanced_source.api import Caller, DriverOnly, NamedSecrets, SplitId
from balanced_source.connectors.discovery import Alarm
from balanced_source.connectors.kinesis import ListShards, Server, Shard
from balanced_source.errors import ContractViolationError, TransientDiscoveryError
from balanced_source_adapters.kinesis import client as module
from balanced_source_adapters.kinesis.client import Summary
from balanced_source_adapters.kinesis.connector import KinesisConnector

SERVER = Server(region="eu-west-1", secret="streams")  # noqa: S106 - a name
FOUND: Mapping[SplitId, Shard] = {("orders", "shardId-0"): Shard((), is_open=True)}


class Client:
    """Tells another time of creation after each listing, if it is recreated."""

    def __init__(self, *, is_recreated: bool) -> None:
        self._is_recreated, self._created = is_recreated, 1

    def summary(self, stream: str) -> Summary:
        return Summary(created=str(self._created), now=0)

    def shards(self, stream: str) -> Mapping[SplitId, Shard]:
        self._created += self._is_recreated
        return FOUND


def listed(monkeypatch: pytest.MonkeyPatch, *, is_recreated: bool) -> Any:
    monkeypatch.setattr(module, "KinesisClient", lambda *_, **__: Client(is_recreated=is_recreated))
    secrets: Any = None
    execute = KinesisConnector().executor(secrets, caller=Caller.OPERATOR, client_id="test")
    return execute(ListShards(scope="orders", round=1, server=SERVER))


def test_shards_get_the_identity_of_their_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    found = listed(monkeypatch, is_recreated=False)

    assert found.shards == FOUND
    assert found.identities == {("orders", "shardId-0"): "1"}


@pytest.mark.scenario("P11")
def test_shards_of_a_deleted_stream_never_get_the_identity_of_the_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stream that is recreated while its shards are listed is listed again."""
    with pytest.raises(TransientDiscoveryError, match="orders was recreated while its shards"):
        listed(monkeypatch, is_recreated=True)


@pytest.mark.parametrize(
    ("server", "name"),
    [
        (SERVER, "kinesis eu-west-1"),
        (Server(region="eu-west-1", endpoint="http://local:4566"), "http://local:4566"),
    ],
)
def test_a_call_names_the_server_that_it_waits_for(server: Server, name: str) -> None:
    """Calls to a server that does not answer hold up no other one."""
    connector = KinesisConnector()

    assert connector.server_of(ListShards(scope="orders", round=1, server=server)) == name
    assert connector.server_of(Alarm()) == ""


def test_without_a_secret_only_the_driver_may_ask() -> None:
    connector = KinesisConnector()
    own = ListShards(scope="orders", round=1, server=Server(region="eu-west-1"))

    assert connector.identity_of(own) == DriverOnly()
    assert connector.identity_of(ListShards(scope="orders", round=1, server=SERVER)) == (
        NamedSecrets(("streams",))
    )
    assert connector.identity_of(Alarm()) == NamedSecrets()
    secrets: Any = None
    execute = connector.executor(secrets, caller=Caller.OPERATOR, client_id="test")
    with pytest.raises(ContractViolationError, match="only the driver may ask Kinesis"):
        execute(own)
    assert execute(Alarm()) is None
