"""What the checker of `make chaos` reads from Spark's own files."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from balanced_source.documents import stream_offset
from balanced_source.documents.stream_offset import StreamOffset
from chaos.checker.broker_log import digest
from chaos.checker.sink import Row
from chaos.checker.spark_files import attempts, checkpoints, events, reached, sinks

pytestmark = pytest.mark.unit

SPLITS = [("main", "orders", partition) for partition in (0, 1, 3)]


def log_offset(checkpoint: Path, number: int, offset: StreamOffset) -> None:
    folder = checkpoint / "offsets"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(number)).write_text(f"v1\n{{}}\n{json.dumps(stream_offset.to_json(offset))}")


def offset(epoch: int, end: int, **more: Any) -> StreamOffset:
    return StreamOffset(
        epoch=epoch,
        positions=dict.fromkeys(SPLITS, end),
        attributes={split: {"id": "topic"} for split in SPLITS},
        **more,
    )


def test_ranges_follow_from_two_offsets_and_the_starts(tmp_path: Path) -> None:
    """Read by code of its own, from what the product writes."""
    log_offset(tmp_path, 0, offset(1, 5, starts=dict.fromkeys(SPLITS, 2)))
    log_offset(tmp_path, 1, offset(2, 9))
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text("v1\n{}")

    first, committed, second = events(tmp_path)

    assert first["ranges"] == [
        ["main", "orders", partition, "topic", 2, 5] for partition in (0, 1, 3)
    ]
    assert (committed["event"], committed["batch"]) == ("committed", 0)
    assert (second["epoch"], second["ranges"][2]) == (2, ["main", "orders", 3, "topic", 5, 9])


def test_only_committed_files_count(tmp_path: Path) -> None:
    columns = {"cluster": ["main"], "topic": ["orders"], "partition": [0], "value": [b"payload"]}
    for name, number in (("one", 7), ("left over", 8)):
        pq.write_table(pa.table({**columns, "offset": [number]}), tmp_path / f"{name}.parquet")
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    (log / "4").write_text('v1\n{"path": "file:///elsewhere/one.parquet", "action": "add"}')

    (attempt,) = attempts(tmp_path)

    assert attempt.batch == 4
    assert list(attempt.rows()) == [Row("main", "orders", 0, 7, digest(b"payload"))]


def test_each_host_has_a_checkpoint_and_a_sink_of_its_own(tmp_path: Path) -> None:
    """The first host has those of a source with one application."""
    for folder in (
        "checkpoint/hosts/1",
        "checkpoint/hosts/2",
        "sink/_spark_metadata",
        "sink-host-1/_spark_metadata",
    ):
        (tmp_path / folder).mkdir(parents=True)

    found = checkpoints(tmp_path)

    assert found == {
        host: tmp_path / "checkpoint" / more for host, more in enumerate(("", "hosts/1", "hosts/2"))
    }
    assert sinks(tmp_path) == {0: tmp_path / "sink", 1: tmp_path / "sink-host-1"}


def test_how_far_a_host_is_counts_when_spark_has_committed_it(tmp_path: Path) -> None:
    log_offset(tmp_path, 0, offset(1, 5))
    assert reached(tmp_path, 0) is None

    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text("v1\n{}")

    found = reached(tmp_path, 0)
    assert found is not None
    assert found.positions == dict.fromkeys(SPLITS, ("topic", 5))
