"""A kill at every step of a source with a journal, on a real Spark."""

from pathlib import Path

import pytest

from integration.connector.journal_scene import Scene

pytestmark = pytest.mark.thorough


def read_through(scene: Scene, *faults: str) -> None:
    """Let each fault happen once; everything is read all the same."""
    for fault in faults:
        scene.fault(fault)
        scene.grow(120)
        scene.wait_taken(fault)
        scene.wait_read()


@pytest.mark.timeout(900)
def test_a_task_may_die_or_lose_an_answer_at_each_step_of_its_seal(scene: Scene) -> None:
    """Before the seal, within it, and where the file system does not say what it has done.

    A second action would seal what the first one has emitted without a record.
    """
    scene.start("sink.single=yes")
    read_through(scene, "kill-task-before-seal", "kill-task-within-seal")
    assert scene.records(".[0-9]*.json.*"), "the killed task has left its temporary file behind"

    read_through(scene, "lose-seal", "lose-answer-of-seal")
    assert scene.has_happened("answer-was-read-back"), "the attempt itself has looked"

    scene.grow(10)
    scene.wait_read()


@pytest.mark.timeout(1200)
def test_the_driver_may_die_at_each_step_of_its_planning(scene: Scene) -> None:
    """After it has made the journal, while it folds, while it closes, and while it deletes."""
    scene.fault("kill-driver-after-create")
    scene.start()
    scene.wait_died()
    assert scene.has_marker()
    assert not scene.logged(), "no offset names the journal"

    scene.fault("kill-driver-within-fold")
    scene.start()
    scene.wait_died()
    assert scene.delivered(), "a micro-batch was over"

    scene.grow(60)
    scene.fault("skip-micro-batch")
    scene.start()
    scene.wait_died()
    readers = scene.readers_of()
    assert readers[max(readers)] == 1, "one reader of the skipped micro-batch is closed"

    scene.fault("kill-driver-within-delete")
    scene.start("journalMinBatches=2", "pollInterval=100ms")
    scene.wait_died()
    assert 1 in scene.readers_of().values(), "of a micro-batch, one record of two is left"

    scene.grow(60)
    scene.start("journalMinBatches=2", "pollInterval=100ms")
    scene.wait_read()


@pytest.mark.timeout(900)
def test_tasks_that_run_again_for_lost_shuffle_output_emit_what_they_sealed(
    scene: Scene, tmp_path: Path
) -> None:
    """All executors die between two actions that use the output of one shuffle.

    Meanwhile the logs have grown.
    """
    scene.fault("hold-driver-after-shuffle")
    with scene.cluster(tmp_path / "cluster") as cluster:
        scene.start("sink.shuffled=yes", master=cluster.url)
        scene.wait("shuffle-is-done")
        before = len(scene.reads_again())
        scene.grow(70)
        cluster.kill_executors()
        scene.fault("go-on")
        scene.wait_read()
        scene.kill()

    again = [line.split()[:2] for line in scene.reads_again()[before:]]
    assert ["1", "0"] in again, "a task has run again"
    assert ["1", "1"] in again


@pytest.mark.timeout(900)
def test_a_journal_of_another_query_is_refused(scene: Scene) -> None:
    """Two queries, and then the first checkpoint with the second journal."""
    other = "other/checkpoint/journal"
    scene.start(trigger="now", out="other", journal=other)
    scene.wait_ended()
    scene.start(trigger="now")
    scene.wait_for_the_end()
    before = scene.batches()

    scene.grow(10)
    scene.start(trigger="now", journal=other)
    scene.wait_died()

    assert f"which is not in {scene.out.parent / other}: what its last micro-batch" in scene.text()
    assert "Set journalLocation to the place that the query had before" in scene.text()
    assert scene.batches() == before, "nothing was read"
