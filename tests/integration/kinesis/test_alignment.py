"""Shards are aligned by the times at which records arrived."""

import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from integration.kinesis.test_standalone import Query
from support.kinesis import Stream, check

pytestmark = pytest.mark.integration

DRIFT = 1.0
"""Seconds."""


def test_a_backlog_is_read_in_the_order_of_time(
    spark: SparkSession, kinesis: str, client: Any, tmp_path: Path
) -> None:
    stream = Stream(client, shards=2)
    for _ in range(10):
        stream.put(17)  # each key once, so both shards get some
        threading.Event().wait(DRIFT / 2)  # the server says when a record arrived
    scene = Query(spark, tmp_path, kinesis, stream.name)
    scene.options |= {"alignmentMaxDrift": f"{DRIFT:.0f}s", "alignmentIdleTimeout": "2s"}

    query = scene.start(parallelism=2)
    scene.wait(query, stream.sent)
    query.stop()

    check(scene.sink.rows, stream.sent)
    assert len([batch for batch in scene.sink.batches.values() if batch]) >= 3
    unread = sorted(scene.sink.rows, key=arrived)
    for number in sorted(scene.sink.batches):
        batch = scene.sink.batches[number]
        # By the earliest record that was left in any shard.
        assert max(map(arrived, batch), default=0.0) <= arrived(unread[0]) + DRIFT, number
        unread = [row for row in unread if row not in batch] or unread


def arrived(row: Row) -> float:
    return float(row.approximateArrivalTimestamp.timestamp())
