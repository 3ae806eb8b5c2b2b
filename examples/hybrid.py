"""Reads a history from Parquet files, then continues with Kafka.

``spark-submit examples/hybrid.py``.

The files have the columns of Kafka's records, with the offset of each. Reading continues behind
them.
"""

import json
import os
import tempfile

from pyspark.sql import SparkSession

HISTORY = os.environ.get("HISTORY", "/data/orders")
BROKERS = os.environ.get("BROKERS", "localhost:9092")
WORK = os.environ.get("WORK") or tempfile.mkdtemp(prefix="hybrid-")
COLUMNS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
)

parts = [
    {
        "connector": "files",
        "path": HISTORY,
        "fileFormat": "parquet",
        "schema": COLUMNS,
        "metadataColumns": False,
    },
    {
        "connector": "kafka",
        "kafka.bootstrap.servers": BROKERS,
        "subscribe": "orders",
        "columns": "key,value,topic,partition,offset,timestamp",
        "startAfter": {"offsets": {"topic": "topic", "partition": "partition", "offset": "offset"}},
    },
]

spark = SparkSession.builder.getOrCreate()
rows = (
    spark.readStream.format("balanced")
    .option("connector", "hybrid")
    .option("parts", json.dumps(parts))
    .option("parallelism", "4")
    .option("stateDir", f"{WORK}/state")
    .load()
)
writer = rows.writeStream.format("parquet").option("path", f"{WORK}/out")
writer.option("checkpointLocation", f"{WORK}/checkpoint").start().awaitTermination()
