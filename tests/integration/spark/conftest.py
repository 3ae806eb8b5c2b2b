"""One broker and one Spark session for all tests of the Spark side."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import AclOperation, ResourceType
from pyspark.sql import SparkSession

from balanced_source_operator.local import LocalOperator
from support.builders import spec_json
from support.spark_session import spark_session
from testbed.kafka import KafkaCluster, KafkaSecurity

_names = itertools.count()

PASSWORD = "correct-horse"  # noqa: S105 - of a broker on loopback
PASSWORD_VARIABLE = "BALANCED_SOURCE_TEST_PASSWORD"  # noqa: S105 - a name
os.environ[PASSWORD_VARIABLE] = PASSWORD  # before Spark starts: its processes inherit it


@pytest.fixture(scope="package")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster("main", tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A broker with TLS and SASL.

    The user alice may read the topic `hers`, which has three records.
    """
    security = KafkaSecurity(users={"alice": PASSWORD}, acls=True)
    with KafkaCluster("secured", tmp_path_factory.mktemp("secured"), security=security) as cluster:
        cluster.admin.create_topics({"hers": 1})
        cluster.admin.allow(
            "alice", ResourceType.TOPIC, "hers", AclOperation.READ, AclOperation.DESCRIBE
        )
        cluster.admin.produce("hers", [b"x"] * 3)
        yield cluster


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    conf = {"spark.python.authenticate.socketTimeout": "120s"}
    with spark_session(conf, master="local[2, 3]") as session:  # a task may fail twice
        yield session


@pytest.fixture
def topic(kafka: KafkaCluster) -> str:
    """A topic of its own with four partitions."""
    name = f"topic-{next(_names)}"
    kafka.admin.create_topic(name, partitions=4)
    return name


class Local:
    """Local mode for one test: a spec file that can be edited, and the operator that follows it."""

    def __init__(self, folder: Path, bootstrap: str, topic: str) -> None:
        self.folder = folder / "documents"
        self._file = folder / "source.yaml"
        self._spec: dict[str, Any] = spec_json(
            parallelism=2,
            source={
                "kafka": {
                    "clusters": [{"name": "main", "bootstrapServers": bootstrap}],
                    "subscription": {"topics": [topic]},
                    "discovery": {"interval": "1s"},
                }
            },
        )
        self._write()
        self.operator = LocalOperator(self._file, self.folder)

    def rescale(self, parallelism: int) -> None:
        self._spec["parallelism"] = parallelism
        self._write()
        self.operator.look()

    def _write(self) -> None:
        self._file.write_text(yaml.safe_dump({"spec": self._spec}))


@pytest.fixture
def local(tmp_path: Path, kafka: KafkaCluster, topic: str) -> Iterator[Local]:
    made = Local(tmp_path, kafka.bootstrap, topic)
    made.operator.start()
    yield made
    made.operator.close()
