"""``python -m soak.driver SETTINGS``.

The drivers of all sources in one process, with workers that they share.

A driver of its own per source would need a JVM each. The product's parts are the real ones: each
source has its stream reader, its channel to the API server and its Kafka client; calls come in the
order of Spark's micro-batches. Writes a line of JSON every few seconds: sources, micro-batches,
rows, problems so far.
"""

import json
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from balanced_source_spark.options import parse_options
from balanced_source_spark.stream_reader import BalancedStreamReader
from soak.worker import TaskFailedError, Workers

TELL_EVERY: Final = 5.0
"""Seconds between two lines."""


class Query:
    """One source's query.

    Args:
        options: of the source.
        workers: read its tasks.
    """

    def __init__(self, options: dict[str, str], workers: Workers) -> None:
        self._reader = BalancedStreamReader(parse_options(options))
        self._workers = workers
        self._start: dict[str, Any] = self._reader.initialOffset()

    def trigger(self) -> int:
        """Run a micro-batch if there is one; returns the number of its rows."""
        end = json.loads(
            json.dumps(self._reader.latestOffset(self._start, self._reader.getDefaultReadLimit()))
        )
        self._reader.reportLatestOffset()
        if end == self._start:
            return 0
        rows = self._workers.run(self._reader, self._reader.partitions(self._start, end))
        self._start = end
        return rows

    def close(self) -> None:
        """Stop the query."""
        self._reader.stop()


def run(settings: dict[str, Any], stop: threading.Event) -> None:
    """Trigger each source once per interval until someone asks to stop."""
    workers = Workers(settings["workers"])
    queries = [Query(options, workers) for options in settings["sources"]]
    sums = {"sources": len(queries), "rounds": 0, "rows": 0, "failed": 0}
    told_at = time.monotonic()
    while not stop.is_set():
        began = time.monotonic()
        for query in queries:
            try:
                sums["rows"] += query.trigger()
            except TaskFailedError as error:
                # Spark would run the task again; so does the next trigger
                sums["failed"] += 1
                sys.stderr.write(f"task failed: {error}\n")
        sums["rounds"] += 1
        if time.monotonic() - told_at >= TELL_EVERY:
            told_at = time.monotonic()
            sys.stdout.write(json.dumps(sums) + "\n")
            sys.stdout.flush()
        stop.wait(max(0.0, settings["interval"] - (time.monotonic() - began)))
    for query in queries:
        query.close()


def main(settings: Path) -> None:
    """Run until the process is told to end."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    run(json.loads(settings.read_text()), stop)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
