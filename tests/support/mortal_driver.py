"""A driver that is killed at a chosen step of a chosen micro-batch; a program of its own.

Its sink is idempotent: a file per micro-batch, replaced by a later attempt.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession

from balanced_source_spark.data_source import register


def die() -> None:
    """The JVM first: with its Python gone it would go on for a moment."""
    for child in psutil.Process().children(recursive=True):
        child.kill()
    os.kill(os.getpid(), signal.SIGKILL)


def die_when_there(path: Path) -> None:
    """Spark writes its logs by renaming: what is there is whole."""

    def watch() -> None:
        while not path.exists():
            threading.Event().wait(0.001)
        die()

    threading.Thread(target=watch, daemon=True).start()


def main(folder: str, options: str, step: str) -> None:
    """Read everything into `folder`.

    Die at `step`: `offsets` (logged), `run` (not committed), `commit` (committed, and nothing planned since), or never.
    """
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)

    checkpoint = Path(folder) / "ck"

    def sink(rows: DataFrame, number: int) -> None:
        if step == "offsets" and rows.count():
            die()
        listed = [[row.topic, row.partition, row.offset] for row in rows.collect()]
        partial = Path(folder) / f".{number}"
        partial.write_text(json.dumps(listed))
        partial.replace(Path(folder) / f"{number}.json")
        if step == "run" and listed:
            die()
        if step == "commit" and listed:
            die_when_there(checkpoint / "commits" / str(number))

    rows = spark.readStream.format("balanced").options(**json.loads(options)).load()
    writer = rows.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    if step == "commit":
        die()  # the query was quicker than the watch


if __name__ == "__main__":
    main(*sys.argv[1:])
