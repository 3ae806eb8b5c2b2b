"""Everything a coordinator knows, as immutable values: cheap to copy, to compare and to store."""

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Self, TypeVar

from balanced_source.api import Position, SourceSplit, SplitId, is_other
from balanced_source.coordinator.loads import LoadTracker
from balanced_source.coordinator.tracker import SplitAssignmentTracker
from balanced_source.documents.assignment import NumberedEvent
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HOST, HostPhase

SplitT = TypeVar("SplitT", bound=SourceSplit)
StateT = TypeVar("StateT")


class HostRole(enum.Enum):
    """Whether a host runs readers; see `membership`.

    MEMBER: it runs its share of the readers.
    JOINING: it gets readers when its driver has registered.
    LEAVING: it gets no readers any more, and is forgotten when it has let go of its splits.
    DRAINING: the same, but it was given up, although it is wanted. It may join again when it is
        forgotten.
    """

    MEMBER = "Member"
    JOINING = "Joining"
    LEAVING = "Leaving"
    DRAINING = "Draining"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """One reader host.

    Attributes:
        role: see `HostRole`.
        incarnation: newest that has registered; reports of older ones are refused. 0 before the
            first.
        phase: see `HostPhase`.
        report: newest report of that incarnation. While RECOVERING it waits for the gate, and is
            part of every snapshot (Flink lost partitions there: FLINK-40469).
        addressed_epoch: first epoch that is meant for this incarnation; an acknowledgement is at
            least that.
        events_seen: number of the last custom event taken from it.
        known_from: first epoch that was decided knowing what the host holds, its first
            incarnation's; 0 if it has never registered in this lineage.
    """

    role: HostRole = HostRole.MEMBER
    incarnation: int = 0
    phase: HostPhase = HOST.first
    report: HostReport | None = None
    addressed_epoch: int = 0
    events_seen: int = 0
    known_from: int = 0

    @property
    def acknowledged_epoch(self) -> int:
        """Newest epoch that this incarnation has adopted durably; 0 if none yet."""
        if self.report is None or self.phase is not HostPhase.ACTIVE:
            return 0
        # Before it is addressed, the epoch of a report is what its checkpoint was restored from.
        return self.report.epoch if self.report.epoch >= self.addressed_epoch > 0 else 0

    @property
    def report_at_gate(self) -> HostReport | None:
        """The report with which it waits behind the gate; None if it does not wait there."""
        return self.report if self.phase is HostPhase.RECOVERING else None

    def is_going(self, *, is_wanted: bool) -> bool:
        """Whether it does not count among the hosts that there are to be.

        One that drains stays until it has drained, wanted or not.
        """
        return self.role is HostRole.LEAVING or (self.role is HostRole.DRAINING and not is_wanted)

    @property
    def is_on_its_way_out(self) -> bool:
        """Whether the host runs no readers and is forgotten when it has let go of its splits."""
        return self.role in (HostRole.LEAVING, HostRole.DRAINING)

    @property
    def is_assignable(self) -> bool:
        """Whether readers of this host may be given splits."""
        return self.phase in (HostPhase.ACTIVE, HostPhase.EXPECTED)


def runs_on(subtask_id: int, members: Sequence[str]) -> str:
    """Return which of the hosts that run readers, given in their order, runs a reader."""
    return members[subtask_id % len(members)]


def run_by(host: str, members: Sequence[str], parallelism: int) -> range:
    """Return the readers that a host runs: none if it is not among the hosts that run readers."""
    if host not in members:
        return range(0)
    return range(members.index(host), parallelism, len(members))


def newest(*positions: Position) -> Position:
    """Return the furthest of several positions of one split."""
    return max((position for position in positions if position is not None), default=None)


def without_former(report: HostReport, splits: Mapping[SplitId, SplitT]) -> HostReport:
    """Return the report without the positions of deleted splits that had the ids of these splits.

    A host keeps the position of a split that it let go of. If the split was deleted and recreated
    meanwhile, that position means nothing any more.
    """
    former = {
        s
        for s, attributes in report.attributes.items()
        # Ids are names. What tells a recreated topic from the former one is its identity.
        if s in splits and is_other(attributes, splits[s].attributes())
    }
    if not former:
        return report
    return replace(
        report,
        positions={s: p for s, p in report.positions.items() if s not in former},
        retained={s: p for s, p in report.retained.items() if s not in former},
    )


