"""The blocks of docs/start/notebook.md, executed in turn against a real broker."""

import json
import re
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from balanced_source_spark import rescale
from balanced_source_spark.rescaling import RescaleError
from testbed.kafka import KafkaCluster
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def test_the_page_works_as_it_is_written(
    spark: SparkSession, kafka: KafkaCluster, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (CHECKOUT / "docs" / "start" / "notebook.md").read_text(encoding="utf-8")
    *blocks, stop = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    kafka.admin.produce(topic, [b"a"] * 40)
    notebook: dict[str, Any] = {}

    def run(code: str) -> None:
        here = code.replace("localhost:9092", kafka.bootstrap).replace(
            '"subscribe", "orders"', f'"subscribe", "{topic}"'
        )
        exec(compile(here, "notebook.md", "exec"), notebook)  # noqa: S102 - our own page

    for block in blocks:
        run(block)
    query = notebook["query"]
    try:
        wait_until(lambda: _readers(query) == 8, 240, "eight readers")
    finally:
        run(stop)

    counts = [
        line.split("|")[2]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("|        ")
    ]
    # As a stream, then as a batch.
    half = len(counts) // 2
    assert sum(map(int, counts[:half])) == sum(map(int, counts[half:])) == 40
    assert spark.table("orders").count() == spark.table("live_orders").count() == 40
    with pytest.raises(RescaleError, match="query live_orders has ended: start it again"):
        rescale(query, 4)


def _readers(query: StreamingQuery) -> int | None:
    progress = query.lastProgress
    end = progress.sources[0].endOffset if progress is not None else None
    found: int | None = json.loads(end).get("parallelism") if end else None
    return found
