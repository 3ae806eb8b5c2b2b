"""A backlog of files with one slow reader: how long the query takes, in time that is counted.

Planner, enumerator and lister are real. Files have no content, and tasks do not read them: they
take as long as their ranges are long, at the speed of their reader.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from balanced_source.host.cutting import length
from balanced_source.host.reader_figures import TaskSample
from balanced_source_spark import task_samples
from balanced_source_spark.options import parse_options
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.planner import StreamPlanner
from balanced_source_spark.stream_reader import UNLIMITED
from testbed.waiting import wait_until

FILES, SIZE = 600, 10_000_000
FEW = 60
"""Files for the contrast, where each micro-batch takes long."""
SPEEDS = (100e6, 100e6, 100e6, 10e6)
"""Bytes per second of each reader."""


def made(folder: Path, count: int) -> Path:
    for number in range(count):
        path = folder / f"{number:03}.txt"
        path.touch()
        os.truncate(path, SIZE)
    return folder


def ideal(count: int) -> float:
    """Seconds, if every reader were busy to the end."""
    return count * SIZE / sum(SPEEDS)


def batches(planner: StreamPlanner) -> Iterator[Sequence[ReaderPartition]]:
    """What the tasks of each micro-batch read."""
    start = planner.initialOffset()
    planner.prepareForTriggerAvailableNow()
    while (end := planner.latestOffset(start, UNLIMITED)) != start:
        yield planner.partitions(start, end)
        planner.commit(start)
        start = end
        # Counted time does not pass for the enumerator, which answers while tasks read.
        wait_until(lambda: is_answered(planner), 20, "splits to be assigned", interval=0.001)


def is_answered(planner: StreamPlanner) -> bool:
    """Whether the enumerator has answered all requests for splits."""
    host = planner._runtime._host
    if host is None or host.assignment is None:
        return False
    known, coming = host.durable.owners, host.assignment
    fresh = Counter(owner for split_id, owner in coming.owners.items() if split_id not in known)
    return all(
        fresh[reader] >= count or reader in coming.no_more_splits
        for reader, count in host.requests().items()
    )


def makespan(folder: Path, *, tells: bool) -> float:
    """Seconds until everything is read; a micro-batch lasts as long as its slowest task."""
    raw = {"connector": "files", "path": str(folder), "parallelism": str(len(SPEEDS))}
    planner, whole, read = StreamPlanner(parse_options(raw)), 0.0, Counter[str]()
    try:
        for parts in batches(planner):
            whole += max((seconds(part) for part in parts), default=0.0)
            for part in parts:
                read.update({str(r.split_id[1]): length(r) for r in part.ranges})
                if tells:
                    tell(part)
    finally:
        planner.stop()
    assert read == {str(path): SIZE for path in folder.iterdir()}
    return whole


def seconds(part: ReaderPartition) -> float:
    return sum(map(length, part.ranges)) / SPEEDS[part.subtask_id]


def tell(part: ReaderPartition) -> None:
    extent = sum(map(length, part.ranges))
    sample = TaskSample(reader=part.subtask_id, extent=extent, source=seconds(part))
    task_samples._send(part, sample)


def test_one_reader_at_a_tenth_of_the_speed_does_not_keep_the_others_waiting(
    tmp_path: Path,
) -> None:
    assert makespan(made(tmp_path, FILES), tells=True) <= 1.2 * ideal(FILES)


def test_with_as_many_blocks_for_each_reader_the_slow_one_would(tmp_path: Path) -> None:
    """The contrast: no one knows how fast the readers are."""
    assert makespan(made(tmp_path, FEW), tells=False) > 3 * ideal(FEW)
