"""One Kinesis server and one Spark session for all tests of streams."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.kinesis import kinesis_client
from support.spark_session import spark_session
from testbed.kinesis import ENVIRONMENT, kinesis_server


@pytest.fixture(scope="package")
def kinesis() -> Iterator[str]:
    with kinesis_server() as endpoint:
        yield endpoint


@pytest.fixture(scope="package")
def client(kinesis: str) -> Any:
    return kinesis_client(kinesis)


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():  # the standard chain of driver and tasks
            patch.setenv(name, value)
        with spark_session() as session:
            yield session
