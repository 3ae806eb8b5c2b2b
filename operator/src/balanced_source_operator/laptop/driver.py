"""The Spark side of a run: a process of its own, whose progress arrives as lines of JSON."""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from balanced_source.documents.environment import DriverEnvironment, to_variables
from balanced_source.errors import InvalidSpecError

MODULE: Final = "balanced_source_spark.laptop"
STOP_PATIENCE: Final = 60.0
"""Seconds that a micro-batch may take to end after the query was told to stop."""

_RAISED: Final = re.compile(r"[\w.]*(?:Error|Exception|Exit): .+")
"""How the last line of a traceback looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryProgress:
    """What the query has done so far.

    Attributes:
        is_started: whether the query has started.
        batch: number of the newest micro-batch; None before the first.
        rows: read by this run.
        last_rows: read by the newest micro-batch.
        seconds: that the newest micro-batch took.
        epoch: whose owners the newest micro-batch had; None if it does not say.
        readers: of the newest micro-batch; None if it does not say.
        lag: records that the newest micro-batch left; None if it does not say, or does not know.
        failure: why the query has failed, in a sentence; empty if it has not, or did not say.
    """

    is_started: bool = False
    batch: int | None = None
    rows: int = 0
    last_rows: int = 0
    seconds: float = 0.0
    epoch: int | None = None
    readers: int | None = None
    lag: int | None = None
    failure: str = ""


def check_prerequisites() -> None:
    """Check that this machine can run Spark.

    Raises:
        InvalidSpecError: names what is missing, and how to install it.
    """
    for module, package in (
        ("pyspark", "pyspark"),
        ("balanced_source_spark", "balanced-source[spark]"),
        ("pyarrow", "balanced-source[spark]"),
    ):
        if importlib.util.find_spec(module) is None:
            raise InvalidSpecError(
                f"the Python package {module} is not installed for {sys.executable}. "
                f"Run: {sys.executable} -m pip install '{package}'",
                field="run",
            )
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin" / "java").exists()):
        raise InvalidSpecError(
            "Spark needs Java 17 or 21: install it, or set JAVA_HOME", field="run"
        )


class LaptopDriver:
    """A running query.

    Args:
        environment: what a driver is told when it starts.
        folder: of local mode; it also gets the log.
        slots: number of tasks at the same time.
        conf: settings of Spark.
        python_path: folders in which the transform is looked for.
    """

    def __init__(
        self,
        environment: DriverEnvironment,
        *,
        folder: Path,
        slots: int,
        conf: Mapping[str, str],
        python_path: Sequence[Path] = (),
    ) -> None:
        self.log = folder / "driver.log"
        command = [sys.executable, "-m", MODULE, "--folder", str(folder), "--slots", str(slots)]
        command += ["--until-stdin-ends"]
        command += [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        variables = {**to_variables(environment), "PYTHONPATH": _joined(python_path)}
        # Into a file: Spark's log would hide the picture, and a pipe that no one reads would block
        # it.
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                command,
                env={**os.environ, **variables},
                # Never written to. It ends with this process, however that ends, and Spark ends
                # then.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # Ctrl-C of the terminal is for this process, which then stops the query in order.
                start_new_session=True,
            )
        self.progress = QueryProgress()
        # A thread: a pipe that is full would stop the query, and the caller looks only now and
        # then.
        self._reader = threading.Thread(
            target=self._read, args=(self._process.stdout,), daemon=True
        )
        self._reader.start()

    @property
    def exit_code(self) -> int | None:
        """None while the query runs."""
        return self._process.poll()

    @property
    def pid(self) -> int:
        """Process id of the query, which leads a session of its own."""
        return self._process.pid

    def stop(self) -> int:
        """End the query after its micro-batch; return the exit code.

        Negative if the query was killed, because it took too long or the user interrupted again.
        """
        if self._process.poll() is None:
            # The program lets its micro-batch end, and gives up its claim for the next run.
            self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_PATIENCE)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            # With the processes that Spark has started, which are all in its session.
            os.killpg(self._process.pid, signal.SIGKILL)
            code = self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        return code

    def last_words(self) -> str:
        """Return why the query has failed, in a sentence.

        It says so itself, unless it was killed or could not even start: then its exit code, and
        the last exception in the log.
        """
        if self.progress.failure:
            return self.progress.failure
        how = _in_words(self._process.returncode)
        lines = self.log.read_text(errors="replace").splitlines()
        raised = next((line for line in reversed(lines) if _RAISED.fullmatch(line)), "")
        return f"{how}. The last exception in its log: {raised}" if raised else how

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            try:
                self.progress = advanced(self.progress, json.loads(line))
            except ValueError:
                continue  # what a transform prints


def _in_words(code: int) -> str:
    if code >= 0:
        return f"Spark ended with exit code {code}, and did not say why"
    names = {number.value: number.name for number in signal.Signals}
    name = names.get(-code, str(-code))
    return f"Spark was killed by signal {name}, for example because the memory was used up"


def _joined(folders: Sequence[Path]) -> str:
    known = os.environ.get("PYTHONPATH")
    return os.pathsep.join([*map(str, folders), *([known] if known else [])])


def advanced(progress: QueryProgress, line: Any) -> QueryProgress:
    """Return the progress after a line that the query wrote."""
    match line:
        case {"event": "failed", "reason": str(reason)}:
            return replace(progress, failure=reason)
        case {"event": "query started"}:
            return replace(progress, is_started=True)
        case {
            "event": "batch",
            "batch": int(batch),
            "rows": int(rows),
            "durations": dict(durations),
            **others,
        }:
            return QueryProgress(
                is_started=True,
                batch=batch,
                rows=progress.rows + rows,
                last_rows=rows,
                seconds=durations.get("triggerExecution", 0) / 1000,
                failure=progress.failure,
                **_facts_of(others.get("sources")),
            )
        case _:
            return progress


def _facts_of(sources: Any) -> dict[str, int]:
    """Return epoch, readers and lag of a micro-batch."""
    match sources:
        case [{"epoch": int(epoch), "parallelism": int(readers), "lag": int(lag)}]:
            return {"epoch": epoch, "readers": readers, "lag": lag}
        case [{"epoch": int(epoch), "parallelism": int(readers)}]:
            return {"epoch": epoch, "readers": readers}
        case _:
            return {}
