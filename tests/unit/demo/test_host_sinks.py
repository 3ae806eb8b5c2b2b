"""What `make demo-hosts` counts.

Gaps and moves of splits between sinks, and the broker's log against all of them.
"""

import csv
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chaos.checker.broker_log import digest
from support.story.host_sinks import HostSinks, Proof, gaps, moves

pytestmark = pytest.mark.unit


def commit(sink: Path, batch: int, at: float, *records: tuple[int, int]) -> None:
    """Write a micro-batch, committed at a time, with records as partition and offset."""
    name = f"part-{batch}.parquet"
    table = {
        "cluster": ["main"] * len(records),
        "topic": ["orders"] * len(records),
        "partition": pa.array([partition for partition, _ in records], pa.int32()),
        "offset": pa.array([offset for _, offset in records], pa.int64()),
        "value": [b"%d" % offset for _, offset in records],
    }
    log = sink / "_spark_metadata"
    log.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(table), sink / name)
    entry = log / str(batch)
    entry.write_text(
        "v1\n" + json.dumps({"path": f"file:///data/{sink.name}/{name}", "action": "add"})
    )
    os.utime(entry, (at, at))


def log_of(file: Path, *records: tuple[int, int]) -> Path:
    with file.open("w", newline="") as out:
        rows = (
            ("main", "orders", "id", partition, offset, digest(b"%d" % offset))
            for partition, offset in records
        )
        csv.writer(out).writerows(rows)
    return file


def test_a_gap_lasts_from_one_host_to_the_next(tmp_path: Path) -> None:
    first, second = tmp_path / "orders", tmp_path / "orders-host-1"
    commit(first, 0, 100.0, (0, 0), (1, 0))
    commit(first, 1, 102.0, (1, 1))
    commit(second, 0, 109.5, (0, 1))
    commit(first, 2, 104.0, (1, 2))

    found = HostSinks(first).commits()

    longest = max(gaps(found))
    assert (longest.seconds, longest.began, longest.split) == (9.5, 100.0, ("main", "orders", 0))
    assert longest.hosts == ("0", "1")
    (move,) = moves(found)
    assert (move.split, move.before.at, move.after.host) == (("main", "orders", 0), 100.0, "1")


def test_a_sink_is_read_again_when_it_has_grown(tmp_path: Path) -> None:
    sinks = HostSinks(tmp_path / "orders")
    assert sinks.commits() == []
    commit(tmp_path / "orders", 0, 1.0, (0, 0), (0, 1))
    assert sinks.rows == 2
    commit(tmp_path / "orders-host-2", 0, 2.0, (0, 2))
    assert [found.host for found in sinks.commits()] == ["0", "2"]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([(0, 0), (0, 1), (1, 0)], Proof(produced=3, delivered=3, lost=0, duplicated=0)),
        ([(0, 0), (1, 0)], Proof(produced=3, delivered=2, lost=1, duplicated=0)),
        ([(0, 0), (0, 1), (1, 0), (0, 1)], Proof(produced=3, delivered=4, lost=0, duplicated=1)),
        ([(0, 0), (0, 2), (1, 0)], Proof(produced=3, delivered=3, lost=1, duplicated=1)),
    ],
)
def test_each_record_of_the_log_is_in_one_sink(
    tmp_path: Path, records: list[tuple[int, int]], expected: Proof
) -> None:
    first, *others = records
    commit(tmp_path / "orders", 0, 1.0, first)
    commit(tmp_path / "orders-host-1", 0, 1.0, *others)
    dump = log_of(tmp_path / "log.csv", (0, 0), (0, 1), (1, 0))

    proof = HostSinks(tmp_path / "orders").prove(dump)

    assert proof == expected
    assert proof.is_exact == (not (expected.lost or expected.duplicated))
