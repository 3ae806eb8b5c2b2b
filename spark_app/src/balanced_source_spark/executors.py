"""Executors follow the number of readers.

Asked for before a larger parallelism is adopted, given back after a smaller.

Two processes take part. The planning process knows the parallelism and has no SparkContext; the
driver's own program has one. They talk by three small files: what is `wanted`, what is `adopted`,
and for what executors are `ready`. Readers that come to executors which are still starting would
make that micro-batch wait for them (measured: 2 s against 0.2 s), so a larger parallelism is
adopted when they have registered, or when waiting has taken too long. Spares that are there already
spare it the wait.
"""

import contextlib
import os
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from balanced_source.api import Problem
from balanced_source.reasons import Reason
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.options import PATIENCE

_LOOK: Final = 0.2

AGAIN: Final = 15.0
"""Seconds after which executors that are still missing are asked for once more.

Spark replaces one that ends only as long as its own target says so, which others may have lowered.
"""

PATIENCE_WITHOUT: Final = 120.0
"""Seconds without any executor after which people are told: a node may have to start first."""

KEY: Final = ("executors",)
"""Of the problem that no executor is there."""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Board:
    """The three files; each has one writer."""

    folder: Path

    def post(self, name: str, number: int) -> None:
        """Replace a file's content at once, so that a reader sees the old or the new number."""
        partial = self.folder / f".{name}.{os.getpid()}"
        partial.write_text(str(number))
        # By rename: the other process must not read half a number.
        partial.replace(self.folder / name)

    def read(self, name: str) -> int:
        """0 while nothing was posted."""
        return self.known(name) or 0

    def known(self, name: str) -> int | None:
        """None while nothing was posted."""
        with contextlib.suppress(OSError, ValueError):
            return int((self.folder / name).read_text())
        return None


class AdoptionGate:
    """The planning process' side: whether a larger parallelism may be adopted now."""

    def __init__(self, board: Board | None, *, patience: float = PATIENCE) -> None:
        self._board = board
        self._patience = patience
        self._asked: dict[int, float] = {}
        self._without_since: float | None = None

    def __call__(self, *, adopted: int, wanted: int) -> bool:
        # Nothing is adopted yet: there is no former number of readers to continue with.
        if self._board is None or adopted == 0:
            return True
        # Another number begins to wait again.
        if self._asked.keys() != {wanted}:
            self._asked = {wanted: time.monotonic()}
            self._board.post("wanted", wanted)
        if wanted <= adopted or self._board.read("ready") >= wanted:
            return True
        waited = time.monotonic() - self._asked[wanted]
        if is_over := waited >= self._patience:
            log.warning(
                "not all requested executors are available yet; readers share the available ones",
                readers=wanted,
                seconds=waited,
            )
        return is_over

    def note(self, adopted: int) -> None:
        """A micro-batch with so many readers is in the offset log."""
        if self._board is not None and adopted != self._board.read("adopted"):
            self._board.post("adopted", adopted)

    def problem(self) -> Problem | None:
        """Return what is wrong if no executor is there for long: then no micro-batch can end."""
        board = self._board
        # Nobody counts them in local mode, in a program of the user's own, or if Spark decides.
        if board is None or board.known("executors") != 0 or not board.read("adopted"):
            self._without_since = None
            return None
        now = time.monotonic()
        self._without_since = self._without_since or now
        if now - self._without_since < PATIENCE_WITHOUT:
            return None
        message = (
            f"no executor has been registered for {PATIENCE_WITHOUT:.0f} s, so nothing is read: see"
            " the pods with the label spark-role=executor, and the quotas and nodes of the"
            " namespace"
        )
        return Problem(reason=Reason.EXECUTORS_MISSING, message=message)


@dataclass(frozen=True, slots=True)
class ExecutorStep:
    """What to do about executors now.

    A total to ask for, how many to give back, and for how many readers all is ready.

    Attributes:
        total: to ask for; None: nothing.
        surplus: executors to give back.
        ready: posted for the planning process.
    """

    total: int | None = None
    surplus: int = 0
    ready: int = 0


