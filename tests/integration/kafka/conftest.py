"""One broker for all tests of the Kafka connector that need no special one."""

import itertools
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.spark_session import spark_session
from testbed.jars import ensure_jars
from testbed.kafka import KafkaCluster

QUICK_CLEANER = {"log.cleaner.backoff.ms": "200", "log.cleaner.min.cleanable.ratio": "0.01"}
"""Compaction within a second, where a topic asks for it."""

_names = itertools.count()


@pytest.fixture(scope="package")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster(
        "main", tmp_path_factory.mktemp("kafka"), properties=QUICK_CLEANER
    ) as cluster:
        yield cluster


@pytest.fixture
def topic(kafka: KafkaCluster) -> str:
    """A topic of its own with three partitions."""
    name = f"topic-{next(_names)}"
    kafka.admin.create_topic(name, partitions=3)
    return name


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    """With Spark's own Kafka source beside ours."""
    jars = sorted(ensure_jars("spark-kafka").glob("*.jar"))
    with spark_session({"spark.jars": ",".join(map(str, jars))}) as session:
        yield session
