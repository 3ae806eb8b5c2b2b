"""A source without known ends on a real Spark.

Tasks die after their seal, drivers before their commit.
"""

import contextlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.connector.test_from_its_wheel import PATIENCE, Program
from support import journal_program
from support.log_api import Entry, LogApi
from support.wheels import SAMPLE, Installed, install, with_faults
from testbed.spark_cluster import SparkCluster
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

pytestmark = pytest.mark.thorough

LOGS = tuple(f"log-{number}" for number in range(3))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("wheels"), CHECKOUT, SAMPLE)


class Scene:
    """A query whose processes read faults from a folder."""

    def __init__(self, folder: Path, installed: Installed, api: LogApi) -> None:
        self.out, self.faults, self._api = folder / "out", folder / "faults", api
        for made in (self.out, self.faults):
            made.mkdir()
        # away from modules of the tests
        self._program = Path(shutil.copy(str(journal_program.__file__), folder))
        self._installed = with_faults(installed, self.faults)
        self._log = (folder / "program.log").open("a")
        self._programs: list[Program] = []

    def start(
        self,
        *sink: str,
        master: str = "local[2,4]",
        journal: str = "out/checkpoint/journal",
        trigger: str = "200 milliseconds",
    ) -> None:
        options = (f"url={self._api.url}", "parallelism=2", "fetchWait=500ms", *sink)
        program = (str(self._program), str(self.out), master, trigger)
        place = f"journalLocation={self.out.parent / journal}"
        self._programs.append(Program(self._installed, self._log, *program, *options, place))

    def cluster(self, folder: Path) -> SparkCluster:
        """Two machines with a slot each.

        Spark starts speculative copies on another machine only.
        """
        return SparkCluster(
            folder, self._installed.python, workers=2, environment=self._installed.environment
        )

    def fault(self, name: str) -> None:
        (self.faults / name).touch()

    def wait(self, name: str) -> None:
        """Wait for what a fault says."""
        self._wait((self.faults / name).exists, name)

    def grow(self, count: int) -> None:
        for name in LOGS:
            self._api.append(name, count)

    def wait_read(self) -> None:
        self._wait(
            lambda: self.delivered().keys() >= self._api.entries.keys(), "everything to be read"
        )
        assert self.delivered() == self._api.entries, "each entry once"
        assert not (self.out / "unequal").exists(), (
            "both actions of a micro-batch have the same rows"
        )

    def wait_for_the_end(self) -> None:
        """Wait until the query has ended by itself, with everything that there was."""
        self._programs[-1].wait_for_its_end()
        assert self.delivered() == self._api.entries, "each entry once"

    def grow_until_refused(self) -> None:
        def is_refused() -> bool:
            self.grow(1)
            return "asyncProgressTrackingEnabled: must not be used" in self._text()

        wait_until(is_refused, PATIENCE, "the refusal", interval=0.5)
        assert "Leave it out" in self._text()

    def _text(self) -> str:
        return Path(self._log.name).read_text()

    def batches(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.out.glob("*.json")}

    def delivered(self) -> Counter[Entry]:
        rows = (row for text in self.batches().values() for row in json.loads(text))
        return Counter((log, number, text) for log, number, text in rows)

    def kill(self) -> None:
        for program in self._programs:
            program.kill()

    def close(self) -> None:
        self.kill()
        self._log.close()

    def _wait(self, condition: object, what: str) -> None:
        def holds() -> bool:
            self._programs[-1].check()
            return bool(condition())  # type: ignore[operator]

        wait_until(holds, PATIENCE, what, interval=0.1)


@pytest.fixture
def scene(tmp_path: Path, installed: Installed) -> Iterator[Scene]:
    with LogApi() as api, contextlib.closing(Scene(tmp_path, installed, api)) as made:
        made.grow(250)
        yield made


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
