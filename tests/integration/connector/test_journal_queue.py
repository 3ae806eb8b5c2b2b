"""A plain queue, which cannot be read again, on a real Spark."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from integration.connector.journal_scene import Scene
from support.log_api import LogApi
from support.queue_connector import Queue, register
from support.wheels import Installed
from testbed.versions import CHECKOUT

pytestmark = pytest.mark.thorough


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path / "queue")


@pytest.fixture
def scene(tmp_path: Path, installed: Installed) -> Iterator[Scene]:
    """A query of the queue, whose connector is installed."""
    register(tmp_path / "installed")
    path = f"{installed.site}:{tmp_path / 'installed'}:{CHECKOUT / 'tests'}"
    with_queue = replace(installed, more={"PYTHONPATH": path})
    with LogApi() as api, contextlib.closing(Scene(tmp_path, with_queue, api)) as made:
        made.source = ("connector=queue", f"folder={tmp_path / 'queue'}", "parallelism=1")
        yield made


def _texts(scene: Scene) -> set[str]:
    return {text for _, _, text in scene.delivered()}


@pytest.mark.timeout(900)
def test_a_queue_is_at_least_once_and_the_log_says_so(scene: Scene, queue: Queue) -> None:
    """A task dies after its seal, then the driver between the write and the commit."""
    names = [f"item-{number:03}" for number in range(120)]
    queue.put(names[:30])
    scene.fault("kill-task-after-seal")
    scene.start("sink.single=yes")
    scene.wait_until(lambda: not queue.items, "the first items to be confirmed")
    assert not scene.has_happened("kill-task-after-seal"), "it has happened"
    assert _texts(scene) == set(names[:30])

    scene.fault("hold-driver-after-write")
    queue.put(names[30:60])
    scene.wait("driver-holds")
    before = scene.batches()
    queue.put(names[60:])
    scene.kill()
    scene.start("sink.single=yes")
    scene.wait_until(lambda: not queue.items, "all items to be confirmed")

    assert _texts(scene) == set(names), "nothing is lost"
    assert not scene.batches().items() >= before.items(), "the replay has other items"
    assert "connector queue cannot read a split again, so delivery is at least once" in scene.text()
    assert "AtLeastOnce" in scene.text()
