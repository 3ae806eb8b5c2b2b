"""A driver on local-cluster whose executors follow the number of readers; a program of its own.

Reads the assignments of a folder, and writes a JSON line per micro-batch: readers, executors that
are registered, rows.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from balanced_source_spark.executors import Board, ExecutorScaler
from support.queries import start
from support.spark_session import spark_session


def main(folder: str, checkpoint: str, python_path: str, spares: str) -> None:
    """Run until it is killed; `spares` executors stay beside what readers need."""
    os.environ["PYTHONPATH"] = python_path
    conf = {
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.executorEnv.PYTHONPATH": python_path,
    }
    with spark_session(conf, master=f"local-cluster[{2 + int(spares)},1,600]") as spark:
        board = Board(Path(tempfile.mkdtemp()))
        ExecutorScaler(spark, board, spares=int(spares)).start()

        def tell(rows: DataFrame, _: int) -> None:
            count, tasks = rows.count(), rows.rdd.getNumPartitions()
            executors: Any = spark.sparkContext._jsc.sc().getExecutorIds().size()
            sys.stdout.write(
                json.dumps({"rows": count, "tasks": tasks, "executors": executors}) + "\n"
            )
            sys.stdout.flush()

        options = {
            "executorsDir": str(board.folder),
            "executorPatience": "10m",
            "assignmentDir": folder,
        }
        trigger = {"processingTime": "0 seconds"}
        start(spark, tell, Path(checkpoint), trigger=trigger, **options).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
