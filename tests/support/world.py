"""A small world around the real code.

A broker that lists splits, stored documents, reader hosts, an operator.

Every step is explicit, so that tests (and the explorer) decide what happens next, what is lost, and
who crashes between which two effects. The code under test is the product's; only the outside is
made up here.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from balanced_source.api import CallFailure, Position, SplitId
from balanced_source.connectors.discovery import Alarm, Discover, Discovered, Initialize
from balanced_source.connectors.kafka import (
    EARLIEST,
    DiscoverKafka,
    InitializeKafka,
    KafkaCluster,
    KafkaPartitionSplit,
    KafkaSource,
    TopicPattern,
)
from balanced_source.coordinator import (
    CallCompleted,
    Checkpoint,
    Effect,
    Event,
    ExecuteCall,
    PersistState,
    PublishAssignment,
    ReportReceived,
    SourceCoordinator,
    state_codec,
)
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.documents import stream_offset
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import TransientDiscoveryError
from balanced_source.host import Phase, ReaderHost, handed_on, plan

UID = "uid-1"


def kafka_source(*clusters: str, **changes: Any) -> KafkaSource:
    """A source over made-up clusters that subscribes to every topic."""
    values: dict[str, Any] = {
        "clusters": tuple(
            KafkaCluster(name=c, bootstrap_servers="nowhere:1") for c in clusters or ("c",)
        ),
        "subscriber": TopicPattern(".*"),
        "starting_offsets": EARLIEST,
    }
    return KafkaSource(**{**values, **changes})


def partition_split(
    split_id: SplitId, offset: int = 5, *, stop: int | None = None, topic_id: str | None = None
) -> KafkaPartitionSplit:
    """The split of a partition, named by its id."""
    cluster, topic, partition = split_id
    return KafkaPartitionSplit(
        cluster=str(cluster),
        topic=str(topic),
        partition=int(partition),
        offset=offset,
        stopping_offset=stop,
        topic_id=topic_id,
    )


@dataclass
class Broker:
    """What exists outside: splits with their first and next offsets."""

    ends: dict[SplitId, int] = field(default_factory=dict)
    begins: dict[SplitId, int] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    topic_ids: dict[tuple[str, str], str] = field(default_factory=dict)
    refused: set[SplitId] = field(default_factory=set)
    is_bounded: bool = False

    def create(
        self, cluster: str, topic: str, partitions: Iterable[int], *, begin: int = 0, end: int = 0
    ) -> None:
        for p in partitions:
            self.begins.setdefault((cluster, topic, p), begin)
            self.ends.setdefault((cluster, topic, p), end)

    def delete(self, split_ids: Collection[SplitId]) -> None:
        for split_id in split_ids:
            del self.ends[split_id], self.begins[split_id]

    def execute(self, call: Any) -> Any:
        """What an adapter with a client would answer."""
        if isinstance(call, Alarm):
            return None
        assert isinstance(call, Discover | Initialize)
        if call.scope in self.down:
            return CallFailure(TransientDiscoveryError(f"{call.scope} is down", scope=call.scope))
        if isinstance(call, DiscoverKafka):
            listed = frozenset(
                s
                for s in self.ends
                if s[0] == call.scope and call.subscriber.subscribes(str(s[1]), int(s[2]))
            )
            listed = frozenset(s for s in listed if s[:2] not in self.refused)
            topics = {s: (str(s[0]), str(s[1])) for s in listed}
            identities = {
                s: self.topic_ids[topic] for s, topic in topics.items() if topic in self.topic_ids
            }
            return replace(
                self._missing(call, listed),
                split_ids=listed,
                identities=identities,
                refused=frozenset(self.refused),
            )
        assert isinstance(call, InitializeKafka)
        return self._started(call)

    def _missing(self, call: DiscoverKafka, listed: frozenset[SplitId]) -> Discovered:
        """What is missing of what the user names; a pattern that matches nothing is no problem."""
        if call.subscriber.topics is None:
            return Discovered(split_ids=listed)
        partitions: dict[str, frozenset[int]] = {}
        for s in listed:
            partitions[str(s[1])] = partitions.get(str(s[1]), frozenset()) | {int(s[2])}
        refused = [str(head[1]) for head in self.refused]
        return call.subscriber.select(call.scope, partitions, refused)

    def _started(self, call: InitializeKafka) -> list[KafkaPartitionSplit]:
        table = self.begins if call.starting_offsets == EARLIEST else self.ends
        return [
            KafkaPartitionSplit(
                cluster=str(s[0]),
                topic=str(s[1]),
                partition=int(s[2]),
                offset=table[s],
                stopping_offset=self.ends[s] if self.is_bounded else None,
                topic_id=self.topic_ids.get((str(s[0]), str(s[1]))),
            )
            for s in call.split_ids
            if s in table
        ]


@dataclass
class Store:
    """Documents as text, so that the codecs are always part of the test."""

    state: str | None = None
    assignment: str | None = None
    reports: dict[str, str] = field(default_factory=dict)


class CrashError(Exception):
    """The operator dies here."""


@dataclass
class Operator:
    """Runs a coordinator the way the runtime does.

    Effects one after another, calls answered when the test says so.
    """

    source: KafkaSource
    store: Store
    broker: Broker
    parallelism: int = 2
    hosts: tuple[str, ...] = ("0",)
    now: float = 0.0
    crash_before_effect: int | None = None
    coordinator: SourceCoordinator[Any, Any] = field(init=False)
    calls: list[ExecuteCall] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    """The texts of `facts`."""
    published: list[Assignment] = field(default_factory=list)

    def start(self) -> None:
        """Start, or start again, from what is stored."""
        restored: Checkpoint[Any, Any] | None = None
        if self.store.state is not None:
            restored = state_codec.decode(self.store.state, self.source, uid=UID)
        self.calls = []
        self.coordinator = SourceCoordinator(
            self.source,
            parallelism=self.parallelism,
            hosts=self.hosts,
            restored=restored,
            lineage=self._lineage(),
            published=self._published(),
        )
        self._do(self.coordinator.start(now=self.now))
        self.see_reports()

    def _lineage(self) -> int:
        """One more than any that was ever seen, should the state have been lost."""
        seen = [
            report_document.decode(text, source=UID).lineage for text in self.store.reports.values()
        ]
        seen += [former.lineage] if (former := self._published()) is not None else []
        return max(seen, default=0) + 1

    def _published(self) -> Assignment | None:
        text = self.store.assignment
        return assignment_document.decode(text, source=UID) if text is not None else None

    def handle(self, event: Event) -> None:
        self._do(self.coordinator.handle(event, now=self.now))

    def see_reports(self) -> None:
        for text in list(self.store.reports.values()):
            self.handle(ReportReceived(report_document.decode(text, source=UID)))

    def answer(self, *, delayed: bool = False) -> None:
        """Execute the calls that are due, and those that they lead to.

        Delayed ones only when asked, once.
        """
        todo, self.calls = self.calls, []
        for call in todo:
            if call.delay > 0 and not delayed:
                self.calls.append(call)
                continue
            if delayed:
                self.now += call.delay
            self.handle(CallCompleted(call.call_id, self.broker.execute(call.call)))
        if any(call.delay == 0 for call in self.calls):
            self.answer()

    def _do(self, effects: list[Effect]) -> None:
        for number, effect in enumerate(effects):
            if self.crash_before_effect == number:
                raise CrashError
            match effect:
                case PersistState():
                    self.store.state = state_codec.encode(effect.checkpoint, self.source, uid=UID)
                case PublishAssignment():
                    self.store.assignment = assignment_document.encode(
                        effect.assignment, source=UID
                    )
                    self.published.append(effect.assignment)
                case ExecuteCall():
                    self.calls.append(effect)
                case _:
                    self.facts.append(effect.reason)
                    self.messages.append(effect.message)


@dataclass
class Driver:
    """A Spark driver with its checkpoint.

    Runs micro-batches, may die at any point, comes back with the checkpoint.
    """

    store: Store
    broker: Broker
    name: str = "0"
    offsets: list[dict[str, Any]] = field(default_factory=list)  # Spark's offset log
    committed: int = 0  # batches in the commit log
    delivered: dict[tuple[SplitId, int], int] = field(default_factory=dict)
    readers_used: list[int] = field(default_factory=list)
    host: ReaderHost = field(default_factory=lambda: ReaderHost(incarnation=0))
    sequence: int = 0
    metrics: dict[str, Any] = field(default_factory=dict)
    all_hosts: list["Driver"] = field(default_factory=list)
    """Drivers whose checkpoints lie beside this one's."""

    def start(self) -> None:
        """A new attempt.

        Takes the next incarnation, replays what is logged but not committed, then registers.
        """
        seen, former = [0], None
        if (text := self.store.reports.get(self.name)) is not None:
            former = report_document.decode(text, source=UID)
            seen.append(former.incarnation)
        if self.store.assignment is not None:
            seen.append(
                assignment_document.decode(self.store.assignment, source=UID).incarnations.get(
                    self.name, 0
                )
            )
        self.host = ReaderHost(
            name=self.name,
            incarnation=max(seen) + 1,
            former_hosts=tuple(
                driver.name
                for driver in self.all_hosts
                if driver.name != self.name and driver.holds_splits
            ),
        )
        self.sequence = 0
        if self.committed < len(self.offsets):
            self._run(self.committed)
        self.host = replace(self.host, former=handed_on(former, self._last_offset()))
        self._latest()

    def see_assignment(self) -> None:
        if self.store.assignment is not None:
            before = self.host.lineage
            self.host = self.host.on_assignment(
                assignment_document.decode(self.store.assignment, source=UID)
            )
            if self.host.lineage != before:
                self._latest() if self.host.phase is Phase.STARTING else self.report()

    def batch(self, *, upto: Mapping[SplitId, int] | None = None, die: str | None = None) -> bool:
        """One trigger; True if a micro-batch ran. `die` stops after 'logged' or 'delivered'."""
        start = self._latest()
        host, base = self.host.base()
        self.host = host
        if base is None:
            return False
        ends = {
            s: max(int(p or 0), (upto or self.broker.ends).get(s, int(p or 0)))
            for s, p in base.positions.items()
        }
        end = replace(base, positions=ends)
        if stream_offset.to_json(end) == stream_offset.to_json(start):
            return False
        if end.epoch == start.epoch and end.positions == start.positions:
            return False
        self.offsets.append(stream_offset.to_json(end))
        if die == "logged":
            return True
        self._run(self.committed, commit=die != "delivered")
        return True

    def report(self) -> HostReport | None:
        self.sequence += 1
        report = self.host.report(sequence=self.sequence, metrics=self.metrics)
        if report is not None:
            self.store.reports[self.name] = report_document.encode(report, source=UID)
        return report

    @property
    def holds_splits(self) -> bool:
        """Whether the checkpoint has any."""
        last = self._last_offset()
        return bool(last.positions or last.retained)

    @property
    def planned(self) -> Mapping[SplitId, int]:
        """Split → reader, of the newest micro-batch that is logged."""
        return self._last_offset().owners

    def position(self, split_id: SplitId) -> Position:
        return self._last_offset().positions.get(split_id)

    def _latest(self) -> StreamOffset:
        offset = self._last_offset()
        self.host = self.host.on_committed(offset)
        self.report()
        return offset

    def _last_offset(self) -> StreamOffset:
        return stream_offset.from_json(self.offsets[-1]) if self.offsets else StreamOffset()

    def _run(self, number: int, *, commit: bool = True) -> None:
        start = stream_offset.from_json(self.offsets[number - 1]) if number else StreamOffset()
        end = stream_offset.from_json(self.offsets[number])
        plans = plan(start, end)
        if self.host.phase is not Phase.STARTING:
            self.host = self.host.on_planned(end)
        self.readers_used = [p.subtask_id for p in plans]
        for reader in plans:
            for piece in reader.ranges:
                for offset in range(int(piece.start or 0), int(piece.end or 0)):
                    self._deliver((piece.split_id, offset), number)
        if commit:
            self.committed = number + 1

    def _deliver(self, record: tuple[SplitId, int], batch: int) -> None:
        """An idempotent sink: the same batch may write a record again; two batches must not."""
        assert self.delivered.setdefault(record, batch) == batch, (
            f"{record} in batches {self.delivered[record]}, {batch}"
        )
