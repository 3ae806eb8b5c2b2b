"""Reads logs into a folder of JSON files, one per micro-batch, with two actions in each.

With the option ``sink.shuffled``, both actions use the output of one shuffle; with ``sink.single``
there is one action.

The trigger is ``now``, ``once``, ``batch`` for a query that is no stream, or a time.

``python journal_program.py FOLDER MASTER TRIGGER option=value …``. Options of the sink begin with
``sink.``. It notes in `unequal` when the two actions differ.
"""

import importlib
import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

from balanced_source_spark.data_source import register


def session(master: str) -> SparkSession:
    """Start Spark, which runs slow tasks twice."""
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    for key, value in (
        ("spark.python.unix.domain.socket.enabled", "true"),
        # Spark ends the Python process of a killed task; here it lives on, as on a machine cut off.
        ("spark.python.task.killTimeout", "1h"),
        ("spark.speculation", "true"),
        ("spark.speculation.interval", "100ms"),
        ("spark.speculation.quantile", "0.1"),
        ("spark.speculation.multiplier", "1.1"),
        ("spark.speculation.minTaskRuntime", "100ms"),
    ):
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def main(folder: str, master: str, trigger: str, *options: str) -> None:
    """Read until it is killed, or until the trigger ends it."""
    out, faults = Path(folder), importlib.import_module("sitecustomize")

    def write(rows: DataFrame, number: int) -> None:
        if faults.taken("skip-micro-batch"):
            faults.tell("kill-driver-within-close")
            return
        first, second = both(rows)
        if sorted(first) != sorted(second):
            (out / "unequal").touch()
        partial = out / f".{number}"
        partial.write_text(json.dumps(sorted([row.log, row.number, row.text] for row in first)))
        partial.replace(out / f"{number}.json")
        if first and faults.taken("hold-driver-after-write"):
            faults.hold("driver-holds")

    def both(rows: DataFrame) -> tuple[list[Row], list[Row]]:
        if "single" in sink:
            return (first := rows.collect()), first
        if "shuffled" not in sink:
            return rows.collect(), rows.collect()
        shuffled = rows.repartition(4).rdd
        first = shuffled.collect()
        if first and faults.taken("hold-driver-after-shuffle"):
            faults.hold("shuffle-is-done", until="go-on")
        return first, shuffled.collect()

    spark = session(master)
    given = dict(option.split("=", 1) for option in options)
    sink = {
        name.removeprefix("sink."): given.pop(name)
        for name in list(given)
        if name.startswith("sink.")
    }
    given.setdefault("connector", "httplog")
    if trigger == "batch":
        write(spark.read.format("balanced").options(**given).load(), 0)
        return
    rows = spark.readStream.format("balanced").options(**given).load()
    writer = (
        rows.writeStream.foreachBatch(write)
        .options(**sink)
        .option("checkpointLocation", str(out / "checkpoint"))
    )
    match trigger:
        case "now":
            timed = writer.trigger(availableNow=True)
        case "once":
            timed = writer.trigger(once=True)
        case _:
            timed = writer.trigger(processingTime=trigger)
    timed.start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
