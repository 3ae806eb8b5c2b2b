"""A query that ends by itself waits until the assignment has all scopes, whoever assigns."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap

from balanced_source.connectors.discovery import Alarm
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.storage import pack
from balanced_source.errors import TransientDiscoveryError
from balanced_source_adapters.folder import assignment_path, write_atomically
from balanced_source_spark.channels.channel import AssignmentChannel
from balanced_source_spark.channels.embedded import EmbeddedChannel
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.channels.folder import FolderChannel
from balanced_source_spark.channels.kubernetes import KubernetesChannel
from balanced_source_spark.host_runtime import HostRuntime
from support.memory_channel import MemoryChannel
from support.world import kafka_source

PARTIAL = Assignment(
    epoch=1,
    parallelism=1,
    incarnations={"0": 0},
    owners={("fast", "t", 0): 0},
    starts={("fast", "t", 0): 0},
    undiscovered=frozenset({"slow"}),
)
WHOLE = replace(PARTIAL, undiscovered=frozenset())
"""The slow cluster has no splits: the epoch is the same."""


def in_folder(folder: Path) -> tuple[AssignmentChannel, Callable[[Assignment], None]]:
    def publish(document: Assignment) -> None:
        write_atomically(
            assignment_path(folder), assignment_document.encode(document, source="uid")
        )

    return FolderChannel(folder, source="uid"), publish


def in_config_map(
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[AssignmentChannel, Callable[[Assignment], None]]:
    channel = KubernetesChannel(None, namespace="default", source="orders", uid="uid")  # type: ignore[arg-type]
    heard: list[Callable[[Assignment], None]] = []
    monkeypatch.setattr(channel, "start", heard.append)

    def publish(document: Assignment) -> None:
        blob = pack(assignment_document.encode(document, source="uid"))
        found = ConfigMap(metadata=ObjectMeta(), data=dict(blob.data), binaryData=dict(blob.binary))
        channel._tell(heard[0], found)

    return channel, publish


@pytest.mark.parametrize("kind", ["folder", "ConfigMap"])
def test_the_query_waits_for_a_cluster_that_has_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    channel, publish = in_folder(tmp_path) if kind == "folder" else in_config_map(monkeypatch)
    runtime, answers, is_waiting = HostRuntime(channel), [], threading.Event()
    monkeypatch.setattr(runtime, "check_owner", is_waiting.set)
    publish(PARTIAL)
    thread = threading.Thread(
        target=lambda: answers.append(runtime.first_assignment(timeout=60)), daemon=True
    )
    thread.start()
    assert is_waiting.wait(20), "what has been seen is not the whole source"

    publish(WHOLE)

    thread.join(20)
    assert answers == [WHOLE]


def test_a_cluster_that_never_answers_is_named() -> None:
    channel = MemoryChannel()
    runtime = HostRuntime(channel)
    channel.publish(PARTIAL)

    with pytest.raises(ChannelError, match="slow did not answer within 0 s"):
        runtime.first_assignment(timeout=0)


def test_an_assignment_of_an_older_operator_names_nothing_and_is_whole() -> None:
    channel = MemoryChannel()
    runtime = HostRuntime(channel)
    channel.publish(assignment_document.decode(assignment_document.encode(WHOLE, source="uid")))

    assert runtime.first_assignment(timeout=20) == WHOLE


def test_drivers_of_older_images_read_what_names_undiscovered_scopes() -> None:
    """They ignore the field: its version is that of a document without it."""
    text = assignment_document.encode(PARTIAL, source="uid")

    assert '"version":2' in text
    assert '"undiscovered":["slow"]' in text
    assert "undiscovered" not in assignment_document.encode(WHOLE, source="uid")


def test_a_question_that_is_under_way_is_waited_for_because_its_answer_says_why() -> None:
    """Clients of servers take longer to give up than an impatient query waits."""
    is_asked, may_fail = threading.Event(), threading.Event()

    def execute(call: object) -> None:
        if isinstance(call, Alarm):
            return
        is_asked.set()
        assert may_fail.wait(30)
        raise TransientDiscoveryError("b:1 refuses connections", scope="c")

    class Watched(EmbeddedChannel):
        @property
        def is_asking(self) -> bool:
            found = super().is_asking
            may_fail.set()  # after the deadline
            return found

    channel = Watched(kafka_source("c"), execute, parallelism=1)
    runtime = HostRuntime(channel)
    try:
        assert is_asked.wait(30)
        with pytest.raises(ChannelError, match=r"b:1 refuses connections"):
            runtime.first_assignment(timeout=0.0)
    finally:
        may_fail.set()
        runtime.close()
