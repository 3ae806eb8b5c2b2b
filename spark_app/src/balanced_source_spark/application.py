"""The packaged application: reads the source, applies an optional function, writes the sink."""

import importlib
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final, assert_never

import structlog
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from balanced_source.documents.environment import DriverEnvironment, from_variables
from balanced_source.documents.pipeline import (
    DEFAULT_CONNECTOR,
    AvailableNow,
    EventTimeAlignment,
    Pipeline,
    ProcessingTime,
)
from balanced_source.documents.storage import FIRST_HOST
from balanced_source.errors import (
    CorruptDocumentError,
    IncompatibleVersionError,
    InvalidSpecError,
    text_of,
)
from balanced_source.sinks import FORMATS, absent_format, query_error
from balanced_source_adapters.suggestions import nearest
from balanced_source_spark.data_source import register
from balanced_source_spark.executors import Board, ExecutorScaler
from balanced_source_spark.former_hosts import former_hosts
from balanced_source_spark.host_outputs import of_host, own_sink, query_name
from balanced_source_spark.journal_of_application import check_progress, journal_of
from balanced_source_spark.last_words import leave
from balanced_source_spark.mounted_options import check_sink, secret_settings, sink_options
from balanced_source_spark.progress import ProgressLogger, stop_when_finished
from balanced_source_spark.query_state import check_stateless

Transform = Callable[[DataFrame], DataFrame]

log = structlog.get_logger(__name__)

_RETAIN: Final = "spark.sql.streaming.minBatchesToRetain"


def main(environment: Mapping[str, str] = os.environ) -> None:
    """Runs until the query ends, or the pod is told to stop.

    A mistake of the user ends the program with a sentence. The operator shows it, and the reason
    for which a query failed, in the conditions of the source.
    """
    try:
        _run(environment)
    except InvalidSpecError as error:
        leave(str(error))
        sys.exit(str(error))
    except StreamingQueryException as error:
        leave(query_error(error))
        raise


def _run(variables: Mapping[str, str]) -> None:
    environment, pipeline = described(variables)
    transform = load_transform(pipeline.transform)
    check_sink(pipeline.sink, environment)
    builder = SparkSession.builder
    for key, value in secret_settings(environment).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    spark.streams.addListener(ProgressLogger())
    query = start(spark, pipeline, transform, environment)
    end_when_finished(query)
    stop_on_sigterm(query)
    query.awaitTermination()


def start(
    spark: SparkSession, pipeline: Pipeline, transform: Transform, environment: DriverEnvironment
) -> StreamingQuery:
    """Start the query that a pipeline describes."""
    board = Board(Path(tempfile.mkdtemp(prefix="balanced-source-executors-")))
    ExecutorScaler(spark, board, spares=pipeline.warm_spares).start()
    options = {**source_options(pipeline, environment), "executorsDir": str(board.folder)}
    return start_with(options, spark, pipeline, transform, environment)


def start_with(
    options: Mapping[str, str],
    spark: SparkSession,
    pipeline: Pipeline,
    transform: Transform,
    environment: DriverEnvironment,
) -> StreamingQuery:
    """Start the query that a pipeline describes, with these options of the source."""
    beside = former_hosts(spark, pipeline.checkpoint_location, host=environment.host)
    pipeline = of_host(pipeline, environment.host)
    journal = journal_of(pipeline, retained=spark.conf.get(_RETAIN))
    known = {"formerHosts": ",".join(beside)} if beside else {}
    rows = spark.readStream.format("balanced").options(**{**known, **journal, **options}).load()
    transformed = transform(rows)
    # The first host reads everything as long as no other one registers, so it may keep state.
    if environment.host != FIRST_HOST:
        check_stateless(transformed, environment.host)
    writer = transformed.writeStream.queryName(query_name(environment))
    secret = sink_options(pipeline.sink, environment)
    if journal:
        check_progress(secret, field="optionsFrom")
    options = own_sink(pipeline.sink, secret, host=environment.host)
    try:
        return _sink(writer, pipeline, options).start()
    except (Py4JJavaError, AnalysisException) as error:
        wanted = pipeline.sink.format
        similar = nearest(wanted.lower(), FORMATS)
        raise absent_format(wanted, str(error), similar=similar) or error from error


def end_when_finished(query: StreamingQuery) -> None:
    """End the query of a source with stopping offsets when everything has been read.

    Others are not touched.
    """

    def stop() -> None:
        log.info("everything has been read")
        query.stop()

    stop_when_finished(query, stop)


