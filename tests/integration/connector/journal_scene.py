"""A query with a journal on a real Spark whose processes may be killed, held or lied to."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from integration.connector.test_from_its_wheel import PATIENCE, Program
from support import journal_program
from support.log_api import Entry, LogApi
from support.wheels import Installed, with_faults
from testbed.errors import DeadlineError
from testbed.spark_cluster import SparkCluster
from testbed.waiting import wait_until

LOGS = tuple(f"log-{number}" for number in range(3))


class Scene:
    """A query whose processes read faults from a folder.

    Attributes:
        source: options of the source.
    """

    def __init__(self, folder: Path, installed: Installed, api: LogApi) -> None:
        self.out, self.faults, self._api = folder / "out", folder / "faults", api
        self.source: tuple[str, ...] = (f"url={api.url}", "parallelism=2")
        self.faults.mkdir()
        # away from modules of the tests
        self._program = Path(shutil.copy(str(journal_program.__file__), folder))
        self._installed = with_faults(installed, self.faults)
        self._log = (folder / "program.log").open("a")
        self._programs: list[Program] = []

    def start(
        self,
        *more: str,
        master: str = "local[2,4]",
        journal: str = "out/checkpoint/journal",
        trigger: str = "200 milliseconds",
        out: str = "out",
    ) -> None:
        """Start the query.

        Args:
            more: options, of the source or of the sink.
            master: where Spark runs.
            journal: where the journal is.
            trigger: see `journal_program`.
            out: where the checkpoint and the micro-batches are.
        """
        options = (*self.source, "fetchWait=500ms", *more)
        folder = self.out.parent
        (folder / out).mkdir(exist_ok=True)
        program = (str(self._program), str(folder / out), master, trigger)
        place = f"journalLocation={folder / journal}"
        self._programs.append(Program(self._installed, self._log, *program, *options, place))

    def cluster(self, folder: Path, *, slots: int = 1) -> SparkCluster:
        """Two machines.

        Spark starts speculative copies on another machine only.
        """
        return SparkCluster(
            folder,
            self._installed.python,
            workers=2,
            environment=self._installed.environment,
            slots=slots,
        )

    def fault(self, name: str) -> None:
        (self.faults / name).touch()

    def wait(self, name: str) -> None:
        """Wait for what a fault says."""
        self.wait_until((self.faults / name).exists, name)

    def wait_taken(self, fault: str) -> None:
        """Wait until a fault has happened."""
        self.wait_until(lambda: not (self.faults / fault).exists(), fault)

    def wait_died(self) -> None:
        """Wait until the query has ended with an error."""
        assert self._programs[-1].wait() != 0
        self.kill()

    def let_go_on(self, until: str) -> None:
        """Wake the task that is held, and wait for what it says then."""
        self.fault("go-on")
        self.wait(until)
        for name in ("go-on", "zombie-holds", until):
            (self.faults / name).unlink()

    def grow(self, count: int) -> None:
        for name in LOGS:
            self._api.append(name, count)

    def wait_read(self) -> None:
        self.wait_until(
            lambda: self.delivered().keys() >= self._api.entries.keys(), "everything to be read"
        )
        assert self.delivered() == self._api.entries, "each entry once"
        assert not (self.out / "unequal").exists(), (
            "both actions of a micro-batch have the same rows"
        )

    def wait_deleted(self, record: str) -> None:
        """Wait until the journal has neither this record nor older ones."""
        number = _number(record)
        self.wait_until(lambda: min(map(_number, self.records())) > number, "deletion")

    def wait_next_batches(self, count: int) -> None:
        """Wait until further micro-batches have ended."""
        last = max(map(_number, self.batches()), default=-1)
        self.wait_until(
            lambda: max(map(_number, self.batches()), default=-1) >= last + count, "more"
        )

    def wait_ended(self) -> None:
        """Wait until the query has ended by itself."""
        self._programs[-1].wait_for_its_end()

    def wait_for_the_end(self) -> None:
        """Do the same, and check that it has read everything that there was."""
        self.wait_ended()
        assert self.delivered() == self._api.entries, "each entry once"

    def grow_until_refused(self) -> None:
        def is_refused() -> bool:
            self.grow(1)
            return "asyncProgressTrackingEnabled: must not be used" in self.text()

        wait_until(is_refused, PATIENCE, "the refusal", interval=0.5)
        assert "Leave it out" in self.text()

    def text(self) -> str:
        return Path(self._log.name).read_text()

    def has_happened(self, name: str) -> bool:
        return (self.faults / name).exists()

    def has_marker(self) -> bool:
        """Whether a journal was made."""
        return bool(self.records("JOURNAL"))

    def logged(self) -> list[str]:
        """Names of the entries of the offset log."""
        return [p.name for p in (self.out / "checkpoint" / "offsets").glob("[0-9]*")]

    def readers_of(self) -> Counter[int]:
        """Return micro-batch → number of readers with a record."""
        return Counter(map(_number, self.records()))

    def records(self, pattern: str = "[0-9]*.json") -> list[str]:
        """Names of the files in the journals of the checkpoint."""
        homes = self.out / "checkpoint" / "journal"
        return sorted(path.name for path in homes.glob(f"*/{pattern}"))

    def reads_again(self) -> list[str]:
        """Micro-batch, reader and process of each task that found its record sealed."""
        log = self.faults / "reads-again"
        return log.read_text().splitlines() if log.exists() else []

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

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds, while the query runs."""

        def holds() -> bool:
            self._programs[-1].check()
            return condition()

        try:
            wait_until(holds, PATIENCE, what, interval=0.1)
        except (AssertionError, DeadlineError) as error:
            raise AssertionError(f"{error}: {self.text()[-3000:]}") from error


def _number(name: str) -> int:
    """Return the number of the micro-batch of a file: of its rows, or a record."""
    return int(name.removesuffix(".json").split("-")[0])