def reported_position(report: HostReport, split: SplitT) -> Position:
    """Return the position of a split as its holder reports it.

    What a host reads counts as it says, also backwards: its Spark checkpoint is the truth. What it
    only retains may be older than what someone else has read since, so there the newer of both
    counts.
    """
    split_id = split.split_id
    # The report is of a former split by this id, whose positions mean other records.
    if is_other(report.attributes.get(split_id, {}), split.attributes()):
        return split.position
    if split_id in report.positions:
        return report.positions[split_id]
    return newest(split.position, report.retained.get(split_id))


def believed_position(
    report: HostReport, split: SplitT, *, since: int | None, is_reclaimed: bool
) -> Position:
    """Return the position of an owned split by the report of its host.

    The report may be older than the assignment.

    Args:
        report: of the host.
        split: owned by one of its readers, at the position when it was assigned.
        since: first epoch with the split; None if the host has adopted it. A report of an earlier
            epoch tells of former times: what it retains may be of another split by that name, and
            what it reads of the same before someone else read on, or of a predecessor that was
            taken for dead too early. So that can only move it forward.
        is_reclaimed: see `CoordinatorState`.
    """
    split_id, known = split.split_id, split.position
    # The report is of a former split by this id, whose positions mean other records.
    if is_other(report.attributes.get(split_id, {}), split.attributes()):
        return known
    if since is None or 0 < since <= report.epoch:
        return report.positions.get(split_id, known)
    # A host may have read on after its last report, before it let go, and retains where it stopped.
    if is_reclaimed:
        return newest(known, report.positions.get(split_id), report.retained.get(split_id))
    return newest(known, report.positions.get(split_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation(Generic[SplitT]):
    """A split that `host` must let go of.

    No other host may have it before `host` has acknowledged `epoch`.

    Attributes:
        host: the holder.
        epoch: first published epoch without the split.
        split: as last known; its final position comes with the acknowledgement.
    """

    host: str
    epoch: int
    split: SplitT


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorState(Generic[SplitT]):
    """What the coordinator itself decides on.

    Attributes:
        has_history: whether a host came with a Spark checkpoint of former times that this state
            does not know of: then hosts that were never seen may hold something too, and a gate
            waits for them.
        lineage: grows when the state was lost or restored from an older copy: earlier reports count
            no more.
        epoch: last decided epoch.
        parallelism: number of readers in it.
        hosts: by name.
        owners: split → subtask, as decided.
        splits: the owned splits, at their position when assigned or restored; newer ones are in the
            hosts' reports.
        tracker: which assignments their host has not adopted yet.
        revoking: splits on their way out of a host.
        retained: splits without an owner whose positions the hosts keep.
        reclaimed: owned splits that were given back before their host had let go, or that hosts
            have retained: one may have read on after its last report, so what it holds counts too.
        no_more_splits: readers that were told so.
        outbox: custom events to readers, until acknowledged.
        events_sent: number of the newest of them.
        loads: what splits cost, as observed; empty unless the source wants to know.
        rebalance_nonce: of the last rebalance that the user asked for.
        settings: digest of the reader settings that were published last; empty when unknown.
    """

    has_history: bool = False
    lineage: int = 1
    epoch: int = 0
    parallelism: int = 1
    hosts: Mapping[str, HostState] = field(default_factory=dict)
    owners: Mapping[SplitId, int] = field(default_factory=dict)
    splits: Mapping[SplitId, SplitT] = field(default_factory=dict)
    tracker: SplitAssignmentTracker = field(default_factory=SplitAssignmentTracker)
    revoking: Mapping[SplitId, Revocation[SplitT]] = field(default_factory=dict)
    retained: frozenset[SplitId] = frozenset()
    reclaimed: frozenset[SplitId] = frozenset()
    no_more_splits: frozenset[int] = frozenset()
    outbox: tuple[NumberedEvent, ...] = ()
    events_sent: int = 0
    loads: LoadTracker = field(default_factory=LoadTracker)
    rebalance_nonce: int = 0
    settings: str = ""

    @property
    def members(self) -> tuple[str, ...]:
        """The hosts that run readers, in their order."""
        return tuple(name for name, host in self.hosts.items() if host.role is HostRole.MEMBER)

    @property
    def has_reports(self) -> bool:
        """Whether a host has passed the gate in this lineage, and told what it holds."""
        return any(host.known_from for host in self.hosts.values())

    @property
    def is_first_life(self) -> bool:
        """Whether, as far as is known, nothing of the source was ever lost."""
        return self.lineage == 1 and not self.has_history

    def host_of(self, subtask_id: int) -> str:
        """The host that runs a reader.

        It does not depend on parallelism, so a rescale moves no reader.
        """
        return runs_on(subtask_id, self.members)

    def holder_of(self, split_id: SplitId) -> str | None:
        """The host that a split was given to, and that has not let go of it.

        None if no one has it.
        """
        if (revocation := self.revoking.get(split_id)) is not None:
            return revocation.host
        owner = self.owners.get(split_id)
        return None if owner is None else self.host_of(owner)

    def is_held_by(self, host: str) -> Callable[[SplitId], bool]:
        """Return a function that tells whether `holder_of` a split is this host.

        Cheap for many splits.
        """
        # Looked up once: `holder_of` would ask for the members again for each of 100,000 splits.
        revoking, owners, subtasks = self.revoking, self.owners, frozenset(self.subtasks_of(host))

        def is_held(split_id: SplitId) -> bool:
            revocation = revoking.get(split_id)
            return (
                owners.get(split_id) in subtasks if revocation is None else revocation.host == host
            )

        return is_held

    def subtasks_of(self, host: str) -> range:
        """Readers that a host runs now."""
        return run_by(host, self.members, self.parallelism)

    def position(self, split_id: SplitId) -> Position:
        """Newest known position of an owned split: the host's report beats what was remembered."""
        report = self.hosts[self.host_of(self.owners[split_id])].report
        return self._position(split_id, report, self.tracker.epoch_of(split_id))

    def positions(self, split_ids: Iterable[SplitId]) -> dict[SplitId, Position]:
        """Newest known positions of many owned splits."""
        reports = [self.hosts[name].report for name in self.members]
        # One table for all: `epoch_of` looks through all open epochs for each split.
        epochs, owners, n = self.tracker.epochs(), self.owners, len(reports)
        return {s: self._position(s, reports[owners[s] % n], epochs.get(s)) for s in split_ids}

    def split(self, split_id: SplitId) -> SplitT:
        """An owned split at its newest known position."""
        return self.splits[split_id].at(self.position(split_id))

    def splits_now(self, split_ids: Iterable[SplitId]) -> dict[SplitId, SplitT]:
        """Many owned splits at their newest known positions."""
        return {s: self.splits[s].at(position) for s, position in self.positions(split_ids).items()}

    def _position(
        self, split_id: SplitId, report: HostReport | None, since: int | None
    ) -> Position:
        # The common case first: the host has adopted the split, and reports where it is.
        if report is not None and since is None and split_id in report.positions:
            return report.positions[split_id]
        split = self.splits[split_id]
        if report is None:
            return split.position
        return believed_position(
            report, split, since=since, is_reclaimed=split_id in self.reclaimed
        )


def with_next_epoch(state: CoordinatorState[SplitT], *, settings: str) -> CoordinatorState[SplitT]:
    """Return the state in its next epoch, with the digest of the reader settings published."""
    # What was assigned in this turn is covered by whoever adopts this epoch.
    tracker = state.tracker.on_checkpoint(state.epoch + 1)
    reclaimed = (
        # Once its host has adopted a split, the host's own position counts, and nothing that was
        # retained.
        state.reclaimed.intersection(tracker.uncovered_since(0)) if state.reclaimed else frozenset()
    )
    return replace(
        state, epoch=state.epoch + 1, tracker=tracker, settings=settings, reclaimed=reclaimed
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(Generic[SplitT, StateT]):
    """What is persisted: the coordinator's and the enumerator's state at one moment."""

    coordinator: CoordinatorState[SplitT]
    enumerator: StateT

    def taken_over(self) -> Self:
        """Return it for the same source under a new uid, as a backup restores it.

        All that was decided counts. Only its drivers are others: they find no report under that
        uid, so their incarnations begin at 1 again.
        """
        hosts = {n: replace(host, incarnation=0) for n, host in self.coordinator.hosts.items()}
        return replace(self, coordinator=replace(self.coordinator, hosts=hosts))
