"""What connectors answer, and what a process makes of it."""

import sys

import pytest

from balanced_source.api import (
    AsyncCall,
    Caller,
    CallExecutor,
    Connector,
    Identity,
    NamedSecrets,
    SecretReader,
)
from balanced_source.connectors.kafka import (
    ASKED_SERVER,
    LATEST,
    DiscoverKafka,
    InitializeKafka,
    KafkaCluster,
    TopicList,
)
from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.connectors import Connectors, built_in, installed
from balanced_source_adapters.files.connector import FilesCodec
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_adapters.kafka.connector import KafkaConnector, OwnSecrets
from balanced_source_adapters.registrations import BUILT_IN, Registration
from balanced_source_spark.contract.secrets import NO_SECRETS

MAIN = KafkaCluster(name="main", bootstrap_servers="b:1")
DISCOVERY = DiscoverKafka(scope="main", round=1, cluster=MAIN, subscriber=TopicList(("t",)))


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])


def test_a_process_has_the_connectors_that_are_registered() -> None:
    assert set(BUILT_IN) == set(built_in.__wrapped__().kinds)
    assert set(BUILT_IN) <= set(installed.__wrapped__().kinds)


def test_kafka_executes_its_second_call_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KafkaAdmin, "initialize", lambda _, call: ("initialized", call.scope))
    execute = KafkaConnector().executor(NO_SECRETS, caller=Caller.OWNER, client_id="me")
    call = InitializeKafka(scope="main", split_ids=(), cluster=MAIN, starting_offsets=LATEST)
    assert execute(call) == ("initialized", "main")


def test_the_operator_reads_the_secrets_of_others_which_lend_nothing() -> None:
    class Plain:
        def read(self, name: str) -> dict[str, str]:
            return {"sasl.username": name}

    assert OwnSecrets(Plain()).read("s") == {"sasl.username": "s"}


def test_the_operator_asks_no_server_within_its_cluster_for_tokens() -> None:
    class Inward:
        def read(self, name: str) -> dict[str, str]:
            return {ASKED_SERVER: "http://169.254.169.254/token"}

    with pytest.raises(InvalidSpecError, match=f"Secret s: {ASKED_SERVER}"):
        OwnSecrets(Inward()).read("s")


@pytest.mark.parametrize(
    ("kind", "codec"),
    [
        ("files", "FilesCodec"),
        ("hybrid", "HybridCodec"),
        ("kafka", "NoneType"),
        ("kinesis", "KinesisCodec"),
    ],
)
def test_what_writes_the_calls_of_a_connector_is_passed_on(kind: str, codec: str) -> None:
    assert type(installed().get(kind).codec).__name__ == codec


class AnsweringConnector(Connector):
    """A connector of someone else: what it answers is checked, and passed on."""

    kind = "answering"

    def __init__(self) -> None:
        self.own = FilesCodec()

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        return lambda call: call

    def identity_of(self, call: AsyncCall) -> Identity:
        return NamedSecrets()

    def server_of(self, call: AsyncCall) -> str:
        return "one.example:1"

    @property
    def codec(self) -> FilesCodec:
        return self.own


def test_what_the_connector_of_another_says_is_passed_on() -> None:
    reference = f"{__name__}:AnsweringConnector"
    one = Registration(kind="answering", reference=reference, package="other 1.0")
    found = Connectors([one]).get("answering")
    assert type(found) is not AnsweringConnector, "it is checked"
    assert found.server_of(DISCOVERY) == "one.example:1"
    assert isinstance(found.codec, FilesCodec)
