"""Readers that become slower: of heavier records, a slower sink, or a new version of the code."""

import math
import random
from dataclasses import replace
from itertools import pairwise

import pytest

from balanced_source_operator.controller.autoscaling import AutoscalerMemory
from balanced_source_operator.controller.autoscaling.memory import Capacity
from support.batch_query import Query, policy


def running(trigger: float, cost: float, *, load: float = 6000) -> Query:
    """A query whose readers process 1,000 records per second each, and whose driver is real."""
    return Query(
        load=load,
        capacity=1000,
        readers=2,
        cost=cost,
        noise=0.1,
        policy=policy(trigger, most=40),
        tick=0.25,
        spacing=2.0,
        is_timed=True,
    )


def numbers(query: Query, since: int) -> list[int]:
    """Return the numbers of readers in turn, from a verdict on."""
    found = [verdict.readers for verdict in query.verdicts[since:]]
    return [n for i, n in enumerate(found) if i == 0 or n != found[i - 1]]


def rate_of(query: Query) -> float:
    assert query.memory.capacity is not None
    return query.memory.capacity.rate


@pytest.mark.parametrize(
    ("trigger", "cost", "slower"),
    [
        (1.0, 0.2, 700),
        (1.0, 0.5, 500),
        (1.0, 0.05, 300),
        (10.0, 1.0, 500),
        (10.0, 5.0, 700),
        (120.0, 6.0, 500),
    ],
)
def test_readers_that_become_slower_do_not_make_the_number_swing(
    trigger: float, cost: float, slower: int
) -> None:
    """Before, what they once did was believed again as soon as they had caught up."""
    query = running(trigger, cost).run(2400)
    query.capacity = slower
    before = len(query.verdicts)
    query.run(5400)
    caught_up = len(query.verdicts)
    query.run(3600)

    assert len(numbers(query, before)) <= 6
    assert len(numbers(query, caught_up)) == 1, "and nothing changes any more"
    assert 0.8 * slower <= rate_of(query) <= 1.05 * slower
    assert query.readers * slower >= query.load


def test_what_an_increase_shows_ends_what_was_seen_before_it() -> None:
    query = running(1.0, 0.2).run(2400)
    query.capacity = 500
    query.run(2400)

    known = query.memory.capacity
    assert known is not None
    assert known.most <= 1.05 * 500
    assert known.proven_at > 2400


def test_more_readers_for_a_larger_load_do_not_say_that_a_reader_can_do_less() -> None:
    """Each increase comes when readers have less to do than they can."""
    query, least = running(1.0, 0.8, load=1000), math.inf
    for second in range(0, 5 * 3600, 10):
        query.load = 4500 - 3500 * math.cos(2 * math.pi * second / 3600)
        query.run(10)
        least = min(least, rate_of(query) if second > 7200 else math.inf)

    assert least >= 750


@pytest.mark.parametrize(("load", "seed"), [(5, 1), (20, 2), (20, 3)])
def test_commits_that_take_long_do_not_say_that_a_reader_can_do_less(load: int, seed: int) -> None:
    """Micro-batches of half a minute: after an increase, one of them is short by chance."""
    query = running(0.5, 30.0, load=load)
    query.noise, query.policy, query.chance = 0.5, policy(0.5), random.Random(seed)
    query.run(3600)
    known, first = rate_of(query), query.readers
    query.run(4 * 3600)

    assert rate_of(query) >= 0.9 * known
    assert query.readers <= first + 2


def test_a_driver_that_restarts_leaves_what_was_claimed_before_unknown() -> None:
    query = running(1.0, 0.2).run(2400)
    query.capacity = 500
    while query.memory.claim is None:
        query.run(5)
    assert rate_of(query) > 900, "it may still have been a commit"

    query.restart(5).run(60)

    assert query.memory.claim is None


def test_only_what_is_certain_replaces_what_a_reader_once_did() -> None:
    known = Capacity(rate=1000, at=0.0, is_measured=True, most=1000)

    proven = known.confirmed(600, 1.0, is_proof=True)
    assert (proven.rate, proven.most, proven.proven_at) == (800, 1000, 1.0)
    certain = known.confirmed(600, 1.0, is_proof=True, is_deep=True)
    assert (certain.rate, certain.most, certain.proven_at) == (800, 800, 1.0)
    assert certain.confirmed(900, 2.0, is_proof=True, is_deep=True).most == 900
    assert known.lowered(400, 1.0) == Capacity(
        rate=400, at=1.0, is_measured=True, most=400, proven_at=1.0
    )
    assert known.lowered(1100, 1.0) == known
    unsure = replace(known, is_measured=False)
    assert unsure.lowered(400, 1.0) == unsure


def test_a_restart_of_the_operator_by_night_keeps_the_capacity_of_the_day() -> None:
    """Commits are longer than the trigger interval, so all readers seem busy with what arrives."""
    query = running(0.5, 0.8, load=500)
    query.policy, query.readers = replace(query.policy, min_readers=6), 6
    query.memory = AutoscalerMemory(capacity=Capacity.stored(950, at=0.0))
    query.run(1500)
    assert rate_of(query) == pytest.approx(950, rel=0.01)
    assert {v.readers for v in query.verdicts} == {6}

    query.load = 8000
    query.run(1800)
    changes = [b.readers - a.readers for a, b in pairwise(query.verdicts)]
    assert min(changes) == 0
    assert query.readers <= 12