def next_step(
    *, wanted: int, adopted: int, executors: int, slots: int, is_elastic: bool, spares: int = 0
) -> ExecutorStep:
    """Decide; pure.

    Args:
        wanted: readers of the newest assignment.
        adopted: readers of the micro-batch that is planned.
        executors: that are registered.
        slots: tasks that one executor runs at once.
        is_elastic: Spark's dynamic allocation was chosen by the user: it decides alone.
        spares: executors beside those that the readers need. A reader never waits for them.
    """
    # Two that decide would undo each other's requests.
    if is_elastic:
        return ExecutorStep(ready=wanted)
    needed = -(-max(wanted, adopted, 1) // slots) + spares
    if executors < needed:
        return ExecutorStep(total=needed, ready=executors * slots)
    return ExecutorStep(surplus=executors - needed, ready=executors * slots)


class ExecutorScaler:
    """The driver program's side: a thread that asks for executors and gives them back.

    Args:
        spark: the session.
        board: see there.
        spares: executors beside those that the readers need.
    """

    def __init__(self, spark: Any, board: Board, *, spares: int = 0) -> None:
        self._spares = spares
        # Spark's developer interface has no other door
        self._context = spark.sparkContext._jsc.sc()  # noqa: SLF001
        self._jvm = spark.sparkContext._jvm  # noqa: SLF001
        self._board = board
        conf = spark.sparkContext.getConf()
        self._is_local = (
            str(self._context.master()).startswith("local[") or self._context.master() == "local"
        )
        self._slots = max(
            1, int(conf.get("spark.executor.cores", "1")) // int(conf.get("spark.task.cpus", "1"))
        )
        self._is_elastic = conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true"
        self._requested, self._requested_at = 0, float("-inf")
        self._counted: int | None = None
        self._stop = threading.Event()

    def start(self) -> None:
        """Begin to look; where tasks run in the driver, there is nothing to wait for."""
        if self._is_local:
            # Tasks run in the driver, which is there.
            self._board.post("ready", sys.maxsize)
        else:
            threading.Thread(target=self._run, name="bsrc-executors", daemon=True).start()

    def close(self) -> None:
        """Stop looking; executors stay."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(_LOOK):
            wanted, adopted = self._board.read("wanted"), self._board.read("adopted")
            if not (wanted or adopted):
                continue
            try:
                self._take(wanted or adopted, adopted)
            except Exception as error:  # noqa: BLE001
                # Py4j raises anything; the query continues with what there is
                log.warning("cannot change the number of executors now", error=str(error)[:300])

    def _take(self, wanted: int, adopted: int) -> None:
        ids = self._ids()
        step = next_step(
            wanted=wanted,
            adopted=adopted,
            executors=len(ids),
            slots=self._slots,
            is_elastic=self._is_elastic,
            spares=self._spares,
        )
        if step.ready != self._board.read("ready"):
            self._board.post("ready", step.ready)
        self._count(len(ids))
        if step.total is not None:
            self._ask_for(step.total, wanted)
        elif step.surplus:
            self._give_back(sorted(ids, key=int)[-step.surplus :], total=len(ids) - step.surplus)

    def _count(self, executors: int) -> None:
        # With dynamic allocation a query that waits has none, and that is right.
        if not self._is_elastic and executors != self._counted:
            self._board.post("executors", executors)
            self._counted = executors

    def _ask_for(self, total: int, readers: int) -> None:
        if total != self._requested:
            log.info("asking for executors", total=total, readers=readers)
        elif time.monotonic() - self._requested_at < AGAIN:
            return
        self._request(total)

    def _ids(self) -> list[str]:
        ids = self._context.getExecutorIds()
        return [str(ids.apply(number)) for number in range(ids.size())]

    def _request(self, total: int) -> None:
        empty = getattr(getattr(self._jvm, "scala.collection.immutable.Map$"), "MODULE$").empty()
        self._context.requestTotalExecutors(total, 0, empty)
        self._requested, self._requested_at = total, time.monotonic()

    def _give_back(self, ids: list[str], *, total: int) -> None:
        """End the executors, then set the target.

        Spark lowers its target by one for each executor that it is told to end. Set before, the
        target would be too low then, and an executor that fails later would not be replaced.
        """
        # Ended executors stay listed for some seconds, and must not be given back twice.
        if self._requested == total:
            return
        log.info("giving executors back", executors=ids)
        listed = self._jvm.java.util.ArrayList()
        for each in ids:
            listed.add(each)
        self._context.killExecutors(
            self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(listed).toSeq()
        )
        self._request(total)
