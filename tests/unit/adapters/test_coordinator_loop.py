"""A coordinator in a thread.

An unexpected error is told, and neither ends the loop nor loses what was asked for.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from balanced_source.api import AsyncCall
from balanced_source.connectors.discovery import DiscoveringSplitEnumerator
from balanced_source.coordinator import (
    Checkpoint,
    ParallelismChanged,
    ReportFact,
    SourceChanged,
    SourceCoordinator,
)
from balanced_source.documents.assignment import Assignment
from balanced_source.errors import RefusedDiscoveryError, StateConflictError, StateError
from balanced_source_adapters import unanswered
from balanced_source_adapters.coordinator_loop import CoordinatorLoop
from balanced_source_operator.local import LocalOperator
from support.builders import spec_json
from support.world import Broker, kafka_source
from testbed.waiting import wait_until

PATIENCE = 30.0


class Scene:
    """A loop over a made-up broker, and the assignments that it publishes."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.broker.create("c", "t", range(4), end=3)
        self.published: queue.Queue[Assignment] = queue.Queue()
        self.stored: list[Checkpoint[Any, Any]] = []
        self.asked: list[Any] = []
        self.persist_error: Exception | None = None
        self.while_persisting: Callable[[], object] = lambda: None
        self.refused: queue.Queue[Exception] = queue.Queue()
        coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(
            kafka_source("c"), parallelism=2
        )
        self.loop = CoordinatorLoop(
            coordinator,
            self.execute,
            publish=self.published.put,
            persist=self.persist,
            first_retry=0.01,
        )

    def execute(self, call: AsyncCall) -> Any:
        self.asked.append(call)
        return self.broker.execute(call)

    def persist(self, checkpoint: Checkpoint[Any, Any]) -> None:
        if self.persist_error is not None:
            self.refused.put(self.persist_error)
            raise self.persist_error
        self.while_persisting()
        self.stored.append(checkpoint)

    def start_with_a_slow_write(self) -> threading.Event:
        """Start the loop, and wait until the first write is under way.

        Return what lets it end.
        """
        is_writing, may_end = threading.Event(), threading.Event()
        self.while_persisting = lambda: (is_writing.set(), may_end.wait(PATIENCE))
        self.loop.start()
        assert is_writing.wait(PATIENCE)
        return may_end

    def until(self, parallelism: int, splits: int) -> Assignment:
        """The first published assignment like that."""
        while True:
            found = self.published.get(timeout=PATIENCE)
            if (found.parallelism, len(found.owners)) == (parallelism, splits):
                return found


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.loop.close()


@contextmanager
def broken_once(monkeypatch: pytest.MonkeyPatch, method: str) -> Iterator[None]:
    """The enumerator raises once, what no contract speaks of."""
    intact = getattr(DiscoveringSplitEnumerator, method)
    left = [StopIteration()]

    def raises(self: Any, *args: Any) -> Any:
        if left:
            raise left.pop()
        return intact(self, *args)

    raises.__name__ = method  # calls remember their handler by name
    with monkeypatch.context() as patch:
        patch.setattr(DiscoveringSplitEnumerator, method, raises)
        yield


def test_events_that_wait_for_a_slow_write_are_stored_by_one_further_write(scene: Scene) -> None:
    may_end = scene.start_with_a_slow_write()
    for parallelism in (3, 4, 5):
        scene.loop.put(ParallelismChanged(parallelism))
    may_end.set()
    scene.until(5, 4)

    assert {checkpoint.coordinator.parallelism for checkpoint in scene.stored} == {2, 5}
    epochs = [scene.published.get() for _ in range(scene.published.qsize())]
    assert all(found.epoch <= scene.stored[-1].coordinator.epoch for found in epochs)


