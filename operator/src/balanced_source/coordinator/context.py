"""The coordinator's side of `SplitEnumeratorContext`.

Turns an enumerator's wishes into state and effects.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Generic

from balanced_source.api import (
    AsyncCall,
    CompletionHandler,
    Json,
    Position,
    ReaderInfo,
    SourceEvent,
    SplitEnumeratorContext,
    SplitId,
    SplitsAssignment,
    is_other,
)
from balanced_source.api.split_checks import WrongAnswer, id_fault, shapes_fault, split_fault
from balanced_source.coordinator.effects import Effect, ExecuteCall, ReportFact
from balanced_source.coordinator.requests import answered
from balanced_source.coordinator.state import CoordinatorState, Revocation, SplitT, newest
from balanced_source.documents.assignment import NumberedEvent
from balanced_source.errors import ContractViolationError
from balanced_source.lifecycles import HostPhase
from balanced_source.maps import changed
from balanced_source.names import as_unicode, shown_value
from balanced_source.reason_kinds import reason_fault


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call in progress.

    The handler is stored by name, so that a copy of the coordinator calls its own enumerator.
    """

    call: AsyncCall
    handler: str
    period: float | None


@dataclass(slots=True)
class Turn:
    """What one turn (the handling of one event) has produced so far.

    Attributes:
        now: seconds since 1970.
        is_changed: whether it ends with a new epoch.
        effects: what is to be done.
        withdrawn: readers that were told of the end, and are not any more unless it is said again
            in this turn.
    """

    now: float = 0.0
    is_changed: bool = False
    effects: list[Effect] = field(default_factory=list)
    withdrawn: frozenset[int] = frozenset()


