"""The operator makes a source's calls in its own pod.

None of them may use what only that pod has.
"""

import asyncio
import base64
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from balanced_source.api import (
    AsyncCall,
    Caller,
    CallExecutor,
    CallFailure,
    Connector,
    DriverOnly,
    Identity,
    SecretReader,
)
from balanced_source.connectors.discovery import Alarm, Discover
from balanced_source.connectors.kafka.properties import LENDING, RESERVED, check_not_lending
from balanced_source.coordinator import CallCompleted, ExecuteCall
from balanced_source.errors import InvalidSpecError, RefusedDiscoveryError
from balanced_source_adapters.kafka.connector import OwnSecrets
from balanced_source_operator.controller.translate import to_source
from balanced_source_operator.resources.kinds import SECRET
from balanced_source_operator.runtime.call_pool import Lane
from balanced_source_operator.runtime.calls import CallRunner
from balanced_source_operator.runtime.secrets import SecretCache
from support.builders import make_spec
from support.fake_kubernetes import FakeKubernetes


@pytest.mark.parametrize(
    "name", [*LENDING, "sasl.kerberos.kinit.cmd", "ssl.engine.location", "ssl.providers"]
)
def test_no_spec_uses_files_commands_or_the_identity_of_the_operator(name: str) -> None:
    cluster = {"name": "main", "bootstrapServers": "b:1", "properties": {name: "x"}}
    spec = make_spec(source={"kafka": {"clusters": [cluster], "subscription": {"topics": ["a"]}}})

    with pytest.raises(InvalidSpecError, match=name):
        to_source(spec)
    assert name in {**LENDING, **RESERVED}


@pytest.mark.parametrize("name", LENDING)
async def test_nor_does_a_secret(name: str) -> None:
    server = FakeKubernetes()
    data = {name: base64.b64encode(b"/var/run/secrets/token").decode()}
    server.add(SECRET, {"metadata": {"namespace": "default", "name": "kafka"}, "data": data})
    cache = SecretCache(server.client(), "default")
    await cache.load(["kafka"])

    with pytest.raises(
        InvalidSpecError, match=f"Secret kafka: property {name} is not allowed here"
    ) as caught:
        OwnSecrets(cache).read("kafka")
    assert "/var/run" not in str(caught.value)


def test_a_secret_cannot_have_the_operator_ask_for_credentials_of_its_pod() -> None:
    stored = {"sasl.oauthbearer.token.endpoint.url": "http://169.254.169.254/token"}
    cache = SimpleNamespace(read=lambda _: stored)
    with pytest.raises(InvalidSpecError, match=r"Secret kafka: sasl.*clouds serve the credentials"):
        OwnSecrets(cast("SecretReader", cache)).read("kafka")


AUTHORITIES = pytest.mark.parametrize("name", ["ssl.ca.location", "https.ca.location"])


@AUTHORITIES
@pytest.mark.parametrize(
    "path", ["/proc/self/fd/1", "/var/run/secrets/token", "/etc/ssl/../passwd", "own.crt", ""]
)
def test_certificates_of_authorities_lie_where_the_system_has_them(name: str, path: str) -> None:
    """Reading a pipe, e.g. the operator's own output, would stop the operator for all sources."""
    with pytest.raises(InvalidSpecError, match=f"property {name} is not allowed here") as caught:
        check_not_lending({name: path}, field="f")
    assert path not in str(caught.value) or not path


@AUTHORITIES
@pytest.mark.parametrize(
    "path", ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/cert.pem", "probe"]
)
def test_certificates_of_the_system_may_be_named(name: str, path: str) -> None:
    check_not_lending({name: path}, field="f")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile(Discover):
    """A listing that lies in a file of whoever executes the call."""

    scope: str
    round: int
    path: Path


class FileConnector(Connector):
    """Reads what the process can read: it says so, and must not be asked by the operator."""

    kind = "files"

    def __init__(self) -> None:
        self.executed = list[AsyncCall]()

    def executor(self, secrets: SecretReader, *, caller: Caller, client_id: str) -> CallExecutor:
        def execute(call: AsyncCall) -> Any:
            self.executed.append(call)
            assert isinstance(call, ReadFile)
            return call.path.read_text()

        return execute

    def identity_of(self, call: AsyncCall) -> Identity:
        return DriverOnly()


async def test_a_call_that_needs_an_owner_s_files_is_refused_before_it_starts(
    tmp_path: Path,
) -> None:
    token = tmp_path / "token"
    token.write_text("the operator's own")
    connector, lanes, answers = FileConnector(), Lanes(), asyncio.Queue[CallCompleted]()
    runner = CallRunner(
        FakeKubernetes().client(),
        "default",
        lanes,
        answers.put_nowait,
        source="orders",
        connector=connector,
    )

    runner.submit(
        ExecuteCall(call_id=7, call=ReadFile(scope="/etc", round=1, path=token), delay=0.0)
    )
    answer = await answers.get()

    assert isinstance(answer.result, CallFailure)
    error = answer.result.error
    assert isinstance(error, RefusedDiscoveryError)
    assert (error.scope, error.reason) == ("/etc", "NeedsOwner")
    assert "'files'" in str(error)
    assert (connector.executed, lanes.used) == ([], [])


class Lanes:
    """Notes what reaches a thread."""

    def __init__(self) -> None:
        self.used = list[Lane]()

    async def run(self, lane: Lane, function: CallExecutor, call: Any, *, server: str = "") -> Any:
        self.used.append(lane)
        return function(call)

    def forget(self, owner: Hashable) -> None:
        """Nothing is remembered."""


async def test_an_alarm_belongs_to_no_call() -> None:
    answers = asyncio.Queue[CallCompleted]()
    runner = CallRunner(
        FakeKubernetes().client(),
        "default",
        Lanes(),
        answers.put_nowait,
        source="orders",
        connector=FileConnector(),
    )

    runner.submit(ExecuteCall(call_id=1, call=Alarm(), delay=0.0))

    assert (await answers.get()).result is None
