"""The vocabulary of the scenarios.

A source, its operator and its readers on one stage, moved by plain verbs.

In Flink every reader registers, fails and returns by itself. Here readers live in hosts, and what
ships has one host that runs all readers: ``registers(0)`` starts it, and its readers come and go
together. Tests of `tests/unit/scenarios` run on such a stage and on one with a host per reader,
where it means the same as upstream's "reader 0 registers". All parts are the product's own,
documents and Spark checkpoints included; only broker, store and clock are made up
(`support.world`).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from balanced_source.api import AsyncCall, Boundedness, Position, RebalanceCause, SplitId
from balanced_source.assigners import AssignerIdentity, Placement, SplitAssigner
from balanced_source.connectors.discovery import Alarm, Discover, DiscoveringSplitEnumerator
from balanced_source.connectors.kafka import KafkaSource
from balanced_source.coordinator import (
    CallCompleted,
    CoordinatorState,
    HostLost,
    ParallelismChanged,
    RebalanceRequested,
    ReportReceived,
    SourceChanged,
)
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import stream_offset
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import StreamOffset
from support.world import UID, Broker, Driver, Operator, Store, kafka_source


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedKafkaSource(KafkaSource):
    """Each partition ends where it ended when it was discovered."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED


def bounded_source(*clusters: str, **changes: Any) -> BoundedKafkaSource:
    """A source that ends; discovery runs once."""
    plain = kafka_source(*clusters, **{"discovery_interval": None, **changes})
    return BoundedKafkaSource(
        **{name: getattr(plain, name) for name in KafkaSource.__dataclass_fields__}
    )


@dataclass(frozen=True)
class FixedOwners(SplitAssigner):
    """Owners as the test wants them."""

    wanted: Mapping[SplitId, int]

    @property
    def identity(self) -> AssignerIdentity:
        return AssignerIdentity(name="FixedOwners")

    def place(self, placement: Placement) -> dict[SplitId, int]:
        known = {*placement.owners, *placement.pending}
        return {s: o for s, o in self.wanted.items() if s in known and placement.owners.get(s) != o}


def splits(topic: str, count: int, *, cluster: str = "c", first: int = 0) -> list[SplitId]:
    """Ids of partitions."""
    return [(cluster, topic, partition) for partition in range(first, first + count)]


