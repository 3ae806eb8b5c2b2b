"""Makes a local Spark driver load the classes that most tests of streaming queries need."""

import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, InputPartition, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType


class Numbers(SimpleDataSourceStreamReader):
    """Two rows per micro-batch."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"next": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[int]], dict[str, int]]:
        first = start["next"]
        return iter([(first,), (first + 1,)]), {"next": first + 2}

    def readBetweenOffsets(  # noqa: N802
        self, start: dict[str, int], end: dict[str, int]
    ) -> Iterator[tuple[int]]:
        return iter([(number,) for number in range(start["next"], end["next"])])


class NumberSource(DataSource):
    """The source of `Numbers`."""

    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return "number int"

    def simpleStreamReader(self, schema: StructType) -> Numbers:  # noqa: N802
        return Numbers()

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]


def main() -> None:
    """Run a query as tests do: Python source, `foreachBatch`, a checkpoint, some SQL."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.python.unix.domain.socket.enabled", "true").getOrCreate()
    spark.dataSource.register(NumberSource)

    def sink(rows: DataFrame, number: int) -> None:
        rows.groupBy("number").count().collect()
        rows.selectExpr("cast(number as string)", f"{number} as batch").count()

    with tempfile.TemporaryDirectory() as folder:
        stream = spark.readStream.format("numbers").load()
        query = stream.writeStream.foreachBatch(sink).option("checkpointLocation", folder).start()
        while len(query.recentProgress) < 3:
            query.awaitTermination(1)
        query.stop()
    spark.stop()
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()  # the JVM writes the archive when it ends


if __name__ == "__main__":
    main()
