"""A reader host as a pure state machine: what a driver knows, and what it reports.

The driver's data source wraps it: it feeds assignments as they are seen and stream offsets as Spark
passes them, and writes the reports. Its life is the table `balanced_source.lifecycles.INCARNATION`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from balanced_source.api import Json, Position, Problem, SourceEvent, SplitId
from balanced_source.documents.alignment import SourceWatermark
from balanced_source.documents.assignment import Assignment, NumberedEvent
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import in_host_order
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.adoption import adopt, go_on, readers_on
from balanced_source.host.finish import is_read, with_ends
from balanced_source.lifecycles import INCARNATION, IncarnationEvent
from balanced_source.lifecycles import IncarnationPhase as Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderHost:
    """Immutable; each method returns the host after it.

    Attributes:
        name: of the host within its source.
        incarnation: number of this attempt.
        phase: see `IncarnationPhase`.
        lineage: newest seen in an assignment; when it grows, `report` must be written before
            anything is adopted, and one of several hosts reads nothing until it is addressed.
        durable: newest stream offset that is in Spark's offset log; its epoch is what is
            acknowledged.
        committed: positions whose records have been delivered.
        assignment: newest one for this incarnation.
        events_seen: number of the newest custom event that was handed to a reader.
        outbox: custom events of readers that the operator has not acknowledged yet.
        events_sent: number of the newest of them.
        former: report of the driver before this one that has to be repeated, see `handed_on`.
        former_hosts: other hosts whose Spark checkpoints held splits when this attempt began; empty
            as soon as it has adopted an epoch, which names its hosts.
    """

    name: str = "0"
    incarnation: int
    phase: Phase = INCARNATION.first
    lineage: int = 1
    durable: StreamOffset = field(default_factory=StreamOffset)
    committed: Mapping[SplitId, Position] = field(default_factory=dict)
    assignment: Assignment | None = None
    events_seen: int = 0
    outbox: tuple[NumberedEvent, ...] = ()
    events_sent: int = 0
    former: HostReport | None = None
    former_hosts: tuple[str, ...] = ()

    @property
    def has_past(self) -> bool:
        """Whether reports repeat what others than this driver's checkpoint know."""
        return self.former is not None or bool(self.former_hosts)

    def on_assignment(self, assignment: Assignment) -> Self:
        """A document was seen.

        Older lineages and epochs, and those for another incarnation, change nothing.
        """
        addressed = assignment.incarnations.get(self.name)
        # Documents come late and out of order. What an earlier lineage said counts no more.
        if addressed is None or assignment.lineage < self.lineage or self.phase is Phase.FENCED:
            return self
        if assignment.lineage > self.lineage:
            # A host that is alone gets its splits back and reads on. Whoever counts events now has
            # begun again.
            is_alone = len(assignment.incarnations) == 1
            phase = (
                self.phase
                if is_alone
                else INCARNATION.after(self.phase, IncarnationEvent.FORGOTTEN)
            )
            anew = replace(
                self, phase=phase, lineage=assignment.lineage, assignment=None, events_seen=0
            )
            return anew.on_assignment(assignment)
        # A newer attempt reads this host's splits. Reading on would deliver records twice.
        if addressed > self.incarnation:
            return self.on_fenced()
        # The document may change without an epoch, but what is adopted changes with epochs only.
        is_old = self.assignment is not None and assignment.epoch <= self.assignment.epoch
        if is_old or addressed < self.incarnation:
            return self
        # Acknowledged events leave the report; the others stay in it until they are acknowledged.
        taken = assignment.events_seen.get(self.name, 0)
        return replace(
            self, assignment=assignment, outbox=tuple(e for e in self.outbox if e.number > taken)
        )

    def on_fenced(self) -> Self:
        """Another incarnation has written the report document."""
        return replace(self, phase=INCARNATION.after(self.phase, IncarnationEvent.FENCED))

    def on_planned(self, end: StreamOffset) -> Self:
        """Spark has logged `end` and asks for its partitions: from now on a restart replays it."""
        if self.phase is Phase.STARTING:
            return self  # a replay; what it commits is reported when it has
        # What it repeats of former times is in the first epoch that it adopts.
        kept = self if end.epoch == self.durable.epoch else self._without_past()
        # What starts anew is not where a former split by that name was.
        committed = (
            {s: p for s, p in self.committed.items() if s not in end.starts}
            if end.starts
            else self.committed
        )
        return replace(kept, durable=end, committed=committed)

    def _without_past(self) -> Self:
        return replace(self, former=None, former_hosts=()) if self.has_past else self

    def on_committed(self, offset: StreamOffset) -> Self:
        """All records up to `offset` are delivered; it is where the next micro-batch starts."""
        phase = INCARNATION.after(self.phase, IncarnationEvent.COMMITTED)
        # An idle query says the same a hundred times a second, and a copy costs more than the rest.
        if phase is self.phase and offset is self.durable and self.committed is offset.positions:
            return self
        return replace(self, phase=phase, durable=offset, committed=offset.positions)

    def base(self) -> tuple[Self, StreamOffset | None]:
        """Where the next micro-batch continues, with the newest assignment adopted.

        None while nothing may be read.

        Raises:
            ContractViolationError: the assignment gives a split without a position.
        """
        # Before the registration nothing may be read: others may have got the splits meanwhile.
        if not INCARNATION.allows(self.phase, IncarnationEvent.ADOPTED):
            return self, None
        if self.assignment is not None and self.assignment.epoch > self.durable.epoch:
            phase = INCARNATION.after(self.phase, IncarnationEvent.ADOPTED)
            return replace(self, phase=phase), adopt(self.durable, self.assignment, host=self.name)
        # A host that has only registered holds splits of its checkpoint, which may be another's
        # now.
        return self, go_on(self.durable) if self.phase is Phase.READING else None

    def take_events(self) -> tuple[Self, tuple[NumberedEvent, ...]]:
        """Custom events for the readers of this host that were not taken before, in their order.

        They come with the assignment in which they were sent: a reader has its splits before it
        hears of them.
        """
        assignment = self.assignment
        if (
            assignment is None
            # A reader has its splits before it hears of them.
            or assignment.epoch > self.durable.epoch
            or self.phase is not Phase.READING
        ):
            return self, ()
        readers = frozenset(readers_on(assignment, self.name))
        fresh = [
            e for e in assignment.events if e.number > self.events_seen and e.subtask_id in readers
        ]
        fresh.sort(key=lambda e: e.number)
        return (replace(self, events_seen=fresh[-1].number), tuple(fresh)) if fresh else (self, ())

    def send_event(self, subtask_id: int, event: SourceEvent) -> Self:
        """Queue a reader's custom event for the enumerator.

        It stands in every report until it is acknowledged.
        """
        number = self.events_sent + 1
        queued = NumberedEvent(number=number, subtask_id=subtask_id, event=event)
        return replace(self, outbox=(*self.outbox, queued), events_sent=number)

    def requests(self) -> Mapping[int, int]:
        """Return how many splits each reader of this host lacks.

        Nothing unless readers of the source ask for them.

        What a planned micro-batch reads to its end counts as read, so that the next splits come
        while it runs.
        """
        assignment, durable = self.assignment, self.durable
        # What a host holds before it is addressed may be another's, so it cannot say what it lacks.
        if assignment is None or not assignment.look_ahead or self.phase is not Phase.READING:
            return {}
        unread = Counter(
            owner for split_id, owner in durable.owners.items() if not is_read(durable, split_id)
        )
        lacking = {
            s: assignment.look_ahead - unread[s]
            for s in durable.readers
            if s not in assignment.no_more_splits
        }
        return {subtask: count for subtask, count in lacking.items() if count > 0}

    def report(
        self,
        *,
        sequence: int,
        instance: str = "",
        heartbeat: float = 0.0,
        location: str = "",
        zone: str = "",
        lag: int | None = None,
        metrics: Mapping[str, Json] | None = None,
        alignment: SourceWatermark | None = None,
        problems: tuple[Problem, ...] = (),
    ) -> HostReport | None:
        """What to write; None while there is nothing to say, or it is not ours to say any more."""
        # What is committed is not known yet, or another attempt reports for this host.
        if self.phase in (Phase.STARTING, Phase.FENCED):
            return None
        durable = self.durable
        return HostReport(
            host=self.name,
            incarnation=self.incarnation,
            instance=instance,
            lineage=self.lineage,
            sequence=sequence,
            epoch=durable.epoch,
            parallelism=durable.parallelism,
            owners=durable.owners,
            # Committed, not planned: another host that starts at a planned end would skip records.
            positions={s: self.committed.get(s, durable.starts.get(s)) for s in durable.positions},
            retained=durable.retained,
            attributes=with_ends(durable),
            lag=lag,
            heartbeat=heartbeat,
            location=location,
            zone=zone,
            events=self.outbox,
            events_seen=self.events_seen,
            metrics=metrics or {},
            alignment=alignment,
            problems=problems,
            requests=self.requests(),
            hosts=self._known_hosts(),
            former=self.former,
        )

    def _known_hosts(self) -> tuple[str, ...]:
        """Hosts that may hold splits.

        The own checkpoint does not know one that was added after the last adoption.
        """
        durable = self.durable.hosts
        if not self.former_hosts:
            return durable
        return tuple(in_host_order(dict.fromkeys((*durable, *self.former_hosts, self.name))))


def handed_on(former: HostReport | None, offset: StreamOffset) -> HostReport | None:
    """Return what a new driver must repeat of the report that its first one replaces.

    None if its Spark checkpoint knows as much. A checkpoint that was lost or restored from an older
    copy does not: then the former report alone may have the newest positions, because an operator
    need not have stored what it has seen.

    Args:
        former: newest report of the host; None if there is none.
        offset: newest one in the checkpoint.
    """
    if former is None:
        return None
    # A driver that has adopted nothing says of its own what its checkpoint says.
    last = former.former or former
    if last.epoch <= offset.epoch:
        return None
    return replace(
        last, metrics={}, problems=(), alignment=None, answers=(), events=(), requests={}, lag=None
    )
