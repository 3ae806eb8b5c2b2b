"""The files that are read. All files of a case have the same content, and each is a copy."""

import json
import os
import random
import shutil
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.filing.cases import Backlog

WORDS: Final = ("split", "reader", "epoch", "host", "offset", "block", "batch", "stream", "record")
ROW: Final = 100
"""Bytes of a line, about."""


def fill(folder: Path, case: Backlog) -> int:
    """Write the files of a case; returns the number of records."""
    folder.mkdir(parents=True)
    first = folder / f"{0:06}"
    records = _write(first, case.kind, max(1, case.size // ROW))
    for number in range(1, case.files):
        shutil.copyfile(first, folder / f"{number:06}")
    return records * case.files


def grow(folder: Path, begin: int, end: int) -> None:
    """Let files of one line appear, each as a whole; their names are numbers."""
    for number in range(begin, end):
        hidden = folder / f"_{number:07}"
        hidden.write_text(f"line {number}\n")
        os.replace(hidden, folder / f"{number:07}")  # noqa: PTH105 - 200,000 files


def schema(kind: str) -> str:
    """Return the columns of a format as DDL."""
    return (
        "value STRING" if kind == "text" else "id BIGINT, name STRING, amount DOUBLE, note STRING"
    )


def _write(file: Path, kind: str, rows: int) -> int:
    dice = random.Random(7)
    found = [
        {
            "id": number,
            "name": f"{dice.choice(WORDS)}-{dice.randrange(10_000)}",
            "amount": dice.random(),
            "note": " ".join(dice.choices(WORDS, k=4)),
        }
        for number in range(rows)
    ]
    if kind == "parquet":
        # Rows take less place here: as many as fill a file of this size.
        pq.write_table(pa.Table.from_pylist(found), file, row_group_size=128 * 1024)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in found))
    return rows
