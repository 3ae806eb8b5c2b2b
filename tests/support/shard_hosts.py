"""Several hosts that read a stream in memory, and their operator, in one process.

Coordinator and reader hosts are the product's, and talk through encoded documents. A step of a host
reads a little and is a checkpoint.
"""

import heapq
import itertools
from dataclasses import replace

from balanced_source.api import CallFailure
from balanced_source.coordinator import (
    CallCompleted,
    Effect,
    Event,
    ExecuteCall,
    HostsChanged,
    ParallelismChanged,
    PersistState,
    PublishAssignment,
    ReportFact,
    ReportReceived,
    SourceCoordinator,
    perform,
    state_codec,
)
from balanced_source.documents import assignment as assignments
from balanced_source.documents import report as reports
from balanced_source.documents import stream_offset
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host import handed_on
from balanced_source.testing.reader_group import ReaderGroup
from balanced_source_adapters.kinesis.client import Record
from support.shards import ReadableSource

UID = "u"


class ShardHosts:
    """See the module.

    Args:
        source: what is read.
        hosts: how many there are.
        parallelism: number of readers.

    Attributes:
        delivered: records, in the order of their delivery by all hosts.
        offsets: newest checkpoint of each host.
        state: of the operator, as it is stored.
    """

    def __init__(self, source: ReadableSource, *, hosts: int, parallelism: int) -> None:
        self.source, self.parallelism = source, parallelism
        self.delivered: list[Record] = []
        self.offsets: dict[str, StreamOffset] = {}
        self.state: str | None = None
        self.groups: dict[str, ReaderGroup[Record]] = {}
        self._names = _names(hosts)
        self._assignment: str | None = None
        self._reports: dict[str, str] = {}
        self._now, self._order = 0.0, itertools.count()
        self._calls: list[tuple[float, int, ExecuteCall]] = []
        self.start_operator(None)
        for name in self._names:
            self.start(name)

    def start_operator(self, state: str | None) -> None:
        """Begin the operator again from a stored state; None: it is lost."""
        self.state, published = state, self._published()
        seen = [self._report(name).lineage for name in self._reports]
        seen += [published.lineage] if published is not None and published.epoch else []
        self._calls.clear()
        self.coordinator = SourceCoordinator(
            self.source,
            parallelism=self.parallelism,
            hosts=tuple(dict.fromkeys((*self._names, *self.groups))),
            lineage=max(seen, default=0) + 1,
            restored=None if state is None else state_codec.decode(state, self.source, uid=UID),
            published=published,
        )
        self._do(self.coordinator.start(now=self._now))
        for name in list(self._reports):
            self._handle(ReportReceived(self._report(name)))
        self._handle(HostsChanged(self._names))
        self._handle(ParallelismChanged(self.parallelism))

    def start(self, name: str) -> None:
        """Start a host, again, from its checkpoint."""
        if name in self.groups:
            self.groups[name].close()
        former = self._report(name) if name in self._reports else None
        published, offset = self._published(), self.offsets.get(name, StreamOffset())
        seen = [former.incarnation] if former is not None else []
        seen += [published.incarnations.get(name, 0)] if published is not None else []
        others = tuple(n for n, o in self.offsets.items() if n != name and o.positions)
        group: ReaderGroup[Record] = ReaderGroup(
            source=self.source,
            create_reader=self.source.create_reader,
            incarnation=max(seen, default=0) + 1,
            collect=lambda _subtask, record, _time: self.delivered.append(record),
            restored=offset,
            name=name,
        )
        group.host = replace(group.host, former_hosts=others, former=handed_on(former, offset))
        self.groups[name] = group
        self._exchange(name)

    def step(self, *names: str) -> None:
        """Do what is due, and let hosts read; without names all of them."""
        for name in names or tuple(self.groups):
            self._now += 1.0
            self._execute_due()
            group = self.groups[name]
            # A query plans nothing until its host is addressed.
            if group.host.base()[1] is None:
                group.close()
            else:
                group.poll(4, now=self._now)
            group.checkpoint(lambda offset, name=name: self._store(name, offset))  # type: ignore[misc]
            self._exchange(name)

    def rescale(self, parallelism: int) -> None:
        """Change the number of readers."""
        self.parallelism = parallelism
        self._handle(ParallelismChanged(parallelism))

    def change_hosts(self, hosts: int) -> None:
        """Change the number of hosts."""
        self._names = _names(hosts)
        self._handle(HostsChanged(self._names))
        for name in self._names:
            if name not in self.groups:
                self.start(name)

    def close(self) -> None:
        """Close readers and enumerator."""
        for group in self.groups.values():
            group.close()
        self.coordinator.close()

    # --- documents --------------------------------------------------------------------------------

    def _store(self, name: str, offset: StreamOffset) -> None:
        self.offsets[name] = stream_offset.from_json(stream_offset.to_json(offset))

    def _published(self) -> Assignment | None:
        text = self._assignment
        return None if text is None else assignments.decode(text, source=UID)

    def _report(self, name: str) -> reports.HostReport:
        return reports.decode(self._reports[name], source=UID)

    def _exchange(self, name: str) -> None:
        group = self.groups[name]
        self._tell(name)
        if (published := self._published()) is not None:
            before = group.host.lineage
            group.on_assignment(published)
            if group.host.lineage != before:
                self._tell(name)

    def _tell(self, name: str) -> None:
        if (report := self.groups[name].report()) is not None:
            self._reports[name] = reports.encode(report, source=UID)
            self._handle(ReportReceived(self._report(name)))

    # --- the coordinator --------------------------------------------------------------------------

    def _execute_due(self) -> None:
        while self._calls and self._calls[0][0] <= self._now:
            effect = heapq.heappop(self._calls)[2]
            try:
                result = self.source.stream.execute(effect.call)
            except Exception as error:  # noqa: BLE001
                result = CallFailure(error)
            self._handle(CallCompleted(effect.call_id, result))

    def _handle(self, event: Event) -> None:
        self._do(self.coordinator.handle(event, now=self._now))

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            perform(effect, self)

    def persist_state(self, effect: PersistState) -> None:
        """See `balanced_source.coordinator.EffectPorts`."""
        self.state = state_codec.encode(effect.checkpoint, self.source, uid=UID)

    def publish_assignment(self, effect: PublishAssignment) -> None:
        """See `balanced_source.coordinator.EffectPorts`."""
        self._assignment = assignments.encode(effect.assignment, source=UID)

    def execute_call(self, effect: ExecuteCall) -> None:
        """See `balanced_source.coordinator.EffectPorts`."""
        heapq.heappush(self._calls, (self._now + effect.delay, next(self._order), effect))

    def report_fact(self, effect: ReportFact) -> None:
        """Facts are for people who watch."""


def _names(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))
