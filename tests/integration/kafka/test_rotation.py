"""A password is changed while a query runs.

It continues, and none of the passwords is anywhere but in the Secret.
"""

import base64
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import (
    AclOperation,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from balanced_source_adapters.kafka import client as kafka_client
from balanced_source_operator.local import LocalOperator
from support.builders import spec_json
from testbed.kafka import KafkaCluster, KafkaSecurity, Listener
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

pytestmark = pytest.mark.thorough

OLD, NEW = "correct-horse", "battery-staple"
TOPIC = "hers"
PATIENCE = 150.0


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[KafkaCluster]:
    security = KafkaSecurity(users={"alice": OLD}, acls=True, listeners=(Listener.SASL,))
    with KafkaCluster("secured", tmp_path / "broker", security=security, heap="256m") as cluster:
        cluster.admin.create_topic(TOPIC, partitions=2)
        cluster.admin.allow(
            "alice", ResourceType.TOPIC, TOPIC, AclOperation.READ, AclOperation.DESCRIBE
        )
        yield cluster


class Scene:
    """An operator, a driver in a process of its own, and a Secret as the kubelet would mount it."""

    def __init__(self, folder: Path, broker: KafkaCluster) -> None:
        self.folder, self.broker = folder, broker
        self.visible, self.secrets = folder / "visible", folder / "spec"
        self.visible.mkdir()
        self.write_secret(OLD)
        self._write_spec()
        self.operator = LocalOperator(self.secrets / "source.yaml", self.visible / "documents")
        self.operator.start()
        self.driver = self._start_driver()

    def write_secret(self, password: str) -> None:
        folder = self.secrets / "kafka"
        folder.mkdir(parents=True, exist_ok=True)
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        partial = folder / ".new"
        partial.write_text(f'{module} required username="alice" password="{password}";')
        partial.replace(folder / "sasl.jaas.config")

    def _write_spec(self) -> None:
        cluster = {
            "name": "secured",
            "bootstrapServers": self.broker.bootstrap_of(Listener.SASL),
            "properties": {
                "security.protocol": Listener.SASL.protocol,
                "sasl.mechanism": "SCRAM-SHA-512",
            },
            "propertiesFrom": [{"secretRef": {"name": "kafka"}}],
        }
        kafka = {
            "clusters": [cluster],
            "subscription": {"topics": [TOPIC]},
            "discovery": {"interval": "1s"},
        }
        spec = {"spec": spec_json(parallelism=2, source={"kafka": kafka})}
        (self.secrets / "source.yaml").write_text(yaml.safe_dump(spec))

    def _start_driver(self) -> "subprocess.Popen[bytes]":
        path = os.pathsep.join(
            str(CHECKOUT / part) for part in ("tests", "operator/src", "spark_app/src")
        )
        options = {
            "assignmentDir": str(self.visible / "documents"),
            "secretsDir": str(self.secrets),
        }
        call = [
            sys.executable,
            "-m",
            "support.talkative_driver",
            str(self.visible),
            json.dumps(options),
        ]
        with (self.visible / "driver.log").open("wb") as log:
            return subprocess.Popen(  # noqa: S603 - our own program
                call,
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    @property
    def records(self) -> Counter[tuple[str, int, int]]:
        found = (json.loads(path.read_text()) for path in self.visible.glob("*.json"))
        return Counter(
            (topic, partition, offset) for rows in found for topic, partition, offset in rows
        )

    def until(self, is_done: object, what: str) -> None:
        def look() -> bool:
            self.operator.look()
            assert self.driver.poll() is None, (self.visible / "driver.log").read_text()[-4000:]
            return bool(is_done() if callable(is_done) else is_done)

        wait_until(look, PATIENCE, what)

    @property
    def problem(self) -> str:
        return str(self.operator.coordinator.enumerator.problems().get("secured", ""))

    def close(self) -> None:
        if self.driver.stdin is not None:
            self.driver.stdin.close()
        try:
            self.driver.wait(30)
        except subprocess.TimeoutExpired:
            self.driver.kill()
        self.operator.close()


def change_password(broker: KafkaCluster, password: str) -> None:
    """At the broker, which forgets who is connected."""
    credentials = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion("alice", credentials, password.encode())
    for future in broker.admin.client.alter_user_scram_credentials([change]).values():
        future.result(timeout=30)
    broker.kill()
    broker.start_node()


def leaks(folder: Path) -> list[tuple[str, str]]:
    """Files that hold a password, plain or in Base64."""
    forms = [
        form
        for secret in (OLD, NEW)
        for form in (secret.encode(), base64.b64encode(secret.encode())[:-4])
    ]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [
        (path.name, form.decode()) for path in files for form in forms if form in path.read_bytes()
    ]


def test_a_query_continues_with_the_new_password_and_shows_none(
    secured: KafkaCluster,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broker knows the new one first: until the Secret follows, the query waits.

    Then nothing is missing.
    """
    monkeypatch.setattr(kafka_client, "REQUEST_TIMEOUT", 3.0)
    secured.admin.produce(TOPIC, [b"x"] * 100)
    scene = Scene(tmp_path, secured)
    try:
        scene.until(lambda: scene.records.total() == 100, "the first records")
        change_password(secured, NEW)
        secured.admin.produce(TOPIC, [b"x"] * 100)
        scene.until(lambda: "check the credentials" in scene.problem, "the refusal to be told")
        log = scene.visible / "driver.log"
        scene.until(lambda: "Authentication" in log.read_text(), "the driver to complain")
        assert scene.records.total() == 100

        scene.write_secret(NEW)
        scene.until(lambda: scene.records.total() >= 200, "what came meanwhile")
        scene.until(lambda: not scene.problem, "nothing to tell any more")
        told = scene.operator.coordinator.state.hosts["0"]
        assert told.incarnation == 1, "the same driver"
    finally:
        scene.close()

    ends = {p: end for p, (_, end) in secured.admin.offsets(TOPIC).items()}
    assert scene.records == Counter(
        (TOPIC, p, offset) for p, end in ends.items() for offset in range(end)
    )
    names = {path.name for path in scene.visible.rglob("*")}
    assert {"documents", "driver.log", "offsets", "commits"} <= names, (
        "the places that are looked at"
    )
    (scene.visible / "operator.log").write_text("".join(capfd.readouterr()))
    assert leaks(scene.visible) == []
    assert leaks(scene.secrets), "the search finds what there is"
