"""Runs what a connector brings to a task such that its mistakes are sentences; see `mistakes`.

Imported by tasks, so it imports little.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from balanced_source.api import InputStatus, SourceReader, SourceSplit
from balanced_source_adapters.mistakes import expect, explained
from balanced_source_spark.contract.mistakes import ExplainingProxy, attributed
from balanced_source_spark.contract.row_columns import Columns, RowColumns
from balanced_source_spark.plain_errors import plain_errors

if TYPE_CHECKING:
    from balanced_source_spark.contract.half import TaskReader
    from balanced_source_spark.contract.readers import ReadersHalf
    from balanced_source_spark.partition import ReaderPartition


@dataclass(frozen=True, slots=True)
class CheckedTaskReader:
    """Reads as the task reader of a connector does.

    Attributes:
        connector: its kind.
        reader: the connector's.
        declared: columns of the query; None if they are unknown.
    """

    connector: str
    reader: "TaskReader"
    declared: "Columns" = None

    def read(self, partition: "ReaderPartition") -> Iterator[pa.RecordBatch]:
        """See `balanced_source_spark.contract.half.TaskReader`."""
        with plain_errors(), attributed(self.connector):
            batches = self._batches(partition)
            while (batch := self._next(batches)) is not None:
                yield batch

    def _batches(self, partition: "ReaderPartition") -> Iterator[pa.RecordBatch]:
        """Return what the connector reads, checked batch by batch."""
        columns = RowColumns(self.declared, "read of its task reader")
        found: object = self.reader.read(partition)
        expect(found, Iterable, "an iterator of pyarrow.RecordBatch")
        for batch in cast("Iterable[pa.RecordBatch]", found):
            expect(batch, pa.RecordBatch, "a pyarrow.RecordBatch", "yielded")
            columns.check(batch)
            yield batch

    def _next(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        # Each by itself: whoever closes the generator of `read` makes no mistake.
        with explained(self.connector, "read of its task reader"):
            return next(batches, None)


def checked_task(
    connector: str, make: "Callable[[], TaskReader]", declared: "Columns" = None
) -> CheckedTaskReader:
    """Return the reader that a connector's factory makes. Tasks call this.

    Args:
        connector: its kind.
        make: the factory.
        declared: columns of the query; None if they are unknown.
    """
    with plain_errors(), explained(connector, "the factory that task_reader returned"):
        made = make()
        if not callable(getattr(made, "read", None)):
            raise TypeError(f"it returned a {type(made).__name__}, which has no method read")
        return CheckedTaskReader(connector, made, declared)


def checked_half(
    half: "ReadersHalf[Any, Any, Any]", connector: str
) -> "ReadersHalf[Any, Any, Any]":
    """Return the half, such that mistakes of it and of its readers are sentences."""
    return cast("ReadersHalf[Any, Any, Any]", _CheckedHalf(half, connector))


class _CheckedHalf(ExplainingProxy):
    def _method(self, name: str, found: Callable[..., Any]) -> Callable[..., Any]:
        if name == "split":
            return super()._method(name, _checking(found, _check_made))
        if name != "reader":
            return super()._method(name, found)

        @wraps(found)
        def reader(*args: Any) -> ExplainingProxy:
            with explained(self._connector, name):
                made = found(*args)
                expect(made, SourceReader, "a SourceReader")
            return _CheckedReader(made, self._connector)

        return reader


class _CheckedReader(ExplainingProxy):
    """A reader of a task."""

    def _method(self, name: str, found: Callable[..., Any]) -> Callable[..., Any]:
        check = _RESULTS.get(name)
        return super()._method(name, found if check is None else _checking(found, check))


def _checking(method: Callable[..., Any], check: Callable[[object], None]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any) -> Any:
        result = method(*args)
        check(result)
        return result

    return call


def _check_made(found: object) -> None:
    expect(found, SourceSplit, "a SourceSplit")


def _check_status(found: object) -> None:
    expect(found, InputStatus, "an InputStatus")


def _check_splits(found: object) -> None:
    expect(found, Sequence, "a sequence of splits")
    for split in cast("Sequence[object]", found):
        expect(split, SourceSplit, "a SourceSplit", "has")


def _check_split(found: object) -> None:
    expect(found, (SourceSplit, type(None)), "a SourceSplit, or None,")


def _check_table(found: object) -> None:
    expect(found, Mapping, "a mapping")


_RESULTS: Final[Mapping[str, Callable[[object], None]]] = MappingProxyType(
    {
        "poll_next": _check_status,
        "snapshot_state": _check_splits,
        "snapshot_split": _check_split,
        "millis_behind": _check_table,
        "skipped_gaps": _check_table,
    }
)
"""Methods of a reader whose results a task works with → what checks the result."""
