"""One run of a query, in the order of Spark's MicroBatchExecution.

A process of its own, see `zygote`.

Reads `driver.json` in its folder: options of the source, workers, seed, share of dropped tasks.
When `crash.json` names a step, the process kills itself there, so that nothing is cleaned up. Ends
with 0 when the query ended by itself or was told to stop, and with 3 when it failed.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from pyspark import cloudpickle
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from balanced_source.api import IDENTITY
from balanced_source.documents import stream_offset
from balanced_source.documents.stream_offset import FINISHED, StreamOffset
from balanced_source_spark.options import parse_options
from balanced_source_spark.stream_reader import BalancedStreamReader
from chaos.light.batch_log import BatchLog
from chaos.light.sink import make_valid, new_attempt
from chaos.light.task_pool import TaskPool, random_drops

STEPS: Final = (
    "started",
    "latest",
    "logged",
    "planned",
    "first task",
    "tasks",
    "written",
    "committed",
)
"""Where a driver may crash."""

FAILED: Final = 3
"""Exit code of a query that failed."""

TRIGGER: Final = 0.15
"""Seconds between two micro-batches; several schedules share the machine."""

IDLE: Final = 0.4
"""Seconds between two looks at an idle source."""


class Query:
    """One run of the query in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        settings: dict[str, Any] = json.loads((folder / "driver.json").read_text())
        drops = random_drops(f"{settings['seed']}-{os.getpid()}", settings["drop_share"])
        self._pool = TaskPool(settings["workers"], drops)
        schema = _struct(settings["schema"]) if settings["schema"] else None
        self._reader = BalancedStreamReader(parse_options(settings["options"], schema=schema))
        self._pickled = _pickled(self._reader)
        self._offsets, self._commits = (
            BatchLog(folder / "checkpoint" / name) for name in ("offsets", "commits")
        )
        self.is_finished = False
        self.stopping = threading.Event()

    def run(self) -> None:
        """Run until the source is finished, or someone asks to stop."""
        self._at("started")
        number, start = self._recover()
        while not (self.stopping.is_set() or self.is_finished):
            end = _through_json(
                self._reader.latestOffset(start, self._reader.getDefaultReadLimit())
            )
            self._reader.reportLatestOffset()
            self._at("latest")
            if number and _text(end) == _text(start):  # Spark runs the first one in any case
                self.stopping.wait(IDLE)
                continue
            self._offsets.add(number, _text(end))
            if number:  # as Spark does it: what lies before is committed now
                self._reader.commit(start)
            self._batch(number, start, end)
            number, start = number + 1, end
            self.stopping.wait(TRIGGER)

    def close(self) -> None:
        """Close the reader and the workers."""
        self._reader.stop()
        self._pool.close()

    def _recover(self) -> tuple[int, dict[str, Any]]:
        """Replay what was logged and not committed; returns the next number and where it starts."""
        newest = self._offsets.newest()
        if newest is None:
            return 0, _through_json(self._reader.initialOffset())
        end = json.loads(self._offsets.read(newest))
        if self._commits.newest() != newest:
            start = (
                json.loads(self._offsets.read(newest - 1))
                if newest
                else self._reader.initialOffset()
            )
            self._batch(newest, _through_json(start), end)
        return newest + 1, end

    def _batch(self, number: int, start: dict[str, Any], end: dict[str, Any]) -> None:
        self._note("logged", number, _ranges(start, end))
        self._at("logged")
        partitions = [_pickled(one) for one in self._reader.partitions(start, end)]
        self._at("planned")
        attempt = new_attempt(self._folder / "sink", number)
        rows = self._pool.run(
            self._pickled, partitions, attempt, on_done=lambda: self._at("first task")
        )
        self._at("tasks")
        make_valid(attempt)
        self._at("written")
        self._commits.add(number, "{}")
        self._note("committed", number, {"rows": rows})
        # its progress ends the query, also that of a replay
        self.is_finished = bool(end.get(FINISHED))
        self._at("committed")

    def _note(self, event: str, number: int, more: dict[str, Any]) -> None:
        line = json.dumps(
            {"at": time.time(), "pid": os.getpid(), "event": event, "batch": number, **more}
        )
        with (self._folder / "history.jsonl").open("a") as out:
            out.write(line + "\n")

    def _at(self, step: str) -> None:
        file = self._folder / "crash.json"
        if file.exists() and json.loads(file.read_text()) == step:
            file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


def _struct(columns: dict[str, str]) -> StructType:
    """Return columns as Spark has parsed them, which needs a JVM."""
    kinds = {
        "string": StringType,
        "int": IntegerType,
        "bigint": LongType,
        "binary": BinaryType,
        "timestamp": TimestampType,
    }
    return StructType([StructField(name, kinds[kind]()) for name, kind in columns.items()])


def _pickled(value: Any) -> bytes:
    made: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]  # what Spark uses
    return made


def _ranges(start: dict[str, Any], end: dict[str, Any]) -> dict[str, Any]:
    """What a micro-batch reads, in plain words for the checker.

    Cluster, topic, partition, topic id, from, to.
    """
    before, after = stream_offset.from_json(start), stream_offset.from_json(end)
    moved = {s: (_begin(before, after, s), to) for s, to in after.positions.items()}
    ids = {s: after.attributes.get(s, {}).get(IDENTITY) for s in moved}
    ranges = [[*s, ids[s], begin, to] for s, (begin, to) in moved.items()]
    return {"epoch": after.epoch, "parallelism": after.parallelism, "ranges": ranges}


def _begin(before: StreamOffset, after: StreamOffset, split_id: Any) -> Any:
    return after.starts[split_id] if split_id in after.starts else before.positions.get(split_id)


def _through_json(offset: dict[str, Any]) -> dict[str, Any]:
    """The offset as it comes back from the JVM."""
    made: dict[str, Any] = json.loads(_text(offset))
    return made


def _text(offset: dict[str, Any]) -> str:
    return json.dumps(offset)


def main() -> None:
    """Run the query of the folder `sys.argv[1]`; ends the process."""
    query = Query(Path(sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda *_: query.stopping.set())
    try:
        query.run()
    except Exception as error:  # noqa: BLE001 - as in Spark, any exception ends the query
        sys.stderr.write(
            json.dumps({"event": "query failed", "error": f"{type(error).__name__}: {error}"})
            + "\n"
        )
        sys.stderr.flush()
        os._exit(FAILED)
    query.close()
    sys.stderr.write(json.dumps({"event": "query ended", "is_finished": query.is_finished}) + "\n")
    sys.stderr.flush()
    os._exit(0)  # a thread of a client must not hold up the end