def source_options(pipeline: Pipeline, environment: DriverEnvironment) -> dict[str, str]:
    """Options of ``format("balanced")`` for a driver that was started by the operator."""
    named = {"source": environment.name, "namespace": environment.namespace, "uid": environment.uid}
    optional = {
        "host": "" if environment.host == FIRST_HOST else environment.host,
        "connector": "" if pipeline.connector == DEFAULT_CONNECTOR else pipeline.connector,
        "columns": ",".join(pipeline.columns or ()),
        "acceptCheckpointOf": pipeline.accept_checkpoint_of,
        "maxRecordsPerReader": str(pipeline.max_records_per_reader or ""),
        "executorPatience": pipeline.executor_patience,
        **_alignment_options(pipeline.alignment),
        "secretsDir": environment.secrets_dir,
    }
    return {
        **named,
        **pipeline.options,
        **{name: value for name, value in optional.items() if value},
    }


def _alignment_options(alignment: EventTimeAlignment | None) -> dict[str, str | None]:
    if alignment is None:
        return {}
    return {
        "alignmentMaxDrift": alignment.max_drift,
        "alignmentIdleTimeout": alignment.idle_timeout,
        "alignmentGroup": alignment.group,
    }


def load_transform(name: str | None) -> Transform:
    """The user's function, or one that changes nothing.

    Raises:
        InvalidSpecError: there is no such module or function.
    """
    if not name:
        return lambda rows: rows
    module, _, function = name.partition(":")
    try:
        loaded = importlib.import_module(module)
    except ImportError as error:
        # The module may be there, and import another one that is not.
        is_absent = isinstance(error, ModuleNotFoundError) and error.name == module
        where = ". Put it on PYTHONPATH of the image; for balanced-source run, beside the manifest"
        raise _unusable_transform(
            f"{name!r} cannot be loaded: {text_of(error)}{where if is_absent else ''}"
        ) from error
    found: Transform | None = getattr(loaded, function, None)
    if found is None:
        raise _unusable_transform(
            f"{name!r} cannot be loaded: module {module!r} ({loaded.__file__}) has no"
            f" {function!r}{_similar(function, loaded)}"
        )
    return found


def _similar(function: str, module: ModuleType) -> str:
    known = [name for name, value in vars(module).items() if callable(value)]
    near = nearest(function, known)
    return f"; did you mean {near}?" if near else ". Correct the name of the function"


def _unusable_transform(message: str) -> InvalidSpecError:
    return InvalidSpecError(message, field="spec.application.pipeline.transform")


def described(variables: Mapping[str, str]) -> tuple[DriverEnvironment, Pipeline]:
    """Return what the operator told this program.

    Raises:
        InvalidSpecError: it told nothing, nothing that can be read, or something newer than this
            program.
    """
    try:
        environment = from_variables(variables)
    except IncompatibleVersionError as error:
        raise InvalidSpecError(
            f"{error}. Use an image of the operator's release", field="spec.application.image"
        ) from error
    except CorruptDocumentError as error:
        raise InvalidSpecError(
            f"{error}: this program is started by the operator", field="environment"
        ) from error
    if environment.pipeline is None:
        raise InvalidSpecError(
            "there is no pipeline: this program is started by the operator", field="environment"
        )
    return environment, environment.pipeline


def _sink(
    writer: DataStreamWriter, pipeline: Pipeline, options: Mapping[str, str]
) -> DataStreamWriter:
    writer = writer.format(pipeline.sink.format).options(**options)
    writer = writer.option("checkpointLocation", pipeline.checkpoint_location)
    if pipeline.sink.partition_by:
        writer = writer.partitionBy(*pipeline.sink.partition_by)
    match pipeline.trigger:
        case AvailableNow():
            return writer.trigger(availableNow=True)
        case ProcessingTime(interval):
            return writer.trigger(processingTime=spark_interval(interval))
        case _:
            assert_never(pipeline.trigger)


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


def stop_on_sigterm(query: StreamingQuery) -> None:
    """Stop the query at SIGTERM, by which Kubernetes ends a pod.

    Spark cancels the micro-batch that runs; the next driver replays it.
    """

    def stop(*_: Any) -> None:
        log.info("told to stop")
        # In a thread: a signal handler that waits for the query would hold up the main thread.
        threading.Thread(target=query.stop, daemon=True).start()

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)


if __name__ == "__main__":
    main()
