"""Which disturbances of brokers exclude each other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.light import brokers as module
from chaos.light.brokers import Brokers
from testbed.errors import DeadlineError
from testbed.progress import QUIET

pytestmark = pytest.mark.unit


class _Cluster:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def pause(self, node: int) -> None:
        self.calls.append(f"pause {node}")

    def resume(self, node: int) -> None:
        self.calls.append(f"resume {node}")

    def kill(self, node: int) -> None:
        self.calls.append(f"kill {node}")

    def start_node(self, node: int) -> None:
        raise DeadlineError(f"node {node} needs longer than it may")

    def start_missing(self) -> None:
        self.calls.append("start missing")

    def stop(self, *, grace: float) -> None:
        self.calls.append("stop")


@pytest.fixture
def cluster() -> _Cluster:
    return _Cluster()


@pytest.fixture
def brokers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: _Cluster
) -> Iterator[Brokers]:
    def started(*_: Any) -> _Cluster:
        return cluster

    monkeypatch.setattr(Brokers, "_started", started)
    monkeypatch.setattr(module, "_FREE", 0.0)
    with Brokers(tmp_path, QUIET) as made:
        yield made


def test_one_node_of_a_cluster_is_disturbed_at_a_time(brokers: Brokers, cluster: _Cluster) -> None:
    undo = brokers.freeze("main", 1)
    refused = brokers.freeze("main", 2)
    elsewhere = brokers.freeze("east", 1)

    assert undo is not None
    assert (refused, elsewhere is None) == (None, False)
    undo()
    undo()
    assert cluster.calls == ["pause 1", "pause 1", "resume 1"]
    assert brokers.freeze("main", 2) is not None


def test_a_node_that_started_too_slowly_does_not_disturb_its_cluster_for_good(
    brokers: Brokers, cluster: _Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be there by now, and every later schedule would be given up."""
    monkeypatch.setattr(module, "_STEADY", 0.3)
    undo = brokers.kill("main", 1)
    assert undo is not None
    undo()

    brokers.heal()

    assert cluster.calls == ["kill 1", "start missing"]
    assert brokers.freeze("main", 1) is not None


def test_a_steady_cluster_is_not_disturbed(brokers: Brokers) -> None:
    with brokers.steady("main"):
        assert brokers.freeze("main", 1) is None
    assert brokers.freeze("main", 1) is not None


def test_steady_waits_for_the_end_of_a_disturbance_and_lets_its_schedule_end_it(
    brokers: Brokers, cluster: _Cluster
) -> None:
    undo = brokers.freeze("main", 1)
    assert undo is not None

    with brokers.steady("main", tend=undo):
        assert cluster.calls == ["pause 1", "resume 1"]


def test_everything_is_undone_at_the_end(brokers: Brokers, cluster: _Cluster) -> None:
    brokers.freeze("main", 1)
    brokers.heal()

    assert cluster.calls == ["pause 1", "resume 1"]
