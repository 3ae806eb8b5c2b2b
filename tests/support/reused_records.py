"""Readers of tapes that use their records, or the buffers of their records, again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from balanced_source.api import SourceOutput, SourceReader, SourceReaderContext
from balanced_source.reader import RecordsBySplits
from balanced_source.testing.inline_fetchers import InlineFetchers
from balanced_source_spark.contract.half import Query
from support.tapes import Record, Shelf, TapeEmitter, TapeHalf, TapeReader, TapeSourceReader
from support.tapes import TapeSplit as Split


class View:
    """A record that changes."""

    def __init__(self) -> None:
        self.name, self.number = "", 0


class MutatingEmitter(TapeEmitter):
    """Collects the same object for each record."""

    def __init__(self) -> None:
        super().__init__(1)
        self._one = View()

    def emit_record(
        self, element: int, output: SourceOutput[Any], split_state: list[Split]
    ) -> None:
        self._one.name, self._one.number = split_state[0].name, element
        output.collect(self._one)
        split_state[0] = split_state[0].at(element + 1)


class ViewEmitter(TapeEmitter):
    """Collects tuples of a name and a buffer, which its fetch frees."""

    def __init__(self, buffers: list[bytearray]) -> None:
        super().__init__(1)
        self._buffers = buffers

    def emit_record(
        self, element: int, output: SourceOutput[Any], split_state: list[Split]
    ) -> None:
        self._buffers.append(bytearray(element.to_bytes(4, "big")))
        output.collect((split_state[0].name, memoryview(self._buffers[-1])))
        split_state[0] = split_state[0].at(element + 1)


class Pooled(RecordsBySplits[int]):
    """Overwrites the buffers when it is recycled."""

    buffers: list[bytearray]

    def recycle(self) -> None:
        for buffer in self.buffers:
            buffer[:] = b"\xff\xff\xff\xff"
        self.buffers.clear()


class PooledReader(TapeReader):
    """Brings `Pooled`."""

    def __init__(self, shelf: Shelf, buffers: list[bytearray]) -> None:
        super().__init__(shelf)
        self._buffers = buffers

    def fetch(self) -> RecordsBySplits[int]:
        found = super().fetch()
        found.__class__ = Pooled
        assert isinstance(found, Pooled)
        found.buffers = self._buffers
        return found


@dataclass
class ReusedHalf(TapeHalf):
    """Tapes; `has_views` chooses buffers that are used again, not records."""

    has_views: bool = False

    def reader(
        self, query: Query[None], settings: Mapping[str, Any], context: SourceReaderContext
    ) -> SourceReader[Record, Split]:
        buffers: list[bytearray] = []
        emitter = ViewEmitter(buffers) if self.has_views else MutatingEmitter()
        fetchers = InlineFetchers(
            lambda: PooledReader(self.shelf, buffers) if self.has_views else TapeReader(self.shelf)
        )
        reader = TapeSourceReader(context, fetchers, emitter)
        reader.shelf = self.shelf
        return reader

    def rows(self, records: Sequence[Any]) -> pa.RecordBatch:
        plain = [
            (r[0], int.from_bytes(r[1], "big")) if self.has_views else (r.name, r.number)
            for r in records
        ]
        return super().rows(plain)