class CoordinatorContext(SplitEnumeratorContext[SplitT], Generic[SplitT]):
    """Holds the coordinator's state.

    The coordinator reads and replaces it between calls of the enumerator.
    """

    def __init__(self, state: CoordinatorState[SplitT], *, keeps_finished: bool = False) -> None:
        self.state = state
        self._keeps_finished = keeps_finished
        self.readers: Mapping[int, ReaderInfo[SplitT]] = {}
        self.calls: Mapping[int, PendingCall] = {}
        self.last_call = 0
        self.handled_finished: frozenset[SplitId] = frozenset()
        """Splits of which the enumerator was told, by this process, that they have reached their
        end."""
        self.asked: Mapping[int, int] = {}
        """Subtask → requests for a split that the enumerator was told of, by this process, and has
        not answered yet."""
        self.silent: frozenset[str] = frozenset()
        """Hosts that have not reported for long, as this process was told."""
        self.turn = Turn()

    def fork(self) -> "CoordinatorContext[SplitT]":
        """Return an independent copy.

        Every part is immutable except the turn, which starts empty.
        """
        copy = CoordinatorContext(self.state, keeps_finished=self.keeps_finished)
        copy.readers, copy.calls, copy.last_call = self.readers, self.calls, self.last_call
        copy.handled_finished, copy.asked = self.handled_finished, self.asked
        copy.silent = self.silent
        # What a turn has produced belongs to the coordinator that runs it.
        copy.turn = Turn(now=self.turn.now)
        return copy

    def set_readers(self, readers: Mapping[int, ReaderInfo[SplitT]]) -> None:
        """Replace the registered readers, and drop the split requests of removed readers."""
        self.readers = readers
        # A reader that comes back asks again with its first report.
        self.asked = {subtask: count for subtask, count in self.asked.items() if subtask in readers}

    def renumber_readers(self, numbers: Mapping[int, int]) -> None:
        """Renumber the readers: old number → new number.

        Readers without a new number are removed.
        """
        known = self.readers
        self.readers = {
            n: replace(known[s], subtask_id=n) for s, n in sorted(numbers.items()) if s in known
        }
        self.asked = {numbers[s]: count for s, count in self.asked.items() if s in numbers}

    def now(self) -> float:
        return self.turn.now

    def current_parallelism(self) -> int:
        return self.state.parallelism

    def registered_readers(self) -> Mapping[int, ReaderInfo[SplitT]]:
        return self.readers

    def zone_of(self, subtask_id: int) -> str:
        report = self.state.hosts[self.state.host_of(subtask_id)].report
        return report.zone if report is not None else ""

    @property
    def keeps_finished(self) -> bool:
        return self._keeps_finished

    def has_reports(self) -> bool:
        return self.state.has_reports

    def current_assignments(self) -> Mapping[SplitId, int]:
        return self.state.owners

    def split_positions(self) -> Mapping[SplitId, Position]:
        reports = [
            host.report.positions for host in self.state.hosts.values() if host.report is not None
        ]
        return (
            # One host is the common case: its table serves as it is, however many splits it has.
            reports[0]
            if len(reports) == 1
            else {s: p for positions in reports for s, p in positions.items()}
        )

    def split_loads(self) -> Mapping[SplitId, float]:
        return self.state.loads.loads()

    def assigned_split(self, split_id: SplitId) -> SplitT:
        return self.state.split(split_id)

    def assigned_attributes(self, split_id: SplitId) -> Mapping[str, Json]:
        return self.state.splits[split_id].attributes()

    def is_revoking(self, split_id: SplitId) -> bool:
        return split_id in self.state.revoking

    def assign_splits(self, new_assignments: SplitsAssignment[SplitT]) -> None:
        self._assign(*self._checked(new_assignments))

    def _assign(self, splits: Mapping[SplitId, SplitT], owners: Mapping[SplitId, int]) -> None:
        # Nothing would change, and an epoch for nothing makes every host adopt it.
        if not owners:
            return
        state = self.state
        revoking, uncovered, reclaimed = dict(state.revoking), {}, set(state.reclaimed)
        further: dict[SplitId, SplitT] = {}
        for split_id, subtask_id in owners.items():
            host, holder = state.host_of(subtask_id), self._holder(split_id)
            # It goes back to the host that holds it, so no one has to let go first.
            if holder == host:
                revocation = revoking.pop(split_id, None)
                if revocation is None:
                    continue
                # Before the host's own report, which may be of a driver that knows nothing.
                further[split_id] = _further(splits[split_id], revocation.split)
                if revocation.epoch <= state.epoch:
                    # An epoch without the split is out: the host may acknowledge it without ever
                    # having held the split, so that acknowledgement must not count as cover. Where
                    # it did, its own position wins.
                    uncovered[split_id] = subtask_id
                    reclaimed.add(split_id)
            # No one holds it. If hosts retain its position, one of them may have read further than
            # its last report says.
            elif holder is None:
                uncovered[split_id] = subtask_id
                (reclaimed.add if split_id in state.retained else reclaimed.discard)(split_id)
            # Another host reads it: pending until that host has acknowledged an epoch without it.
            # If it is being revoked already, the first epoch without it still counts.
            elif split_id not in revoking:
                revoking[split_id] = self._revocation(split_id, holder)
        self.state = replace(
            state,
            owners=changed(state.owners, added=owners),
            splits=changed(state.splits, added={**splits, **further} if further else splits),
            revoking=revoking,
            tracker=state.tracker.record(uncovered),
            # An owner looks after its position from now on.
            retained=state.retained.difference(owners),
            reclaimed=frozenset(reclaimed),
        )
        self.handled_finished = self.handled_finished.difference(owners)
        self.asked = answered(self.asked, owners.values())
        self.turn.is_changed = True

    def move_splits(self, owners: Mapping[SplitId, int]) -> None:
        self._check_registered(set(owners.values()))
        state = self.state
        moved = {s: o for s, o in owners.items() if state.owners[s] != o}
        # An assigner may answer with what is so already, and that is no epoch.
        if not moved:
            return
        # Inside a host nothing but the owner changes: both readers read from one Spark checkpoint.
        # This makes a rescale of 100,000 splits cheap.
        inside = self._inside_one_host(moved)
        self.state = replace(state, owners=changed(state.owners, added=inside))
        self.turn.is_changed = True
        # Splits that change their host need the position at which they are revoked.
        if len(inside) < len(moved):
            away = {s: owner for s, owner in moved.items() if s not in inside}
            self._assign(state.splits_now(away), away)

    def _inside_one_host(self, moved: Mapping[SplitId, int]) -> Mapping[SplitId, int]:
        """Moves after which the host that holds a split holds it still.

        It needs no position, and nothing is new.
        """
        state = self.state
        # A host that was never seen holds nothing: its splits are still to be adopted, with a
        # start.
        holds = [state.hosts[name].phase is not HostPhase.EXPECTED for name in state.members]
        # One host, and nothing on its way: no split needs to be looked at.
        if len(holds) == 1 and holds[0] and not state.revoking:
            return moved
        n, owners = len(holds), state.owners
        # Reader i runs on host i mod n, so this compares hosts without a look-up per split.
        return {
            s: o
            for s, o in moved.items()
            if holds[o % n] and owners[s] % n == o % n and s not in state.revoking
        }

    def revoke_splits(self, split_ids: Iterable[SplitId], *, retain: bool = False) -> None:
        state = self.state
        gone = [split_id for split_id in split_ids if split_id in state.owners]
        if not gone:
            return
        revoking = dict(state.revoking)
        # Splits that are being revoked keep their first epoch: the host may have adopted it by now.
        holders = {s: h for s in gone if s not in revoking and (h := self._holder(s)) is not None}
        for split_id, split in state.splits_now(holders).items():
            # The present epoch has the split, so the next one is the first without it.
            revoking[split_id] = Revocation(
                host=holders[split_id], epoch=state.epoch + 1, split=split
            )
        dropped = frozenset(gone)
        # Until a host tells what it holds, what was given out is a guess; see `recovery.recover`.
        is_guess = retain and not state.has_reports
        self.state = replace(
            state,
            owners=changed(state.owners, dropped=gone),
            splits=changed(state.splits, dropped=gone),
            revoking=revoking,
            # What is revoked stays in the tracker: it tells whether the host has ever adopted the
            # split.
            tracker=state.tracker.forget(s for s in gone if s not in revoking and not is_guess),
            # Without an owner, the Spark checkpoints of the hosts are the only memory besides the
            # state.
            retained=state.retained | dropped if retain else state.retained,
        )
        self.handled_finished -= dropped
        self.turn.is_changed = True

    def finish_splits(self, split_ids: Iterable[SplitId]) -> None:
        # Where nothing but Spark's checkpoint is stored, a split that is dropped would be listed
        # and read again.
        if not self.keeps_finished:
            self.revoke_splits(split_ids)

    def forget_splits(self, split_ids: Iterable[SplitId]) -> None:
        rest = self.state.retained.difference(split_ids)
        self.turn.is_changed |= rest != self.state.retained
        self.state = replace(self.state, retained=rest)

    def signal_no_more_splits(self, subtask_id: int) -> None:
        if subtask_id not in self.readers:
            raise ContractViolationError(f"reader {subtask_id} is not registered")
        # Said again and again, it would be an epoch each time.
        if subtask_id not in self.state.no_more_splits:
            self.state = replace(
                self.state, no_more_splits=self.state.no_more_splits | {subtask_id}
            )
            self.turn.is_changed |= subtask_id not in self.turn.withdrawn

    def send_event_to_reader(self, subtask_id: int, event: SourceEvent) -> None:
        if subtask_id not in self.readers:
            raise ContractViolationError(f"reader {subtask_id} is not registered")
        number = self.state.events_sent + 1
        queued = NumberedEvent(number=number, subtask_id=subtask_id, event=event)
        self.state = replace(self.state, outbox=(*self.state.outbox, queued), events_sent=number)
        self.turn.is_changed = True

    def call_async(
        self,
        call: AsyncCall,
        handler: CompletionHandler,
        *,
        initial_delay: float = 0.0,
        period: float | None = None,
    ) -> None:
        self.issue(PendingCall(call, handler.__name__, period), initial_delay)

    def report(self, reason: str, message: str, *, warning: bool = False) -> None:
        if fault := reason_fault(reason):
            raise ContractViolationError(
                f"the enumerator has reported {shown_value(message)}: {fault}"
            )
        self.turn.effects.append(ReportFact(reason, as_unicode(message), warning))

    def issue(self, pending: PendingCall, delay: float) -> None:
        """Have a call executed in `delay` seconds."""
        # Ids are never used twice, so a late answer finds no other call.
        self.last_call += 1
        self.calls = {**self.calls, self.last_call: pending}
        self.turn.effects.append(ExecuteCall(self.last_call, pending.call, delay))

    def _checked(
        self, new_assignments: SplitsAssignment[SplitT]
    ) -> tuple[dict[SplitId, SplitT], dict[SplitId, int]]:
        splits: dict[SplitId, SplitT] = {}
        owners: dict[SplitId, int] = {}
        self._check_registered(new_assignments.assignment)
        for subtask_id, given in new_assignments.assignment.items():
            for split in given:
                split_id = self._entered(split)
                # Two owners would deliver the records of the split twice.
                if owners.setdefault(split_id, subtask_id) != subtask_id:
                    raise ContractViolationError(
                        f"split {split_id} is given to readers {owners[split_id]} and {subtask_id}"
                    )
                splits[split_id] = split
        self._check_shapes(splits)
        # In the order of the ids: whoever sorts the owners later finds them sorted, except for what
        # has come since.
        fresh = [s for s in sorted(owners) if self.state.owners.get(s) != owners[s]]
        return {s: splits[s] for s in fresh}, {s: owners[s] for s in fresh}

    def _entered(self, split: SplitT) -> SplitId:
        """Return the id of a split that the enumerator gives out, once what it holds is checked.

        Later no one could tell who made it, and a document that holds it could not be read.
        """
        fault = split_fault(split)
        # Most were given out before, and ids do not change.
        if fault is None and split.split_id not in self.state.splits:
            fault = id_fault(split.split_id)
        if fault is not None:
            raise _wrong(fault)
        return split.split_id

    def _check_shapes(self, split_ids: Mapping[SplitId, SplitT]) -> None:
        known = self.state.splits
        fresh = [split_id for split_id in split_ids if split_id not in known]
        if fresh and (fault := shapes_fault([*fresh, *islice(known, 1)])) is not None:
            raise _wrong(fault)

    def _check_registered(self, subtask_ids: Iterable[int]) -> None:
        for subtask_id in subtask_ids:
            if subtask_id not in self.readers:
                raise ContractViolationError(
                    f"reader {subtask_id} is not registered; registered are {sorted(self.readers)}"
                )

    def _holder(self, split_id: SplitId) -> str | None:
        """The host that holds a split, or may hold it: it was told so, and has not let go yet."""
        host = self.state.holder_of(split_id)
        if host is None or split_id in self.state.revoking:
            return host
        # A host that was never seen in this lineage cannot let go, and no one waits for it: it
        # reads nothing before it has registered.
        return None if self.state.hosts[host].phase is HostPhase.EXPECTED else host

    def _revocation(self, split_id: SplitId, holder: str) -> Revocation[SplitT]:
        return Revocation(host=holder, epoch=self.state.epoch + 1, split=self.state.split(split_id))


def _further(split: SplitT, revoked: SplitT) -> SplitT:
    """Return a split that its holder gets back, where the holder is known to have been.

    The enumerator may have heard less: a restarted host says how far it was before it has let go.
    """
    # A recreated split has the id of the former one, whose positions mean other records.
    is_same = not is_other(revoked.attributes(), split.attributes())
    return split.at(newest(split.position, revoked.position)) if is_same else split


def _wrong(fault: WrongAnswer) -> ContractViolationError:
    return ContractViolationError(
        f"the enumerator has assigned {fault.found}. It must assign {fault.expected}"
    )
