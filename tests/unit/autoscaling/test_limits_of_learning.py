"""Where each rule that the autoscaler learns by begins and ends, exactly."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source_operator.controller.autoscaling import Policy, Sample, learning
from balanced_source_operator.controller.autoscaling.learning import SETTLED, is_limited
from balanced_source_operator.controller.autoscaling.memory import (
    EXPIRES,
    HOUR,
    AutoscalerMemory,
    Capacity,
    Ceiling,
    Increase,
    Performance,
)
from balanced_source_operator.controller.autoscaling.samples import Interval
from support.loads import STEADY

POLICY = Policy(min_readers=1, max_readers=12)
SLOW = replace(POLICY, trigger=10.0)
NOW = 10_000.0

BEFORE = Increase(readers=2, rate=100.0, arrival=100.0, unread=0, pause=10.0, at=NOW - 100)


def steady(**changes: Any) -> Interval:
    return replace(STEADY, **changes)


def full(unread: int, **changes: Any) -> Interval:
    """An interval with so many unread records at both ends."""
    return steady(available_before=unread, available=unread, **changes)


def reading(readers: int, **changes: Any) -> AutoscalerMemory:
    """What is remembered of so many readers."""
    sample = Sample(at=NOW, readers=readers, unread=0, positions={}, owners={})
    return replace(AutoscalerMemory().observed(sample, now=NOW), **changes)


@pytest.mark.parametrize(
    ("late", "pause", "unread", "expected"),
    [
        (0.09, 11.0, 3001, True),
        (0.1, 11.0, 3001, False),
        (0.09, 11.1, 3001, False),
        (0.09, 11.0, 3000, False),
        (None, 11.0, 3001, False),
        (0.09, None, 3001, False),
    ],
)
def test_readers_that_wait_for_the_trigger_before_much_unread_are_limited(
    late: float | None, pause: float | None, unread: int, *, expected: bool
) -> None:
    assert SLOW.normal_wait == 30.0
    assert is_limited(SLOW, full(unread, late=late, pause=pause)) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"rate": 130.0}, True),
        ({}, {"rate": 129.9}, False),
        ({"unread": 3001}, {"available": 1200}, True),
        ({"unread": 3001}, {"available": 1201}, False),
        ({"unread": 3000}, {"available": 0}, False),
        ({"unread": 3001}, {"available": 2000, "pause": 1.0}, False),
        ({}, {"pause": 3.9}, True),
        ({}, {"pause": 4.0}, False),
        ({"pause": None}, {"pause": 3.9}, False),
        ({}, {"pause": None}, False),
    ],
)
def test_an_increase_has_helped_by_more_read_less_unread_or_less_time(
    before: dict[str, Any], after: dict[str, Any], *, expected: bool
) -> None:
    attempt = replace(BEFORE, **before)
    assert learning._has_helped(SLOW, attempt, 100.0, steady(**after)) is expected


@pytest.mark.parametrize(("before", "after", "gain"), [(2, 4, 1.3), (2, 3, 1.15), (4, 4, 1.0)])
def test_the_least_gain_is_a_share_of_the_ideal_one(before: int, after: int, gain: float) -> None:
    assert learning._least_gain(replace(BEFORE, readers=before), after) == pytest.approx(gain)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"late": 0.9}, Performance(40.0, 5.0)),
        ({"late": 0.89}, None),
        ({"late": None}, None),
        ({"available_before": 3001, "available": 3001}, Performance(40.0, 5.0)),
        ({"available_before": 3000, "available": 3001}, None),
        ({"late": 1.0, "is_steady": False}, None),
        ({"late": 1.0, "pause": None}, None),
    ],
)
def test_only_readers_that_never_waited_show_what_they_can_do(
    changes: dict[str, Any], expected: Performance | None
) -> None:
    found = steady(**{"pause": 5.0, **changes})
    assert learning.shown_by_backlog(SLOW, found) == expected
    if expected is not None:
        shared = replace(SLOW, shares_splits=True)
        assert learning.shown_by_backlog(shared, found) == Performance(25.0, 5.0)


@pytest.mark.parametrize(
    ("adopted_at", "now", "expected"),
    [(None, NOW, True), (NOW, NOW + SETTLED - 1, True), (NOW, NOW + SETTLED, False)],
)
def test_splits_settle_for_a_while_after_readers_were_added(
    adopted_at: float | None, now: float, *, expected: bool
) -> None:
    assert learning._may_settle(replace(BEFORE, adopted_at=adopted_at), now) is expected


def test_an_increase_is_awaited_from_when_its_readers_are_seen_and_for_an_hour() -> None:
    assert learning._awaited(reading(2, attempt=BEFORE), NOW).attempt == BEFORE
    seen = learning._awaited(reading(3, attempt=BEFORE), NOW)
    assert seen.attempt == replace(BEFORE, adopted_at=NOW)
    assert learning._awaited(seen, NOW + HOUR - 1).attempt == seen.attempt
    assert learning._awaited(seen, NOW + HOUR).attempt is None


USUAL = Ceiling(readers=4, rate=100.0, unread=1000)
BLOCKED = Ceiling(readers=4, rate=100.0)


@pytest.mark.parametrize(
    ("ceiling", "changes", "is_over", "exceeded"),
    [
        (USUAL, {"rate": 150.0}, False, 7.0),
        (USUAL, {"rate": 151.0}, True, None),
        (BLOCKED, {"rate": 120.0}, False, 7.0),
        (BLOCKED, {"rate": 121.0}, True, None),
        (BLOCKED, {"rate": 1.0, "readers": 1, "available": 10**6}, False, 7.0),
        (USUAL, {"available": 2000}, False, 7.0),
        (USUAL, {"available": 2001}, True, 100.0),
        (USUAL, {"rate": 120.0, "available": 2401}, True, 100.0),
        (USUAL, {"rate": 121.0, "available": 2421}, True, 7.0),
        (USUAL, {"rate": 50.0, "available": 1001}, True, 100.0),
        (USUAL, {"rate": 49.0, "available": 981}, True, 7.0),
        (USUAL, {"rate": 50.0}, False, 7.0),
        (USUAL, {"rate": 49.0}, True, 7.0),
        (USUAL, {"readers": 3}, True, 7.0),
        (USUAL, {"readers": 5}, False, 7.0),
    ],
)
def test_a_limit_is_forgotten_when_readers_do_more_fall_behind_or_have_other_times(
    ceiling: Ceiling, changes: dict[str, Any], *, is_over: bool, exceeded: float | None
) -> None:
    memory = AutoscalerMemory(ceiling=ceiling, exceeded=7.0)
    after = learning._risen(memory, steady(**changes))

    assert (after.ceiling is None) is is_over
    assert after.exceeded == exceeded


def test_without_a_limit_or_a_measurement_nothing_is_forgotten() -> None:
    for memory, found in (
        (AutoscalerMemory(ceiling=USUAL), None),
        (AutoscalerMemory(exceeded=7.0), steady(rate=10**6)),
    ):
        assert learning._risen(memory, found) is memory


KNOWN = Capacity(rate=100.0, at=NOW, is_measured=True, most=110.0, proven_at=NOW)


@pytest.mark.parametrize(("most", "is_known"), [(110.0, False), (111.0, True), (90.0, False)])
def test_a_refuted_capacity_is_what_readers_once_did_if_that_was_clearly_more(
    most: float, *, is_known: bool
) -> None:
    after = replace(KNOWN, rate=100.0, most=most).refuted()
    assert after.is_measured is is_known
    assert after.rate == max(100.0, most)
    assert after.proven_at < 0


def test_a_capacity_is_lowered_only_to_less_and_only_if_it_was_measured() -> None:
    assert KNOWN.lowered(100.0, NOW + 1) is KNOWN
    after = KNOWN.lowered(99.0, NOW + 1)
    assert (after.rate, after.most, after.at, after.proven_at) == (99.0, 99.0, NOW + 1, NOW + 1)
    unsure = replace(KNOWN, is_measured=False)
    assert unsure.lowered(99.0, NOW + 1) is unsure
    assert unsure.proven(NOW + 1) is unsure
    assert KNOWN.proven(NOW + 1).proven_at == NOW + 1


def test_a_measured_capacity_is_a_lower_bound_after_some_hours() -> None:
    assert KNOWN.at_least(50.0, NOW + EXPIRES - 1).is_measured
    late = KNOWN.at_least(120.0, NOW + EXPIRES)
    assert (late.is_measured, late.rate, late.most) == (False, 120.0, 120.0)
    assert not replace(KNOWN, is_measured=False).at_least(50.0, NOW).is_measured


def test_directions_of_an_hour_count_and_the_newest_move_before_it() -> None:
    memory = AutoscalerMemory()
    assert memory.may_reverse(0.0)
    memory = memory.moved(0.0, is_increase=True)
    assert memory.may_reverse(1.0)
    for at, is_increase in ((10.0, False), (20.0, True), (30.0, False), (40.0, True)):
        memory = memory.moved(at, is_increase=is_increase)
    assert not memory.may_reverse(41.0)
    assert not memory.may_reverse(19.0 + HOUR), "those at 20, 30 and 40 are of this hour"
    assert memory.may_reverse(20.0 + HOUR)
    assert replace(memory, moves=memory.moves[:-1]).may_reverse(41.0), "fewer is no reversal"
    assert [at for at, _ in memory.moved(HOUR + 20.0, is_increase=True).moves] == [
        20.0,
        30.0,
        40.0,
        HOUR + 20.0,
    ]


def test_needs_are_kept_for_the_delay_if_no_later_one_exceeds_them() -> None:
    memory = AutoscalerMemory().noting(0.0, 5, delay=300.0).noting(100.0, 3, delay=300.0)
    assert memory.needs == ((0.0, 5), (100.0, 3))
    assert memory.calm_since == 0.0
    assert memory.noting(200.0, 3, delay=300.0).needs == ((0.0, 5), (200.0, 3))
    assert memory.noting(299.0, 1, delay=300.0).needs == ((0.0, 5), (100.0, 3), (299.0, 1))
    assert memory.noting(300.0, 1, delay=300.0).needs == ((100.0, 3), (300.0, 1))
    assert memory.noting(300.0, 9, delay=300.0).needs == ((300.0, 9),)
