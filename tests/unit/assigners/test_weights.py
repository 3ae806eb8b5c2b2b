"""Weights, bounds and dealing against plain versions of the same rules."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import SplitId
from balanced_source.assigners import LoadAwareAssigner, Placement, RoundRobinAssigner, place
from balanced_source.assigners._weights import WeightTable, fair_ceiling, lower_bound
from support.placements import split_ids

whole = st.lists(st.integers(0, 30), min_size=1, max_size=24)
readers = st.integers(1, 6)


def bound(weights: Sequence[int], parallelism: int) -> float:
    """Return the bound by its definition: the lightest k + 1 of the heaviest k·n + 1 splits."""
    heaviest = sorted(weights, reverse=True)
    several = [
        sum(heaviest[: k * parallelism + 1][-k - 1 :])
        for k in range(len(heaviest))
        if k * parallelism < len(heaviest)
    ]
    return max(sum(weights) / parallelism, *several)


@given(whole, readers)
def test_the_lower_bound_is_the_largest_of_its_parts(weights: list[int], parallelism: int) -> None:
    assert lower_bound(weights, parallelism) == bound(weights, parallelism)


@given(whole, readers)
def test_readers_with_one_heavy_split_leave_the_rest_to_the_others(
    weights: list[int], parallelism: int
) -> None:
    rest, free = sorted(weights, reverse=True), parallelism
    while free > 1 and len(rest) > 1 and rest[0] * free > sum(rest):
        rest, free = rest[1:], free - 1

    assert fair_ceiling(weights, parallelism) == max(1, round(bound(rest, free)))


def test_without_splits_nothing_must_be_carried() -> None:
    assert lower_bound([], 3) == 0
    assert fair_ceiling([], 3) == 1


@given(st.permutations(range(8)), st.permutations(range(8)), st.integers(0, 8))
def test_weights_belong_to_their_splits_in_any_order(
    order: list[int], listed: list[int], count: int
) -> None:
    """The order of the loads may be that of the ids, or any other."""
    every = split_ids(8)
    ids = [every[number] for number in order]
    known = {every[number]: float(number * number) for number in listed[:count]}
    expected = WeightTable.of(sorted(every), dict(sorted(known.items())))

    found = WeightTable.of(ids, known)
    again = WeightTable.of(ids, dict(sorted(known.items())))

    wanted = dict(zip(expected.ids, expected.weights, strict=True))
    assert dict(zip(ids, found.weights, strict=True)) == wanted
    assert dict(zip(ids, again.weights, strict=True)) == wanted
    assert [ids[at] for at in found.order] == [expected.ids[at] for at in expected.order]


def test_a_split_of_unknown_load_weighs_as_much_as_the_mean() -> None:
    ids = split_ids(4)
    table = WeightTable.of(ids, {ids[0]: 4.0, ids[2]: 1.0, ids[3]: 1.0})

    largest, unknown, *_ = table.weights
    assert unknown * 2 == pytest.approx(largest, abs=2)
    assert len(set(WeightTable.of(ids, dict.fromkeys(ids, 0.0)).weights)) == 1


@given(st.lists(st.integers(0, 9), min_size=40, max_size=40), readers, st.integers(0, 40))
def test_the_heaviest_split_goes_to_the_emptiest_reader(
    weights: list[int], parallelism: int, count: int
) -> None:
    """Of few new splits among many, and of all at once."""
    ids: list[SplitId] = sorted(split_ids(40))
    table = WeightTable(ids, weights)
    loads = list(range(parallelism))
    expected: dict[int, int] = {}
    for chosen in sorted(range(count), key=lambda at: (-weights[at], ids[at])):
        reader = loads.index(min(loads))
        expected[chosen] = reader
        loads[reader] += weights[chosen]

    found = table.deal(range(count), list(range(parallelism)))

    assert found == expected
    assert list(found) == list(expected)


def test_without_weight_splits_are_spread_by_number_in_the_order_of_their_ids() -> None:
    """One of them has a load, and the readers of the others are those with the fewest."""
    ids = sorted(split_ids(6))
    weights = {s: 8.0 if s == ids[0] else 0.0 for s in ids}
    placement = Placement(parallelism=3, owners={ids[0]: 0}, pending=ids[:0:-1], weights=weights)

    assert place(LoadAwareAssigner(), placement) == dict(
        zip(ids[1:], itertools.cycle((1, 2, 0)), strict=False)
    )


def test_the_fullest_reader_gives_first_where_few_splits_may_move() -> None:
    ids = sorted(split_ids(12))
    owners = {s: 0 if number < 5 else 1 for number, s in enumerate(ids)}
    placement = Placement(parallelism=3, owners=owners, may_move=True, max_moves=2)

    moved = place(RoundRobinAssigner(), placement)

    assert {owners[s] for s in moved} == {1}
    assert list(moved.values()) == [2, 2]


def test_splits_that_leave_a_reader_are_spread_over_its_ids() -> None:
    """Not the last ones, which would be a whole topic."""
    ids = sorted(split_ids(12))
    placement = Placement(parallelism=3, owners=dict.fromkeys(ids, 0), may_move=True)

    moved = place(RoundRobinAssigner(), placement)

    places = [0, 2, 3, 5, 6, 8, 9, 11]
    assert moved == {ids[at]: reader for at, reader in zip(places, [1, 2] * 4, strict=True)}
