"""One broker and one Spark session for all tests of the hybrid source."""

import itertools
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.spark_session import spark_session
from testbed.kafka import KafkaCluster

_names = itertools.count()


@pytest.fixture(scope="package")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster("main", tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    with spark_session({"spark.python.authenticate.socketTimeout": "120s"}) as session:
        yield session


@pytest.fixture
def topic(kafka: KafkaCluster) -> str:
    """A topic of its own with three partitions."""
    name = f"topic-{next(_names)}"
    kafka.admin.create_topic(name, partitions=3)
    return name
