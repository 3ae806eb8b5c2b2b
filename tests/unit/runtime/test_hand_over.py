"""Whether a host hands its splits over before it restarts, and for how long it may."""

import pytest

from balanced_source.coordinator import CoordinatorState, HostPhase, HostRole, HostState
from balanced_source_operator.runtime import hand_over as module
from balanced_source_operator.runtime.hand_over import HandOver

pytestmark = pytest.mark.usefixtures("clock")

ACTIVE = HostState(phase=HostPhase.ACTIVE)
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
    return hand_over.begin("0", state)


def test_a_host_hands_over_to_another_one_that_reads() -> None:
    assert begun(h0=ACTIVE, h1=ACTIVE)


@pytest.mark.parametrize(
    "hosts",
    [
        {"h1": ACTIVE},
        {"h0": LOST, "h1": ACTIVE},
        {"h0": HostState(phase=HostPhase.ACTIVE, role=HostRole.JOINING), "h1": ACTIVE},
        {"h0": ACTIVE},
        {"h0": ACTIVE, "h1": LOST},
        {"h0": ACTIVE, "h1": HostState(phase=HostPhase.ACTIVE, role=HostRole.LEAVING)},
    ],
    ids=["unknown", "lost", "without readers", "alone", "the other is lost", "the other leaves"],
)
def test_a_host_restarts_at_once_if_nothing_can_be_handed_over(hosts: dict[str, HostState]) -> None:
    assert not begun(**hosts)


def test_one_host_hands_over_at_a_time(clock: Clock) -> None:
    woken: list[float] = []
    hand_over = HandOver(60.0, lambda: woken.append(clock.now))
    hand_over.note_turn()

    assert hand_over.begin("0", STATE)
    assert hand_over.host == "0"
    hand_over.note_end(known={"0", "1"}, present={"0", "1"})
    assert hand_over.host == "0"
    assert woken == [100.0]


def test_a_host_that_does_not_let_go_in_time_restarts_all_the_same(clock: Clock) -> None:
    hand_over = HandOver(60.0, lambda: None)
    for seconds, hands_over in ((0.0, True), (59.0, True), (1.0, False), (1.0, False)):
        clock.now += seconds
        hand_over.note_turn()
        assert hand_over.begin("0", STATE) == hands_over
        hand_over.note_end(known={"0", "1"}, present={"0", "1"})

    hand_over.note_turn()
    hand_over.note_end(known={"0", "1"}, present={"0", "1"})
    hand_over.note_turn()
    assert hand_over.begin("0", STATE), "its next restart has the whole patience again"


def test_a_host_is_wanted_again_when_its_application_is_gone() -> None:
    hand_over = HandOver(60.0, lambda: None)
    hand_over.note_turn()
    hand_over.begin("0", STATE)

    hand_over.note_turn()
    hand_over.note_end(known={"1"}, present={"0", "1"})
    assert hand_over.host == "0", "its driver is stopping"
    hand_over.note_turn()
    hand_over.note_end(known={"1"}, present={"1"})
    assert hand_over.host is None
