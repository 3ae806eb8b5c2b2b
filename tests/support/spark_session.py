"""A Spark session for tests: local, two task slots, the data source registered."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from balanced_source_spark.data_source import register


@contextmanager
def spark_session(
    conf: Mapping[str, str] | None = None, *, master: str = "local[2]"
) -> Iterator[SparkSession]:
    """The session, stopped in the end.

    There is one per process: a second one would be the first, and is refused.
    """
    if SparkContext._active_spark_context is not None:
        raise RuntimeError(
            "a Spark session is running in this process: its settings would be taken"
        )
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        **(conf or {}),
    }
    builder = SparkSession.builder.master(master).appName("tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    try:
        yield session
    finally:
        session.stop()
        _end_jvm()


def _end_jvm() -> None:
    """A session that comes later needs a JVM of its own.

    Jars are on the class path of a new one only.
    """
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(60)
    SparkContext._gateway = SparkContext._jvm = None
