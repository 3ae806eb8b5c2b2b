"""Counts the orders of each micro-batch. The operator's driver runs it, see own-program.yaml."""

import os

from pyspark.sql import DataFrame, SparkSession


def write(rows: DataFrame, batch: int) -> None:
    """Replace the folder of a micro-batch, so that a replayed one is not written twice."""
    rows.groupBy("topic").count().write.mode("overwrite").parquet(f"/data/orders/batch={batch}")


spark = SparkSession.builder.getOrCreate()
rows = (
    spark.readStream.format("balanced")
    .option("source", os.environ["BALANCED_SOURCE_NAME"])
    .option("namespace", os.environ["BALANCED_SOURCE_NAMESPACE"])
    .option("uid", os.environ["BALANCED_SOURCE_UID"])
    .option("secretsDir", "/etc/balanced-source/secrets")
    .load()
)
query = (
    rows.writeStream.foreachBatch(write)
    .option("checkpointLocation", "/data/checkpoints/orders")
    .start()
)
query.awaitTermination()
