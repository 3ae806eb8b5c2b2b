"""A driver on local-cluster whose executors follow the number of readers; a program of its own.

Reads the assignments of a folder, and writes a JSON line per micro-batch: readers, executors that are registered, rows.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from balanced_source_spark.data_source import register
from balanced_source_spark.executors import Board, ExecutorScaler


def main(folder: str, checkpoint: str, python_path: str) -> None:
    """Run until it is killed."""
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable, PYTHONPATH=python_path)
    spark = (
        SparkSession.builder.master("local-cluster[2,1,600]")
        .config("spark.executor.memory", "512m")
        .config("spark.executor.cores", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.executorEnv.PYTHONPATH", python_path)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    board = Board(Path(tempfile.mkdtemp()))
    ExecutorScaler(spark, board).start()

    def tell(rows: DataFrame, _: int) -> None:
        count, tasks = rows.count(), rows.rdd.getNumPartitions()
        executors: Any = spark.sparkContext._jsc.sc().getExecutorIds().size()
        sys.stdout.write(json.dumps({"rows": count, "tasks": tasks, "executors": executors}) + "\n")
        sys.stdout.flush()

    options = {"executorsDir": str(board.folder), "executorPatience": "10m"}
    rows = spark.readStream.format("balanced").options(**options, assignmentDir=folder).load()
    rows.writeStream.foreachBatch(tell).option("checkpointLocation", checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
