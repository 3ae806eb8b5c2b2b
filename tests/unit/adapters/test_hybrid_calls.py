"""Calls of a hybrid source are made and written by the connectors of its parts."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import Caller, NamedSecrets
from balanced_source.connectors.discovery import Alarm, Discovered
from balanced_source.connectors.files import FilesSource, Format
from balanced_source.connectors.files.settings import Store
from balanced_source.connectors.hybrid import PartCall, checked_hybrid
from balanced_source.connectors.kafka import KafkaCluster
from balanced_source.errors import ContractViolationError
from balanced_source_adapters.hybrid import connector as module
from balanced_source_adapters.hybrid.connector import HybridCodec, HybridConnector
from support.tapes import ListTapes
from support.world import kafka_source

CALL = ListTapes(scope="shelf", round=3)
FOUND = Discovered(split_ids=frozenset({("shelf", 1)}))


class Codec:
    """Writes calls and results of the part."""

    def call_to_json(self, call: ListTapes) -> Any:
        return [call.scope, call.round]

    def call_from_json(self, data: Any) -> ListTapes:
        return ListTapes(scope=data[0], round=data[1])

    def result_to_json(self, call: ListTapes, result: Discovered) -> Any:
        assert call == CALL
        return [list(s) for s in result.split_ids]

    def result_from_json(self, call: ListTapes, data: Any) -> Discovered:
        assert call == CALL
        return Discovered(split_ids=frozenset(tuple(s) for s in data))


class Part:
    """A connector of one part; without a codec no driver can make its calls."""

    def __init__(self, codec: Codec | None = None) -> None:
        self.codec = codec
        self.made = 0

    def executor(self, _secrets: Any, *, caller: Caller, client_id: str) -> Any:
        self.made += 1
        return lambda call: (call.round, caller, client_id)

    def identity_of(self, call: ListTapes) -> NamedSecrets:
        return NamedSecrets((call.scope,))

    def server_of(self, call: ListTapes) -> str:
        return f"server of {call.scope}"


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Part]:
    found = {"tapes": Part(Codec()), "silent": Part()}
    monkeypatch.setattr(module, "installed", lambda: SimpleNamespace(get=found.__getitem__))
    return found


def call_of(kind: str, call: Any = CALL, *, part: str = "first") -> PartCall:
    return PartCall(part, kind, "handle_discovery", call)


def test_each_part_has_one_executor(parts: dict[str, Part]) -> None:
    secrets: Any = None
    execute = HybridConnector().executor(secrets, caller=Caller.OWNER, client_id="me")

    assert execute(call_of("tapes")) == (3, Caller.OWNER, "me")
    assert execute(call_of("tapes")) == (3, Caller.OWNER, "me")
    assert parts["tapes"].made == 1
    execute(call_of("tapes", part="second"))
    assert parts["tapes"].made == 2


def test_an_alarm_of_a_part_asks_no_one(parts: dict[str, Part]) -> None:
    secrets: Any = None
    connector, alarm = HybridConnector(), call_of("tapes", Alarm())

    assert connector.executor(secrets, caller=Caller.OWNER, client_id="me")(alarm) is None
    assert connector.identity_of(alarm) == NamedSecrets()
    assert connector.server_of(alarm) == ""
    assert parts["tapes"].made == 0


@pytest.mark.usefixtures("parts")
def test_the_part_says_whose_identity_and_which_server_its_call_needs() -> None:
    connector = HybridConnector()

    assert connector.identity_of(call_of("tapes")) == NamedSecrets(("shelf",))
    assert connector.server_of(call_of("tapes")) == "server of shelf"


@pytest.mark.usefixtures("parts")
def test_calls_and_results_of_parts_are_the_same_in_the_driver() -> None:
    codec, call = HybridConnector().codec, call_of("tapes")

    written = json.loads(json.dumps(codec.call_to_json(call)))
    result = json.loads(json.dumps(codec.result_to_json(call, FOUND)))

    assert codec.call_from_json(written) == call
    assert codec.result_from_json(call, result) == FOUND


@pytest.mark.usefixtures("parts")
def test_a_part_whose_calls_no_driver_can_make_is_named() -> None:
    codec, call = HybridCodec(), call_of("silent")

    for write in (
        lambda: codec.call_to_json(call),
        lambda: codec.result_to_json(call, FOUND),
        lambda: codec.result_from_json(call, []),
    ):
        with pytest.raises(ContractViolationError, match="'silent' does not let a driver make"):
            write()
    with pytest.raises(ContractViolationError, match="'silent' has no calls for a driver"):
        codec.call_from_json({"part": "p", "kind": "silent", "handler": "h", "call": []})
    with pytest.raises(ContractViolationError, match="a ListTapes is not a call of a part"):
        codec.call_to_json(CALL)


def test_the_secrets_of_all_parts_are_needed_once() -> None:
    files = FilesSource(
        paths=("s3://b/in",),
        kind_of_file=Format.TEXT,
        store=Store(secret="shared"),  # noqa: S106 - a name
    )
    clusters = tuple(
        KafkaCluster(name=name, bootstrap_servers="b:1", secrets=("shared", name))
        for name in ("z", "a")
    )
    source = checked_hybrid([(files, None), (kafka_source(clusters=clusters), None)], field="parts")

    assert HybridConnector().secrets(source) == ("a", "shared", "z")
    assert set(HybridConnector().needed_secrets(source)) <= {"a", "shared", "z"}
    with pytest.raises(ContractViolationError, match="FilesSource is not a hybrid source"):
        HybridConnector().secrets(files)
