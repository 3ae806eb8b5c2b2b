"""One broker for all tests of the Kafka connector that need no special one."""

import itertools
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.spark_session import spark_session
from testbed.kafka import KafkaCluster

_names = itertools.count()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster("main", tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


@pytest.fixture
def topic(kafka: KafkaCluster) -> str:
    """A topic of its own with three partitions."""
    name = f"topic-{next(_names)}"
    kafka.admin.create_topic(name, partitions=3)
    return name


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session() as session:
        yield session
