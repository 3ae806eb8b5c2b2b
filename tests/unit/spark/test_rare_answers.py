"""Small answers that a query rarely needs: what is absent, refused, or not there yet."""

import importlib.util
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.ends import SplitEnd
from balanced_source_adapters.kafka import admin
from balanced_source_spark import instance, sample_collector
from balanced_source_spark.aligner import Aligner
from balanced_source_spark.channels import folder
from balanced_source_spark.channels.embedded import EmbeddedChannel
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.channels.folder import FolderChannel
from balanced_source_spark.contract.hook_answers import check_answer
from balanced_source_spark.former_hosts import _Folders
from balanced_source_spark.instance import Instance
from balanced_source_spark.journal.folding import Folding
from balanced_source_spark.journal.mismatches import stuck
from balanced_source_spark.kafka import native
from balanced_source_spark.kafka.half import KafkaSparkHalf
from balanced_source_spark.kafka.skipping import task_admin

SPLIT = ("main", "orders", 0)


def refuse(*_: Any, **__: Any) -> Any:
    raise OSError("no room")


@pytest.mark.parametrize("text", ["a pid=x", "a started=soon pid=3"])
def test_an_instance_that_another_program_has_written_has_an_id_only(text: str) -> None:
    assert Instance.parse(text) == Instance(id=text)


def test_a_machine_without_boot_id_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", refuse)

    assert instance._machine() == ""


def test_a_report_that_cannot_be_written_names_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "write_atomically", refuse)

    with pytest.raises(ChannelError, match=f"cannot write {tmp_path}.*: no room"):
        FolderChannel(tmp_path, source="uid").write(HostReport(incarnation=1, instance="a"))


def test_a_former_driver_of_an_embedded_coordinator_is_never_certain_to_be_gone() -> None:
    channel: Any = object()

    assert EmbeddedChannel.is_gone(channel, Instance(id="former")) is False


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("scope_of", 5, "return a text"),
        ("ends", {SPLIT: 9}, "return a SplitEnd"),
        ("ends", {SPLIT: SplitEnd(end="9")}, "the end of .* is .*9.*: return a whole"),  # type: ignore[arg-type]
        ("ends", {SPLIT: SplitEnd(end=9, first="3")}, "the first position of "),  # type: ignore[arg-type]
    ],
)
def test_an_answer_of_hooks_that_planning_cannot_use_is_named(
    name: str, answer: Any, said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        check_answer(name, ("main", [SPLIT], {}), answer)


def test_the_driver_without_an_address_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", refuse)

    with capture_logs() as lines:
        assert sample_collector._bound({}) is None

    (line,) = lines
    assert str(line["error"]) == "no room"


def test_a_socket_that_cannot_be_bound_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    made = SimpleNamespace(bind=refuse, close=lambda: closed.append("socket"))
    place = (socket.AF_INET, 0, 0, "", ("127.0.0.1", 0))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [place])
    monkeypatch.setattr(socket, "socket", lambda *_: made)

    with capture_logs() as lines:
        assert sample_collector._bound({}) is None

    assert (closed, len(lines)) == (["socket"], 1)


def test_a_file_that_is_not_there_has_no_text() -> None:
    spark: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(
            _jvm=None, _jsc=SimpleNamespace(hadoopConfiguration=lambda: None)
        )
    )
    folders: Any = _Folders(spark)
    folders._existing = lambda *_: None

    assert folders.text("/checkpoint/offsets/1") == ""


def test_an_offset_without_a_journal_closes_no_record() -> None:
    folding: Any = object()

    assert Folding.close(folding, StreamOffset()) == []


def test_a_split_that_stays_behind_its_target_is_named() -> None:
    said = stuck(SPLIT, StreamOffset(positions={SPLIT: 5}), {SPLIT: 9}, 30.0)

    assert "stays at 5 for 30 s, and was to be read up to 9" in said


@pytest.mark.parametrize(("spec", "is_there"), [(object(), True), (None, False)])
def test_the_accelerator_may_be_missing(
    spec: object, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)

    assert native.is_available() is is_there


def test_the_columns_of_kafka_are_those_that_are_asked_for() -> None:
    half = KafkaSparkHalf()
    given = {"kafka.bootstrap.servers": "b:9", "subscribe": "t", "columns": "offset,value"}

    assert sorted(half.schema(half.read_options(given)).names) == ["offset", "value"]


def test_tasks_of_a_process_have_one_admin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "KafkaAdmin", lambda secrets, *, client_id: [secrets, client_id])
    secrets: Any = "the secrets"
    task_admin.cache_clear()
    try:
        first, second = (task_admin(secrets, "me") for _ in range(2))
    finally:
        task_admin.cache_clear()

    assert first is second
    assert first == ["the secrets", "me"]


def test_watermarks_are_those_of_the_last_look() -> None:
    aligner = Aligner(
        lambda *_: {}, max_drift=500, idle_timeout=1.0, others=lambda: 0, scope_of=lambda _: "main"
    )

    assert aligner.watermarks() == {}
    aligner.close()
