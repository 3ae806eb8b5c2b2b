"""Files that Spark has written are read as Spark's own sources read them."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

DAYS = """
    select id, Day, timestamp'9999-12-31 23:59:59.999999' at, named_struct('Name', 'n') Who
    from values
        (1, date'0001-01-01'), (2, date'1000-02-28'), (3, date'1500-03-01'), (4, date'1582-10-04'),
        (5, date'1582-10-15'), (6, date'2024-01-01'), (7, null)
    as t(id, Day)
"""
NUMBERS = """
    select double('NaN') d, float('-Infinity') f, 'NaN' s, timestamp'9999-12-31 23:59:59.999999' at
    union all select 1.5, 2.5, 'Infinity', null
"""
TEXTS = """
    select 1 id, 'a "q" b, c' text, 'x' other, timestamp'2024-01-01 00:00:00.123456' at
    union all select null, null, 'y', null
"""
MODE = "spark.sql.parquet.datetimeRebaseModeInWrite"


class Written(NamedTuple):
    """What Spark writes, and with which columns both read it."""

    kind: str
    rows: str
    columns: str
    options: tuple[tuple[str, str], ...] = ()


@pytest.fixture
def mode(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    before = spark.conf.get(MODE)
    spark.conf.set(MODE, request.param)
    yield request.param
    spark.conf.set(MODE, str(before))


def texts(rows: DataFrame) -> list[str]:
    as_texts = [f"cast(`{name}` as string)" for name in rows.columns]
    return sorted(str(row) for row in rows.selectExpr(*as_texts).collect())


def check(spark: SparkSession, folder: Path, written: Written) -> None:
    options = dict(written.options)
    rows = spark.sql(written.rows).coalesce(1)
    rows.write.format(written.kind).options(**options).save(str(folder))
    theirs = spark.read.format(written.kind).schema(written.columns).options(**options)
    ours = spark.read.format("balanced").options(
        connector="files", fileFormat=written.kind, schema=written.columns, parallelism="1"
    )
    if "escape" in options:
        ours = ours.option("escape", options["escape"])

    found = texts(ours.option("metadataColumns", "false").load(str(folder)))
    assert found == texts(theirs.load(str(folder)))


@pytest.mark.parametrize(
    "written",
    [
        Written("orc", DAYS.replace("9999", "2024"), "ID INT, day DATE, who STRUCT<name: STRING>"),
        Written("json", NUMBERS, "d DOUBLE, f FLOAT, s STRING, at TIMESTAMP"),
        Written(
            "csv", TEXTS, "id INT, text STRING, other STRING, at TIMESTAMP", (("escape", '"'),)
        ),
        Written(
            "csv",
            TEXTS.replace("null, null, 'y'", "null, 't', 'y'"),
            "id INT, text STRING, other STRING, at TIMESTAMP",
            (("escape", '"'), ("quoteAll", "true")),
        ),
    ],
    ids=["orc", "json", "csv", "csv in quotes"],
)
def test_rows_are_those_of_spark(spark: SparkSession, tmp_path: Path, written: Written) -> None:
    check(spark, tmp_path / "rows", written)


@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED"], indirect=True)
def test_dates_of_parquet_are_those_of_spark(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    columns = "ID INT, day DATE, at TIMESTAMP, who STRUCT<name: STRING>"

    check(spark, tmp_path / mode, Written("parquet", DAYS, columns))
