"""Avro object container files: their columns, and the records of ranges of their bytes.

The rule is Hadoop's: a range has the blocks whose sync marker, the one before them, begins in it.
So each block belongs to exactly one of any ranges of a file.
"""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final, cast

import fastavro
import pyarrow as pa

from balanced_source.errors import in_short
from balanced_source.names import shown
from balanced_source_adapters.files.avro_types import AvroFileError, rewritten

ROWS: Final = 4096
"""Rows of one batch, at most."""

BATCH: Final = 1024 * 1024
"""Bytes of a file after which a batch is complete; always whole blocks."""

CODECS: Final = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")
_LOOK: Final = 64 * 1024
_MAGIC: Final = b"Obj\x01"
_MARK: Final = 16
"""Bytes of a sync marker."""

_HEADER: Final = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": len(_MAGIC)}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": _MARK}},
    ],
}


class AvroFile:
    """An open file, whose header has been read.

    Args:
        file: open for reading at any place.
        size: of the file, in bytes.

    Attributes:
        metadata: in the header, such as the schema.

    Raises:
        AvroFileError: the header is damaged, or says what cannot be read.
        OSError: the store does not answer.
    """

    def __init__(self, file: "pa.NativeFile", size: int) -> None:
        self._file, self._size = file, size
        source = _Bytes(file, 0, size)
        if source.read(len(_MAGIC)) != _MAGIC:
            raise AvroFileError(
                "it is not an Avro container file, which begins with Obj and the byte 1. A file"
                " that is compressed as a whole cannot be read: Avro compresses inside"
            )
        source = _Bytes(file, 0, size)
        with _explained():
            header: Any = fastavro.schemaless_reader(cast("IO[bytes]", source), _HEADER, None)
            schema = json.loads(header["meta"]["avro.schema"])
            codec = header["meta"].get("avro.codec", b"null").decode()
        self.metadata: Mapping[str, bytes] = header["meta"]
        self._sync: bytes = header["sync"]
        self._first = source.tell() - _MARK
        if codec not in CODECS:
            raise AvroFileError(
                f"its blocks are compressed by {shown(codec)}: supported are {', '.join(CODECS)}"
            )
        avro, self._kinds = rewritten(schema)
        with _explained():
            self._header = _written(avro, codec, self._sync)

    @property
    def names(self) -> Sequence[str]:
        """Names of all columns."""
        return tuple(self._kinds)

    def schema(self, names: Sequence[str] | None = None) -> "pa.Schema":
        """Return the columns of the file, or those of some names that it has.

        Raises:
            AvroFileError: one of them has a type that Spark does not have.
        """
        found = {
            name: self._kinds[name]
            for name in (self._kinds if names is None else names)
            if name in self._kinds
        }
        for name, kind in found.items():
            if isinstance(kind, str):
                raise AvroFileError(f"the type of column {name} is not supported: {kind}")
        return pa.schema(list(found.items()))

    def batches(
        self, start: int, end: int, names: Sequence[str]
    ) -> Iterator["pa.RecordBatch | int"]:
        """Return some columns of the records in a range; the number of records without any column.

        Raises:
            AvroFileError: the file is damaged.
            OSError: the store does not answer.
        """
        kind = pa.struct(list(self.schema(names)))
        for records in self._records(start, end):
            if not kind.num_fields:
                yield len(records)
                continue
            with _explained():
                found = pa.array(records, kind)
            yield pa.RecordBatch.from_struct_array(found)

    def _records(self, start: int, end: int) -> Iterator[list[Any]]:
        """Return the records in a range, as many at once as make up a batch."""
        if (mark := self._mark(start, end)) is None:
            return
        source = _Bytes(self._file, mark + _MARK, self._size, before=self._header)
        with _explained():
            blocks = fastavro.block_reader(cast("IO[bytes]", source))
        behind, full, records = mark + _MARK, mark + BATCH, list[Any]()
        while behind - _MARK < end:
            block = _next(blocks, source, behind)
            if block is None:
                break
            behind = source.tell()
            for record in _each(block):
                records.append(record)
                if len(records) == ROWS:
                    yield records
                    records = []
            if records and behind > full:
                yield records
                records, full = [], behind + BATCH
        if records:
            yield records

    def _mark(self, start: int, end: int) -> int | None:
        """Return where the first sync marker at or after `start` begins; None without any."""
        if start <= self._first:
            # Not by its bytes: the header, with a schema of any text, lies before it.
            return self._first
        at, last = start, min(end + _MARK - 1, self._size)
        while at + _MARK <= last:
            data = self._file.read_at(min(_LOOK, last - at), at)
            if (found := data.find(self._sync)) >= 0:
                return at + int(found)
            if len(data) < _MARK:
                return None
            # A marker may begin in this part, and end in the next one.
            at += len(data) - _MARK + 1
        return None


class _Bytes:
    """Some bytes and, behind them, those of a file from a position on; as fastavro reads them."""

    def __init__(self, file: "pa.NativeFile", at: int, size: int, before: bytes = b"") -> None:
        self._file, self._at, self._size = file, at, size
        self._buffer, self._next = before, 0

    def read(self, count: int = -1) -> bytes:
        """Return the next bytes; fewer only at the end of the file."""
        if count < 0:
            raise AvroFileError(f"a length in it is negative: {count}")
        have = len(self._buffer) - self._next
        if have < count and self._at < self._size:
            # What a damaged length asks for may be more than there is memory.
            wanted = min(max(count - have, _LOOK), self._size - self._at)
            found = self._file.read_at(wanted, self._at)
            self._buffer, self._next = self._buffer[self._next :] + found, 0
            self._at += len(found)
        begin, self._next = self._next, min(self._next + count, len(self._buffer))
        return self._buffer[begin : self._next]

    def tell(self) -> int:
        """Return the position in the file, once the bytes before it have been read."""
        return self._at - (len(self._buffer) - self._next)


def _written(schema: Any, codec: str, sync: bytes) -> bytes:
    """Return the header of a file."""
    header = io.BytesIO()
    fastavro.writer(header, schema, [], codec, sync_marker=sync)
    return header.getvalue()


def _next(blocks: Any, source: _Bytes, behind: int) -> Any:
    """Return the next block; None behind the last one, which ends at `behind`."""
    with _explained():
        block = next(blocks, None)
        if block is None and source.tell() != behind:
            raise AvroFileError(f"it ends within a block, which begins at byte {behind}")
        if block is not None and block.num_records < 0:
            raise AvroFileError(f"the block at byte {behind} has {block.num_records} records")
    return block


def _each(block: Any) -> Iterator[Any]:
    with _explained():
        yield from block


@contextmanager
def _explained() -> Iterator[None]:
    """Turn errors of a damaged file into a sentence: fastavro raises what its bytes lead to."""
    try:
        yield
    except (AvroFileError, OSError, MemoryError):
        raise
    except Exception as error:
        raise AvroFileError(f"it is damaged or half written ({in_short(error)})") from error
