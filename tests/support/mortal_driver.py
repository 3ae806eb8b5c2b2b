"""A driver that is killed at a chosen step of a chosen micro-batch; a program of its own.

Its sink is idempotent: a file per micro-batch, replaced by a later attempt.
"""

import json
import os
import signal
import sys
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession

from balanced_source_spark.data_source import register


def die() -> None:
    """The JVM first: with its Python gone it would go on for a moment."""
    for child in psutil.Process().children(recursive=True):
        child.kill()
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, options: str, step: str) -> None:
    """Read everything into `folder`; die at `step`: `offsets` (logged), `run` (not committed), or never."""
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)

    def sink(rows: DataFrame, number: int) -> None:
        if step == "offsets" and rows.count():
            die()
        listed = [[row.topic, row.partition, row.offset] for row in rows.collect()]
        partial = Path(folder) / f".{number}"
        partial.write_text(json.dumps(listed))
        partial.replace(Path(folder) / f"{number}.json")
        if step == "run" and listed:
            die()

    rows = spark.readStream.format("balanced").options(**json.loads(options)).load()
    writer = rows.writeStream.foreachBatch(sink).option("checkpointLocation", str(Path(folder) / "ck"))
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
