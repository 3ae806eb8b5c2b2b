"""What the gate makes of the reports of hosts that come back."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import IDENTITY, STOP, SplitId
from balanced_source.coordinator import CoordinatorState, HostState
from balanced_source.coordinator.recovery import (
    Recovery,
    _readers,
    is_blank,
    recover,
    waiting_for,
)
from balanced_source.coordinator.state import HostRole
from balanced_source.coordinator.tracker import SplitAssignmentTracker
from balanced_source.documents.report import HostReport
from balanced_source.errors import ContractViolationError
from balanced_source.lifecycles import HostPhase
from support.world import kafka_source, partition_split

A, B, C, D = (("c", "t", number) for number in range(4))


def host(report: HostReport | None, **changes: Any) -> HostState:
    """A host that is known from epoch 1, and waits at the gate with this report."""
    values: dict[str, Any] = {"incarnation": 2, "phase": HostPhase.RECOVERING, "known_from": 1}
    return HostState(**{**values, "report": report, **changes})


def reports(positions: dict[SplitId, int], epoch: int = 6, **changes: Any) -> HostReport:
    return HostReport(incarnation=2, epoch=epoch, positions=positions, **changes)


def state_of(
    hosts: dict[str, HostState], owners: dict[SplitId, int] | None = None, **changes: Any
) -> CoordinatorState[Any]:
    owners = owners or {}
    return CoordinatorState(
        **{
            "epoch": 7,
            "parallelism": 2,
            "hosts": hosts,
            "owners": owners,
            "splits": {s: partition_split(s) for s in owners},
            **changes,
        }
    )


def recovered(state: CoordinatorState[Any]) -> Recovery[Any]:
    found = recover(state, kafka_source())
    assert found is not None
    return found


def shown(recovery: Recovery[Any]) -> dict[int, tuple[dict[SplitId, int], dict[SplitId, int]]]:
    """Reader → positions that it reads, and those that it retains."""
    return {
        reader: (
            {s.split_id: s.offset for s in info.reported_splits},
            {s.split_id: s.offset for s in info.retained_splits},
        )
        for reader, info in recovery.readers.items()
    }


def test_the_host_with_the_latest_epoch_holds_a_split() -> None:
    """The other one let go of it when it registered, and its checkpoint cannot know that."""
    hosts = {
        "0": host(reports({A: 1, B: 2, C: 3}, epoch=5)),
        "1": host(reports({D: 4, B: 8, C: 9}, epoch=6, host="1")),
    }

    found = recovered(state_of(hosts))

    assert shown(found) == {0: ({A: 1}, {B: 2, C: 3}), 1: ({B: 8, C: 9, D: 4}, {})}
    assert found.state.retained == {A, B, C, D}, "until someone decides about them"
    assert found.is_full


def test_two_hosts_that_hold_a_split_in_one_epoch_are_named() -> None:
    hosts = {"0": host(reports({A: 1, B: 2})), "1": host(reports({C: 4, B: 8}, host="1"))}

    with pytest.raises(
        ContractViolationError, match=r"split c/t/1 is reported by host 0 and by host 1: one of"
    ):
        recover(state_of(hosts), kafka_source())


def test_hosts_that_run_no_reader_report_through_the_first_reader() -> None:
    """Parallelism fell, or they leave. A split with an owner has its position from its holder."""
    hosts = {
        "0": host(reports({A: 1, B: 9})),
        "1": host(reports({C: 3}, host="1", retained={D: 4, B: 2}), role=HostRole.LEAVING),
    }

    found = recovered(state_of(hosts, {A: 0, B: 1}, retained=frozenset({D})))

    assert shown(found) == {0: ({A: 1}, {C: 3, D: 4}), 1: ({B: 9}, {})}


def test_readers_of_all_hosts_come_in_the_order_of_their_numbers() -> None:
    """Otherwise an enumerator that serves the first comer would give out splits in any order."""
    hosts = {"0": host(reports({A: 1})), "1": host(reports({B: 9}, host="1"))}

    assert list(recovered(state_of(hosts, parallelism=4)).readers) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("known_from", "since", "epoch", "needs_start"),
    [
        (1, None, 6, False),
        (1, 1, 6, False),
        (1, 5, 6, False),
        (1, 6, 6, False),
        (1, 7, 6, True),
        (1, 0, 6, True),
        (0, 7, 6, False),
    ],
)
def test_a_host_needs_a_start_for_what_was_assigned_after_its_checkpoint(
    known_from: int, since: int | None, epoch: int, *, needs_start: bool
) -> None:
    """What it holds by that name is of former times: the split moved away and came back."""
    tracker: SplitAssignmentTracker = SplitAssignmentTracker(
        by_checkpoint={} if since is None else {since: {A: 0}}
    )
    state = state_of(
        {"0": host(reports({A: 9}, epoch=epoch), known_from=known_from)}, {A: 0}, tracker=tracker
    )

    found = recovered(state)

    assert (A in found.state.tracker.epochs()) is needs_start


@pytest.mark.parametrize(
    ("phases", "has_history", "waits_for"),
    [
        (("RECOVERING", "EXPECTED"), False, ()),
        (("RECOVERING", "EXPECTED"), True, ("1",)),
        (("RECOVERING", "LOST"), False, ("1",)),
        (("RECOVERING", "RECOVERING"), True, ()),
        (("RECOVERING", "ACTIVE"), True, ()),
        (("EXPECTED", "LOST"), True, ()),
    ],
)
def test_the_gate_waits_for_hosts_that_may_hold_splits(
    phases: tuple[str, ...], waits_for: tuple[str, ...], *, has_history: bool
) -> None:
    hosts = {str(n): host(reports({}), phase=HostPhase[phase]) for n, phase in enumerate(phases)}
    state = state_of(hosts, has_history=has_history)
    expected = tuple(name for name in waits_for if hosts[name].phase.name in phases or has_history)

    assert waiting_for(state) == expected


@pytest.mark.parametrize(
    ("role", "known_from", "is_waited_for"),
    [
        (HostRole.MEMBER, 1, True),
        (HostRole.JOINING, 0, False),
        (HostRole.LEAVING, 0, True),
        (HostRole.LEAVING, 1, False),
        (HostRole.DRAINING, 0, True),
    ],
)
def test_the_role_of_a_host_decides_whether_it_is_waited_for(
    role: HostRole, known_from: int, *, is_waited_for: bool
) -> None:
    missing = HostState(role=role, known_from=known_from)
    state = state_of({"0": host(reports({})), "1": missing}, has_history=True)

    assert waiting_for(state) == (("1",) if is_waited_for else ())
    assert (recover(state, kafka_source()) is None) is is_waited_for


def test_a_host_that_joins_does_not_make_a_recovery_partial() -> None:
    joins = HostState(role=HostRole.JOINING)

    assert recovered(state_of({"0": host(reports({A: 1})), "1": joins}, {A: 0})).is_full
    active = host(reports({B: 1}, host="1"), phase=HostPhase.ACTIVE, addressed_epoch=1)
    assert not recovered(state_of({"0": host(reports({A: 1})), "1": active}, {A: 0})).is_full


def test_beside_an_active_host_only_the_splits_of_the_other_one_come_back() -> None:
    hosts = {
        "0": host(reports({A: 9}, owners={A: 0})),
        "1": host(reports({B: 8}, host="1"), phase=HostPhase.ACTIVE, addressed_epoch=1),
    }

    found = recovered(state_of(hosts, {A: 0, C: 0, B: 1, D: 1}))

    assert {s: [x.split_id for x in back] for s, back in found.back.items()} == {0: [C]}
    assert found.state.owners == {A: 0, B: 1, D: 1}
    assert found.state.splits.keys() == {A, B, D}
    assert found.state.retained == {C}
    assert found.guessed is None


@pytest.mark.parametrize(
    ("identity", "stop"), [("now", 50), ("former", 90)], ids=["the same split", "another split"]
)
def test_the_stop_that_a_host_knows_of_a_split_that_it_retains_counts(
    identity: str, stop: int
) -> None:
    """A new look-up may have found another end."""
    known = {A: {IDENTITY: identity, STOP: 50}}
    report = reports({}, retained={A: 5}, attributes=known)
    found_again = replace(partition_split(A), topic_id="now", stopping_offset=90)
    state = state_of({"0": host(report, known_from=0)}, {A: 0}, splits={A: found_again})

    assert [s.stopping_offset for s in recovered(state).back[0]] == [stop]


@pytest.mark.parametrize(
    ("position", "known", "expected"), [(9, 5, 9), (3, 5, 3), (None, 5, 5), (None, None, None)]
)
def test_the_first_word_of_a_holder_counts_also_backwards(
    position: int | None, known: int | None, expected: int | None
) -> None:
    """What was decided without knowing the host is a guess."""
    if position is None:
        report = reports({}, retained={} if known is None else {A: known})
    else:
        report = reports({A: position}, attributes={A: {STOP: 50}}, owners={A: 0})
    state = state_of({"0": host(report, known_from=0)}, {A: 1, B: 0})

    found = recovered(state)

    if position is not None:
        assert found.state.owners == {A: 0}, "the reader that reads it keeps it"
        assert found.state.splits[A].offset == expected
        assert found.state.splits[A].stopping_offset == 50
    else:
        assert A not in found.state.owners
        assert found.readers[0].retained_splits == (
            () if expected is None else (partition_split(A, expected),)
        )
    assert {x.split_id for back in found.back.values() for x in back} >= {B}


@pytest.mark.parametrize(
    ("first", "second", "is_guessed"),
    [(0, 0, True), (0, 1, False), (1, 0, False), (1, 1, False)],
)
def test_what_was_decided_is_a_guess_if_no_host_was_known(
    first: int, second: int, *, is_guessed: bool
) -> None:
    hosts = {
        "0": host(reports({A: 1}), known_from=first),
        "1": host(reports({}, epoch=0, host="1"), known_from=second),
    }

    found = recovered(state_of(hosts, {A: 0, B: 0}))

    assert (found.guessed is not None) is is_guessed
    blank = {name: host(reports({}, epoch=0, host=name), known_from=0) for name in ("0", "1")}
    assert recovered(state_of(blank, {A: 0})).guessed is None, "no host holds anything"


@pytest.mark.parametrize(
    "report",
    [
        HostReport(incarnation=2, epoch=1),
        HostReport(incarnation=2, positions={A: 0}),
        HostReport(incarnation=2, retained={A: 0}),
    ],
    ids=["an epoch", "a split", "a position of a split that it gave away"],
)
def test_a_host_that_brings_anything_has_a_past(report: HostReport) -> None:
    assert not is_blank(report)
    assert is_blank(HostReport(incarnation=2, owners={A: 0}))


@pytest.mark.parametrize(("known_from", "is_first"), [(8, True), (7, False)])
def test_a_reader_reports_first_for_a_host_without_readers_that_is_new(
    known_from: int, *, is_first: bool
) -> None:
    """It carries what that host holds, of which the state knows nothing."""
    hosts = {
        "0": host(reports({A: 3})),
        "1": host(reports({B: 4}), known_from=known_from),
    }
    found = _readers(
        state_of(hosts, {A: 0}, parallelism=1),
        kafka_source(),
        {name: waiting.report for name, waiting in hosts.items() if waiting.report is not None},
        {},
    )

    assert list(found) == [0]
    assert found[0].is_first_report is is_first
