"""Faults that cost a query nothing but a line in the driver's log."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.api import SourceEvent, SplitId
from balanced_source.documents.assignment import NumberedEvent
from balanced_source.errors import BalancedSourceError, SourceInUseError, TransientDiscoveryError
from balanced_source_spark.host_reporter import HostReporter
from balanced_source_spark.host_runtime import HostRuntime
from balanced_source_spark.kafka.group_commits import GroupCommits
from balanced_source_spark.kafka.record_sizes import RecordSizes
from balanced_source_spark.sample_collector import _bound
from balanced_source_spark.stopping import await_batch
from unit.spark.test_loss_counter import ONE, Cluster
from unit.spark.test_stopping import FakeQuery

A: SplitId = ("main", "orders", 0)


def said(happens: Callable[[], Any]) -> dict[str, Any]:
    """The only line that something leaves."""
    with capture_logs() as lines:
        happens()
    (line,) = lines
    return dict(line)


def test_a_cluster_that_takes_no_commits_is_named() -> None:
    def refuse(name: str, _: object) -> None:
        raise TransientDiscoveryError(f"{name} is down", scope=name)

    commits = GroupCommits(refuse, interval=3600)

    line = said(lambda: commits._commit({A: 5}))
    commits.close()

    assert (line["event"], line["cluster"]) == ("cannot commit to the group now", "main")
    assert line["error"] == "main is down"


def test_skipped_offsets_that_cannot_be_counted_are_told() -> None:
    cluster = Cluster()
    cluster.silent = {ONE}

    line = said(lambda: cluster.plan((ONE, 0, 10)))

    assert line["event"] == "cannot count skipped offsets now"
    assert (line["cluster"], line["error"]) == ("c", "no answer")


def test_a_topic_whose_records_have_no_known_size_is_named() -> None:
    def fails(*_: object) -> float | None:
        raise LookupError("the Secret is not there")

    line = said(lambda: RecordSizes(fails)({A: 0}, [A]))

    assert line["event"] == "cannot tell how large records are now"
    assert (line["cluster"], line["topic"]) == ("main", "orders")


def test_a_micro_batch_that_is_cancelled_is_told() -> None:
    line = said(lambda: await_batch(FakeQuery(), 0.0))

    assert line["event"] == "the micro-batch takes too long; it is cancelled"
    assert line["seconds"] == 0.0


def test_figures_of_readers_stay_unknown_without_an_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> Any:
        raise OSError("no such name")

    monkeypatch.setattr("socket.getaddrinfo", fails)

    line = said(lambda: _bound({}))

    assert line["event"].startswith("tasks cannot tell what they measure")
    assert str(line["error"]) == "no such name"


def test_only_the_first_failure_is_the_cause() -> None:
    reporter = HostReporter()
    reporter._lock, reporter._failure = threading.Condition(), None
    first, second = SourceInUseError("another query"), BalancedSourceError("a consequence")

    line = said(lambda: [reporter._fail(error) for error in (first, second)])

    assert (line["event"], line["error"]) == ("this query ends", "another query")
    assert reporter._failure is first


def test_an_event_that_a_connector_refuses_is_named() -> None:
    def refuse(_: int, event: SourceEvent) -> None:
        raise ValueError(event.name)

    runtime: Any = HostRuntime.__new__(HostRuntime)
    runtime._on_event = refuse
    event = NumberedEvent(number=1, subtask_id=3, event=SourceEvent(name="hello"))

    line = said(lambda: runtime._hand_over(event))

    assert (line["event"], line["reader"], line["name"]) == ("event refused", 3, "hello")
    assert line["error"] == "ValueError('hello')"
