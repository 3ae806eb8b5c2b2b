"""A driver that is killed at a chosen step of a chosen micro-batch; a program of its own.

Its sink is idempotent: a file per micro-batch, replaced by a later attempt.
"""

import contextlib
import json
import os
import signal
import sys
import threading
from pathlib import Path

import psutil
from pyspark.sql import DataFrame

from support.queries import start
from support.row_files import write_rows
from support.spark_session import spark_session

_dies = threading.Event()


def die() -> None:
    """Kill the JVM and its workers, then this process.

    Without its Python the JVM would continue for a moment.
    """
    _dies.set()
    for child in psutil.Process().children(recursive=True):
        # a worker ends by itself as soon as its JVM is gone
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    os.kill(os.getpid(), signal.SIGKILL)


def die_when_there(path: Path) -> None:
    """Spark writes its logs by renaming: what is there is whole."""

    def watch() -> None:
        while not path.exists():
            threading.Event().wait(0.001)
        die()

    threading.Thread(target=watch, daemon=True).start()


def main(folder: str, options: str, step: str) -> None:
    """Read everything into `folder`.

    Die at `step`: `offsets` (logged), `run` (not committed), `commit` (committed, and nothing
    planned since), or never.
    """
    checkpoint = Path(folder) / "ck"

    def sink(rows: DataFrame, number: int) -> None:
        if step == "offsets" and rows.count():
            die()
        count = write_rows(Path(folder), rows, number)
        if step == "run" and count:
            die()
        if step == "commit" and count:
            die_when_there(checkpoint / "commits" / str(number))

    with spark_session() as spark:
        trigger = {"availableNow": True}
        try:
            start(
                spark, sink, checkpoint, trigger=trigger, **json.loads(options)
            ).awaitTermination()
        except Exception:
            # its JVM is gone already; it must not end in another way before it is killed
            if _dies.is_set():
                signal.pause()
            raise
        if step == "commit":
            die()  # the query was quicker than the watch


if __name__ == "__main__":
    main(*sys.argv[1:])
