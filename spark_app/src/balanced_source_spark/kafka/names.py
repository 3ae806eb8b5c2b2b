"""Names of columns, apart from their types: who only checks options needs no Arrow."""

from typing import Final

COLUMNS: Final = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
    "cluster",
)
"""All columns that rows can have, in the order of ``format("kafka")``, then `cluster`."""

PLAIN: Final = tuple(name for name in COLUMNS if name != "headers")
"""The columns that rows have unless something else is asked for."""
