"""Compact JSON for maps whose keys are split ids.

Splits come in families: the partitions of a topic share all but the last part of their id. A map
``{(c, t, 0): a, (c, t, 1): b}`` is written as ``[[[c, t], [[0, 2]], [a, b]]]``: prefix, runs of last parts, values.
Ids whose last part is text (files) list it instead of runs. Values that are objects and all the same are written once:
``[[c, t], [[0, 1000]], [{…}]]``. Sorted throughout, so equal maps give equal bytes.
"""

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from balanced_source.api import Json, SplitId
from balanced_source.errors import CorruptDocumentError

V = TypeVar("V")

_PREFIX: Final = operator.itemgetter(slice(None, -1))
_LAST: Final = operator.itemgetter(-1)


def encode_map(values: Mapping[SplitId, Any]) -> list[Json]:
    """The map as JSON; values must be JSON already."""
    rows: list[Json] = []
    for prefix, ids in itertools.groupby(sorted(values), key=_PREFIX):
        members = list(ids)
        lasts = _encode_lasts(list(map(_LAST, members)))
        rows.append([list(prefix), lasts, _encode_values(list(map(values.__getitem__, members)))])
    return rows


def decode_map(rows: Json) -> dict[SplitId, Any]:
    """Inverse of `encode_map`.

    Raises:
        CorruptDocumentError: not of that form.
    """
    try:
        return dict(_decode_rows(rows))
    except (TypeError, ValueError, KeyError) as error:
        raise CorruptDocumentError(f"malformed table of splits: {error}") from error


def encode_ids(ids: Iterable[SplitId]) -> list[Json]:
    """A set of ids as JSON."""
    return [row[:2] for row in encode_map(dict.fromkeys(ids))]


def decode_ids(rows: Json) -> frozenset[SplitId]:
    """Inverse of `encode_ids`.

    Raises:
        CorruptDocumentError: not of that form.
    """
    try:
        return frozenset((*prefix, last) for prefix, lasts in rows for last in _decode_lasts(lasts))
    except (TypeError, ValueError) as error:
        raise CorruptDocumentError(f"malformed list of splits: {error}") from error


def _encode_values(values: list[Json]) -> list[Json]:
    """Attributes that a whole family shares, such as the id of its topic, are written once."""
    is_shared = len(values) > 1 and isinstance(values[0], dict) and values.count(values[0]) == len(values)
    return values[:1] if is_shared else values


def _encode_lasts(lasts: list[Any]) -> list[Json]:
    if not isinstance(lasts[0], int):
        return lasts
    if lasts == list(range(lasts[0], lasts[0] + len(lasts))):
        return [[lasts[0], len(lasts)]]
    runs: list[list[int]] = []
    for last in lasts:
        if runs and last == runs[-1][0] + runs[-1][1]:
            runs[-1][1] += 1
        else:
            runs.append([last, 1])
    return runs


def _decode_lasts(lasts: Json) -> Iterator[Any]:
    for item in lasts:
        if isinstance(item, list):
            yield from range(item[0], item[0] + item[1])
        else:
            yield item


def _decode_rows(rows: Json) -> Iterator[tuple[SplitId, Any]]:
    for prefix, lasts, values in rows:
        ids = [(*prefix, last) for last in _decode_lasts(lasts)]
        is_shared = len(values) == 1 and len(ids) > 1 and isinstance(values[0], dict)
        yield from zip(ids, values * len(ids) if is_shared else values, strict=True)
