"""Reads shards: a split reader for any number of them, and the source reader of a task."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import dropwhile
from typing import Final, Protocol

from balanced_source.api import (
    RecordEmitter,
    SourceOutput,
    SourceReaderContext,
    SplitId,
    SplitReader,
    SplitsAddition,
    SplitsChange,
)
from balanced_source.connectors.kinesis import OnShardLoss, ShardSplit
from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source.reader import Fetchers, RecordsBySplits, SourceReaderBase, Threading
from balanced_source_adapters.fetchers import ThreadedFetchers
from balanced_source_adapters.kinesis.client import (
    BadPositionError,
    Batch,
    ExpiredCredentialsError,
    IteratorExpiredError,
    NotFoundError,
    Record,
    Summary,
    ThrottledError,
)
from balanced_source_adapters.kinesis.expiry import (
    begun_late,
    former_gone,
    is_late,
    is_near,
    was_empty,
)
from balanced_source_adapters.kinesis.fetches import FetchedUpTo, Fetches
from balanced_source_adapters.kinesis.shared import OF_PROCESS, ShardKey, SharedShards
from balanced_source_adapters.kinesis.summaries import Summaries
from balanced_source_adapters.lazy_log import get_logger

log = get_logger(__name__)

LIMIT: Final = 2000
"""Records of one request at most: a task that stops at its own limit should not have fetched much
more."""

PATIENCE: Final = 300.0
"""Seconds for which expired credentials may be renewed before the query ends: the files of a Secret
follow it after a minute or two."""

PAUSE: Final = 0.5
"""Seconds until a fetch without any shard that is due returns."""


class ShardClient(Protocol):
    """What reading needs of `balanced_source_adapters.kinesis.client.KinesisClient`; see there."""

    def summary(self, stream: str) -> Summary:
        """Return the identity of a stream."""
        ...

    def iterator(self, split: ShardSplit) -> str:
        """Return an iterator at the position of a split."""
        ...

    def records(self, stream: str, shard: str, iterator: str, limit: int) -> Batch:
        """Return the next records."""
        ...


@dataclass(slots=True)
class _Reading:
    """A shard that is being read.

    Attributes:
        split: at the position behind what was fetched.
        key: names the shard for all tasks of the process.
        iterator: to continue with; None: one is needed.
        former: sequence number of the record that was read last, which the iterator begins with
            once more; None: it begins behind.
        arrived: see `FetchedUpTo`.
        is_late: whether the shard was found so long ago that all it had then has expired, and
            nothing of it was read.
        is_whole: whether the shard had nothing more behind the position within the retention, so
            that nothing can have expired unread.
        retention: of its stream, in milliseconds; None: unknown.
    """

    split: ShardSplit
    key: ShardKey
    iterator: str | None = None
    former: int | None = None
    arrived: int | None = None
    is_late: bool = False
    is_whole: bool = False
    retention: int | None = None


class ShardReader(SplitReader[Record, ShardSplit]):
    """Reads one of its shards at a time: the one that is due first.

    A shard that is throttled, or a server that does not answer, only delays the shard. The
    enumerator asks the same server and tells people of lasting failures.

    Args:
        client: asks the service.
        server: names the server, for what tasks of a process share.
        on_loss: what happens when records are gone.
        shared: what tasks share.
        fetches: gets how far splits are.
        summaries: what readers of the task know of streams.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self,
        client: ShardClient,
        *,
        server: str = "",
        on_loss: OnShardLoss = OnShardLoss.FAIL,
        shared: SharedShards = OF_PROCESS,
        fetches: Fetches | None = None,
        summaries: Summaries | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._server, self._on_loss = client, server, on_loss
        self._shared, self._clock = shared, clock
        self._fetches = fetches or Fetches()
        self._next_tips: set[SplitId] = set()
        self._shards: dict[SplitId, _Reading] = {}
        self._paused: set[SplitId] = set()
        self._summaries = summaries or Summaries(clock)
        self._woken = threading.Event()

    def fetch(self) -> RecordsBySplits[Record]:
        # Only now: what the fetch before has brought can be polled, so silence means something.
        self._fetches.tips |= self._next_tips
        self._next_tips.clear()
        if ended := [
            s
            for s, reading in self._shards.items()
            if reading.split.is_finished and s not in self._paused
        ]:
            return self._ended(ended)
        due = {s: self._shared.due(r.key) for s, r in self._shards.items() if s not in self._paused}
        first = min(due, key=lambda s: (due[s], s), default=None)
        now = self._clock()
        if first is None or due[first] > now or not self._shared.take(self._shards[first].key, now):
            self._woken.wait(PAUSE if first is None else min(PAUSE, max(0.0, due[first] - now)))
            self._woken.clear()
            return RecordsBySplits()
        records, is_over = self._read(self._shards[first])
        if is_over:
            del self._shards[first]
        return RecordsBySplits({first: records} if records else {}, (first,) if is_over else ())

    def handle_splits_changes(self, change: SplitsChange[ShardSplit]) -> None:
        for split in change.splits:
            self._shards.pop(split.split_id, None)
            self._fetches.forget(split.split_id)
            self._next_tips.discard(split.split_id)
            self._paused.discard(split.split_id)
            if isinstance(change, SplitsAddition):
                self._shards[split.split_id] = self._begun(split)

    def pause_or_resume_splits(
        self, to_pause: Collection[ShardSplit], to_resume: Collection[ShardSplit]
    ) -> None:
        self._paused |= {split.split_id for split in to_pause}
        self._paused -= {split.split_id for split in to_resume}

    def wake_up(self) -> None:
        self._woken.set()

    def close(self) -> None:
        self._shards.clear()

    def _ended(self, split_ids: Collection[SplitId]) -> RecordsBySplits[Record]:
        for split_id in split_ids:
            del self._shards[split_id]
        return RecordsBySplits({}, split_ids)

    def _begun(self, split: ShardSplit) -> _Reading:
        key = (
            self._server,
            *split.split_id,
            str(split.created),
            str(split.time),
            str(split.sequence),
        )
        return _Reading(split=split, key=tuple(map(str, key)))

    # --- one shard --------------------------------------------------------------------------------

    def _read(self, reading: _Reading) -> tuple[list[Record], bool]:
        """Records of one request, and whether they are the last ones."""
        try:
            batch = self._asked(reading)
        except IteratorExpiredError:
            # All tasks of the process share iterators, and none of these lives any more.
            self._shared.forget(reading.key)
            self._doubt(reading)
            return [], False
        except ThrottledError as error:
            # The iterator still lives, and what is known of the stream still holds. To ask for them
            # again would take from the limits of other shards and streams.
            self._fetches.newest.pop(reading.split.split_id, None)
            self._put_off(reading, error)
            return [], False
        except ExpiredCredentialsError as error:
            if self._shared.refused_for(reading.key, now=self._clock()) >= PATIENCE:
                raise
            self._doubt(reading)
            self._put_off(reading, error)
            return [], False
        except (TransientDiscoveryError, NotFoundError) as error:
            self._doubt(reading)
            self._put_off(reading, error)
            return [], False
        return self._taken(reading, batch)

    def _put_off(self, reading: _Reading, error: Exception) -> None:
        delay = self._shared.has_failed(reading.key, now=self._clock())
        log.warning("a shard cannot be read now", why=str(error), again_in=delay)

    def _doubt(self, reading: _Reading) -> None:
        """After a failure the stream may be another one, and the lag of the shard is unknown."""
        reading.iterator = None
        self._fetches.newest.pop(reading.split.split_id, None)
        # A recreated stream answers with errors first, so the next request asks who it is.
        self._summaries.doubt(reading.split.stream)

    def _asked(self, reading: _Reading) -> Batch:
        if reading.iterator is None:
            self._get_iterator(reading)
        assert reading.iterator is not None  # noqa: S101 - the line before made it
        split = reading.split
        try:
            return self._client.records(split.stream, split.shard, reading.iterator, LIMIT)
        except BadPositionError as error:
            # Of a former stream: a task of this process has left the iterator, perhaps for another
            # query. A new one shows whether the position is wrong.
            self._shared.forget(reading.key)
            raise TransientDiscoveryError(str(error), scope=split.stream) from error

    def _get_iterator(self, reading: _Reading) -> None:
        split = reading.split
        reading.iterator = self._shared.iterator(reading.key, split.offset, self._clock())
        reading.former = None
        if reading.iterator is not None:
            return
        summary = self._checked_summary(split)
        tip = self._shared.tip(reading.key, split.offset)
        reading.is_whole = any(was_empty(when, summary) for when in (tip, split.read_up_to))
        reading.is_late = not split.offset and not reading.is_whole and is_late(split, summary)
        reading.retention = summary.retention
        # The iterator begins with the record that was read last: its return proves that none is
        # missing.
        reading.former = split.offset - 1 if split.offset else None
        try:
            reading.iterator = self._client.iterator(split)
        except BadPositionError as error:
            if not split.offset:  # the user's own start, which is wrong
                raise
            # Before the records of a new stream are taken for the rest of this one.
            self._summaries.doubt(split.stream)
            self._checked_summary(split)
            reading.iterator, reading.former = self._client.iterator(split.from_its_oldest()), None
            if not reading.is_whole:
                self._note_loss(split, former_gone(split, error), error)

    def _checked_summary(self, split: ShardSplit) -> Summary:
        """Return what the service says of a split's stream, which is still the same.

        Raises:
            NotFoundError: it was deleted and created again. The enumerator decides what that means.
        """
        summary = self._summaries.of(split.stream, self._client.summary)
        if split.created not in (None, summary.created):
            raise NotFoundError(
                f"stream {split.stream} was deleted and created again", scope=split.stream
            )
        return summary

    def _taken(self, reading: _Reading, batch: Batch) -> tuple[list[Record], bool]:
        split, now = reading.split, self._clock()
        found = self._new(reading, batch)
        if is_over := batch.iterator is None:
            self._check_end(reading)
        if found:
            reading.split, reading.arrived = split.at(found[-1].sequence + 1), found[-1].arrived
        self._fetches.note(reading.split, reading.arrived, batch.behind)
        is_idle = not batch.records and not batch.behind
        (self._fetches.tips.discard if batch.behind else self._next_tips.add)(split.split_id)
        size = sum(len(record.data) for record in batch.records)
        self._shared.has_read(reading.key, now=now, size=size, is_idle=is_idle)
        self._keep(reading, batch, now, is_new=bool(found))
        is_sure = reading.is_whole or (reading.former is None and not reading.is_late)
        if batch.behind == 0 and is_sure and batch.now is not None:
            self._shared.note_tip(reading.key, reading.split.offset, batch.now)
            self._fetches.read_up_to[split.split_id] = reading.split.offset, batch.now
        records = [record for record in found if record.sequence < split.stop]
        if len(records) < len(found) or (found and reading.split.is_finished):
            is_over = True
        return records, is_over

    def _keep(self, reading: _Reading, batch: Batch, now: float, *, is_new: bool) -> None:
        """Keep the iterator of an answer for the next read, of this task or of another one."""
        # Only a new one begins with the record that was read last, and shows that none is missing.
        # Where nothing is between two records for long, a new one would never come to its end.
        if is_new and is_near(batch, reading.arrived, reading.retention):
            reading.iterator = None
            return
        reading.iterator = batch.iterator
        # Until a record has come, the iterator begins with the former one: the next task, which
        # does not expect that, would emit it again.
        if batch.iterator is not None and reading.former is None and not reading.is_late:
            self._shared.keep(reading.key, reading.split.offset, batch.iterator, now)

    def _new(self, reading: _Reading, batch: Batch) -> tuple[Record, ...]:
        """The records that were not read before. The first one shows whether any is missing."""
        if not batch.records:
            return batch.records
        # Only now: a shard without records has lost none.
        if reading.is_late:
            reading.is_late = False
            self._note_loss(reading.split, begun_late(reading.split))
        if reading.former is None:
            return _behind(reading.split, batch.records)
        former, reading.former = reading.former, None
        if batch.records[0].sequence == former:
            return batch.records[1:]
        if not reading.is_whole:
            self._note_loss(reading.split, former_gone(reading.split))
        return tuple(record for record in batch.records if record.sequence > former)

    def _check_end(self, reading: _Reading) -> None:
        """Check that nothing is missing at the end of a closed shard: no further record tells."""
        if reading.is_late:
            self._note_loss(reading.split, begun_late(reading.split))
        elif reading.former is not None and not reading.is_whole:
            self._note_loss(reading.split, former_gone(reading.split))

    def _note_loss(self, split: ShardSplit, text: str, error: Exception | None = None) -> None:
        """Records that were not read may have expired.

        Raises:
            RefusedDiscoveryError: the user does not accept that.
        """
        if self._on_loss is OnShardLoss.FAIL:
            raise RefusedDiscoveryError(
                f"{text}. Set onDataLoss to Continue to read on from the oldest record",
                scope=split.stream,
            ) from error
        log.warning(text)
        self._fetches.gaps[split.split_id] += 1


