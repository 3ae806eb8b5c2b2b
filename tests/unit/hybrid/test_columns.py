"""The parts of a hybrid source have the same columns, or the query says where they differ."""

import pytest

from balanced_source.errors import InvalidSpecError
from balanced_source_spark.hybrid.schema import check_columns


def test_columns_may_be_spelled_in_any_way() -> None:
    one, other = "id BIGINT NOT NULL, `name` STRING", "id LONG, name string"
    check_columns([("files", one), ("kafka", other)])


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        ("id INT, name STRING", "id INT, name BINARY", "column 2 is name string and name binary"),
        ("id INT", "id INT, name STRING", "one of them has no column name"),
        ("id INT, name STRING", "id INT", "one of them has no column name"),
    ],
)
def test_the_first_difference_is_named(first: str, second: str, difference: str) -> None:
    with pytest.raises(
        InvalidSpecError, match=f"parts files and kafka have different columns: {difference}\\."
    ):
        check_columns([("files", first), ("kafka", second)])
