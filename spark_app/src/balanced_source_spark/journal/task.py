"""What a task unpickles: it seals where it stops, then emits.

It imports what reading needs and no more.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import pyarrow as pa

from balanced_source.api import Position, SplitId
from balanced_source.documents.journal import JournalRecord, RecordKey
from balanced_source.errors import ContractViolationError
from balanced_source.host.journal import Attempt, run
from balanced_source.host.journaling import Share, stops_of
from balanced_source_spark.contract.checked_tasks import checked_half
from balanced_source_spark.contract.half import Query
from balanced_source_spark.contract.mistakes import attributed
from balanced_source_spark.contract.readers import ReadersHalf
from balanced_source_spark.journal.reading import Reading, fetch, read_again
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.plain_errors import plain_errors


@dataclass(frozen=True, slots=True)
class JournalTaskReader:
    """See `balanced_source_spark.contract.half.TaskReader`.

    Attributes:
        half: of the connector.
        query: see `Query`.
        connector: its kind.
    """

    half: ReadersHalf[Any, Any, Any]
    query: Query[Any]
    connector: str

    def read(self, partition: ReaderPartition) -> Iterator[pa.RecordBatch]:
        """Return what the first attempt that sealed has fetched, whichever attempt this is."""
        with plain_errors(), attributed(self.connector):
            yield from self._read(partition)

    def _read(self, partition: ReaderPartition) -> Iterator[pa.RecordBatch]:
        share = partition.share
        if share is None or not share.starts:
            return
        if self.query.journal is None:
            raise ContractViolationError("a task has a share and no journal")
        with _Once(self, share, partition) as fetched:
            # Whichever attempt sealed first decides: all others emit that range.
            emit = run(Attempt(key=share.key), self.query.journal, fetched)
            share.check(emit.record)
            # This attempt has sealed, and its buffer is the sealed range.
            if emit.is_buffered:
                yield from fetched.reading.buffer.batches()
                return
        yield from self._again(share, emit.record, partition)

    def _again(
        self, share: Share, record: JournalRecord, partition: ReaderPartition
    ) -> Iterator[pa.RecordBatch]:
        if not record.starts:
            return
        # From the record and not from the share: it names only the splits that were read.
        sealed = replace(share, starts=record.starts, beyond=None)
        stops = stops_of(record)
        # An end that is sealed is not disputed any more.
        with self.reading(replace(partition, may_end=True), sealed, stops) as reading:
            yield from read_again(
                reading,
                record,
                connector=self.connector,
                may_skip=partial(self._may_skip, partition),
            )

    def reading(
        self, partition: ReaderPartition, share: Share, stops: Mapping[SplitId, Position]
    ) -> Reading:
        """Return the connector's reader on the splits of a share."""
        return Reading(
            self._checked_half,
            self.query,
            partition.settings,
            share,
            stops,
            may_end=partition.may_end,
        )

    def _may_skip(self, partition: ReaderPartition) -> bool:
        half = self._checked_half
        return not half.is_replayable or half.may_skip(self.query, partition.settings)

    @property
    def _checked_half(self) -> ReadersHalf[Any, Any, Any]:
        return checked_half(self.half, self.connector)


class _Once:
    """Fetches when it is asked to: an attempt that finds a record reads that range alone."""

    def __init__(self, reader: JournalTaskReader, share: Share, partition: ReaderPartition) -> None:
        self._reader, self._share, self._partition = reader, share, partition
        self._reading: Reading | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._reading is not None:
            self._reading.__exit__()

    def __call__(self, key: RecordKey) -> JournalRecord:
        share = self._share
        self._reading = self._reader.reading(self._partition, share, share.targets or {})
        return fetch(self._reading.__enter__(), share.limits)

    @property
    def reading(self) -> Reading:
        """What was fetched; there is a reading if there is a buffer to emit."""
        # The caller was told that the buffer holds it
        assert self._reading is not None  # noqa: S101
        return self._reading
