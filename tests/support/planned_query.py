"""A query on the real planner without Spark.

An offset log, a commit log, and steps at which it may die.

The coordinator runs embedded in the driver. Brokers are the made-up ones of `support.world`. Tasks
read from them what their ranges say; the sink is idempotent, as the packaged ones are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaCluster, KafkaSource
from balanced_source.documents import stream_offset
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.ends import Mark, SplitEnd, doubtful
from balanced_source_spark.channels.embedded import EmbeddedChannel
from balanced_source_spark.ends import Ends
from balanced_source_spark.host_runtime import HostRuntime
from balanced_source_spark.options import Options
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.planner import StreamPlanner
from balanced_source_spark.stream_reader import UNLIMITED
from support.world import Broker
from testbed.waiting import wait_until

Record = tuple[SplitId, str | None, int]
"""Split, id of its topic, offset."""

LOGGED: Final = "logged"
DELIVERED: Final = "delivered"


@dataclass
class BrokerAdmin:
    """Answers the planner's questions from a made-up broker; see `KafkaAdmin`."""

    broker: Broker

    cuts: dict[SplitId, int] = field(default_factory=dict)
    term: int = 0
    answers_checks: bool = True

    def ends(
        self, cluster: KafkaCluster, split_ids: Iterable[SplitId], marks: Mapping[SplitId, Mark]
    ) -> dict[SplitId, SplitEnd]:
        answers = {s: self._answer(s) for s in split_ids if s in self.broker.ends}
        suspects = doubtful(marks, answers) if self.answers_checks else {}
        return answers | {s: self._checked(answers[s], mark, s) for s, mark in suspects.items()}

    def close(self) -> None:
        """Nothing is open."""

    def cut(self, split_id: SplitId, at: int, *, end: int) -> None:
        """The log loses its tail under a new leader, and gets other records."""
        self.term += 1
        self.cuts[split_id] = at
        self.broker.ends[split_id] = end

    def _answer(self, split_id: SplitId) -> SplitEnd:
        identity = self.broker.topic_ids.get((str(split_id[0]), str(split_id[1])))
        return SplitEnd(end=self.broker.ends[split_id], identity=identity, term=self.term)

    def _checked(self, answer: SplitEnd, mark: Mark, split_id: SplitId) -> SplitEnd:
        is_older = mark.term is not None and mark.term < self.term
        cut = self.cuts.get(split_id, mark.position) if is_older else answer.end
        return replace(answer, checked=mark, cut=cut if cut < mark.position else None)

    def begins(self, cluster: KafkaCluster, split_ids: Iterable[SplitId]) -> dict[SplitId, int]:
        return {s: self.broker.begins[s] for s in split_ids if s in self.broker.begins}


@dataclass
class PlannedQuery:
    """A query with its checkpoint.

    Attributes:
        source: what the coordinator reads.
        broker: what there is to read.
        options: of the query; `embedded` is not needed.
        batches: number → records that the sink has of the micro-batch.
    """

    source: KafkaSource
    broker: Broker
    options: Options = field(default_factory=lambda: Options(start_timeout=5.0))
    parallelism: int = 2
    batches: dict[int, list[Record]] = field(default_factory=dict)
    offsets: list[dict[str, Any]] = field(default_factory=list)
    committed: int = 0
    admin: BrokerAdmin = field(init=False)
    planner: StreamPlanner = field(init=False)
    hooks: Any = field(init=False)
    channel: EmbeddedChannel = field(init=False)

    def __post_init__(self) -> None:
        self.admin = BrokerAdmin(self.broker)
        self.start()

    @property
    def records(self) -> Counter[Record]:
        """All that the sink has."""
        return Counter(record for records in self.batches.values() for record in records)

    @property
    def last(self) -> StreamOffset:
        """The newest logged offset."""
        return stream_offset.from_json(self.offsets[-1]) if self.offsets else StreamOffset()

    def start(self) -> None:
        """A new driver with the checkpoint: replays what is logged but not committed."""
        self.channel = EmbeddedChannel(
            self.source, self.broker.execute, parallelism=self.parallelism, confirm=0.0
        )
        self.planner = StreamPlanner(self.options)
        self.hooks = self.planner._hooks
        self.planner.__dict__["_runtime"] = HostRuntime(
            self.channel, gate=self.planner._gate, with_former=self.hooks.with_former
        )
        self.hooks._made.__dict__["_admin"] = self.admin
        self.planner.__dict__["_ends"] = Ends(self.planner._ask_ends, fresh=0.0, gone=0.05)
        if self.committed < len(self.offsets):
            self._run(die=None)

    def restart(self) -> None:
        """The driver dies and comes back."""
        self.planner.stop()
        self.start()

    def once(self) -> bool:
        """Runs the micro-batch of ``trigger(once=True)``."""
        return self.trigger(limit=ReadAllAvailable())

    def available_now(self) -> None:
        """Runs the micro-batches of ``trigger(availableNow=True)``."""
        self.planner.prepareForTriggerAvailableNow()
        while self.trigger():
            pass

    def trigger(self, *, die: str | None = None, limit: ReadLimit = UNLIMITED) -> bool:
        """Runs one micro-batch if there is any; returns whether there was.

        Args:
            limit: what Spark passes.
            die: the driver dies when the offset is `LOGGED`, or when the records are `DELIVERED`,
                and comes back.
        """
        start = self.offsets[-1] if self.offsets else self.planner.initialOffset()
        end = self.planner.latestOffset(start, limit)
        if end == start and self.offsets:
            return False  # the first micro-batch runs in any case
        self.offsets.append(end)
        if die != LOGGED:
            self._run(die=die)
        if die is not None:
            self.restart()
        return True

    def trigger_until(
        self, condition: Callable[[], bool], what: str, *, timeout: float = 20
    ) -> None:
        """Triggers until a condition holds."""
        wait_until(lambda: (self.trigger(), condition())[1], timeout, what, interval=0.01)

    def close(self) -> None:
        self.planner.stop()

    def _run(self, *, die: str | None) -> None:
        number = self.committed
        start = self.offsets[number - 1] if number else self.planner.initialOffset()
        planned = self.planner.partitions(start, self.offsets[number])
        self.batches[number] = [record for part in planned for record in self._read(part)]
        if die != DELIVERED:
            self.committed = number + 1

    def _read(self, partition: Any) -> Iterable[Record]:
        assert isinstance(partition, ReaderPartition)
        for piece in partition.ranges:
            topic = self.broker.topic_ids.get((str(piece.split_id[0]), str(piece.split_id[1])))
            if piece.split_id not in self.broker.ends:
                continue  # tasks skip what was deleted, if they may
            first = max(int(piece.start or 0), self.broker.begins[piece.split_id])
            for offset in range(first, int(piece.end or 0)):
                assert offset < self.broker.ends[piece.split_id], f"{piece} is not there"
                yield piece.split_id, topic, offset


def all_of(broker: Broker, begins: Mapping[SplitId, int] | None = None) -> Counter[Record]:
    """Every record that a broker has, once."""
    return Counter(
        (s, broker.topic_ids.get((str(s[0]), str(s[1]))), offset)
        for s, end in broker.ends.items()
        for offset in range((begins or broker.begins)[s], end)
    )
