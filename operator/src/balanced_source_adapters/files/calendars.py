"""Dates and times that Spark has written by the Julian calendar.

Spark 2, and later ones in their legacy mode, count days before 15 October 1582 by the Julian
calendar, and times before 1900 also by the local times of a zone. In ORC files, Spark does so up to
version 4.3 at least. The metadata of a file tell. Spark's own sources convert the dates as is done
here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

_VERSION: Final = b"org.apache.spark.version"
_LEGACY: Final = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96: Final = b"org.apache.spark.legacyINT96"

_GREGORIAN: Final = -141427
"""15 October 1582, the first day of the Gregorian calendar, in days since 1970."""

_FIRST: Final = -719164
"""1 January of the year 1 by the Julian calendar."""

_TIMES: Final = -2208988800
"""1 January 1900, in seconds since 1970: later times are the same in both."""

_PER_SECOND: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class OldCalendar:
    """Which columns of a file may have such dates and times.

    Attributes:
        has_dates: whether dates are meant.
        has_times: whether times with a zone are meant.
        int96: columns with times of 96 bits, if these are meant.
    """

    has_dates: bool = False
    has_times: bool = False
    int96: frozenset[str] = frozenset()

    def converted(self, name: str, column: pa.Array) -> pa.Array:
        """Return a column of a file by the calendar of today.

        Raises:
            TypeError: it has values whose meaning the file does not tell.
        """
        if not (self.has_dates or self.has_times or self.int96):
            return column
        if self.has_dates and types.is_date32(column.type):
            return _dates(name, column)
        for part in _parts(column):
            self._check(name, part)
        return column

    def _check(self, name: str, part: pa.Array) -> None:
        kind = part.type
        if self.has_dates and types.is_date32(kind) and _least(part, pa.int32()) < _GREGORIAN:
            raise TypeError(_dates_within(name))
        is_old = name in self.int96 or (self.has_times and getattr(kind, "tz", None) is not None)
        if not (is_old and types.is_timestamp(kind)):
            return
        if _least(part, pa.int64()) < _TIMES * _PER_SECOND[kind.unit]:
            raise TypeError(
                f"column {name} has times before 1900 that Spark 2, or a later one in its legacy"
                " mode, has written by the calendar and zone of its machine. Write the file again"
                " with the mode CORRECTED of a newer Spark, or leave the column out of the schema"
            )


def of_parquet(metadata: Any) -> OldCalendar:
    """Return which columns of a Parquet file, by its `FileMetaData`."""
    texts = metadata.metadata or {}
    schema = metadata.schema
    columns = [schema.column(number) for number in range(metadata.num_columns)]
    int96 = {str(c.path).partition(".")[0] for c in columns if c.physical_type == "INT96"}
    is_legacy = _is_legacy(texts, b"3.0.0", _LEGACY)
    return OldCalendar(
        has_dates=is_legacy,
        has_times=is_legacy,
        int96=frozenset(int96) if _is_legacy(texts, b"3.1.0", _LEGACY_INT96) else frozenset(),
    )


def of_avro(metadata: Mapping[str, bytes]) -> OldCalendar:
    """Return which columns of an Avro file, by the metadata in its header."""
    texts = {name.encode(): value for name, value in metadata.items()}
    is_legacy = _is_legacy(texts, b"3.0.0", _LEGACY)
    return OldCalendar(has_dates=is_legacy, has_times=is_legacy)


def of_orc(metadata: Any) -> OldCalendar:
    """Return which columns of an ORC file, by its metadata: dates, if Spark has written it."""
    return OldCalendar(has_dates=_VERSION in dict(metadata or {}))


def _is_legacy(texts: Mapping[bytes, bytes], first: bytes, key: bytes) -> bool:
    """Return whether a version before `first` has written a file, or a later one as these do."""
    version = texts.get(_VERSION)
    return version is not None and (version < first or key in texts)


def _dates(name: str, column: pa.Array) -> pa.Array:
    days = column.cast(pa.int32())
    if (least := _least(days, pa.int32())) >= _GREGORIAN:
        return column
    if least < _FIRST:
        raise TypeError(f"column {name} has dates before the year 1, which are not supported")
    moved = days
    for begin, difference in _DIFFERENCES:
        is_behind = pc.and_(pc.greater_equal(days, begin), pc.less(days, _GREGORIAN))
        moved = pc.if_else(is_behind, pc.add(days, pa.scalar(difference, pa.int32())), moved)
    return moved.cast(column.type)


def _dates_within(name: str) -> str:
    return (
        f"column {name} has dates before 15 October 1582, which Spark has written by the Julian"
        " calendar, within a struct, an array or a map. Write the file again with these dates in"
        " a column of their own, or leave the column out of the schema"
    )


def _least(part: pa.Array, number: Any) -> int:
    """Return the least value, as a number; 0 if there is none."""
    return int(pc.min(part.cast(number)).as_py() or 0)


def _parts(column: pa.Array) -> Iterator[pa.Array]:
    """Yield the arrays of values that a column is made of."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return
    if types.is_struct(kind):
        for part in column.flatten():
            yield from _parts(part)
    elif types.is_map(kind):
        yield from _parts(column.keys)
        yield from _parts(column.items)
    elif hasattr(column, "values") and hasattr(kind, "value_type"):
        yield from _parts(column.flatten())
    else:
        yield column


def _differences() -> Iterator[tuple[int, int]]:
    """Yield days since 1970, and what makes later ones the same date of today's calendar."""
    difference = 2
    yield _FIRST, difference
    for year in range(100, 1600, 100):
        # Each has a 29 February by the Julian calendar, and only every fourth by today's.
        if year % 400:
            difference -= 1
            yield _march(year), difference


def _march(year: int) -> int:
    """Return 1 March of a year of the Julian calendar, in days since 1970."""
    # Every fourth year has a leap day, and 59 other days come before 1 March.
    return _FIRST + 365 * (year - 1) + year // 4 + 59


_DIFFERENCES: Final = tuple(_differences())
