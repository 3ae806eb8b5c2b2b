"""What must hold: the rules of the protocol, checked from outside, with arithmetic of their own."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from balanced_source.api import (
    IDENTITY,
    STOP,
    Boundedness,
    SplitId,
)
from balanced_source.assigners import RoundRobinAssigner
from balanced_source.coordinator import (
    Checkpoint,
    Event,
    HostPhase,
    HostRole,
    ReportReceived,
)
from balanced_source.coordinator.phase import source_phase
from balanced_source.coordinator.state import CoordinatorState
from balanced_source.coordinator.view import assignment_of
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host import ReaderHost, SplitRange
from balanced_source.lifecycles import SOURCE, SourcePhase
from balanced_source_operator.controller.ended_hosts import unread
from proof.balance import check_moves, is_new, spread
from proof.brokers import FIRST_LIFE, Lives, life_of
from proof.canonical import coordinator_key, key
from proof.shell import Planned
from proof.values import Delivered, Driver, Log, Operator, Setting, Violation, Wanted, enumerator_of

Record = tuple[SplitId, int]


def turn(before: Operator, event: Event, after: Operator) -> None:
    """Rules about one turn of the operator.

    Raises:
        Violation: one is broken.
    """
    old, new = before.coordinator.state, after.coordinator.state
    _check_fencing(before, event, after)
    _check_one_owner(after)
    _check_gate(before, after)
    _check_life(before, after)
    if (new.lineage, new.epoch) < (old.lineage, old.epoch):
        raise Violation(f"rule 10, fencing: epoch went back from {old.epoch} to {new.epoch}")
    if isinstance(after.enumerator.source.assigner, RoundRobinAssigner):
        check_moves(before, event, after)


def _check_life(before: Operator, after: Operator) -> None:
    """The source goes from phase to phase as its table says, at most two at once."""
    old, new = (
        source_phase(o.coordinator.state, is_finished=o.enumerator.is_finished())
        for o in (before, after)
    )
    near = {old} | {target for (phase, _), target in SOURCE.moves.items() if phase is old}
    # The last report of a host that is taken for lost may tell at once that all is read.
    ends = (
        {SourcePhase.FINISHED}
        if after.coordinator.source.boundedness is Boundedness.BOUNDED
        else set()
    )
    if new not in ends | near | {
        target for (phase, _), target in SOURCE.moves.items() if phase in near
    }:
        raise Violation(f"life of a source: {old.value} became {new.value}")


def _check_fencing(before: Operator, event: Event, after: Operator) -> None:
    """Rule 10: what an older incarnation says changes nothing."""
    if not isinstance(event, ReportReceived):
        return
    report = event.report
    known = before.coordinator.state.hosts[report.host]
    is_old = (
        report.incarnation < known.incarnation
        and report.lineage <= before.coordinator.state.lineage
    )
    if is_old and coordinator_key(before.coordinator) != coordinator_key(after.coordinator):
        raise Violation(
            f"rule 10, fencing: a report of incarnation {report.incarnation} counted,"
            f" {known.incarnation} is registered"
        )
    now = after.coordinator.state.hosts.get(report.host)
    if now is not None and now.incarnation < known.incarnation and not is_old:
        return  # a new lineage: everybody registers again


def _check_one_owner(after: Operator) -> None:
    """Rule 1: a split has one owner, which exists, or it is pending."""
    state, pending = after.coordinator.state, after.enumerator.state.unassigned
    if both := state.owners.keys() & pending.keys():
        raise Violation(f"rule 1, one owner: {sorted(both)} are owned and pending at once")
    if both := state.owners.keys() & state.retained:
        raise Violation(f"rule 1, one owner: {sorted(both)} are owned and retained at once")
    if nobody := {s: o for s, o in state.owners.items() if not 0 <= o < state.parallelism}:
        raise Violation(f"rule 1, one owner: owners outside [0, {state.parallelism}): {nobody}")
    if state.owners.keys() != state.splits.keys():
        raise Violation("rule 1, one owner: owned splits and their positions differ")


def _check_gate(before: Operator, after: Operator) -> None:
    """Rule 7: a split gets an owner only if its scope was asked, and no one waits at the gate."""
    new = after.coordinator.state
    given = new.owners.keys() - before.coordinator.state.owners.keys()
    if given and (waiting := gate(new)):
        raise Violation(
            f"rule 7, gate: {sorted(given)} were assigned while the gate waits for hosts {waiting}"
        )
    if is_early := [s for s in given if s[0] not in after.asked]:
        raise Violation(
            f"rule 7, gate: {sorted(is_early)} were assigned before the first discovery"
        )
    _check_passage(before.coordinator.state, new)


def _check_passage(old: CoordinatorState[Any], new: CoordinatorState[Any]) -> None:
    """Rule 7: as long as no one is active, all hosts pass the gate together."""
    passed = [
        n
        for n, h in new.hosts.items()
        if h.phase is HostPhase.ACTIVE and n in old.hosts and is_new(old.hosts[n], h)
    ]
    # One that the user removes in this turn is not waited for any more: what it holds is revoked.
    others = [n for n in new.hosts if n not in passed and _may_hold(old, n) and _may_hold(new, n)]
    if (
        passed
        and others
        and all(new.hosts[n].phase is not HostPhase.ACTIVE for n in new.hosts if n not in passed)
    ):
        raise Violation(f"rule 7, gate: hosts {passed} passed it before {others} had registered")


def restored(checkpoint: Checkpoint[Any, Any]) -> None:
    """Rule 7 of a state that is read back: it has the reports that wait behind the gate.

    Raises:
        Violation: it has not.
    """
    for name, host in checkpoint.coordinator.hosts.items():
        if host.phase is HostPhase.RECOVERING and host.report is None:
            raise Violation(
                f"rule 7, gate: the stored state has no report of host {name}, which waits"
            )


def gate(state: CoordinatorState[Any]) -> list[str]:
    """Hosts that must register before anything is assigned: those that may hold something."""
    phases = {name: host.phase for name, host in state.hosts.items()}
    if HostPhase.RECOVERING not in phases.values() or HostPhase.ACTIVE in phases.values():
        return []
    return sorted(
        name
        for name, phase in phases.items()
        if phase is not HostPhase.RECOVERING and _may_hold(state, name)
    )


def _may_hold(state: CoordinatorState[Any], name: str) -> bool:
    """Whether a host may have splits in its Spark checkpoint.

    At a first start those that were never there have not.
    """
    host = state.hosts.get(name)
    if host is None or host.role is HostRole.JOINING:
        return False  # it was added, and gets readers later
    if host.is_on_its_way_out and host.known_from:
        return False  # what it holds is revoked
    return host.phase is not HostPhase.EXPECTED or state.has_history or state.lineage > 1


# --- determinism (rule 5) -------------------------------------------------------------------------


def order_independence(before: Operator, event: Event, after: Operator) -> None:
    """Rule 5: the same turn from the same state, with mappings reversed, has the same outcome.

    Raises:
        Violation: it has not.
    """
    twin = before.coordinator.fork()
    twin._context.state = _reversed(twin._context.state)
    enumerator = enumerator_of(twin)
    enumerator.state = _reversed(enumerator.state)
    twin._context.readers = dict(reversed(list(twin._context.readers.items())))
    twin.handle(event, now=0.0)
    if _outcome(twin) != _outcome(after.coordinator):
        raise Violation("rule 5, deterministic: the outcome depends on the order of a mapping")


def _outcome(coordinator: Any) -> Any:
    """All that was decided; comparing mappings does not look at their order."""
    context = coordinator._context
    return (
        context.state,
        context.readers,
        context.calls,
        enumerator_of(coordinator).state,
        coordinator._must_persist,
    )


def _reversed(state: Any) -> Any:
    changes = {}
    for field in dataclasses.fields(state):
        value = getattr(state, field.name)
        # the order of hosts says who runs which reader
        if isinstance(value, Mapping) and field.name != "hosts":
            changes[field.name] = dict(reversed(list(value.items())))
    return replace(state, **changes)


# --- documents (rule 6) ---------------------------------------------------------------------------


def publishing(
    stored: Checkpoint[Any, Any] | None,
    previous: Assignment | None,
    published: Assignment,
    source: Any,
) -> str | None:
    """What is wrong with publishing an assignment; None if nothing is."""
    if stored is None:
        return "rule 6, write ahead: an assignment is published, and no state is stored"
    implied = replace(
        assignment_of(stored.coordinator, source.reader_settings()),
        undiscovered=frozenset(source.scopes()) - stored.enumerator.discovered,
        has_ending_splits=source.has_ending_splits,
    )
    if key(implied) != key(published):
        return (
            f"rule 6, write ahead: epoch {published.epoch} is published, the stored state (epoch "
            f"{stored.coordinator.epoch}) implies another assignment"
        )
    if previous is None or published.lineage != previous.lineage:
        return None
    if published.epoch > previous.epoch + 1:
        # an epoch between them was stored, and its operator died before it published it
        return None
    if published.epoch > previous.epoch:
        # A split that another host has to let go of first is decided now, and published later.
        former = replace(published, epoch=previous.epoch, undiscovered=previous.undiscovered)
        is_same = key(former) == key(previous) and not stored.coordinator.revoking
        if is_same and not _is_raised(stored.coordinator, published.epoch):
            return f"an epoch for nothing: {published.epoch} says what {previous.epoch} says"
        return None
    # Starts and retained splits are left out when no one needs them any more; a host that waits is
    # not addressed.
    if _decision(published) != _decision(previous):
        return f"rule 10, fencing: epoch {published.epoch} was published before, with other owners"
    return None


def _is_raised(state: CoordinatorState[Any], epoch: int) -> bool:
    """Whether the number is that of a host that waits at the gate.

    Then it grew without a decision.
    """
    waiting = [
        h.report
        for h in state.hosts.values()
        if h.phase is HostPhase.RECOVERING and h.report is not None
    ]
    return any(report.epoch == epoch for report in waiting)


def _decision(assignment: Assignment) -> Any:
    return assignment.epoch, assignment.owners, assignment.parallelism


# --- readers (rules 1, 2, 9) ----------------------------------------------------------------------


def adoption(host: ReaderHost, base: StreamOffset) -> None:
    """Rule 10: an incarnation adopts what is meant for it.

    Raises:
        Violation: it adopts something else.
    """
    assignment = host.assignment
    if assignment is None or base.epoch == host.durable.epoch:
        return
    addressed = assignment.incarnations.get(host.name)
    if addressed != host.incarnation or assignment.lineage < host.lineage:
        raise Violation(
            f"rule 10, fencing: incarnation {host.incarnation} adopts what is meant for {addressed}"
        )
    if base.epoch < host.durable.epoch:
        raise Violation(
            f"rule 10, fencing: epoch goes back from {host.durable.epoch} to {base.epoch}"
        )


def replay(log: Log, planned: Planned) -> None:
    """Rule 9: a logged micro-batch is planned again as it was planned first.

    Raises:
        Violation: it is not.
    """
    if planned != log.planned:
        raise Violation(f"rule 9, pure planning: a replay reads {planned} instead of {log.planned}")


def delivered_after(
    delivered: Delivered,
    planned: Planned,
    end: StreamOffset,
    lives: Lives,
    *,
    known: Lives | None = None,
    may_repeat: bool = False,
) -> dict[Record, int]:
    """What the sink has after a micro-batch.

    Args:
        delivered: what it has before.
        planned: ranges of the micro-batch.
        end: of the micro-batch.
        lives: what exists.
        known: see `Admin.set`.
        may_repeat: whether it may get records again.

    Raises:
        Violation: it would get records twice, or miss some; or planning is not what it was.
    """
    result = dict(delivered)
    if planned and tuple(reader for reader, _ in planned) != tuple(end.readers):
        raise Violation("rule 9, pure planning: a micro-batch has not one task per reader")
    for reader, ranges in planned:
        for piece in ranges:
            _check_piece(piece, end, lives, known or lives)
            split = piece.split_id, life_of(end.attributes.get(piece.split_id, {}).get(IDENTITY))
            reached, start, stop = result.get(split, 0), int(piece.start or 0), int(piece.end or 0)
            follows = start <= reached if may_repeat else piece.start == reached
            if not follows or stop < start:
                raise Violation(_gap(piece, reached))
            if end.owners[piece.split_id] != reader:
                raise Violation(
                    f"rule 1, one owner: reader {reader} reads {piece.split_id} of another"
                )
            result[split] = max(reached, stop) if may_repeat else stop
    return result


def _check_piece(piece: SplitRange, end: StreamOffset, lives: Lives, known: Lives) -> None:
    told = end.attributes.get(piece.split_id, {})
    life, now = life_of(told.get(IDENTITY)), lives.get(piece.split_id)
    if life not in {now, known.get(piece.split_id)}:
        raise Violation(
            f"rule 2, nothing lost: {piece.start} to {piece.end} of {piece.split_id} are planned in"
            f" life {life} of its topic, which is in life {now}"
        )
    if (stop := told.get(STOP)) is not None and int(piece.end or 0) > stop:
        raise Violation(
            f"rule 2, exactly once: {piece.split_id} is read to {piece.end}, its end is {stop}"
        )


def _gap(piece: SplitRange, delivered: int) -> str:
    start, end = int(piece.start or 0), int(piece.end or 0)
    if start <= delivered:
        return (
            f"rule 2, exactly once: of {piece.split_id} {delivered} records are delivered, next is"
            f" {start} to {end}"
        )
    return (
        f"rule 2, nothing lost: records {delivered} to {start} of {piece.split_id} are never"
        " delivered"
    )


# --- the end (liveness) ---------------------------------------------------------------------------


def unfinished(operator: Operator, drivers: Iterable[Driver]) -> str | None:
    """What is missing when nothing can happen any more to a bounded source; None if all is well."""
    if going := [driver.name for driver in drivers if not driver.is_done]:
        return f"liveness: the queries of hosts {going} never end"
    if not operator.enumerator.is_finished():
        return "liveness: the source never finishes, although its queries have ended"
    return None


def has_rest(operator: Operator, host: str) -> bool:
    """Return whether the application of a host that has ended is started again.

    The operator does so for splits of the host, and the user is asked to for splits of no one.
    """
    state, source = operator.coordinator.state, operator.coordinator.source
    return unread(state, source, host) != frozenset() or bool(operator.enumerator.state.unassigned)


def ended(operator: Operator, missing: Iterable[str | SplitId]) -> str | None:
    """Whether a source has ended although something of it was not read to its end.

    Topics that the user names and that have never existed, or splits of a cluster that is not read
    now.
    """
    if operator.enumerator.is_finished():
        return f"rule 2, nothing lost: the source ended without {sorted(missing, key=str)}"
    return None


def stopped(operator: Operator, lives: Lives) -> frozenset[SplitId]:
    """Recreated splits that are not read because the user has to decide, and is told so."""
    told = [
        p
        for p in operator.enumerator.problems().values()
        if getattr(p, "reason", "") == "SplitsRecreated"
    ]
    return frozenset(s for s, life in lives.items() if life != FIRST_LIFE) if told else frozenset()


def unsettled(
    operator: Operator, exists: Iterable[SplitId], wanted: Wanted, setting: Setting
) -> str | None:
    """What is missing when nothing can happen any more; None if all is well."""
    state = operator.coordinator.state
    owned, there = frozenset(state.owners), frozenset(exists)
    if there - owned:
        return f"liveness: {sorted(there - owned)} are never assigned"
    if owned - there:
        return f"liveness: {sorted(owned - there)} do not exist any more, and stay assigned"
    if (problem := _unlike(state, wanted)) is not None:
        return problem
    if state.revoking:
        return f"liveness: {sorted(state.revoking)} are never let go of"
    if (problem := _silent(state)) is not None:
        return problem
    if not setting.is_periodic and len(state.no_more_splits) < state.parallelism:
        return (
            f"liveness: only readers {sorted(state.no_more_splits)} learn that there are no more"
            " splits"
        )
    budget = setting.budget
    is_stirred = (
        budget.shrinks
        or setting.is_bounded
        or budget.blind
        or budget.edits
        or setting.strategy != "RoundRobin"
    )
    if not is_stirred and spread(state.owners, state.parallelism) > 1:
        return f"rule 3, balanced: {dict(state.owners)} over {state.parallelism} readers in the end"
    return None


def _unlike(state: CoordinatorState[Any], wanted: Wanted) -> str | None:
    if state.parallelism != wanted.parallelism:
        return f"liveness: parallelism stays {state.parallelism}, {wanted.parallelism} is wanted"
    roles = {name: host.role for name, host in state.hosts.items()}
    if roles != dict.fromkeys(wanted.hosts, HostRole.MEMBER):
        return f"liveness: hosts stay {roles}, {wanted.hosts} are wanted"
    return None


def _silent(state: CoordinatorState[Any]) -> str | None:
    for name, host in state.hosts.items():
        if host.phase is not HostPhase.ACTIVE:
            return f"liveness: host {name} stays {host.phase.value}"
        if host.acknowledged_epoch != state.epoch:
            return (
                f"liveness: host {name} never acknowledges epoch {state.epoch}, only"
                f" {host.acknowledged_epoch}"
            )
    return None
