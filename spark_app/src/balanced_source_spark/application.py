"""The packaged application: reads the source, applies an optional function, writes the sink."""

import importlib
import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from balanced_source.errors import InvalidSpecError
from balanced_source_spark.data_source import register
from balanced_source_spark.executors import Board, ExecutorScaler
from balanced_source_spark.mounted_options import secret_settings, sink_options
from balanced_source_spark.progress import ProgressLogger, StopWhenFinished

PREFIX: Final = "BALANCED_SOURCE_"
"""Of environment variables; the operator sets them in the driver's pod."""

Transform = Callable[[DataFrame], DataFrame]

log = structlog.get_logger(__name__)


def main(environment: Mapping[str, str] = os.environ) -> None:
    """Runs until the query ends, or the pod is told to stop. A mistake of the user ends the program with a sentence."""
    try:
        _run(environment)
    except InvalidSpecError as error:
        sys.exit(str(error))


def _run(environment: Mapping[str, str]) -> None:
    pipeline = _pipeline(environment)
    transform = load_transform(pipeline.get("transform"))
    builder = SparkSession.builder
    for key, value in secret_settings(environment).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    spark.streams.addListener(ProgressLogger())
    query = start(spark, pipeline, transform, environment)
    stop_when_finished(spark, query)
    _stop_on_sigterm(query)
    query.awaitTermination()


def start(
    spark: SparkSession, pipeline: Mapping[str, Any], transform: Transform, environment: Mapping[str, str]
) -> StreamingQuery:
    """Start the query that a pipeline describes."""
    board = Board(Path(tempfile.mkdtemp(prefix="balanced-source-executors-")))
    ExecutorScaler(spark, board).start()
    options = {**source_options(pipeline, environment), "executorsDir": str(board.folder)}
    rows = spark.readStream.format("balanced").options(**options).load()
    writer = transform(rows).writeStream.queryName(environment.get(PREFIX + "NAME", "balanced"))
    return _sink(writer, pipeline, sink_options(pipeline, environment)).start()


def stop_when_finished(spark: SparkSession, query: StreamingQuery) -> None:
    """End the query of a source with stopping offsets when everything has been read; others are not touched."""

    def stop() -> None:
        log.info("everything has been read")
        query.stop()

    spark.streams.addListener(StopWhenFinished(stop, query_id=str(query.id)))


def source_options(pipeline: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """Options of ``format("balanced")`` for a driver that was started by the operator."""
    options = {
        "source": environment[PREFIX + "NAME"],
        "namespace": environment[PREFIX + "NAMESPACE"],
        "uid": environment[PREFIX + "UID"],
        "includeHeaders": str(pipeline.get("includeHeaders", False)).lower(),
    }
    if columns := pipeline.get("columns"):
        options["columns"] = ",".join(columns)
    if owner := pipeline.get("acceptCheckpointOf"):
        options["acceptCheckpointOf"] = owner
    if surplus := pipeline.get("maxRecordsPerReader"):
        options["maxRecordsPerReader"] = str(surplus)
    if patience := pipeline.get("executorPatience"):
        options["executorPatience"] = patience
    if alignment := pipeline.get("alignment"):
        options["alignmentMaxDrift"] = alignment["maxDrift"]
        options["alignmentIdleTimeout"] = alignment["idleTimeout"]
        if group := alignment.get("group"):
            options["alignmentGroup"] = group
    if folder := environment.get(PREFIX + "SECRETS_DIR"):
        options["secretsDir"] = folder
    return options


def load_transform(name: str | None) -> Transform:
    """The user's function, or one that changes nothing.

    Raises:
        InvalidSpecError: there is no such module or function.
    """
    if not name:
        return lambda rows: rows
    module, _, function = name.partition(":")
    try:
        found: Transform = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise InvalidSpecError(
            f"{name!r} cannot be loaded: {error}; is the module in the image, on PYTHONPATH?",
            field="spec.application.pipeline.transform",
        ) from error
    return found


def _pipeline(environment: Mapping[str, str]) -> dict[str, Any]:
    try:
        pipeline: dict[str, Any] = json.loads(environment[PREFIX + "PIPELINE"])
    except (KeyError, ValueError) as error:
        raise InvalidSpecError(
            f"{PREFIX}PIPELINE is missing or no JSON: this program is started by the operator", field="environment"
        ) from error
    return pipeline


def _sink(writer: DataStreamWriter, pipeline: Mapping[str, Any], options: Mapping[str, str]) -> DataStreamWriter:
    sink, trigger = pipeline["sink"], pipeline["trigger"]
    writer = writer.format(sink["format"]).options(**options)
    writer = writer.option("checkpointLocation", pipeline["checkpointLocation"])
    if columns := sink.get("partitionBy"):
        writer = writer.partitionBy(*columns)
    if trigger.get("availableNow"):
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=spark_interval(trigger["processingTime"]))


def spark_interval(duration: str) -> str:
    """``1m30s`` as Spark writes it."""
    names = {"h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds"}
    if duration == "0":
        return "0 seconds"
    parts, number, unit = [], "", ""
    for character in duration + "0":
        if character.isdigit() and unit:
            parts.append(f"{number} {names[unit]}")
            number, unit = "", ""
        if character.isdigit():
            number += character
        else:
            unit += character
    return " ".join(parts)


def _stop_on_sigterm(query: StreamingQuery) -> None:
    """Let the micro-batch that runs end in peace; what is not committed is replayed anyway."""

    def stop(*_: Any) -> None:
        log.info("told to stop")
        threading.Thread(target=query.stop, daemon=True).start()

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)


if __name__ == "__main__":
    main()
