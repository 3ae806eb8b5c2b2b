"""What a decision of the autoscaler is taken from, at the limits of each rule."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source_operator.controller.autoscaling import Policy
from balanced_source_operator.controller.autoscaling.decision import (
    GROWN,
    LASTING,
    PENDING,
    _Situation,
)
from balanced_source_operator.controller.autoscaling.host_samples import ARRIVAL
from balanced_source_operator.controller.autoscaling.learning import COUNTED
from balanced_source_operator.controller.autoscaling.memory import (
    EXPIRES,
    Capacity,
    Ceiling,
    Increase,
)
from support.loads import LOAD

NOW = 10_000.0
POLICY = Policy(min_readers=1, max_readers=12, max_lag=60.0)
KNOWN = Capacity(rate=100.0, at=NOW, is_measured=True, proven_at=NOW)
ATTEMPT = Increase(readers=4, rate=300.0, arrival=400.0, unread=0, pause=None, at=NOW)
NO_LOAD = replace(ATTEMPT, arrival=0.0)
CHANCE = GROWN * COUNTED / ARRIVAL
"""Records per second that may arrive by chance, although none did."""


def situation(*, wanted: int = 6, adopted: int = 6, now: float = NOW, **changes: Any) -> _Situation:
    """What is decided from; `changes` are of the memory, or the load."""
    load = changes.pop("load", LOAD)
    values = {
        "capacity": KNOWN,
        "steady": None,
        "ceiling": None,
        "attempt": None,
        "recent_reading": None,
        **changes,
    }
    memory: Any = SimpleNamespace(
        **values,
        is_awaiting=lambda readers: (
            values["attempt"] is not None and readers > values["attempt"].readers
        ),
    )
    return _Situation(
        policy=POLICY, memory=memory, load=load, wanted=wanted, adopted=adopted, now=now
    )


def steady(seconds: float = LASTING, *, is_changing: bool = False) -> Any:
    return SimpleNamespace(seconds=seconds, is_changing=is_changing)


def test_without_a_capacity_nothing_is_known_of_readers() -> None:
    unknown = situation(capacity=None)
    assert (unknown.capacity, unknown.is_measured, unknown.shown_capacity) == (0.0, False, None)
    assert unknown.utilization is None
    bound = situation(capacity=replace(KNOWN, is_measured=False))
    assert (bound.capacity, bound.is_measured, bound.shown_capacity) == (100.0, False, None)
    assert bound.utilization is None
    known = situation(load=replace(LOAD, hottest=1 / 12))
    assert (known.shown_capacity, known.utilization) == (100.0, pytest.approx(400 / 600))
    assert situation(capacity=replace(KNOWN, rate=0.0)).utilization is None


@pytest.mark.parametrize(
    ("behind", "found", "adopted", "expected"),
    [
        (60.0, steady(), 6, True),
        (60.1, steady(), 6, False),
        (60.0, steady(LASTING - 1), 6, False),
        (60.0, steady(is_changing=True), 6, False),
        (60.0, steady(), 5, False),
        (60.0, None, 6, False),
    ],
)
def test_readers_keep_up_whose_backlog_lasts_and_is_neither_old_nor_changing(
    behind: float, found: Any, adopted: int, *, expected: bool
) -> None:
    it = situation(steady=found, adopted=adopted, load=replace(LOAD, behind=behind))
    assert it.is_keeping_up is expected


def test_a_usual_limit_is_one_that_readers_keep_up_below() -> None:
    usual, other = Ceiling(readers=4, rate=1.0, unread=0), Ceiling(readers=4, rate=1.0)
    assert situation(ceiling=usual).usual is usual
    assert situation(ceiling=usual, steady=steady()).usual is usual
    assert situation(ceiling=usual, steady=steady(is_changing=True)).usual is None
    assert situation(ceiling=other).usual is None
    assert situation(ceiling=None).usual is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"attempt": None}, False),
        ({"wanted": 4}, False),
        ({"now": NOW + PENDING - 1}, True),
        ({"now": NOW + PENDING}, False),
        ({"now": NOW + PENDING, "adopted": 5}, True),
        ({"load": replace(LOAD, arrival=600.0)}, True),
        ({"load": replace(LOAD, arrival=601.0)}, False),
        ({"attempt": NO_LOAD, "load": replace(LOAD, arrival=CHANCE)}, True),
        ({"attempt": NO_LOAD, "load": replace(LOAD, arrival=CHANCE + 0.1)}, False),
        ({"wanted": 12, "adopted": 12}, True),
        ({"wanted": 12, "adopted": 12, "attempt": replace(ATTEMPT, rate=None)}, False),
        ({"wanted": 11, "adopted": 11, "attempt": replace(ATTEMPT, rate=None)}, True),
    ],
)
def test_an_increase_is_awaited_until_it_is_old_or_much_more_arrives(
    changes: dict[str, Any], *, expected: bool
) -> None:
    assert situation(**{"attempt": ATTEMPT, **changes}).is_pending is expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"capacity": None}, True),
        ({"now": NOW + EXPIRES - 1}, False),
        ({"now": NOW + EXPIRES}, True),
        ({"now": NOW + EXPIRES, "load": replace(LOAD, has_backlog=True)}, False),
        ({"now": NOW + EXPIRES, "load": replace(LOAD, hottest=0.5)}, False),
        ({"now": NOW + EXPIRES, "load": replace(LOAD, hottest=0.5, is_shared=True)}, True),
    ],
)
def test_a_capacity_that_no_backlog_has_shown_for_long_is_doubtful(
    changes: dict[str, Any], *, expected: bool
) -> None:
    assert situation(**changes).is_doubtful is expected


@pytest.mark.parametrize(
    ("hottest", "rate", "expected"), [(0.2, 100.0, 0.2), (0.1, 100.0, 0.15), (0.1, 0.0, 0.1)]
)
def test_the_larger_share_of_the_hottest_split_counts(
    hottest: float, rate: float, expected: float
) -> None:
    recent = SimpleNamespace(rate=rate, hottest=15.0)
    it = situation(recent_reading=recent, load=replace(LOAD, hottest=hottest))
    assert it.with_newest_share().load.hottest == pytest.approx(expected)
    alone = situation(load=replace(LOAD, hottest=hottest))
    assert alone.with_newest_share() is alone


def test_an_increase_is_judged_by_what_fewer_readers_did_before_it() -> None:
    recent = SimpleNamespace(readers=9, rate=300.0, pause=2.0)
    it = situation(recent_reading=recent, load=replace(LOAD, unread=7)).attempt()
    assert (it.readers, it.rate, it.pause, it.unread, it.arrival, it.at) == (
        6,
        300.0,
        2.0,
        7,
        400.0,
        NOW,
    )
    first = situation(adopted=5).attempt()
    assert (first.readers, first.rate, first.pause, first.shown) == (5, None, None, None)
