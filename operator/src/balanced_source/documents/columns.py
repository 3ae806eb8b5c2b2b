"""Compact JSON for maps whose keys are split ids.

Splits come in families: the partitions of a topic share all but the last part of their id. A map
``{(c, t, 0): a, (c, t, 1): b}`` is written as ``[[[c, t], [[0, 2]], [a, b]]]``: prefix, runs of
last parts, values. Ids whose last part is text (files) list it instead of runs. Values that are
objects and all the same are written once: ``[[c, t], [[0, 1000]], [{…}]]``. Sorted throughout, so
equal maps give equal bytes.
"""

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from balanced_source.api import Json, SplitId
from balanced_source.errors import CorruptDocumentError
from balanced_source.names import shown

V = TypeVar("V")

MAX_SPLITS: Final = 2_000_000
"""Splits in one table: twice as many as a source was measured with."""

_MALFORMED: Final = (
    TypeError,
    ValueError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)

_PREFIX: Final = operator.itemgetter(slice(None, -1))
_LAST: Final = operator.itemgetter(-1)


EncodeMap: TypeAlias = Callable[[Mapping[SplitId, Any]], list[Json]]
"""See `encode_map`."""


def encode_map(values: Mapping[SplitId, Any]) -> list[Json]:
    """The map as JSON; values must be JSON already."""
    return TableLayout(list(values)).encode(list(values.values()))


class TableLayout:
    """How the ids of a table are written: tables of the same splits need it only once.

    Args:
        split_ids: in the order of the table.
    """

    def __init__(self, split_ids: list[SplitId]) -> None:
        self.split_ids = split_ids
        ids = sorted(split_ids)
        self._order = None if ids == split_ids else _places(split_ids, ids)
        self._families: list[tuple[Json, Json, slice]] = []
        end = 0
        for prefix, members in itertools.groupby(ids, key=_PREFIX):
            lasts = list(map(_LAST, members))
            begin, end = end, end + len(lasts)
            self._families.append((list(prefix), _encode_lasts(lasts), slice(begin, end)))

    def encode(self, values: list[Any]) -> list[Json]:
        """See `encode_map`: of a table with these ids, in this order, and these values."""
        # A look-up for each id would hash all of them again.
        ordered = values if self._order is None else list(map(values.__getitem__, self._order))
        return [
            [prefix, lasts, _encode_values(ordered[of_family])]
            for prefix, lasts, of_family in self._families
        ]


class TableEncoder:
    """Encodes tables one by one; those with the same splits in the same order share their layout.

    Used by one thread.
    """

    def __init__(self) -> None:
        self._layout = TableLayout([])

    def __call__(self, values: Mapping[SplitId, Any]) -> list[Json]:
        """See `encode_map`."""
        split_ids = list(values)
        if self._layout.split_ids != split_ids:
            # A table of a few splits must not take the place of the one of all.
            if len(split_ids) < len(self._layout.split_ids) / 2:
                return encode_map(values)
            self._layout = TableLayout(split_ids)
        return self._layout.encode(list(values.values()))


def _places(split_ids: list[SplitId], ids: list[SplitId]) -> list[int]:
    place_of = {split_id: place for place, split_id in enumerate(split_ids)}
    return [place_of[split_id] for split_id in ids]


def decode_map(rows: Json) -> dict[SplitId, Any]:
    """Inverse of `encode_map`.

    Raises:
        CorruptDocumentError: not of that form.
    """
    try:
        return dict(_decode_rows(rows))
    except _MALFORMED as error:
        raise CorruptDocumentError(f"malformed table of splits: {shown(str(error))}") from error


def checked_values(values: dict[SplitId, V], kind: type[V]) -> dict[SplitId, V]:
    """Returns the table if all of its values are of one kind.

    Raises:
        CorruptDocumentError: they are not.
    """
    if all(isinstance(value, kind) for value in values.values()):
        return values
    raise CorruptDocumentError(
        f"malformed table of splits: not every value is of type {kind.__name__}"
    )


def encode_ids(ids: Iterable[SplitId]) -> list[Json]:
    """A set of ids as JSON."""
    return [row[:2] for row in encode_map(dict.fromkeys(ids))]


def decode_ids(rows: Json) -> frozenset[SplitId]:
    """Inverse of `encode_ids`.

    Raises:
        CorruptDocumentError: not of that form.
    """
    try:
        ids = (_decode_ids(prefix, lasts) for prefix, lasts in rows)
        return frozenset(itertools.chain.from_iterable(_bounded(ids)))
    except _MALFORMED as error:
        raise CorruptDocumentError(f"malformed list of splits: {shown(str(error))}") from error


def _encode_values(values: list[Json]) -> list[Json]:
    """Attributes that a whole family shares, such as the id of its topic, are written once."""
    is_shared = (
        len(values) > 1 and isinstance(values[0], dict) and values.count(values[0]) == len(values)
    )
    return values[:1] if is_shared else values


def _encode_lasts(lasts: list[Any]) -> list[Json]:
    if not isinstance(lasts[0], int):
        return lasts
    # The common case, all partitions of a topic, without a loop over them in Python.
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
        if not isinstance(item, list):
            yield item
            continue
        first, count = item
        # Before the range is made: a few bytes can name any number of splits.
        if not 0 < count <= MAX_SPLITS:
            raise ValueError(f"a run of {count} splits; 1 to {MAX_SPLITS} are possible")
        yield from range(first, first + count)


def _decode_ids(prefix: Json, lasts: Json) -> list[SplitId]:
    ids = [(*prefix, last) for last in _decode_lasts(lasts)]
    if not all(isinstance(part, str | int) for part in prefix):
        raise TypeError("parts of a split's id are texts and numbers")
    return ids


def _bounded(found: Iterable[list[SplitId]]) -> Iterator[list[SplitId]]:
    """A few bytes can name any number of splits.

    The writer may want its reader to run out of memory.
    """
    total = 0
    for ids in found:
        total += len(ids)
        if total > MAX_SPLITS:
            raise ValueError(f"more than {MAX_SPLITS} splits")
        yield ids


def _decode_rows(rows: Json) -> Iterator[tuple[SplitId, Any]]:
    tables = [values for _, _, values in rows]
    found = _bounded(_decode_ids(prefix, lasts) for prefix, lasts, _ in rows)
    for ids, values in zip(found, tables, strict=True):
        is_shared = len(values) == 1 and len(ids) > 1 and isinstance(values[0], dict)
        yield from zip(ids, values * len(ids) if is_shared else values, strict=True)
