"""A stream on a real Spark, in a query of its own.

Exactly once, and in order over splits and merges.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from balanced_source.documents import stream_offset
from support.kinesis import Stream, check
from support.queries import Collector
from testbed.waiting import wait_until

pytestmark = pytest.mark.integration

PATIENCE = 400
"""Seconds."""


class Query:
    """A streaming query that may be restarted with its checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path, endpoint: str, stream: str) -> None:
        self._spark, self._folder = spark, folder
        self.options = {
            "connector": "kinesis",
            "streams": stream,
            "kinesisEndpoint": endpoint,
            "journalLocation": str(folder / "journal"),
            "discoveryInterval": "2s",
            "fetchWait": "1s",
            "pollInterval": "500ms",
        }
        self.sink = Collector()

    def start(self, *, parallelism: int) -> Any:
        rows = self._spark.readStream.format("balanced").options(**self.options)
        writer = (
            rows.option("parallelism", str(parallelism)).load().writeStream.foreachBatch(self.sink)
        )
        return writer.option("checkpointLocation", str(self._folder / "checkpoint")).start()

    def wait(self, query: Any, count: int) -> None:
        def is_there() -> bool:
            if not query.isActive:
                raise AssertionError(query.exception())
            return len(self.sink.rows) >= count

        wait_until(is_there, PATIENCE, f"{count} records", interval=0.1)

    def held(self) -> set[str]:
        """Shards in the newest offset of the Spark checkpoint."""
        logged = [
            path
            for path in (self._folder / "checkpoint" / "offsets").iterdir()
            if path.name.isdigit()
        ]
        newest = max(logged, key=lambda path: int(path.name))
        offset = stream_offset.from_json(json.loads(newest.read_text().splitlines()[-1]))
        return {str(split_id[1]) for split_id in offset.positions}


@pytest.mark.scenario("P1")
def test_splits_and_merges_keep_the_order_of_each_key(
    spark: SparkSession, kinesis: str, client: Any, tmp_path: Path
) -> None:
    """A split while two readers read; then a split of a split, and a merge, while no one reads.

    Then three readers.
    """
    stream = Stream(client, shards=2)
    scene = Query(spark, tmp_path, kinesis, stream.name)
    stream.put(34)
    query = scene.start(parallelism=2)
    scene.wait(query, 34)
    stream.split(stream.open_shards()[0])
    stream.put(34)
    scene.wait(query, stream.sent)
    query.stop()

    stream.put(34)
    stream.split(stream.open_shards()[0])
    stream.put(34)
    stream.merge(*stream.open_shards()[2:])
    stream.put(34)

    query = scene.start(parallelism=3)
    scene.wait(query, stream.sent)
    wait_until(
        lambda: scene.held() == set(stream.open_shards()),
        PATIENCE,
        "closed shards to leave the state",
    )
    query.stop()

    check(scene.sink.rows, stream.sent)
    row = scene.sink.rows[0]
    assert (row.stream, row.shardId[:8]) == (stream.name, "shardId-")
    assert row.sequenceNumber.isdecimal()
    assert row.approximateArrivalTimestamp is not None
