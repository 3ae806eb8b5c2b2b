"""When changes by others are a fight between two autoscalers."""

import pytest

from balanced_source_operator.controller.autoscaling import Policy, Rivalry
from balanced_source_operator.controller.autoscaling.rivalry import SHORTEST_WINDOW

POLICY = Policy(min_readers=1, max_readers=2, scale_down_delay=60.0)


def after(*steps: tuple[float, int, int]) -> Rivalry:
    state = Rivalry()
    for now, before, written in steps:
        state = state.wrote(now, before=before, after=written)
    return state


def test_three_undone_changes_are_a_fight() -> None:
    steps = [(0.0, 7, 2), (15.0, 7, 2), (30.0, 7, 2), (45.0, 6, 2)]

    assert not after(*steps[:3]).is_fight(POLICY, 45.0)
    assert after(*steps).is_fight(POLICY, 45.0)
    assert after(*steps).found == 6


def test_own_changes_are_none() -> None:
    steps = [(float(number), number, number + 1) for number in range(9)]

    assert after(*steps) == Rivalry(written=9)


@pytest.mark.parametrize(("delay", "window"), [(60.0, SHORTEST_WINDOW), (300.0, 1200.0)])
def test_a_fight_is_over_when_its_changes_are_old(delay: float, window: float) -> None:
    policy = Policy(min_readers=1, max_readers=2, scale_down_delay=delay)
    state = after((0.0, 7, 2), (1.0, 7, 2), (2.0, 7, 2), (3.0, 7, 2))

    assert state.is_fight(policy, 1.0 + window)
    assert not state.is_fight(policy, 1.1 + window)


def test_changes_that_are_undone_seldom_are_no_fight() -> None:
    steps = [(number * SHORTEST_WINDOW, 7, 2) for number in range(9)]

    assert not after(*steps).is_fight(POLICY, steps[-1][0])
