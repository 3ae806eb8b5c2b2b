"""Roles of hosts, epochs of several hosts, and what the context keeps, step by step."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import (
    AsyncCall,
    ReaderInfo,
    SourceEvent,
    SplitId,
    SplitsAssignment,
)
from balanced_source.coordinator.context import CoordinatorContext, PendingCall
from balanced_source.coordinator.effects import ExecuteCall
from balanced_source.coordinator.events import HostGivenUp
from balanced_source.coordinator.membership import (
    _renumbered,
    followed,
    renumbered,
    with_wanted,
    without_lost,
    without_overdue,
)
from balanced_source.coordinator.phase import acknowledged_epoch, source_phase
from balanced_source.coordinator.state import (
    CoordinatorState,
    HostRole,
    HostState,
    Revocation,
    with_next_epoch,
)
from balanced_source.coordinator.state_codec import _coordinator_from_json, _coordinator_to_json
from balanced_source.coordinator.tracker import SplitAssignmentTracker
from balanced_source.documents import assignment
from balanced_source.documents.assignment import NumberedEvent
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HostPhase, SourcePhase
from support.world import kafka_source

A, B, C = (("c", "t", number) for number in range(3))
ACTIVE, LOST, EXPECTED = HostPhase.ACTIVE, HostPhase.LOST, HostPhase.EXPECTED


def split(split_id: SplitId, offset: int = 5) -> Any:
    return kafka_source("c").create_split(split_id, offset, {})


def host(epoch: int = 5, *, phase: HostPhase = ACTIVE, **changes: Any) -> HostState:
    report = HostReport(incarnation=1, epoch=epoch, **changes.pop("report", {}))
    values = {"incarnation": 1, "addressed_epoch": 1, "known_from": 1, **changes}
    return HostState(phase=phase, report=report, **values)


def state_of(*hosts: HostState, **changes: Any) -> CoordinatorState[Any]:
    named = {str(number): each for number, each in enumerate(hosts)}
    return CoordinatorState(**{"epoch": 5, "parallelism": 4, "hosts": named, **changes})


MEMBER, JOINING = HostState(), HostState(role=HostRole.JOINING)
LEAVING = host(role=HostRole.LEAVING)


@pytest.mark.parametrize(
    ("hosts", "epoch"),
    [
        ((host(5), host(7)), 5),
        ((host(7), JOINING), 7),
        ((host(7), MEMBER), 0),
        ((host(7), replace(LEAVING, report=host(6).report)), 6),
        ((JOINING,), 0),
    ],
)
def test_an_epoch_is_acknowledged_by_all_hosts_but_those_that_join(
    hosts: tuple[HostState, ...], epoch: int
) -> None:
    assert acknowledged_epoch(state_of(*hosts)) == epoch


@pytest.mark.parametrize(
    ("hosts", "phase"),
    [
        ((host(5), MEMBER), SourcePhase.ADOPTING),
        ((host(5), host(5)), SourcePhase.READING),
        ((host(5), host(4)), SourcePhase.ADOPTING),
        ((host(5, phase=LOST), MEMBER), SourcePhase.WAITING),
    ],
)
def test_a_source_adopts_as_long_as_one_of_its_hosts_has_yet_to(
    hosts: tuple[HostState, ...], phase: SourcePhase
) -> None:
    assert source_phase(state_of(*hosts)) is phase
    assert source_phase(state_of(*hosts, epoch=0)) is SourcePhase.DISCOVERING


@pytest.mark.parametrize(
    ("report", "revoked_from", "uncovered", "is_kept"),
    [
        ({}, (), (), False),
        ({}, ("0",), (), False),
        ({}, ("0", "1"), (), True),
        ({"positions": {A: 5}}, (), (), True),
        ({"retained": {A: 5}}, (), (), False),
        ({"retained": {A: 5}}, (), (B,), False),
        ({"retained": {A: 5}}, (), (A, B), True),
    ],
)
def test_a_host_leaves_when_its_splits_need_it_no_more(
    report: dict[str, Any],
    revoked_from: tuple[str, ...],
    uncovered: tuple[SplitId, ...],
    *,
    is_kept: bool,
) -> None:
    leaving = host(role=HostRole.LEAVING, report=report)
    revoking = {
        s: Revocation(host=name, epoch=5, split=split(s))
        for s, name in zip((B, C), revoked_from, strict=False)
    }
    tracker: SplitAssignmentTracker = SplitAssignmentTracker(
        by_checkpoint={5: dict.fromkeys(uncovered, 0)} if uncovered else {}
    )

    after = followed(state_of(host(), leaving, revoking=revoking, tracker=tracker))

    assert ("1" in after) is is_kept


@pytest.mark.parametrize(
    ("hosts", "is_overdue"),
    [
        ((host(), MEMBER), True),
        ((host(), MEMBER, MEMBER), True),
        ((host(phase=LOST), MEMBER), True),
        ((MEMBER, MEMBER), False),
        ((LEAVING, MEMBER), False),
        ((host(), JOINING), False),
        ((host(), replace(MEMBER, known_from=3)), False),
        ((host(), host(phase=LOST)), False),
    ],
)
def test_a_host_is_overdue_if_another_member_can_take_over(
    hosts: tuple[HostState, ...], *, is_overdue: bool
) -> None:
    state = state_of(*hosts)

    after = without_overdue(state, "1")

    assert (after["1"].role is HostRole.JOINING and after != state.hosts) is is_overdue
    assert without_overdue(state, "9") is state.hosts


@pytest.mark.parametrize(
    ("others", "role"),
    [
        ((host(),), HostRole.DRAINING),
        ((host(), MEMBER, host(phase=LOST)), HostRole.DRAINING),
        ((host(phase=LOST), LEAVING), HostRole.MEMBER),
        ((host(phase=HostPhase.RECOVERING),), HostRole.MEMBER),
        ((MEMBER,), HostRole.MEMBER),
    ],
)
def test_a_lost_host_is_given_up_if_another_member_reads(
    others: tuple[HostState, ...], role: HostRole
) -> None:
    state = state_of(*others, host(phase=LOST))
    name = str(len(others))

    after = without_lost(state, HostGivenUp(name, 1))

    assert after[name].role is role
    assert {n: h for n, h in after.items() if n != name} == {
        n: h for n, h in state.hosts.items() if n != name
    }


@pytest.mark.parametrize(
    ("hosts", "wanted", "member"),
    [
        ((LEAVING,), ("1", "2"), "1"),
        ((LEAVING, LEAVING), ("5", "2"), "5"),
        ((LEAVING, replace(JOINING, phase=ACTIVE, known_from=1)), ("2", "1"), "1"),
    ],
)
def test_one_host_gets_readers_at_once_if_no_other_has_any(
    hosts: tuple[HostState, ...], wanted: tuple[str, ...], member: str
) -> None:
    """The first one that is wanted, unless another one runs already."""
    after = with_wanted(state_of(*hosts), wanted)

    assert [name for name, each in after.items() if each.role is HostRole.MEMBER] == [member]


def test_the_first_epoch_keeps_what_was_reclaimed_in_it() -> None:
    """Until its host has adopted a split, what was retained counts."""
    tracker: SplitAssignmentTracker = SplitAssignmentTracker().record({A: 0})
    state = state_of(MEMBER, epoch=0, tracker=tracker, reclaimed=frozenset({A, B}))

    after = with_next_epoch(state, settings="digest")

    assert (after.epoch, after.tracker.epoch_of(A), after.reclaimed) == (1, 1, {A})


def context_of(state: CoordinatorState[Any]) -> CoordinatorContext[Any]:
    made: CoordinatorContext[Any] = CoordinatorContext(state)
    made.set_readers({reader: ReaderInfo(subtask_id=reader) for reader in range(4)})
    return made


def owning(*hosts: HostState, **changes: Any) -> CoordinatorState[Any]:
    owners = {A: 0, B: 1, C: 0}
    return state_of(*hosts, owners=owners, splits={s: split(s) for s in owners}, **changes)


def test_a_split_is_revoked_from_its_holder_by_the_next_epoch() -> None:
    """One that is on its way already keeps its epoch, and a host that never came holds nothing."""
    held = {C: Revocation(host="1", epoch=3, split=split(C))}
    context = context_of(owning(host(), MEMBER, revoking=held))

    context.revoke_splits([A, B, C, ("c", "other", 0)])

    after = context.state
    assert {s: (r.host, r.epoch) for s, r in after.revoking.items()} == {A: ("0", 6), C: ("1", 3)}
    assert (after.owners, after.splits, after.retained) == ({}, {}, frozenset())
    again = context_of(after)
    again.revoke_splits([("c", "other", 0)])
    assert again.state is after


@pytest.mark.parametrize(
    ("known_from", "retain", "is_guess"),
    [(0, True, True), (0, False, False), (1, True, False), (1, False, False)],
)
def test_a_revoked_split_stays_a_guess_until_a_host_tells_what_it_holds(
    known_from: int, *, retain: bool, is_guess: bool
) -> None:
    tracker: SplitAssignmentTracker = SplitAssignmentTracker(by_checkpoint={4: {A: 0, B: 0}})
    context = context_of(owning(replace(MEMBER, known_from=known_from), tracker=tracker))

    context.revoke_splits([A], retain=retain)

    assert (context.state.tracker.epoch_of(A) == 4) is is_guess
    assert context.state.tracker.epoch_of(B) == 4
    assert context.state.retained == (frozenset({A}) if retain else frozenset())


def test_positions_and_zones_are_those_of_the_hosts_that_have_reported() -> None:
    first = host(report={"positions": {A: 7}, "zone": "zone-a"})
    second = host(report={"positions": {B: 8}})

    assert first.report is not None
    assert context_of(state_of(first, MEMBER)).split_positions() is first.report.positions
    assert context_of(state_of(first, second, MEMBER)).split_positions() == {A: 7, B: 8}
    assert context_of(state_of(MEMBER)).split_positions() == {}
    zones = context_of(state_of(first, MEMBER))
    assert [zones.zone_of(reader) for reader in range(4)] == ["zone-a", "", "zone-a", ""]


def test_calls_and_events_have_numbers_that_grow() -> None:
    context = context_of(owning(host()))

    for _ in range(2):
        context.issue(PendingCall(AsyncCall(), "handle_listed", None), 1.5)
        context.send_event_to_reader(0, SourceEvent(name="hello"))

    assert [(e.call_id, e.delay) for e in context.turn.effects if isinstance(e, ExecuteCall)] == [
        (1, 1.5),
        (2, 1.5),
    ]
    assert sorted(context.calls) == [1, 2]
    assert [event.number for event in context.state.outbox] == [1, 2]
    assert context.state.events_sent == 2


def test_splits_are_given_out_in_the_order_of_their_ids() -> None:
    context = context_of(state_of(MEMBER))

    context.assign_splits(SplitsAssignment(assignment={1: [split(C), split(A)], 0: [split(B)]}))

    assert list(context.state.owners.items()) == [(A, 1), (B, 0), (C, 1)]
    before = context.state
    context.assign_splits(SplitsAssignment(assignment={1: [split(C)]}))
    assert context.state is before


def test_readers_that_are_renumbered_do_not_depend_on_the_order_of_the_numbers() -> None:
    numbers = renumbered(("0", "1", "2"), ("0", "2"), 4)
    orders = []
    for listed in (numbers, dict(reversed(numbers.items()))):
        context = context_of(state_of(MEMBER, MEMBER, MEMBER))
        context.renumber_readers(listed)
        orders.append([(n, reader.subtask_id) for n, reader in context.readers.items()])

    assert orders[0] == orders[1]
    assert all(number == reader for number, reader in orders[0])


def test_readers_that_are_gone_take_their_events_and_their_end_with_them() -> None:
    events = tuple(
        NumberedEvent(number=reader + 1, subtask_id=reader, event=SourceEvent(name="hello"))
        for reader in range(4)
    )
    state = state_of(
        MEMBER, owners={A: 0, B: 1}, outbox=events, no_more_splits=frozenset({0, 2, 3})
    )

    after = _renumbered(state, {0: 1, 1: 0, 2: 2})

    assert after.owners == {A: 1, B: 0}
    assert after.no_more_splits == {1, 2}
    assert [(event.number, event.subtask_id) for event in after.outbox] == [(1, 1), (2, 0), (3, 2)]
    assert _renumbered(state, {reader: reader for reader in range(4)}) is state
    assert _renumbered(state, {0: 0, 1: 1}).no_more_splits == {0}


def test_sets_are_written_in_order() -> None:
    """A document with the same content has the same text in each process."""
    names = [f"cluster-{number}" for number in range(9)]
    ended = frozenset({32, 8, 1, 64})
    document = assignment.Assignment(
        epoch=1,
        parallelism=65,
        undiscovered=frozenset(names),
        idle_hosts=frozenset(names),
        no_more_splits=ended,
    )

    written = assignment.to_json(document)
    assert (written["undiscovered"], written["idleHosts"]) == (names, names)
    assert written["noMoreSplits"] == [1, 8, 32, 64]
    stored: Any = _coordinator_to_json(state_of(MEMBER, no_more_splits=ended))
    assert stored["noMoreSplits"] == [1, 8, 32, 64]


def test_a_state_of_the_first_release_has_no_requested_rebalance() -> None:
    stored: Any = _coordinator_to_json(state_of(MEMBER, rebalance_nonce=3))
    assert _coordinator_from_json(stored, kafka_source()).rebalance_nonce == 3

    del stored["rebalanceNonce"], stored["loads"]

    assert _coordinator_from_json(stored, kafka_source()).rebalance_nonce == 0
