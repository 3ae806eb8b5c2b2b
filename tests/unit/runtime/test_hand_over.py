"""Whether a host hands its splits over before it restarts, and for how long it may."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.coordinator import CoordinatorState, HostPhase, HostRole, HostState
from balanced_source.coordinator.state import Revocation
from balanced_source.documents.report import HostReport
from balanced_source_operator.controller.restarts import FIRST_MICRO_BATCH, SECOND_APPLICATION
from balanced_source_operator.runtime import hand_over as module
from balanced_source_operator.runtime.hand_over import STEADY, HandOver, Roll

pytestmark = pytest.mark.usefixtures("clock")

FRESH = HostState(phase=HostPhase.ACTIVE)
REPORT = HostReport(host="1", incarnation=1, lineage=1, sequence=1, epoch=3, parallelism=2)
ACTIVE = replace(FRESH, report=REPORT, addressed_epoch=3)
LOST = HostState(phase=HostPhase.LOST)
STATE: CoordinatorState[object] = CoordinatorState(parallelism=2, hosts={"0": ACTIVE, "1": ACTIVE})  # type: ignore[type-var]


class Clock:
    """Moves on by what is added."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def begun(**hosts: HostState) -> bool:
    """Whether host 0 hands over, among these hosts."""
    named = {name.removeprefix("h"): host for name, host in hosts.items()}
    state: CoordinatorState[object] = CoordinatorState(parallelism=2, hosts=named)  # type: ignore[type-var]
    hand_over = HandOver(60.0, lambda: None)
    hand_over.note_turn()
    return hand_over.begin("0", state, others=("1",)) is not None


def test_a_host_hands_over_to_another_one_that_reads() -> None:
    assert begun(h0=ACTIVE, h1=ACTIVE)


@pytest.mark.parametrize(
    "hosts",
    [
        {"h1": ACTIVE},
        {"h0": LOST, "h1": ACTIVE},
        {"h0": replace(ACTIVE, role=HostRole.JOINING), "h1": ACTIVE},
        {"h0": FRESH, "h1": ACTIVE},
        {"h0": ACTIVE},
        {"h0": ACTIVE, "h1": LOST},
        {"h0": ACTIVE, "h1": replace(ACTIVE, role=HostRole.LEAVING)},
    ],
    ids=[
        "unknown",
        "lost",
        "without readers",
        "without a micro-batch",
        "alone",
        "the other is lost",
        "the other leaves",
    ],
)
def test_a_host_restarts_at_once_if_nothing_can_be_handed_over(hosts: dict[str, HostState]) -> None:
    assert not begun(**hosts)


def test_a_host_that_the_spec_does_not_ask_for_takes_over_nothing() -> None:
    """It stays only until the other one reads again: each would wait for the other."""
    assert HandOver(60.0, lambda: None).begin("0", STATE, others=()) is None


def test_one_host_hands_over_at_a_time(clock: Clock) -> None:
    woken: list[float] = []
    hand_over = HandOver(60.0, lambda: woken.append(clock.now))
    hand_over.note_turn()

    assert hand_over.begin("0", STATE, others=("1",))
    assert hand_over.host == "0"
    hand_over.note_end(known={"0", "1"}, present={"0", "1"})
    assert hand_over.host == "0"
    assert woken == [100.0]


def test_hosts_that_need_a_restart_at_once_do_not_replace_each_other(clock: Clock) -> None:
    woken: list[float] = []
    hand_over = HandOver(60.0, lambda: woken.append(clock.now))
    restarted: list[str] = []
    for _ in range(200):
        clock.now += 1
        hand_over.note_turn()
        for host, other in (("0", "1"), ("1", "0")):
            if host not in restarted and hand_over.begin(host, STATE, others=(other,)) is None:
                restarted.append(host)
        hand_over.note_end(known={"0", "1"}, present={"0", "1"})

    assert restarted == ["0", "1"]
    assert len(woken) < 6


def test_a_host_in_its_first_micro_batch_hands_its_splits_over_after_that(clock: Clock) -> None:
    hand_over = HandOver(60.0, lambda: None)
    fresh = replace(STATE, hosts={**STATE.hosts, "0": FRESH}, owners={("a",): 0, ("b",): 1})
    held: list[object] = []
    for seconds in (0.0, 59.0, 1.0):
        clock.now += seconds
        hand_over.note_turn()
        held.append(hand_over.begin("0", fresh, others=("1",)))
        hand_over.note_end(known={"0", "1"}, present={"0", "1"})

    assert held == [FIRST_MICRO_BATCH, FIRST_MICRO_BATCH, None]


def test_a_new_restart_waits_again_for_the_first_micro_batch(clock: Clock) -> None:
    hand_over = HandOver(60.0, lambda: None)
    fresh = replace(STATE, hosts={**STATE.hosts, "0": FRESH}, owners={("a",): 0})
    assert hand_over.begin("0", fresh, others=("1",)) == FIRST_MICRO_BATCH
    for turns_without_a_restart in range(2):
        clock.now += 30 * turns_without_a_restart
        hand_over.note_turn()
        hand_over.note_end(known={"0", "1"}, present={"0", "1"})
    clock.now += 30

    assert hand_over.begin("0", fresh, others=("1",)) == FIRST_MICRO_BATCH


def held_in_first_micro_batch(
    *, others: tuple[str, ...] = ("1",), owner: int = 1, leaving: str | None = None
) -> bool:
    """Whether host 0, which has completed no micro-batch, waits for it.

    Args:
        others: hosts beside it.
        owner: reader that has the only split.
        leaving: host that lets go of another split; None if there is none.
    """
    split: Any = None
    revoking = {} if leaving is None else {("b",): Revocation(host=leaving, epoch=4, split=split)}
    state = replace(
        STATE, hosts={**STATE.hosts, "0": FRESH}, owners={("a",): owner}, revoking=revoking
    )
    return HandOver(60.0, lambda: None).begin("0", state, others=others) == FIRST_MICRO_BATCH


