"""A driver that says all that it can, and reads until it is told to stop; a program of its own.

What it and its JVM and Python workers write goes wherever its parent sends it. A file per micro-batch has its rows.
"""

import json
import os
import sys
import threading
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from balanced_source_spark.data_source import register


def main(folder: str, options: str) -> None:
    """Read into `folder` until the standard input ends."""
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("INFO")
    register(spark)

    def sink(rows: DataFrame, number: int) -> None:
        listed = [[row.topic, row.partition, row.offset] for row in rows.collect()]
        partial = Path(folder) / f".{number}"
        partial.write_text(json.dumps(listed))
        partial.replace(Path(folder) / f"{number}.json")

    rows = spark.readStream.format("balanced").options(**json.loads(options)).load()
    writer = rows.writeStream.foreachBatch(sink).option("checkpointLocation", str(Path(folder) / "ck"))
    query = writer.trigger(processingTime="200 milliseconds").start()

    def stop_when_told() -> None:
        sys.stdin.read()
        query.stop()

    threading.Thread(target=stop_when_told, daemon=True).start()
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
