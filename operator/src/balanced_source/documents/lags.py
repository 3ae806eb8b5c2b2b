"""Lag in the `metrics` of a report: of each split, or of each reader when there are many splits.

It is part of `metrics` rather than a field of its own: operators of older versions read such a
report as before, so a downgrade of the operator silences no driver.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from balanced_source.api import Json, SplitId
from balanced_source.documents import columns
from balanced_source.errors import CorruptDocumentError

MOST_SPLITS: Final = 2_000
"""Splits whose lags a report lists one by one.

With more splits it has a number per reader, so that it stays small.
"""

SPLITS: Final = "splitLags"
READERS: Final = "readerLags"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lags:
    """Records not yet read. None is unknown, and so is what is missing.

    Attributes:
        splits: split → its lag; empty if there are too many splits.
        readers: subtask → lag of its splits; empty if `splits` has them.
    """

    splits: Mapping[SplitId, int | None] = field(default_factory=dict)
    readers: Mapping[int, int | None] = field(default_factory=dict)


def to_metrics(
    splits: Mapping[SplitId, int | None], readers: Mapping[int, int | None]
) -> dict[str, Json]:
    """Return the part of a report's `metrics`.

    The lags of splits, or those of readers if there are too many splits.
    """
    if len(splits) <= MOST_SPLITS:
        return {SPLITS: columns.encode_map(splits)} if splits else {}
    return {READERS: [[reader, readers[reader]] for reader in sorted(readers)]}


def from_metrics(metrics: Mapping[str, Any]) -> Lags:
    """Return the lags in a report's `metrics`.

    Whatever is malformed is unknown: nothing depends on it but pictures.
    """
    try:
        splits = columns.decode_map(metrics.get(SPLITS, []))
        readers = dict(metrics.get(READERS, []))
        numbers = all(type(reader) is int for reader in readers)
    except (CorruptDocumentError, TypeError, ValueError):
        return Lags()
    if not numbers or len(splits) > MOST_SPLITS:
        return Lags()
    return Lags(splits=_checked(splits), readers=_checked(readers))


def _checked(lags: Mapping[Any, Any]) -> dict[Any, int | None]:
    """Replace what is not a number of records by None."""
    return {key: lag if type(lag) is int and lag >= 0 else None for key, lag in lags.items()}
