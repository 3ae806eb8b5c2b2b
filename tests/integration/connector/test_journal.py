"""A source without known ends on a real Spark.

Tasks die after their seal, drivers before their commit.
"""

from pathlib import Path

import pytest

from integration.connector.journal_scene import Scene

pytestmark = pytest.mark.thorough


@pytest.mark.timeout(1500)
def test_every_kill_leaves_each_entry_once(scene: Scene) -> None:
    """And a micro-batch that the sink has is replayed as it was, although the logs have grown."""
    scene.fault("kill-task-after-seal")
    scene.start()
    scene.wait_read()
    assert not (scene.faults / "kill-task-after-seal").exists(), "it has happened"

    scene.fault("hold-task-after-seal")
    scene.grow(130)
    scene.wait("task-holds")
    scene.grow(70)
    scene.kill()
    scene.fault("hold-driver-after-write")
    scene.start()
    scene.wait("driver-holds")
    before = scene.batches()
    scene.grow(50)
    scene.kill()

    scene.start()
    scene.wait_read()
    assert scene.batches().items() >= before.items(), "the replay is what the sink had"


@pytest.mark.timeout(900)
def test_queries_that_end_by_themselves_read_what_there_is_and_the_next_one_continues(
    scene: Scene,
) -> None:
    for trigger in ("now", "once", "now"):
        scene.start(trigger=trigger)
        scene.wait_for_the_end()
        scene.grow(40)

    scene.start()
    scene.wait_read()


@pytest.mark.timeout(900)
def test_a_batch_query_reads_each_entry_once(scene: Scene) -> None:
    scene.fault("kill-task-after-seal")
    scene.start(trigger="batch")
    scene.wait_for_the_end()

    assert not (scene.faults / "kill-task-after-seal").exists(), "it has happened"


ASYNCHRONOUS = (
    "sink.asyncProgressTrackingEnabled=true",
    "sink._asyncProgressTrackingOverrideSinkSupportCheck=true",
)
"""Spark supports it for few sinks; the second option is that of its own tests."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("journal", ["out/checkpoint/journal", "journal"])
def test_asynchronous_progress_is_refused_wherever_the_journal_is(
    scene: Scene, journal: str
) -> None:
    """Micro-batches follow each other quicker than Spark logs them."""
    scene.start(*ASYNCHRONOUS, journal=journal)
    scene.grow_until_refused()


@pytest.mark.timeout(900)
def test_asynchronous_progress_that_logs_each_micro_batch_is_refused_at_the_second(
    scene: Scene,
) -> None:
    """Each micro-batch is logged long before the next one. Spark's order of calls tells it."""
    each = "sink.asyncProgressTrackingCheckpointIntervalMs=1"
    scene.start(*ASYNCHRONOUS, each, journal="journal", trigger="5 seconds")
    scene.wait_read()
    scene.grow_until_refused()

    assert set(scene.batches()) == {"0.json"}, "nothing was read with a second micro-batch"


@pytest.mark.timeout(900)
def test_a_speculative_copy_emits_what_the_slow_attempt_has_sealed(
    scene: Scene, tmp_path: Path
) -> None:
    """An attempt hangs after its seal, and nothing ever wakes it.

    Without a copy, nothing would be read any more.
    """
    scene.fault("hold-task-after-seal")
    with scene.cluster(tmp_path / "cluster") as cluster:
        scene.start(master=cluster.url)
        scene.wait("task-holds")
        scene.grow(40)
        scene.wait_read()
        scene.kill()
