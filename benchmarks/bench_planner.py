"""What planning a micro-batch costs the planning process: processor time, calls, bytes.

The real planner, on brokers that are made up; no Spark, no JVM. What Spark's runner does around the
planner is done here too: JSON in and out at each call, and the pickling of what tasks get.

    python -m benchmarks.bench_planner [--splits 16,1000,10000] [--readers 2] [--batches 30]

One JSON object per line on stdout, a table on stderr. `planning_ms` is processor time of the thread
that Spark waits for, `process_ms` that of all threads, both per micro-batch; medians of blocks.
"""

import argparse
import gc
import json
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from balanced_source_adapters.collector import collect_rarely
from balanced_source_spark.options import Options
from balanced_source_spark.stream_reader import UNLIMITED
from benchmarks.statistics_of import spread
from support.planned_query import PlannedQuery
from support.world import Broker, kafka_source
from testbed.waiting import wait_until

BLOCKS = 5
PARTITIONS = 100
"""Of each topic."""


@dataclass
class WiredQuery:
    """A query whose planner is called as Spark's runner calls it: by text.

    Attributes:
        query: planner and brokers.
        pickled: bytes of the partitions of the newest micro-batch.
    """

    query: PlannedQuery
    pickled: int = 0
    texts: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, splits: int, readers: int) -> "WiredQuery":
        """A query over topics of `PARTITIONS` partitions, past its first micro-batch."""
        broker = Broker()
        for number in range(0, splits, PARTITIONS):
            topic = f"payments.order.created.v{number // PARTITIONS:05d}"
            broker.create("prod-eu-west-1", topic, range(min(PARTITIONS, splits - number)), end=1)
            broker.topic_ids["prod-eu-west-1", topic] = f"{number:022d}"
        options = Options(start_timeout=60.0)
        query = PlannedQuery(
            kafka_source("prod-eu-west-1"), broker, options=options, parallelism=readers
        )
        query.planner.__dict__["_control"] = None  # a file for `rescale`, which no query needs here
        wired = cls(query)
        wired.texts.append(json.dumps(query.planner.initialOffset()))
        wait_until(lambda: wired.trigger() and len(wired.last["positions"]) > 0, 60, "splits")
        return wired

    @property
    def last(self) -> dict[str, Any]:
        """The newest logged offset."""
        found: dict[str, Any] = json.loads(self.texts[-1])
        return found

    def trigger(self) -> bool:
        """One micro-batch with a record of each split, if there is anything to read."""
        planner, start = self.query.planner, self.texts[-1]
        end = json.dumps(planner.latestOffset(json.loads(start), UNLIMITED))
        json.dumps(planner.reportLatestOffset())
        if end == start:
            return False
        planner.commit(json.loads(start))
        parts = planner.partitions(json.loads(start), json.loads(end))
        self.pickled = sum(len(pickle.dumps(part)) for part in parts)
        self.texts = [start, end]
        return True

    def produce(self) -> None:
        """One more record in each split."""
        ends = self.query.broker.ends
        ends.update({split_id: end + 1 for split_id, end in ends.items()})

    def close(self) -> None:
        self.query.close()


def measured(query: WiredQuery, batches: int, clock: Callable[[], float]) -> list[float]:
    """Milliseconds per micro-batch, by block."""
    gc.collect()
    found = []
    for _ in range(BLOCKS):
        spent = 0.0
        for _ in range(batches):
            query.produce()
            begin = clock()
            query.trigger()
            spent += clock() - begin
        found.append(1000 * spent / batches)
    return found


def rows(splits: int, readers: int, batches: int) -> Iterator[dict[str, Any]]:
    """The figures of one size."""
    query = WiredQuery.of(splits, readers)
    try:
        measured(query, 3, time.thread_time)
        yield {
            "splits": splits,
            "readers": readers,
            "planning_ms": spread(measured(query, batches, time.thread_time), 3),
            "process_ms": spread(measured(query, batches, time.process_time), 3),
            "offset_bytes": len(query.texts[-1]),
            "pickled_bytes": query.pickled,
        }
    finally:
        query.close()


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", default="16,1000,10000")
    parser.add_argument("--readers", type=int, default=2)
    parser.add_argument("--batches", type=int, default=30, help="of each of five blocks")
    arguments = parser.parse_args()
    collect_rarely()  # as a planning process does
    for splits in map(int, arguments.splits.split(",")):
        for row in rows(splits, arguments.readers, arguments.batches):
            print(json.dumps(row), flush=True)
            print(
                f"{splits:>7} splits: planning {row['planning_ms']['median']:8.2f} ms,"
                f" process {row['process_ms']['median']:8.2f} ms per micro-batch,"
                f" offset {row['offset_bytes']:,} bytes, partitions {row['pickled_bytes']:,} bytes",
                file=sys.stderr,
            )


if __name__ == "__main__":
    main()