def test_a_host_waits_for_its_first_micro_batch_if_it_gets_splits_that_another_one_can_read() -> (
    None
):
    assert held_in_first_micro_batch(owner=0)
    assert held_in_first_micro_batch(leaving="1")
    assert not held_in_first_micro_batch(owner=0, others=())
    assert not held_in_first_micro_batch()
    assert not held_in_first_micro_batch(leaving="0")


@pytest.mark.parametrize("silent", ["0", "1"])
def test_a_silent_host_neither_hands_over_nor_takes_over(silent: str) -> None:
    hand_over = HandOver(60.0, lambda: None)
    assert hand_over.begin("0", STATE, others=("1",), absent={silent}) is None


def test_a_host_that_does_not_let_go_in_time_restarts_all_the_same(clock: Clock) -> None:
    hand_over = HandOver(60.0, lambda: None)
    for seconds, hands_over in ((0.0, True), (59.0, True), (1.0, False), (1.0, False)):
        clock.now += seconds
        hand_over.note_turn()
        assert (hand_over.begin("0", STATE, others=("1",)) is not None) == hands_over
        hand_over.note_end(known={"0", "1"}, present={"0", "1"})

    hand_over.note_turn()
    hand_over.note_end(known={"0", "1"}, present={"0", "1"})
    hand_over.note_turn()
    assert hand_over.begin("0", STATE, others=("1",)), (
        "its next restart has the whole patience again"
    )


def test_a_host_is_wanted_again_when_its_application_is_gone() -> None:
    hand_over = HandOver(60.0, lambda: None)
    hand_over.note_turn()
    hand_over.begin("0", STATE, others=("1",))

    hand_over.note_turn()
    hand_over.note_end(known={"1"}, present={"0", "1"})
    assert hand_over.host == "0", "its driver is stopping"
    hand_over.note_turn()
    hand_over.note_end(known={"1"}, present={"1"})
    assert hand_over.host is None


def test_a_host_that_need_not_restart_any_more_is_wanted_again() -> None:
    hand_over = HandOver(60.0, lambda: None)
    hand_over.begin("0", STATE, others=("1",))

    hand_over.note_turn()
    hand_over.note_end(known={"0", "1"}, present={"0", "1"})
    assert hand_over.roll == STEADY


MEMBERS = {"0": ACTIVE, "1": ACTIVE}


@pytest.mark.parametrize(
    ("roll", "asked", "known", "wanted"),
    [
        (STEADY, ("0", "1"), MEMBERS, ("0", "1")),
        (STEADY, ("0",), MEMBERS, ("0",)),
        (STEADY, ("0", "1"), {"0": LOST, "1": ACTIVE, "2": ACTIVE}, ("0", "1")),
        (Roll(away="0"), ("0", "1"), MEMBERS, ("1",)),
        (Roll(second="1"), ("0",), {"0": ACTIVE}, ("0", "1")),
        (Roll(away="0", second="1"), ("0",), MEMBERS, ("1",)),
        (STEADY, ("0",), {"0": LOST, "1": ACTIVE}, ("0", "1")),
        (STEADY, ("0",), {"1": ACTIVE}, ("0", "1")),
        (STEADY, ("0",), {"0": LOST, "1": LOST}, ("0",)),
        (STEADY, ("0",), {"0": LOST, "1": replace(ACTIVE, role=HostRole.DRAINING)}, ("0",)),
        (Roll(away="0", second="1"), ("0",), {"0": ACTIVE, "1": LOST}, ("1", "0")),
    ],
    ids=[
        "as asked",
        "one fewer",
        "one fewer while another one is lost",
        "one away",
        "a second one",
        "the second one only",
        "the one that stays is lost",
        "the one that stays has not come",
        "none reads",
        "one that was given up",
        "the second one is lost",
    ],
)
def test_no_host_that_reads_leaves_before_another_one_can_take_over(
    roll: Roll, asked: tuple[str, ...], known: dict[str, HostState], wanted: tuple[str, ...]
) -> None:
    assert roll.hosts(asked, known) == wanted


def test_a_silent_host_that_stays_is_no_reason_to_leave() -> None:
    assert STEADY.hosts(("0",), MEMBERS, {"0"}) == ("0", "1")
    assert STEADY.hosts(("0",), MEMBERS, {"0", "1"}) == ("0",)


def test_a_second_host_takes_over_when_it_has_completed_a_micro_batch() -> None:
    hand_over = HandOver(60.0, lambda: None)
    alone: CoordinatorState[object] = CoordinatorState(parallelism=2, hosts={"0": ACTIVE})  # type: ignore[type-var]
    assert hand_over.begin("0", alone, others=(), second="1") == SECOND_APPLICATION
    assert hand_over.roll == Roll(second="1")

    fresh = replace(STATE, hosts={"0": ACTIVE, "1": FRESH})
    assert hand_over.begin("0", fresh, others=(), second="1") == SECOND_APPLICATION
    hand_over.note_end(known={"0", "1"}, present={"0", "1"})
    assert hand_over.roll == Roll(second="1"), "it has registered, and shown nothing yet"

    first = replace(ACTIVE, report=replace(REPORT, epoch=1), addressed_epoch=1)
    reads = replace(STATE, hosts={"0": ACTIVE, "1": first})
    assert hand_over.begin("0", reads, others=(), second="1") == SECOND_APPLICATION
    assert hand_over.roll == Roll(away="0", second="1")
