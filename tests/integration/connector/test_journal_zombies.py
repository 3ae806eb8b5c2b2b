"""Attempts that outlive their micro-batch, on a real Spark.

A copy of the task runs on another machine meanwhile.
"""

from pathlib import Path

import pytest

from integration.connector.journal_scene import Scene

pytestmark = pytest.mark.thorough


@pytest.mark.timeout(1200)
def test_a_task_that_wakes_up_after_its_micro_batch_does_no_harm(
    scene: Scene, tmp_path: Path
) -> None:
    """Before it looks for its record, before it seals, and after its record was deleted."""
    with scene.cluster(tmp_path / "cluster", slots=2) as cluster:
        scene.fault("hold-reader-0")
        scene.start(master=cluster.url)
        _outlive(scene)
        scene.let_go_on("zombie-found")

        scene.fault("hold-task-before-seal")
        _outlive(scene)
        scene.let_go_on("zombie-taken")
        scene.wait_read()
        scene.kill()

        scene.start("journalMinBatches=2", "pollInterval=100ms", master=cluster.url)
        scene.grow(40)
        scene.wait_read()
        scene.fault("hold-task-before-seal")
        _outlive(scene)
        scene.wait_deleted((scene.faults / "zombie-holds").read_text())
        scene.let_go_on("zombie-sealed")
        scene.grow(40)
        scene.wait_read()
        scene.kill()


def _outlive(scene: Scene) -> None:
    """Let the micro-batch of a task that is held end, and further ones follow."""
    scene.grow(40)
    scene.wait("zombie-holds")
    scene.grow(40)
    scene.wait_read()
    scene.wait_next_batches(2)
