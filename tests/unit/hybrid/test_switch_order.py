"""The checker of `make demo-hybrid` notices what is wrong with a sink."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.switch_order import Switched, check_switch
from testbed.versions import CHECKOUT

HISTORY, PRODUCED = {0: 3, 1: 2}, {0: 5, 1: 4}

Record = tuple[int, int]
"""Partition and offset; the partition is the key."""

OLD: list[list[Record]] = [[(0, 2), (0, 0)], [(1, 0), (1, 1), (0, 1)]]
LIVE: list[list[Record]] = [[(0, 3), (0, 4)], [(1, 2), (1, 3)]]


def checked(folder: Path, batches: list[list[list[Record]]]) -> Switched:
    """Check a sink of micro-batches, which have files, which have records."""
    log = folder / "_spark_metadata"
    log.mkdir()
    for batch, files in enumerate(batches):
        lines = ["v1"]
        for number, records in enumerate(files):
            name = f"{batch}-{number}.parquet"
            columns = {
                "key": pa.array([str(p).encode() for p, _ in records], pa.binary()),
                "partition": pa.array([p for p, _ in records], pa.int32()),
                "offset": pa.array([o for _, o in records], pa.int64()),
            }
            pq.write_table(pa.table(columns), folder / name)
            lines.append(json.dumps({"path": f"file:///data/{name}", "action": "add"}))
        (log / str(batch)).write_text("\n".join(lines))
    return check_switch(folder, PRODUCED, HISTORY)


def test_a_sink_that_is_right(tmp_path: Path) -> None:
    found = checked(tmp_path, [OLD[:1], OLD[1:], LIVE])

    assert found.is_exact
    assert (found.delivered, found.last_of_history, found.first_live) == (9, 1, 2)


@pytest.mark.parametrize(
    ("batches", "wrong"),
    [
        ([OLD[:1], OLD[1:], LIVE[:1]], {"lost": 2}),
        ([OLD, LIVE, LIVE[:1]], {"duplicated": 2, "out_of_order": 1}),
        ([OLD, [*LIVE, [(1, 7)]]], {"duplicated": 1, "out_of_order": 1}),
        ([[*OLD, LIVE[0]], LIVE[1:]], {"out_of_order": 3}),
        ([OLD[:1], LIVE, OLD[1:]], {"out_of_order": 3}),
        ([OLD, [[(0, 4), (0, 3)], LIVE[1]]], {"out_of_order": 1}),
        ([OLD, [[(0, 3)], [(0, 4)], LIVE[1]]], {"out_of_order": 1}),
    ],
    ids=["lost", "twice", "unknown", "same batch", "late history", "backwards", "two files"],
)
def test_each_kind_of_mistake_is_counted(
    tmp_path: Path, batches: list[list[list[Record]]], wrong: dict[str, int]
) -> None:
    found = checked(tmp_path, batches)

    counted = {name: getattr(found, name) for name in ("lost", "duplicated", "out_of_order")}
    assert {name: number for name, number in counted.items() if number} == wrong


def test_the_checker_shares_nothing_with_the_product() -> None:
    text = (CHECKOUT / "tests" / "support" / "switch_order.py").read_text()

    assert "balanced_source" not in text