def _behind(split: ShardSplit, records: tuple[Record, ...]) -> tuple[Record, ...]:
    """Return the records from the position on, or from the time where reading starts."""
    if split.offset:
        # None is before it, unless the service did not know the position.
        is_first = records[0].sequence >= split.offset
        return records if is_first else tuple(r for r in records if r.sequence >= split.offset)
    # The client may send whole seconds.
    since = (split.time or 0) * 1000
    return tuple(dropwhile(lambda record: record.arrived < since, records))


@dataclass(slots=True)
class ShardState:
    """A shard, and what was emitted of it.

    Attributes:
        split: at the position behind that.
        arrived: when the last emitted record arrived, in microseconds since the epoch; None before
            the first one.
    """

    split: ShardSplit
    arrived: int | None = None

    def millis_behind(self, fetched: FetchedUpTo) -> int | None:
        """Return how far the shard is behind its newest record; None: unknown.

        Args:
            fetched: its newest fetch. What of it was not emitted yet is behind, too.
        """
        # All that was fetched is emitted: the service's own figure is exact.
        if fetched.position == self.split.offset:
            return fetched.behind
        if fetched.arrived is None or self.arrived is None:
            return None
        return fetched.behind + max(0, fetched.arrived - self.arrived) // 1000


class RecordCollector(RecordEmitter[Record, Record, ShardState]):
    """A record of a shard is a record."""

    def emit_record(
        self, element: Record, output: SourceOutput[Record], split_state: ShardState
    ) -> None:
        output.collect(element, element.arrived // 1000)
        split_state.split = split_state.split.at(element.sequence + 1)
        split_state.arrived = element.arrived


class KinesisReader(SourceReaderBase[Record, Record, ShardSplit, ShardState]):
    """Reads the shards of one reader.

    Args:
        context: of the reader.
        fetchers: drive the readers of shards.
        fetches: see `Fetches`.
    """

    def __init__(
        self,
        context: SourceReaderContext,
        fetchers: Fetchers[Record, ShardSplit],
        fetches: Fetches | None = None,
    ) -> None:
        super().__init__(context, fetchers, RecordCollector())
        self._fetches = fetches or Fetches()

    def is_catching_up(self) -> bool:
        """Whether a shard was not read yet, or is behind.

        The service may answer without records in between.
        """
        return (
            any(split_id not in self._fetches.tips for split_id in self._states)
            or self.is_available()
        )

    def millis_behind(self) -> Mapping[SplitId, int]:
        newest = {
            s: fetched for s in self._states if (fetched := self._fetches.newest.get(s)) is not None
        }
        found = {s: self._states[s].millis_behind(fetched) for s, fetched in newest.items()}
        return {s: millis for s, millis in found.items() if millis is not None}

    def skipped_gaps(self) -> Mapping[SplitId, int]:
        return dict(self._fetches.gaps)

    def initialized_state(self, split: ShardSplit) -> ShardState:
        return ShardState(split)

    def to_split(self, split_id: SplitId, state: ShardState) -> ShardSplit:
        position, time = self._fetches.read_up_to.get(split_id, (None, None))
        # Only if all is emitted that was fetched before.
        return (
            replace(state.split, read_up_to=time) if position == state.split.offset else state.split
        )


def threaded(
    context: SourceReaderContext, client: ShardClient, *, server: str, on_loss: OnShardLoss
) -> KinesisReader:
    """Return a reader with a thread for each shard; see `ShardReader` for the arguments."""
    fetches, summaries = Fetches(), Summaries(time.monotonic)

    def make_reader() -> ShardReader:
        return ShardReader(
            client, server=server, on_loss=on_loss, fetches=fetches, summaries=summaries
        )

    fetchers = ThreadedFetchers(
        make_reader, Threading.ONE_PER_SPLIT, notify=context.notify_available
    )
    return KinesisReader(context, fetchers, fetches)
