"""What a report and the documents in store say of the coordinator's state, step by step."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import ReaderInfo, Source, SourceEvent
from balanced_source.coordinator import CoordinatorState, HostState
from balanced_source.coordinator.registration import (
    absorbed,
    is_ahead,
    is_outdated,
    registered,
    started_over,
    unclaimed,
    with_reported,
)
from balanced_source.coordinator.state import HostRole, Revocation
from balanced_source.coordinator.view import assignment_of, visible_owners
from balanced_source.documents.assignment import Assignment, NumberedEvent
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HostPhase
from support.numbers_source import NumbersSource
from support.world import kafka_source, partition_split

A, B, C = ("c", "t", 0), ("c", "t", 1), ("c", "t", 2)


HOST = HostState(
    incarnation=3,
    phase=HostPhase.ACTIVE,
    addressed_epoch=6,
    known_from=2,
    report=HostReport(incarnation=3, epoch=6, positions={A: 7}),
)
STATE: CoordinatorState[Any] = CoordinatorState(
    lineage=2,
    epoch=7,
    parallelism=2,
    hosts={"0": HOST},
    owners={A: 0, B: 1},
    splits={A: partition_split(A), B: partition_split(B)},
)
TWO_HOSTS = replace(STATE, hosts={"0": HOST, "1": replace(HOST, report=None)})
ADOPTED = HostReport(incarnation=3, lineage=2, epoch=7, owners={A: 0, B: 1})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"lineage": 3, "epoch": 0}, True),
        ({"lineage": 1, "epoch": 9}, False),
        ({"epoch": 8}, True),
        ({"epoch": 8, "incarnation": 2}, False),
        ({"epoch": 8, "incarnation": 4}, True),
        ({"epoch": 8, "host": "5"}, False),
        ({"owners": {A: 0}}, True),
        ({"owners": {A: 0}, "epoch": 6}, False),
        ({"owners": {A: 0}, "incarnation": 4}, False),
    ],
)
def test_a_host_knows_more_than_an_older_copy_of_the_state(
    changes: dict[str, Any], *, expected: bool
) -> None:
    """It has adopted an epoch that this state never published."""
    assert is_ahead(STATE, replace(ADOPTED, **changes)) is expected


@pytest.mark.parametrize(
    "host",
    [
        replace(HOST, known_from=0),
        replace(HOST, phase=HostPhase.RECOVERING),
        replace(HOST, report=HostReport(incarnation=3, epoch=7)),
    ],
    ids=["first registration", "before the gate", "acknowledged before"],
)
def test_other_owners_prove_nothing_of_such_a_host(host: HostState) -> None:
    other = replace(ADOPTED, owners={A: 1})

    assert not is_ahead(replace(STATE, hosts={"0": host}), other)


def test_a_host_has_adopted_the_owners_of_its_own_readers_only() -> None:
    assert not is_ahead(TWO_HOSTS, replace(ADOPTED, owners={A: 0}))
    assert is_ahead(TWO_HOSTS, ADOPTED), "reader 1 is of the other host"


PUBLISHED = Assignment(lineage=2, epoch=7, parallelism=2, owners={A: 0, B: 1})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"epoch": 6}, False),
        ({"epoch": 8}, True),
        ({"lineage": 1, "epoch": 9}, False),
        ({"lineage": 3, "epoch": 1}, True),
        ({"parallelism": 3}, True),
        ({"owners": {A: 0}}, True),
    ],
)
def test_an_assignment_that_does_not_follow_from_the_state_shows_an_older_copy(
    changes: dict[str, Any], *, expected: bool
) -> None:
    assert is_outdated(STATE, replace(PUBLISHED, **changes)) is expected


@pytest.mark.parametrize(
    ("epoch", "lineage", "expected"), [(0, 1, False), (1, 1, True), (0, 2, True)]
)
def test_without_an_assignment_only_a_state_that_decided_nothing_is_trusted(
    epoch: int, lineage: int, *, expected: bool
) -> None:
    assert is_outdated(replace(STATE, epoch=epoch), None, lineage) is expected


@pytest.mark.parametrize(
    ("seen", "least", "lineage", "epoch"),
    [
        (None, 0, 3, 7),
        (None, 9, 9, 7),
        (HostReport(incarnation=1, lineage=5, epoch=3), 0, 6, 7),
        (HostReport(incarnation=1, lineage=2, epoch=9), 0, 3, 9),
        (replace(PUBLISHED, lineage=1, epoch=8), 0, 3, 8),
        (HostReport(incarnation=1, lineage=8, epoch=9), 8, 9, 9),
    ],
)
def test_a_new_lineage_is_beyond_all_that_were_seen(
    seen: Assignment | HostReport | None, least: int, lineage: int, epoch: int
) -> None:
    """Of the hosts only the names stay: each of them must register again."""
    event = NumberedEvent(number=1, subtask_id=0, event=SourceEvent(name="hello"))
    state = replace(TWO_HOSTS, outbox=(event,), no_more_splits=frozenset({0}))

    after = started_over(state, seen, least=least)

    assert (after.lineage, after.epoch) == (lineage, epoch)
    assert after.hosts == {name: HostState(phase=host.phase) for name, host in after.hosts.items()}
    assert [host.acknowledged_epoch for host in after.hosts.values()] == [0, 0]
    assert (after.outbox, after.no_more_splits) == ((), frozenset())
    assert (after.owners, after.splits) == (state.owners, state.splits)


def test_a_split_is_visible_unless_another_host_must_let_go_of_it_first() -> None:
    """Its holder may read on when it gets the split back: no other host has it."""
    revoking = {s: Revocation(host="0", epoch=7, split=partition_split(s)) for s in (A, B, C)}

    assert visible_owners(TWO_HOSTS) is TWO_HOSTS.owners
    state = replace(TWO_HOSTS, revoking=revoking)
    assert visible_owners(state) == {A: 0}
    assert visible_owners(replace(state, revoking={C: revoking[C]})) == {A: 0, B: 1}
    document = assignment_of(state, {})
    assert (document.owners, document.retained) == ({A: 0}, {A, B, C})


def test_a_reader_with_a_split_on_its_way_is_not_told_that_nothing_more_comes() -> None:
    """Its query would end before another host has let go of the split."""
    state = replace(TWO_HOSTS, no_more_splits=frozenset({0, 1}))
    revoking = {B: Revocation(host="0", epoch=7, split=partition_split(B))}

    assert assignment_of(state, {}).no_more_splits == {0, 1}
    assert assignment_of(replace(state, revoking=revoking), {}).no_more_splits == {0}
    held = {B: replace(revoking[B], host="1")}
    assert assignment_of(replace(state, revoking=held), {}).no_more_splits == {0, 1}


def test_an_assignment_addresses_hosts_that_have_passed_the_gate() -> None:
    waiting = replace(HOST, addressed_epoch=0)
    leaving = replace(HOST, role=HostRole.LEAVING)

    document = assignment_of(replace(STATE, hosts={"0": HOST, "1": waiting, "2": leaving}), {})

    assert document.incarnations == {"0": 3, "1": 0, "2": 3}
    assert document.idle_hosts == {"2"}


def test_a_new_incarnation_continues_where_the_last_report_of_the_former_one_was() -> None:
    """It may have lost its Spark checkpoint, and its report replaces the former one."""
    after = absorbed(TWO_HOSTS, "0")

    assert after.splits == {A: partition_split(A, 7), B: partition_split(B)}
    assert absorbed(TWO_HOSTS, "1") is TWO_HOSTS, "it has never reported"


@pytest.mark.parametrize(
    ("known_from", "report", "has_history"),
    [
        (2, ADOPTED, False),
        (0, ADOPTED, True),
        (0, HostReport(incarnation=3), False),
    ],
)
def test_a_checkpoint_of_former_times_is_noticed_at_the_first_registration(
    known_from: int, report: HostReport, *, has_history: bool
) -> None:
    state = replace(STATE, hosts={"0": replace(HOST, known_from=known_from)})

    assert registered(state, report).has_history is has_history
    assert registered(replace(state, has_history=True), report).has_history


@pytest.mark.parametrize(("reported", "epoch"), [(6, 7), (9, 9)])
def test_a_registration_waits_at_the_gate_and_epochs_go_beyond_its_own(
    reported: int, epoch: int
) -> None:
    report = replace(ADOPTED, incarnation=4, epoch=reported)

    after = registered(STATE, report)

    assert after.epoch == epoch
    host = after.hosts["0"]
    assert (host.incarnation, host.report, host.known_from) == (4, report, 2)
    assert (host.addressed_epoch, host.acknowledged_epoch) == (0, 0)


def test_unknown_splits_of_a_report_are_shared_among_the_readers_of_its_host() -> None:
    others = {("c", "u", number): number for number in range(4)}
    report = HostReport(
        incarnation=4,
        owners={A: 0, **dict(reversed(others.items()))},
        positions={A: 1, **dict.fromkeys(others, 9)},
    )
    four = replace(TWO_HOSTS, parallelism=4)

    found = unclaimed(four, kafka_source(), report)

    assert {reader: [s.split_id[2] for s in given] for reader, given in found.items()} == {
        0: [0, 2],
        2: [1, 3],
    }
    assert {s.offset for given in found.values() for s in given} == {9}
    leaving = replace(four, hosts={**four.hosts, "2": replace(HOST, role=HostRole.LEAVING)})
    assert unclaimed(leaving, kafka_source(), replace(report, host="2")) == {}


def test_readers_keep_what_they_report_unless_it_has_an_owner() -> None:
    readers = {
        0: ReaderInfo(subtask_id=0, reported_splits=(partition_split(B, 9),)),
        1: ReaderInfo(subtask_id=1, reported_splits=(partition_split(C, 9),)),
    }

    keeps: Source[Any, Any] = NumbersSource(())

    after = with_reported(STATE, readers, keeps)

    assert after.owners == {A: 0, B: 1, C: 1}
    assert after.splits == {A: partition_split(A), B: partition_split(B), C: partition_split(C, 9)}
    assert with_reported(STATE, {0: readers[0]}, keeps) is STATE
    assert with_reported(STATE, readers, kafka_source()) is STATE, "its enumerator decides"
