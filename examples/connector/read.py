"""Reads logs into a folder of JSON files, one per micro-batch.

``python read.py FOLDER option=value …``.

A file is replaced when its micro-batch is run again, so the files hold each entry once, whatever
happens to this program: start it again with the same folder.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from balanced_source_spark.data_source import register


def main(folder: str, *options: str) -> None:
    """Read forever."""
    out = Path(folder)

    def write(rows: DataFrame, number: int) -> None:
        found = rows.withColumn("task", spark_partition_id()).collect()
        partial = out / f".{number}"
        partial.write_text(json.dumps([[row.log, row.number, row.text, row.task] for row in found]))
        partial.replace(out / f"{number}.json")

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.python.unix.domain.socket.enabled", "true").getOrCreate()
    register(spark)
    given = {"journalLocation": str(out.absolute() / "checkpoint" / "journal")}
    given |= dict(option.split("=", 1) for option in options)
    writer = (
        spark.readStream.format("balanced")
        .option("connector", "httplog")
        .options(**given)
        .load()
        .writeStream
    )
    writer = writer.foreachBatch(write).option("checkpointLocation", str(out / "checkpoint"))
    writer.trigger(processingTime="200 milliseconds").start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
