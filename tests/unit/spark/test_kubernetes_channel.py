"""A channel of ConfigMaps: what it starts, and what it says without asking anyone."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from lightkube.resources.core_v1 import ConfigMap

from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import pack
from balanced_source_spark.channels import kubernetes as module
from balanced_source_spark.channels.kubernetes import REQUEST_TIMEOUT, KubernetesChannel


def channel_of(client: Any) -> KubernetesChannel:
    return KubernetesChannel(client, namespace="shop", source="orders", uid="uid")


class Started:
    """What a channel has started: a follower whose thread a test looks at."""

    def __init__(self) -> None:
        self.learned: list[str] = []
        self.asked: dict[str, Any] = {}
        self.tell: Callable[[ConfigMap], None] = lambda _: None
        self.stop = threading.Event()
        self.ran: list[tuple[threading.Thread, list[str]]] = []

    def follower(self, watch: Any, tell: Any, stop: threading.Event) -> Any:
        self.asked["watch"], self.tell, self.stop = watch, tell, stop
        return SimpleNamespace(run=self.run)

    def run(self) -> None:
        self.ran.append((threading.current_thread(), list(self.learned)))


@pytest.fixture(name="started")
def fixture_started(monkeypatch: pytest.MonkeyPatch) -> Started:
    started = Started()

    def client(config: Any, params: Any) -> str:
        started.asked |= {"config": config, "params": params}
        return "http"

    def learn(name: str) -> Any:
        return SimpleNamespace(from_dict=lambda _: started.learned.append(name))

    monkeypatch.setattr(module.client_adapter, "Client", client)
    monkeypatch.setattr(module, "ConfigMapWatch", lambda http, **of: (http, of))
    monkeypatch.setattr(module, "Follower", started.follower)
    for name in ("ConfigMap", "Pod"):
        monkeypatch.setattr(module, name, learn(name))
    return started


def join_watch() -> None:
    for thread in threading.enumerate():
        if thread.name == "bsrc-watch":
            thread.join(10)


def test_the_assignment_is_followed_in_a_thread_that_keeps_no_driver(started: Started) -> None:
    channel_of(SimpleNamespace(config="config")).start(lambda _: None)
    join_watch()

    ((thread, learned),) = started.ran
    assert thread is not threading.current_thread()
    assert thread.daemon
    assert learned == ["ConfigMap", "Pod"], "two threads must not learn a type at once"
    assert started.asked["config"] == "config"
    assert started.asked["watch"] == ("http", {"namespace": "shop", "name": "orders-assignment"})
    params = started.asked["params"]
    assert params.trust_env is False, "a proxy of the environment is not for the API server"
    assert params.timeout.read == REQUEST_TIMEOUT


def test_what_follows_the_assignment_tells_and_stops(started: Started) -> None:
    heard: list[Assignment] = []
    channel = channel_of(SimpleNamespace(config="config"))
    channel.start(heard.append)
    join_watch()
    document = Assignment(epoch=3, parallelism=1)

    for text in (assignment_document.encode(document, source="uid"), "torn"):
        blob = pack(text)
        started.tell(ConfigMap(data=dict(blob.data), binaryData=dict(blob.binary)))

    assert [assignment.epoch for assignment in heard] == [3]
    assert not started.stop.is_set()
    channel.close()
    assert started.stop.is_set()


@pytest.mark.parametrize("is_there", [True, False])
def test_the_former_report_is_read(*, is_there: bool) -> None:
    report = HostReport(incarnation=4, instance="former")
    blob = pack(report_document.encode(report, source="uid") if is_there else "torn")

    def get(kind: Any, name: str, *, namespace: str) -> ConfigMap:
        assert (kind, name, namespace) == (ConfigMap, "orders-readers", "shop")
        return ConfigMap(data=dict(blob.data), binaryData=dict(blob.binary))

    former = channel_of(SimpleNamespace(get=get)).former("0")

    assert (former is not None and former.incarnation == 4) is is_there


def test_an_operator_tells_problems_by_itself() -> None:
    channel = channel_of(None)

    assert (channel.problems(), channel.refusal()) == ({}, None)
