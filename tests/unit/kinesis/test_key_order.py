"""The checker of the demo finds what it is there for."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.key_order import Order, check_order
from testbed.versions import CHECKOUT

Rows = list[tuple[str, int]]


def sink(folder: Path, *batches: list[Rows]) -> Path:
    """Write micro-batches; each is a list of files."""
    (folder / "_spark_metadata").mkdir()
    for batch, files in enumerate(batches):
        lines = ["v1"]
        for index, rows in enumerate(files):
            name = f"part-{batch}-{index}.parquet"
            data = [str(number).encode() for _, number in rows]
            pq.write_table(
                pa.table({"partitionKey": [key for key, _ in rows], "data": data}), folder / name
            )
            lines.append(json.dumps({"path": f"file:///elsewhere/{name}"}))
        (folder / "_spark_metadata" / str(batch)).write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([[[("a", 0), ("a", 2)], [("b", 1)]], [[("a", 3)]]], (4, 0, 0, 0)),
        ([[[("a", 0)]], [[("a", 2)], [("b", 1)]]], (3, 1, 0, 0)),
        ([[[("a", 0), ("a", 2)], [("b", 1)]], [[("a", 2), ("a", 3)]]], (5, 0, 1, 1)),
        ([[[("a", 2), ("a", 0)], [("b", 1)]], [[("a", 3)]]], (4, 0, 0, 1)),
        ([[[("a", 3)], [("b", 1)]], [[("a", 0), ("a", 2)]]], (4, 0, 0, 2)),
        ([[[("a", 0)], [("a", 2)], [("b", 1)]], [[("a", 3)]]], (4, 0, 0, 1)),
        ([[[("a", 0), ("a", 2)], [("b", 1)]], [[("a", 3), ("a", 4)]]], (5, 0, 1, 0)),
    ],
    ids=[
        "exact",
        "lost",
        "twice",
        "in a file",
        "between micro-batches",
        "a key in two files",
        "never produced",
    ],
)
def test_lost_duplicated_and_reordered_records_are_counted(
    tmp_path: Path, batches: list[list[Rows]], expected: tuple[int, int, int, int]
) -> None:
    delivered, lost, duplicated, out_of_order = expected

    found = check_order(sink(tmp_path, *batches), 4)

    assert found == Order(
        delivered=delivered, lost=lost, duplicated=duplicated, out_of_order=out_of_order
    )
    assert found.is_exact == (expected == (4, 0, 0, 0))


def test_a_compacted_log_is_refused(tmp_path: Path) -> None:
    folder = sink(tmp_path, [[("a", 0)]])
    (folder / "_spark_metadata" / "0.compact").write_text("v1")

    with pytest.raises(ValueError, match="is compacted"):
        check_order(folder, 1)


def test_the_checker_shares_no_code_with_the_product() -> None:
    assert "balanced_source" not in (CHECKOUT / "tests" / "support" / "key_order.py").read_text()
