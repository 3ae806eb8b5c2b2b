"""One Spark session for all tests of files."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.spark_session import spark_session


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    with spark_session() as session:
        yield session
