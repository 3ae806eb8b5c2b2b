"""A query that is read with a journal, on the real planner and tasks without Spark.

Offset log, commit log, deaths.
"""

import enum
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from balanced_source.documents import stream_offset
from balanced_source.documents.journal import FetchLimits
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.journal import JournalStore
from balanced_source_spark.channels.embedded import EmbeddedChannel
from balanced_source_spark.ends import Ends
from balanced_source_spark.host_runtime import HostRuntime
from balanced_source_spark.journal.planner import JournalPlanner
from balanced_source_spark.journal.task import JournalTaskReader
from balanced_source_spark.journal_options import JournalOptions
from balanced_source_spark.journal_stores.folder import FolderJournal
from balanced_source_spark.options import AlignmentOptions, Options, query_of
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.stream_reader import UNLIMITED
from support.tapes import Record, TapeHalf, TapeSource
from testbed.waiting import wait_until


class Death(enum.Enum):
    """After which step the driver dies, with all its tasks."""

    LOGGED = "the offset is logged"
    SEALED = "one task has sealed its range, and nothing is delivered"
    DELIVERED = "the rows are delivered, and the micro-batch is not committed"


@dataclass
class JournalQuery:
    """See the module.

    Attributes:
        folder: of the journal.
        store: where the journal is instead.
        half: of the connector.
        batches: number → rows that the sink has of the micro-batch; what is delivered again
            replaces it.
        attempts: number → what each delivery of the micro-batch brought.
        skips: whether a task is left out by the query's action.
    """

    folder: Path
    half: TapeHalf
    source: TapeSource = field(default_factory=TapeSource)
    parallelism: int = 2
    max_records: int | None = 5
    poll_interval: float = 0.0
    min_batches: int = 100
    end_after: float | None = None
    alignment: AlignmentOptions | None = None
    batches: dict[int, list[Record]] = field(default_factory=dict)
    attempts: dict[int, list[list[Record]]] = field(default_factory=dict)
    store: JournalStore | None = None
    offsets: list[dict[str, Any]] = field(default_factory=list)
    committed: int = 0
    skips: bool = False
    is_asynchronous: bool = False
    planner: JournalPlanner = field(init=False)
    channel: EmbeddedChannel = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    @property
    def options(self) -> Options:
        """Of the query."""
        limits = FetchLimits(max_records=self.max_records, max_millis=5000, wait_millis=20)
        made = JournalOptions(
            store=self.store or FolderJournal(self.folder),
            limits=limits,
            poll_interval=self.poll_interval,
            min_batches=self.min_batches,
            end_after=self.end_after,
        )
        return Options(connector="tapes", start_timeout=5.0, journal=made, alignment=self.alignment)

    @property
    def records(self) -> Counter[Record]:
        """All that the sink has."""
        return Counter(record for records in self.batches.values() for record in records)

    @property
    def last(self) -> StreamOffset:
        """The newest logged offset."""
        return stream_offset.from_json(self.offsets[-1])

    @property
    def told(self) -> dict[str, Any]:
        """What the query's progress says of the newest micro-batch."""
        return self.planner._shown

    def start(self) -> None:
        """A new driver with the checkpoint: replays what is logged but not committed."""
        self.channel = EmbeddedChannel(
            self.source, self.half.shelf.execute, parallelism=self.parallelism, confirm=0.0
        )
        self.planner = _Planner(self.options, self.half)
        runtime = HostRuntime(self.channel, gate=self.planner._gate)
        self.planner.__dict__["_runtime"] = runtime
        self.planner.__dict__["_ends"] = Ends(self.planner._ask_ends, fresh=0.0)
        if self.committed < len(self.offsets):
            self._run(die=None)

    def restart(self) -> None:
        """The driver dies and comes back."""
        self.planner.stop()
        self.start()

    def trigger(self, *, die: Death | None = None, limit: ReadLimit = UNLIMITED) -> bool:
        """Run one micro-batch if there is any; return whether there was."""
        start = self.offsets[-1] if self.offsets else self.planner.initialOffset()
        end = self.planner.latestOffset(start, limit)
        if end == start:
            return False
        self.offsets.append(end)
        if len(self.offsets) > 1 and not self.is_asynchronous:
            self.planner.commit(self.offsets[-2])
        if die is not Death.LOGGED:
            self._run(die=die)
        if die is not None:
            self.restart()
        return True

    def once(self) -> bool:
        """Run the micro-batch of ``trigger(once=True)``."""
        return self.trigger(limit=ReadAllAvailable())

    def trigger_until(self, condition: Callable[[], bool], what: str) -> None:
        """Trigger until a condition holds."""
        wait_until(lambda: (self.trigger(), condition())[1], 30, what, interval=0.01)

    def read_all(self) -> None:
        """Trigger until the sink has everything, then check that it has it once."""
        self.trigger_until(lambda: self.records.keys() >= self.half.shelf.records(), "all records")
        assert self.records == Counter(self.half.shelf.records())

    def partitions(self, number: int) -> list[ReaderPartition]:
        """Tasks of a logged micro-batch."""
        start = self.offsets[number - 1] if number else self.planner.initialOffset()
        planned = self.planner.partitions(start, self.offsets[number])
        return [part for part in planned if isinstance(part, ReaderPartition)]

    def read(self, partition: ReaderPartition) -> list[Record]:
        """Run one task."""
        reader = JournalTaskReader(self.half, query_of(self.options), self.options.connector)
        rows = [row for batch in reader.read(partition) for row in batch.to_pylist()]
        return [(row["tape"], row["number"]) for row in rows]

    def problems(self) -> list[str]:
        """Messages that the driver reports."""
        return [problem.message for problem in self.planner._runtime.problems]

    def close(self) -> None:
        """End it."""
        self.planner.stop()

    def _run(self, *, die: Death | None) -> None:
        number = self.committed
        parts = self.partitions(number)
        if die is Death.SEALED:
            for part in parts[:1]:
                self.read(part)
            return
        rows = [] if self.skips else [record for part in parts for record in self.read(part)]
        self.batches[number] = rows
        self.attempts.setdefault(number, []).append(sorted(rows))
        if die is not Death.DELIVERED:
            self.committed = number + 1


Make = Callable[..., JournalQuery]
"""Makes a query with a journal; see the fixture `make`."""


class _Planner(JournalPlanner):
    """The planner with a half that no package registers."""

    def __init__(self, options: Options, half: TapeHalf) -> None:
        self.__dict__["_half"] = half
        super().__init__(replace(options))