class Stage:
    """See the module. Verbs change something and return the stage; nouns tell what is there.

    Attributes:
        has_host_per_reader: whether each reader has a host of its own, unless a test says how many
            hosts there are.
    """

    has_host_per_reader = False

    def __init__(
        self, *, readers: int = 3, hosts: int | None = None, source: KafkaSource | None = None
    ) -> None:
        self.broker, self.store = Broker(), Store()
        names = tuple(
            str(number) for number in range(hosts or (readers if self.has_host_per_reader else 1))
        )
        source = source or kafka_source()
        self.broker.is_bounded = source.boundedness is Boundedness.BOUNDED
        self.operator = Operator(
            source=source, store=self.store, broker=self.broker, parallelism=readers, hosts=names
        )
        self.dead: set[str] = set()
        self.drivers = {name: self.new_driver(name) for name in names}

    def new_driver(self, name: str) -> Driver:
        """A driver of a host, with an empty checkpoint."""
        return Driver(store=self.store, broker=self.broker, name=name)

    # --- the world outside ------------------------------------------------------------------------

    def topic(
        self,
        name: str = "t",
        partitions: int = 1,
        *,
        cluster: str = "c",
        begin: int = 0,
        end: int = 10,
    ) -> Self:
        """A topic is created, or gets more partitions."""
        self.broker.create(cluster, name, range(partitions), begin=begin, end=end)
        return self

    def more(self, records: int) -> Self:
        """Every split gets records."""
        for split_id in self.broker.ends:
            self.broker.ends[split_id] += records
        return self

    def topic_deleted(self, name: str, *, cluster: str = "c") -> Self:
        self.broker.delete([s for s in self.broker.ends if s[:2] == (cluster, name)])
        return self

    def cluster_down(self, *clusters: str) -> Self:
        self.broker.down.update(clusters)
        return self

    def clusters_up(self) -> Self:
        self.broker.down.clear()
        return self

    def state_lost(self) -> Self:
        """Someone deleted the enumerator state; an assignment of former times is still there."""
        self.store.state = None
        if self.store.assignment is None:
            former = Assignment(
                epoch=1, parallelism=len(self.drivers), incarnations=dict.fromkeys(self.drivers, 0)
            )
            self.store.assignment = assignment_document.encode(former, source=UID)
        return self

    # --- the operator -----------------------------------------------------------------------------

    def operator_starts(self, source: KafkaSource | None = None) -> Self:
        """Start, or start again from what is stored; `source` is what the spec says by now."""
        self.operator.source = source or self.operator.source
        self.operator.start()
        return self

    def discovers(self) -> Self:
        """Calls that are due are answered.

        A discovery, then the start positions of what it found.
        """
        self.operator.answer()
        return self

    def answers(
        self, kind: type[AsyncCall], *, delayed: bool = False, takes_time: bool = True
    ) -> Self:
        """Only calls of one kind are answered, each once; what they lead to waits."""
        operator = self.operator
        todo = [
            call
            for call in operator.calls
            if isinstance(call.call, kind) and (delayed or call.delay == 0)
        ]
        operator.calls = [call for call in operator.calls if call not in todo]
        for call in todo:
            operator.now += call.delay if takes_time else 0.0
            operator.handle(CallCompleted(call.call_id, self.broker.execute(call.call)))
        return self

    def looks_again(self, times: int = 1) -> Self:
        """The discoveries that wait for their time are answered, and alarms.

        Each removal needs two of these.
        """
        for _ in range(times):
            self.answers(Discover, delayed=True).discovers()
            # it asks what time it is, and may come early
            self.answers(Alarm, delayed=True, takes_time=False)
        return self

    def rescales(self, readers: int) -> Self:
        self.operator.handle(ParallelismChanged(readers))
        return self

    def source_changes(self, source: KafkaSource) -> Self:
        self.operator.source = source
        self.operator.handle(SourceChanged(source))
        return self

    def moves(self, split_id: SplitId, reader: int) -> Self:
        """The policy wants a split somewhere else."""
        fixed = FixedOwners({**self.state.owners, split_id: reader})
        self._enumerator.source = replace(self.operator.source, assigner=fixed)
        return self.rebalances()

    def operator_hears(self, report: HostReport) -> Self:
        """A report arrives, however late."""
        self.operator.handle(ReportReceived(report))
        return self

    def rebalances(self) -> Self:
        self.operator.handle(RebalanceRequested(RebalanceCause.REQUESTED))
        return self

    # --- readers ----------------------------------------------------------------------------------

    def registers(self, host: int, **checkpoint: Any) -> Self:
        """A host starts.

        With its Spark checkpoint, or with the one that `checkpoint` describes (`holding`).
        """
        driver = self._driver(host)
        is_there = driver.host.incarnation and driver.name not in self.dead
        if is_there and len(self.drivers) == 1 and host and not checkpoint:
            return self  # it runs this reader too
        if checkpoint:
            offset = self._checkpoint(host, **checkpoint)
            driver.offsets, driver.committed = (
                ([stream_offset.to_json(offset)], 1) if offset else ([], 0)
            )
        self.dead.discard(driver.name)
        driver.start()
        driver.see_assignment()
        self.operator.see_reports()
        return self

    def all_register(self) -> Self:
        for name in self.drivers:
            self.registers(int(name))
        return self

    def fails(self, host: int) -> Self:
        """Its pods are gone, and the operator knows."""
        driver = self._driver(host)
        self.dead.add(driver.name)
        self.operator.handle(HostLost(driver.name, driver.host.incarnation))
        return self

    def adopts(self, *hosts: int) -> Self:
        """Hosts (all by default) run micro-batches with the newest assignment.

        They acknowledge it.
        """
        for name in dict.fromkeys(self._driver(host).name for host in hosts) or self.drivers:
            driver = self.drivers[name]
            driver.see_assignment()
            driver.batch()
            driver.batch()  # a commit is known when the next micro-batch is planned
            driver.report()
        self.operator.see_reports()
        return self

    def running(self) -> Self:
        """Everything starts, is assigned, and is acknowledged: where most stories begin."""
        return self.operator_starts().discovers().all_register().adopts()

    # --- what is there ----------------------------------------------------------------------------

    @property
    def _enumerator(self) -> DiscoveringSplitEnumerator[Any]:
        enumerator = self.operator.coordinator.enumerator
        assert isinstance(enumerator, DiscoveringSplitEnumerator)
        return enumerator

    @property
    def state(self) -> CoordinatorState[Any]:
        return self.operator.coordinator.state

    @property
    def assignment(self) -> Assignment:
        """The published document."""
        assert self.store.assignment is not None, "nothing was published"
        return assignment_document.decode(self.store.assignment, source=UID)

    @property
    def epoch(self) -> int:
        """Number of published changes; upstream counts its assignment calls."""
        return self.state.epoch

    def given(self, reader: int) -> set[SplitId]:
        """What a reader's host may read.

        Published, and addressed to the host's present incarnation.
        """
        if self.store.assignment is None:
            return set()
        document = self.assignment
        name = self.state.host_of(reader)
        if name in self.dead:
            return set()
        incarnation = self.drivers[name].host.incarnation
        if incarnation == 0 or document.incarnations[name] != incarnation:
            return set()
        return {s for s, owner in document.owners.items() if owner == reader}

    def owned(self, reader: int) -> set[SplitId]:
        """What is decided for a reader, whether it is there or not."""
        return {s for s, owner in self.state.owners.items() if owner == reader}

    @property
    def loads(self) -> list[int]:
        """Number of splits per reader, as decided."""
        counts = Counter(self.state.owners.values())
        return [counts[reader] for reader in range(self.state.parallelism)]

    @property
    def spread(self) -> int:
        return max(self.loads) - min(self.loads)

    def with_owner(self, reader: int) -> SplitId:
        """Some split of a reader."""
        return min(self.owned(reader))

    @property
    def pending(self) -> set[SplitId]:
        """Splits that are known and have no owner."""
        return set(self._enumerator.state.unassigned)

    @property
    def owners(self) -> Mapping[SplitId, int]:
        return dict(self.state.owners)

    def positions(self) -> dict[SplitId, Position]:
        """Of all owned splits, as known to the operator."""
        return {s: self.state.position(s) for s in self.state.owners}

    @property
    def told_no_more(self) -> set[int]:
        """Readers that were told that they get no further split."""
        return set(self.assignment.no_more_splits) if self.store.assignment is not None else set()

    @property
    def facts(self) -> list[str]:
        """Reasons of what was told to people so far."""
        return self.operator.facts

    def read(self, host: int) -> dict[SplitId, Position]:
        """What a host's Spark checkpoint holds."""
        return dict(self._driver(host)._last_offset().positions)

    def kept(self, host: int) -> dict[SplitId, Position]:
        """Positions that a host's Spark checkpoint keeps of splits that it does not read."""
        return dict(self._driver(host)._last_offset().retained)

    def watch(self, act: Callable[[], object]) -> list[Assignment]:
        """Every document that is published during `act`."""
        before = len(self.operator.published)
        act()
        return self.operator.published[before:]

    def _driver(self, host: int) -> Driver:
        """The driver of a host; where one host runs all readers, that of any reader."""
        return self.drivers[str(host % len(self.drivers))]

    # --- inside -----------------------------------------------------------------------------------

    def _checkpoint(
        self,
        host: int,
        *,
        holding: Mapping[SplitId, int],
        retaining: Mapping[SplitId, int] | None = None,
        epoch: int = 1,
    ) -> StreamOffset | None:
        """A Spark checkpoint in which the host's first reader has everything.

        None if it holds nothing.
        """
        if not holding and not retaining:
            return None
        return StreamOffset(
            epoch=epoch,
            parallelism=len(self.drivers),
            readers=(host,),
            owners=dict.fromkeys(holding, host),
            positions=holding,
            retained=retaining or {},
        )
