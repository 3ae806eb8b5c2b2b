"""The parts of a hybrid source have the same columns, or the query says where they differ."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    DayTimeIntervalType,
    DecimalType,
    LongType,
    MapType,
    StringType,
    StructType,
    VarcharType,
)

from balanced_source.errors import InvalidSpecError
from balanced_source_spark.hybrid.schema import check_columns, columns
from balanced_source_spark.kafka.schema import spark_schema


def test_columns_may_be_spelled_in_any_way() -> None:
    one, other = "id BIGINT NOT NULL, `name` STRING", "id LONG, name string"
    check_columns([("files", one), ("kafka", other)])


@pytest.mark.parametrize(
    "headers",
    [
        "headers ARRAY<STRUCT<key: STRING, value: BINARY>>",
        "headers: ARRAY<STRUCT<key STRING, value BINARY>>",
        "`headers` array<struct<`key`: string COMMENT 'a, b>', value: binary NOT NULL>> COMMENT ''",
    ],
)
def test_a_history_may_have_the_headers_of_kafka(headers: str) -> None:
    """In the way in which people write types, and in those that Spark accepts as well."""
    check_columns(
        [("files", f"key BINARY, {headers}"), ("kafka", spark_schema(("key", "headers")))]
    )


def test_types_are_compared_as_spark_shows_them() -> None:
    nested = StructType().add("Id", LongType()).add("a`b c", MapType(StringType(), LongType()))
    expected = (
        StructType()
        .add("n", ArrayType(nested))
        .add("d", DecimalType(12, 2))
        .add("e", DecimalType())
        .add("i", DayTimeIntervalType(0, 3))
        .add("v", VarcharType(7))
        .add("s", StructType())
    )
    written = (
        "n ARRAY<STRUCT<Id: LONG, `a``b c`: MAP<STRING, BIGINT>>>, d DEC(12, 2) NOT NULL,"
        " e NUMERIC, i INTERVAL DAY TO SECOND COMMENT 'day to second', v VARCHAR(7), s STRUCT<>"
    )

    assert columns(written) == columns(expected)


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        ("id INT, name STRING", "id INT, name BINARY", "column 2 is name string and name binary"),
        ("a STRUCT<b: INT>", "a STRUCT<B: INT>", "column 1 is a struct<b:int> and a struct<B:int>"),
        ("id INT", "id INT, name STRING", "one of them has no column name"),
        ("id INT, name STRING", "id INT", "one of them has no column name"),
    ],
)
def test_the_first_difference_is_named(first: str, second: str, difference: str) -> None:
    with pytest.raises(
        InvalidSpecError, match=f"parts files and kafka have different columns: {difference}\\."
    ):
        check_columns([("files", first), ("kafka", second)])
