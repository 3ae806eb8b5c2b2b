"""The packaged application on one machine.

Spark in this process, assignments from a folder of local mode.

``balanced-source run`` starts this program, with the environment that the operator gives a driver.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from balanced_source.documents.environment import DriverEnvironment
from balanced_source.errors import InvalidSpecError
from balanced_source.query_failures import sentence_of
from balanced_source.sinks import query_error
from balanced_source_spark.application import (
    described,
    end_when_finished,
    load_transform,
    source_options,
    start_with,
)
from balanced_source_spark.data_source import register
from balanced_source_spark.mounted_options import check_sink, secret_settings
from balanced_source_spark.progress import ProgressLogger
from balanced_source_spark.stopping import Stopper


def main(arguments: Sequence[str] = sys.argv[1:]) -> None:
    """Run until the query ends, SIGTERM arrives, or the process that started this one is gone.

    A mistake of the user ends the program with a sentence.
    """
    parser = argparse.ArgumentParser(prog="balanced_source_spark.laptop")
    parser.add_argument("--folder", type=Path, required=True, help="folder of local mode")
    parser.add_argument(
        "--slots", type=int, required=True, help="number of tasks that run at the same time"
    )
    parser.add_argument("--conf", action="append", default=[], help="setting of Spark: KEY=VALUE")
    parser.add_argument(
        "--until-stdin-ends", action="store_true", help="end when the standard input does"
    )
    parsed = parser.parse_args(arguments)
    stopper = Stopper()
    # First: Spark takes seconds to start, and may be told to stop meanwhile.
    stopper.on_sigterm()
    if parsed.until_stdin_ends:
        stopper.on_end_of(sys.stdin.fileno())
    settings = dict(text.split("=", 1) for text in parsed.conf)
    try:
        _run(parsed.folder, parsed.slots, settings, stopper)
    except InvalidSpecError as error:
        _leave(str(error))
        sys.exit(str(error))
    except StreamingQueryException as error:
        _leave(sentence_of(query_error(error)))
        sys.exit(query_error(error))
    except Exception as error:
        _leave(sentence_of(f"{type(error).__name__}: {error}"))
        raise


def _leave(reason: str) -> None:
    """Tell the command why the query has failed: the log has much else behind it."""
    sys.stdout.write(json.dumps({"event": "failed", "reason": reason}) + "\n")
    sys.stdout.flush()


def _run(folder: Path, slots: int, settings: Mapping[str, str], stopper: Stopper) -> None:
    environment, pipeline = described(os.environ)
    transform = load_transform(pipeline.transform)
    check_sink(pipeline.sink, environment)
    spark = _session(environment, slots, settings)
    register(spark)
    spark.streams.addListener(ProgressLogger())
    options = {**source_options(pipeline, environment), "assignmentDir": str(folder)}
    stopper.query_starts()
    query = start_with(options, spark, pipeline, transform, environment)
    end_when_finished(query)
    stopper.follow(query)
    query.awaitTermination()
    spark.stop()


def _session(
    environment: DriverEnvironment, slots: int, settings: Mapping[str, str]
) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{slots}]").appName(environment.name)
    defaults = {"spark.ui.enabled": "false", "spark.python.unix.domain.socket.enabled": "true"}
    for key, value in {**defaults, **settings, **secret_settings(environment)}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


if __name__ == "__main__":
    main()
