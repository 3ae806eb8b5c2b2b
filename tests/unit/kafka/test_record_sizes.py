"""How large a record is."""

from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source_spark.kafka.record_sizes import size_of


@pytest.mark.parametrize(
    ("key", "value", "headers", "size"),
    [
        (b"id", b"payload", None, 9),
        (None, None, [], 0),
        (b"id", None, [("trace", b"abc"), ("empty", None)], 2 + 8 + 5),
    ],
)
def test_the_size_of_a_record_counts_key_value_and_headers(
    key: bytes | None, value: bytes | None, headers: Any, size: int
) -> None:
    message: Any = SimpleNamespace(key=lambda: key, value=lambda: value, headers=lambda: headers)

    assert size_of(message) == size
