"""Says where the part of a hybrid source starts that follows files.

Measured from the columns of Parquet files.

The newest time comes from the statistics in the footers, where files have them; else the column is
read. Offsets are read: statistics do not tell them apart by partition.
"""

import datetime as dt
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from balanced_source.api import Measure, SwitchPosition
from balanced_source.connectors.files import File
from balanced_source.errors import BalancedSourceError, TransientDiscoveryError, text_of
from balanced_source.names import counted, shown
from balanced_source_adapters.files.file_store import FileStore

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND: Final = dt.timedelta(milliseconds=1)
_DIVISORS: Final = {"s": 1, "ms": 1, "us": 1000, "ns": 1_000_000}
_NOTHING: Final = SwitchPosition()

_SKEW: Final = 86_400.0
"""Seconds by which a clock that gave times to records may be ahead."""

_NO_TIME: Final = -1
"""What Kafka has in place of the time of a record that has none."""

_OLDEST: Final = 100_000_000_000
"""Milliseconds since the epoch, in March 1973. As seconds, smaller numbers are times up to 5138."""


class MeasureError(BalancedSourceError):
    """A file lacks what is measured; someone has to act."""


def measured(
    store: FileStore,
    files: Iterable[File],
    measure: Measure,
    former: SwitchPosition = _NOTHING,
    *,
    scope: str = "",
) -> SwitchPosition:
    """Return the position behind all records of some files, and of those before. Blocking.

    Args:
        store: where they are.
        files: whose end is measured.
        measure: what is measured.
        former: position behind the files before.
        scope: see `ListFiles.scope`.

    Raises:
        MeasureError: a file is no Parquet file, or does not say where it ends. Names it.
        TransientDiscoveryError: the store does not answer, or a file is damaged. Names it.
    """
    position, without = former, None
    for file in files:
        try:
            with closing(store.open(file.path)) as opened:
                file_of_rows = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us")
                position = position.merged(_of_file(file_of_rows, measure))
                without = without or (file.path if file_of_rows.metadata.num_rows else None)
        except (pa.ArrowException, LookupError, ValueError, TypeError, OverflowError) as error:
            raise _unmeasured(file.path, text_of(error)) from error
        except OSError as error:
            raise TransientDiscoveryError(
                f"cannot read {file.path}, to measure where the next part starts:"
                f" {text_of(error).rstrip('.')}. Check that the file is complete and that its store"
                " can be reached",
                scope=scope,
            ) from error
    # As if nothing had been read, the next part would start at its beginning.
    if without is not None and measure.time is not None and position.time is None:
        raise _unmeasured(without, f"column {shown(measure.time)} has no value in any record")
    return position


def _unmeasured(path: str, why: str) -> MeasureError:
    return MeasureError(
        f"the end of {path} cannot be measured: {why.rstrip('.')}. Correct the names of the"
        " columns, or give the start of the next part yourself"
    )


def _of_file(file: pq.ParquetFile, measure: Measure) -> SwitchPosition:
    # Writers that take types from values have none for the columns of a file without records.
    if not file.metadata.num_rows:
        return SwitchPosition()
    if measure.offsets is not None:
        return _offsets(file, measure.offsets)
    return SwitchPosition(time=_newest(file, str(measure.time)))


def _newest(file: pq.ParquetFile, name: str) -> int | None:
    """Return the newest time in milliseconds; None without any."""
    kind = _column(file, name).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind)):
        raise TypeError(
            f"column {shown(name)} is of type {kind}, not a timestamp or a whole number"
        )
    found = [_newest_of_group(file, group, name, kind) for group in range(file.num_row_groups)]
    newest = max((millis for millis in found if millis is not None), default=None)
    if newest is None or newest == _NO_TIME:
        return None
    # Behind such a time there is nothing, so all records of the next part would be left out.
    if newest > (time.time() + _SKEW) * 1000:
        raise ValueError(
            f"column {shown(name)} has the time {newest} ms since the epoch, which is in the future"
        )
    # All records of the next part are behind such a time, so the history would be read twice.
    if pa.types.is_integer(kind) and 0 < newest < _OLDEST:
        raise ValueError(
            f"column {shown(name)} has the time {newest} ms since the epoch, which is before April"
            " 1973: its numbers may be seconds. Write milliseconds or timestamps"
        )
    return newest


def _newest_of_group(file: pq.ParquetFile, group: int, name: str, kind: pa.DataType) -> int | None:
    statistics = _statistics(file, group, name)
    if statistics is not None:
        return _millis(statistics, kind)
    column = file.read_row_group(group, columns=[name]).column(0)
    return _millis(pc.max(column).cast(pa.int64()).as_py(), kind)


def _statistics(file: pq.ParquetFile, group: int, name: str) -> Any:
    """Return the greatest value of a column as the footer has it; None where it does not say."""
    row_group = file.metadata.row_group(group)
    for number in range(row_group.num_columns):
        column = row_group.column(number)
        if column.path_in_schema == name:
            known = column.statistics
            # Some writers leave statistics out, or only the minimum and maximum of them.
            return _greatest(known) if known is not None and known.has_min_max else None
    return None


def _greatest(known: Any) -> Any:
    """Return the maximum of statistics; None for nanoseconds that Python's times do not have."""
    try:
        return known.max
    except ValueError:
        return None


def _millis(value: Any, kind: pa.DataType) -> int | None:
    """Return milliseconds since the epoch, cut as Kafka's times are."""
    if value is None:
        return None
    if isinstance(value, dt.datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        return (moment - _EPOCH) // _MILLISECOND
    if not pa.types.is_timestamp(kind):
        return int(value)
    return int(value) * (1000 if kind.unit == "s" else 1) // _DIVISORS[kind.unit]


def _offsets(file: pq.ParquetFile, names: tuple[str, str, str]) -> SwitchPosition:
    topic, partition, offset = names
    # The greatest of texts is not that of the numbers, and bytes are no name of a topic.
    _check_kind(_column(file, topic), "text", pa.types.is_string, pa.types.is_large_string)
    for name in (partition, offset):
        _check_kind(_column(file, name), "a whole number", pa.types.is_integer)
    position = SwitchPosition()
    for group in range(file.num_row_groups):
        rows = file.read_row_group(group, columns=[topic, partition, offset])
        for name in names:
            # A record of no known partition could be in the next part as well.
            if missing := rows.column(name).null_count:
                raise ValueError(
                    f"column {shown(name)} has no value in {counted(missing, 'record')}"
                )
        furthest = rows.group_by([topic, partition]).aggregate([(offset, "max")])
        found = {
            (str(row[topic]), int(row[partition])): int(row[f"{offset}_max"]) + 1
            for row in furthest.to_pylist()
        }
        position = position.merged(SwitchPosition(offsets=found))
    return position


def _check_kind(column: pa.Field, expected: str, *kinds: Callable[[pa.DataType], bool]) -> None:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not any(is_kind(kind) for is_kind in kinds):
        raise TypeError(f"column {shown(column.name)} is of type {column.type}, not {expected}")


def _column(file: pq.ParquetFile, name: str) -> pa.Field:
    if name not in file.schema_arrow.names:
        raise ValueError(
            f"it has no column {shown(name)}, only {', '.join(file.schema_arrow.names)}"
        )
    return file.schema_arrow.field(name)
