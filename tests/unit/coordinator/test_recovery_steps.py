"""Small steps of a recovery: who is believed, what comes back, and what a host is told again."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import IDENTITY, SourceEvent, SplitId
from balanced_source.coordinator import CoordinatorState, HostState
from balanced_source.coordinator.recovery import Recovery, _readers, _uncovered, recover
from balanced_source.coordinator.state import HostRole
from balanced_source.documents.assignment import NumberedEvent
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HostPhase
from support.world import kafka_source, partition_split

A, B, C, D = (("c", "t", number) for number in range(4))
MANY = [("c", "t", number) for number in range(10, 20)]


def host(name: str, positions: dict[SplitId, int], **changes: Any) -> HostState:
    """A host that is known from epoch 1, and waits at the gate with these positions."""
    of_host = {"phase", "known_from", "role", "addressed_epoch"} & changes.keys()
    own = {key: changes.pop(key) for key in of_host}
    report = HostReport(**{"incarnation": 2, "epoch": 6, "host": name, **changes})
    values = {"incarnation": 2, "phase": HostPhase.RECOVERING, "known_from": 1, **own}
    return HostState(report=replace(report, positions=positions), **values)


def state_of(
    hosts: tuple[HostState, ...], owners: dict[SplitId, int], **changes: Any
) -> CoordinatorState[Any]:
    return CoordinatorState(
        **{
            "epoch": 7,
            "parallelism": 2,
            "hosts": {str(number): each for number, each in enumerate(hosts)},
            "owners": owners,
            "splits": {s: partition_split(s) for s in owners},
            **changes,
        }
    )


def recovered(state: CoordinatorState[Any]) -> Recovery[Any]:
    found = recover(state, kafka_source())
    assert found is not None
    return found


def test_a_first_word_does_not_take_a_split_from_a_host_that_was_known_before() -> None:
    """What was decided knowing the owner is no guess: the report of the other host is older."""
    hosts = (
        host("0", {B: 9}, owners={B: 0}),
        host("1", {A: 4, C: 5}, owners={A: 1, C: 1}, known_from=0),
    )

    found = recovered(state_of(hosts, {A: 0, B: 0, C: 3}, parallelism=4))

    assert found.state.owners == {B: 0, C: 1}
    assert [s.split_id for s in found.back[0]] == [A]


def test_splits_come_back_in_the_order_of_their_readers() -> None:
    """Not in that in which they were assigned."""
    state = state_of((host("0", {}),), {D: 3, A: 2, C: 0, B: 1}, parallelism=4)
    report = state.hosts["0"].report
    assert report is not None

    found = _uncovered(state, {"0": report})

    assert [(reader, [s.split_id for s in given]) for reader, given in found.items()] == [
        (0, [C]),
        (1, [B]),
        (2, [A]),
        (3, [D]),
    ]


FORMER = HostReport(incarnation=1, epoch=7, positions={A: 9})


@pytest.mark.parametrize(
    ("changes", "others", "is_older"),
    [
        ({"former": FORMER}, (), True),
        ({}, (), False),
        ({"former": FORMER, "hosts": ("0", "1")}, (), False),
        ({"former": FORMER, "epoch": 0}, (), False),
        ({"former": FORMER}, (HostState(role=HostRole.JOINING),), False),
    ],
    ids=["older", "no former report", "other hosts then", "lost", "another host now"],
)
def test_a_checkpoint_is_an_older_copy_where_a_former_report_of_the_only_host_had_more(
    changes: dict[str, Any], others: tuple[HostState, ...], *, is_older: bool
) -> None:
    positions = {} if changes.get("epoch") == 0 else {A: 3}

    found = recovered(state_of((host("0", positions, **changes), *others), {A: 0}))

    assert found.is_older is is_older
    passed = found.state.hosts["0"].report
    assert passed is not None
    assert passed.former is None, "it matters at the gate only"


def test_a_host_that_passes_the_gate_is_addressed_from_the_next_epoch_on() -> None:
    hosts = (
        host("0", {A: 9}, known_from=0),
        host("1", {B: 8}, phase=HostPhase.ACTIVE, addressed_epoch=3, known_from=2),
    )

    after = recovered(state_of(hosts, {A: 0, B: 1})).state.hosts

    assert [(h.phase, h.addressed_epoch, h.known_from) for h in after.values()] == [
        (HostPhase.ACTIVE, 8, 8),
        (HostPhase.ACTIVE, 3, 2),
    ]


def test_only_readers_of_a_host_that_comes_back_start_without_any_news() -> None:
    hosts = (host("0", {A: 9}), host("1", {B: 8}, phase=HostPhase.ACTIVE, addressed_epoch=1))
    events = tuple(
        NumberedEvent(number=number, subtask_id=number % 2, event=SourceEvent(name="hello"))
        for number in range(1, 5)
    )
    state = state_of(
        hosts, {A: 0, B: 1}, outbox=events, no_more_splits=frozenset({0, 1, 2}), parallelism=4
    )

    after = recovered(state).state

    assert [event.number for event in after.outbox] == [1, 3]
    assert after.no_more_splits == {1}


@pytest.mark.parametrize(("epoch", "has_adopted"), [(0, False), (1, True), (6, True)])
def test_a_reader_tells_where_it_is_and_whether_its_host_has_adopted_anything(
    epoch: int, *, has_adopted: bool
) -> None:
    state = state_of((host("0", {A: 9}, epoch=epoch, location="zone-a"),), {A: 0})

    (first, second) = recovered(state).readers.values()

    assert (first.location, first.has_adopted) == ("zone-a", has_adopted)
    assert (second.location, second.has_adopted) == ("zone-a", has_adopted)


def test_a_reported_split_belongs_to_its_owner_then_to_its_former_reader_then_to_any() -> None:
    """Always to a reader of the host that reports it."""
    positions = {D: 1, C: 2, B: 3, A: 4}
    hosts = (host("0", positions, owners={A: 0, B: 2, C: 1}), host("1", {}))

    found = recovered(state_of(hosts, {A: 2}, parallelism=4))

    assert {
        reader: [s.split_id for s in info.reported_splits] for reader, info in found.readers.items()
    } == {0: [C, D], 1: [], 2: [A, B], 3: []}


@pytest.mark.parametrize(("topic_id", "offset"), [("now", 7), ("former", 3)])
def test_a_reported_split_of_another_life_keeps_its_own_position(
    topic_id: str, offset: int
) -> None:
    report = HostReport(
        incarnation=2, epoch=6, retained={A: 3}, attributes={A: {IDENTITY: topic_id}}
    )
    state = state_of((host("0", {}),), {A: 1}, splits={A: partition_split(A, 7, topic_id="now")})

    found = _readers(state, kafka_source(), {"0": report}, {})

    assert [s.offset for s in found[1].retained_splits] == [offset]


@pytest.mark.parametrize(
    ("known_from", "is_first"), [((8, 7), True), ((7, 8), True), ((7, 7), False)]
)
def test_one_new_host_among_those_without_readers_makes_a_first_report(
    known_from: tuple[int, int], *, is_first: bool
) -> None:
    hosts = (
        host("0", {A: 3}),
        *(
            host(str(number), {}, known_from=first, role=HostRole.LEAVING)
            for number, first in enumerate(known_from, 1)
        ),
    )
    state = state_of(hosts, {A: 0})
    given = {name: h.report for name, h in state.hosts.items() if h.report is not None}

    found = _readers(state, kafka_source(), given, {})

    assert [found[reader].is_first_report for reader in (0, 1)] == [is_first, False]


def test_splits_of_hosts_that_continue_and_those_without_an_owner_hide_no_other() -> None:
    """All splits of the host that comes back are where it says, whatever else it reports."""
    owned = MANY[:4]
    back = host("0", dict.fromkeys(MANY, 9), known_from=0)
    active = host("1", {A: 8}, phase=HostPhase.ACTIVE, addressed_epoch=1)
    state = state_of((back, active), {**dict.fromkeys(owned, 0), A: 1})

    after = recovered(state).state

    assert {s: after.splits[s].offset for s in owned} == dict.fromkeys(owned, 9)
    assert after.splits[A].offset == 5


def test_a_position_of_another_life_of_a_split_says_nothing_about_this_one() -> None:
    """Of two hosts that retain it, only one has read this very split."""
    known = {A: {IDENTITY: "now"}}
    former = {A: {IDENTITY: "former"}}
    hosts = (
        host("0", {}, known_from=0, attributes=known, retained={A: 6}),
        host("1", {}, known_from=0, attributes=former, retained={A: 90}),
    )
    state = state_of(hosts, {A: 0}, splits={A: partition_split(A, 5, topic_id="now")})

    assert [s.offset for s in recovered(state).back[0]] == [6]
