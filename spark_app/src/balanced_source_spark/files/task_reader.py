"""What a task unpickles: it reads ranges of files. It imports what reading needs and no more."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from balanced_source.connectors.files import (
    File,
    FileReaderSettings,
    Format,
    OnFileLoss,
    Store,
    compression_of,
    file_of,
    is_unreadable,
)
from balanced_source.errors import BalancedSourceError, text_of
from balanced_source.host import SplitRange
from balanced_source.names import shown
from balanced_source_adapters.files.avro_types import AvroFileError
from balanced_source_adapters.files.file_store import FileStore
from balanced_source_adapters.files.stores import store_of
from balanced_source_spark.contract.ddl import columns_of
from balanced_source_spark.contract.row_columns import missing_values, strict_fields
from balanced_source_spark.contract.secrets import QuerySecrets
from balanced_source_spark.files.columnar import avro, orc, parquet
from balanced_source_spark.files.lines import (
    BYTE_ORDER_MARK,
    LOOK,
    LineTooLongError,
    behind_header,
    chunks,
    header_of,
    streamed,
)
from balanced_source_spark.files.malformed import misplaced
from balanced_source_spark.files.option_names import METADATA
from balanced_source_spark.files.options import FileReadOptions
from balanced_source_spark.files.parsing import CorruptRecordError, Parser
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.skipped_ranges import tell_skipped


class FileLostError(BalancedSourceError):
    """A file changed or vanished before it was read, and the policy is to fail."""


class FileReadError(BalancedSourceError):
    """A file cannot be read: it is damaged, or does not fit the schema."""


@dataclass(frozen=True)
class FilesTaskReader:
    """See `balanced_source_spark.contract.half.TaskReader`.

    Attributes:
        read_options: see `FileReadOptions`.
        schema: all columns of the rows, as Spark's type.
        secrets: resolves the Secret of the store.
    """

    read_options: FileReadOptions
    schema: Any
    secrets: QuerySecrets

    def read(self, partition: ReaderPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of the ranges."""
        if not partition.ranges:
            return
        settings = FileReaderSettings.of(partition.settings)
        store = self._store(settings.store, settings.scheme)
        is_strict = settings.on_loss is OnFileLoss.FAIL
        for piece in partition.ranges:
            path, begin = str(piece.split_id[1]), int(piece.split_id[2])
            file = file_of(path, piece.identity or "")
            if (why := _loss(store, file)) is not None:
                _lost(path, why, is_strict=is_strict)
                tell_skipped(partition.samples, [piece])
                continue
            for table in self._tables(store, file, piece):
                for batch in self._rows(table, file, begin).to_batches():
                    self._check_nulls(batch, path)
                    yield batch
            if (why := _loss(store, file)) is not None:
                _lost(path, f"{why} while it was read", is_strict=is_strict)
                tell_skipped(partition.samples, [piece])

    def _check_nulls(self, batch: pa.RecordBatch, path: str) -> None:
        """Check that columns have values where `.schema(...)` of the query forbids nulls.

        The option schema never does: see `ddl_of`.
        """
        for name in missing_values(batch, self._strict):
            raise FileReadError(
                f"{path} has records without {shown(name)}, which .schema(...) of the query"
                " declares as not nullable. Make it nullable: malformed records have nulls"
            )

    @cached_property
    def _strict(self) -> Sequence[pa.Field]:
        return strict_fields(self._arrow)

    def _store(self, store: Store, scheme: str) -> FileStore:
        return store_of(store, (scheme,), self.secrets)

    def _tables(self, store: FileStore, file: File, piece: SplitRange) -> Iterator[pa.Table]:
        start, end = int(piece.start or 0), int(piece.end or 0)
        if is_unreadable(file.path, self.read_options.kind):
            raise FileReadError(
                f"cannot read {file.path}: files of lines may be compressed by gzip, bzip2 or zstd"
                " only. Compress it by one of these, or leave it out by a pattern"
            )
        try:
            with closing(store.open(file.path)) as opened:
                yield from self._parsed(opened, file, start, end)
        except ModuleNotFoundError as error:
            raise FileReadError(
                f"cannot read {file.path}: {error.name} is missing. Install balanced-source[spark]"
                " on driver and executors"
            ) from error
        except (
            OSError,
            pa.ArrowException,
            TypeError,
            LookupError,
            AvroFileError,
            CorruptRecordError,
            LineTooLongError,
        ) as error:
            raise FileReadError(
                f"cannot read {file.path}, bytes {start} to {end}:"
                f" {text_of(error).rstrip('.')}. {self._remedy(error)}"
            ) from error

    def _remedy(self, error: Exception) -> str:
        if isinstance(error, OSError):
            return "Check that the file is complete and that its store can be reached"
        if self.read_options.kind in (Format.JSON, Format.CSV):
            return "Correct the file, the schema or the option mode"
        return "Correct the file or the schema"

    def _parsed(
        self, opened: pa.NativeFile, file: File, start: int, end: int
    ) -> Iterator[pa.Table]:
        match self.read_options.kind:
            case Format.PARQUET:
                yield from parquet(opened, start, end, self._data)
            case Format.ORC:
                yield from orc(opened, start, end, file.size, self._data)
            case Format.AVRO:
                yield from avro(opened, start, end, file.size, self._data)
            case Format.BINARY:
                yield from self._binary(opened, start)
            case _:
                yield from self._lines(opened, file, start, end)

    def _binary(self, opened: pa.NativeFile, start: int) -> Iterator[pa.Table]:
        if start == 0:  # a file is one record, which begins there
            content = pa.array([opened.read()], pa.binary())
            yield pa.table({self._data.names[0] if self._data.names else "": content})

    def _lines(self, opened: pa.NativeFile, file: File, start: int, end: int) -> Iterator[pa.Table]:
        read = self.read_options
        compression = compression_of(file.path, read.kind)
        has_header = read.header and read.kind is Format.CSV
        if has_header and compression is None and start > 0:
            self._check_header(opened.read_at(min(LOOK, file.size), 0))
        if compression is None:
            found = chunks(opened, start, end, file.size)
        elif start == 0:
            found = streamed(pa.CompressedInputStream(opened, compression))
        else:
            return
        is_header_next = has_header and start == 0
        for number, lines in enumerate(found):
            body = lines.removeprefix(BYTE_ORDER_MARK) if start == number == 0 else lines
            if is_header_next:
                self._check_header(body)
                body, is_header_next = behind_header(body)
            if body:
                yield from self._parser.tables(body)

    def _check_header(self, lines: bytes) -> None:
        """Check the header of CSV, in each block: no row may be read under a wrong column.

        Raises:
            CorruptRecordError: it names a column in the place of another one.
        """
        if why := misplaced(self.read_options, header_of(lines), self._parser.names):
            raise CorruptRecordError(
                f"{why}. Columns are read in the order of the schema: read files of another order"
                " by themselves"
            )

    def _rows(self, table: pa.Table, file: File, begin: int) -> pa.Table:
        """Return the rows with the columns of the schema, in its order."""
        metadata = {
            "_path": file.path,
            "_block_offset": begin,
            "_modification_time": file.modified // 1000,
            "_size": file.size,
        }
        columns = [
            _constant(metadata[field.name], field.type, table.num_rows)
            if field.name in self._added
            else table.column(field.name)
            for field in self._arrow
        ]
        return pa.Table.from_arrays(columns, schema=self._arrow)

    @cached_property
    def _arrow(self) -> pa.Schema:
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(self.schema, timezone="UTC")

    @property
    def _added(self) -> Collection[str]:
        """Names of the columns of `METADATA`; without them, a file may have such columns itself."""
        return METADATA if self.read_options.has_metadata else ()

    @cached_property
    def _data(self) -> pa.Schema:
        """Columns that come from the content of files."""
        return pa.schema(
            [
                f
                for f in self._arrow
                if f.name not in self._added and f.name != self.read_options.corrupt
            ]
        )

    @cached_property
    def _parser(self) -> Parser:
        read = self.read_options
        names = (
            tuple(name for name, _ in columns_of(read.ddl)) if read.ddl else tuple(self._data.names)
        )
        return Parser(
            read=read,
            schema=self._data,
            names=tuple(name for name in names if name != read.corrupt),
            has_corrupt=read.corrupt in self._arrow.names,
        )


def _loss(store: FileStore, file: File) -> str | None:
    """Return why the file is not the one that was listed; None if it is.

    Raises:
        FileReadError: the store does not answer.
    """
    try:
        now = store.stat(file.path)
    except OSError as error:
        raise FileReadError(
            f"cannot look at {file.path}: {text_of(error).rstrip('.')}. Check that its store can"
            " be reached, and that the credentials may read it"
        ) from error
    if now is None:
        return "was deleted"
    return None if now.identity == file.identity else "was changed"


def _lost(path: str, why: str, *, is_strict: bool) -> None:
    if is_strict:
        raise FileLostError(
            f"{path} {why}, after it was listed. Restore it, or set onLoss to Skip to continue"
            " without it"
        )
    import structlog

    structlog.get_logger(__name__).warning("a file is skipped", path=path, why=why)


def _constant(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value).cast(kind), count)