def test_a_question_that_does_not_come_back_is_told(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the listing of a volume whose server is gone."""
    is_there, answers = threading.Event(), threading.Event()
    execute = scene.broker.execute
    monkeypatch.setattr(
        scene.broker,
        "execute",
        lambda call: (is_there.set(), answers.wait(PATIENCE), execute(call))[2],
    )
    scene.loop.start()
    assert is_there.wait(PATIENCE)
    assert scene.loop.problems == {}, "it has only begun"

    monkeypatch.setattr(unanswered, "PATIENCE", 0.0)
    (problem,) = scene.loop.problems.values()
    assert problem.message.startswith("c has not answered for 0 s. It may still be listed")
    assert not problem.is_fatal

    monkeypatch.undo()
    answers.set()
    scene.until(2, 4)
    assert scene.loop.problems == {}


def test_what_was_decided_before_an_unexpected_error_is_stored(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = scene.start_with_a_slow_write()
    scene.loop.put(ParallelismChanged(3))
    scene.loop.put(SourceChanged(kafka_source("c")))
    with broken_once(monkeypatch, "handle_source_change"), capture_logs() as logs:
        errors: list[int] = []
        scene.while_persisting = lambda: errors.append(len(logs))
        may_end.set()
        wait_until(lambda: bool(logs), PATIENCE, "an error")
        scene.until(3, 4)

    assert errors[0] == 0
    assert [checkpoint.coordinator.parallelism for checkpoint in scene.stored][:2] == [2, 3]


@pytest.mark.parametrize(
    "method", ["rebalance", "handle_source_change", "handle_discovery", "start"]
)
def test_edits_take_effect_after_an_unexpected_error(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    scene.broker.create("d", "t", range(2))
    with broken_once(monkeypatch, method), capture_logs() as logs:
        scene.loop.start()
        scene.loop.put(ParallelismChanged(3))
        scene.loop.put(SourceChanged(kafka_source("c", "d")))
        scene.until(3, 6)
        scene.loop.put(ParallelismChanged(4))
        scene.until(4, 6)

    assert [entry["error"] for entry in logs if entry["log_level"] == "error"] == [
        "StopIteration()"
    ]
    assert scene.loop.problem is None


def test_a_rebuilt_coordinator_asks_each_cluster_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is built with the newest source, so that this is no change to it."""
    scene.broker.create("d", "t", range(2))
    scene.loop.start()
    scene.loop.put(SourceChanged(kafka_source("c", "d")))
    scene.until(2, 6)
    scene.asked.clear()
    with broken_once(monkeypatch, "rebalance"), capture_logs():
        scene.loop.put(ParallelismChanged(3))
        scene.until(3, 6)
    scene.loop.put(ParallelismChanged(4))
    scene.until(4, 6)

    wait_until(lambda: len(scene.asked) >= 2, PATIENCE, "two questions")
    assert sorted(call.scope for call in scene.asked) == ["c", "d"]


def test_the_rebuilt_coordinator_continues_from_what_was_stored(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No epoch is published twice with other owners."""
    scene.loop.start()
    before = scene.until(2, 4)
    with broken_once(monkeypatch, "rebalance"):
        scene.loop.put(ParallelismChanged(1))
        after = scene.until(1, 4)

    assert (after.lineage, after.epoch) > (before.lineage, before.epoch)
    assert after.starts == before.starts


def test_a_state_that_is_not_stored_is_logged_without_a_traceback(scene: Scene) -> None:
    scene.persist_error = StateError("the disk is full")
    with capture_logs() as logs:
        scene.loop.start()
        for _ in range(2):
            scene.refused.get(timeout=PATIENCE)
        scene.persist_error = None
        scene.until(2, 4)

    first = logs[0]
    assert first["event"] == "the state was not stored; trying again"
    assert (first["log_level"], first["error"]) == ("error", "the disk is full")
    assert "traceback" not in first


def test_a_lasting_error_is_reported_until_its_cause_ends(scene: Scene) -> None:
    scene.persist_error = OSError("no space left on device")
    with capture_logs() as logs:
        scene.loop.start()
        scene.loop.put(ParallelismChanged(3))
        for _ in range(3):
            scene.refused.get(timeout=PATIENCE)
        assert (repr(scene.loop.problem), scene.loop.is_over) == (repr(scene.persist_error), False)

        scene.persist_error = None
        scene.until(3, 4)

    delays = [entry["retry_in"] for entry in logs if entry["log_level"] == "error"]
    assert delays[:3] == [0.01, 0.02, 0.04]

    assert scene.loop.problem is None


def test_a_second_operator_ends_the_loop_with_a_reason(scene: Scene) -> None:
    scene.persist_error = StateConflictError("written by somebody else")
    thread = scene.loop.start()
    assert thread is not None
    thread.join(PATIENCE)

    assert scene.loop.is_over
    assert isinstance(scene.loop.problem, StateConflictError)
    (problem,) = scene.loop.problems.values()
    assert problem.is_fatal, "no one decides about the splits of this query any more"
    assert problem.message.endswith("in the same place: written by somebody else")


def test_local_mode_ends_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "source.yaml"
    file.write_text(yaml.safe_dump({"spec": spec_json()}))
    operator = LocalOperator(file, tmp_path / "documents")
    monkeypatch.setattr(operator._loop, "_execute", Broker().execute)
    (tmp_path / "documents" / "enumerator.json").write_text("written by another operator")

    with pytest.raises(
        StateConflictError, match=r"enumerator\.json was written by another process"
    ):
        operator.run()


def test_what_is_refused_before_anything_of_a_later_part_is_assigned_is_fatal(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Splits of a former part were assigned, and nothing of the source is read any more."""
    scene.loop.start()
    scene.until(2, 4)
    refused = {"c": RefusedDiscoveryError("the history ends elsewhere", scope="c")}
    for method in ("problems", "blocked"):
        monkeypatch.setattr(DiscoveringSplitEnumerator, method, lambda _: refused)

    found = []
    for stage in ("", "kafka"):
        monkeypatch.setattr(DiscoveringSplitEnumerator, "stage", stage)
        (problem,) = scene.loop._found_problems().values()
        found.append((scene.loop.has_assigned, problem.is_fatal))

    assert found == [(True, False), (False, True)]


def test_splits_of_a_former_part_are_none_of_the_part_that_the_same_turn_begins(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was decided before the switch is published after it: both wait for one write."""
    may_end = scene.start_with_a_slow_write()

    def switches(self: Any, _: Any) -> None:
        self.stage = "kafka"

    monkeypatch.setattr(DiscoveringSplitEnumerator, "stage", "files", raising=False)
    monkeypatch.setattr(DiscoveringSplitEnumerator, "handle_source_change", switches)
    scene.loop.put(ParallelismChanged(3))
    scene.loop.put(SourceChanged(kafka_source("c")))
    may_end.set()
    scene.until(3, 4)
    wait_until(lambda: scene.loop.coordinator.enumerator.stage == "kafka", PATIENCE, "the switch")

    assert not scene.loop.has_assigned


@pytest.mark.parametrize(("warning", "level"), [(True, "warning"), (False, "info")])
def test_a_fact_that_warns_is_logged_as_a_warning(scene: Scene, warning: bool, level: str) -> None:
    with capture_logs() as logs:
        scene.loop.report_fact(ReportFact("RecordsGone", "records are gone", warning))

    assert [(entry["log_level"], entry["event"]) for entry in logs] == [(level, "records are gone")]
