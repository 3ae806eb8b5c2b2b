"""Reads tables of the same splits side by side, without looking each split up in each of them."""

from collections.abc import Mapping
from typing import TypeVar

from balanced_source.api import SplitId

V = TypeVar("V")


def column(table: Mapping[SplitId, V], split_ids: list[SplitId]) -> list[V | None]:
    """Return the value of each split, None for one that the table lacks."""
    # The tables of a query are mostly made one from the other, in the same order and with the very
    # same ids. To hash an id costs far more than to see that.
    if list(table) == split_ids:
        return list(table.values())
    return list(map(table.get, split_ids))
