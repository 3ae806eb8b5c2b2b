"""`LoadAware`: near the optimum on any input, at the bound on realistic ones, with few moves."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.api import SplitId
from balanced_source.assigners import LoadAwareAssigner, Placement, RoundRobinAssigner, place
from balanced_source.assigners._weights import WeightTable, lower_bound
from balanced_source.errors import ContractViolationError
from support.placements import WEIGHTS, loads, optimum, placements, shuffled, split_ids

ASSIGNER = LoadAwareAssigner()


def answer(placement: Placement) -> dict[SplitId, int]:
    """Owners of all splits after the placement."""
    return {**placement.owners, **place(ASSIGNER, placement)}


def moved(placement: Placement, owners: Mapping[SplitId, int]) -> int:
    return sum(owners[s] != o for s, o in placement.owners.items())


def largest(placement: Placement, owners: Mapping[SplitId, int]) -> float:
    return max(loads(owners, placement.weights, placement.parallelism))


def zipf(
    count: int, exponent: float = 1.1, *, cap: float = 1.0, seed: int = 1
) -> dict[SplitId, float]:
    """Weights with a long tail, dealt to the ids at random.

    The heaviest is `cap` of the whole at most.
    """
    weights = [1 / rank**exponent for rank in range(1, count + 1)]
    weights = [min(w, cap * sum(weights)) for w in weights]
    random.Random(seed).shuffle(weights)
    return dict(zip(split_ids(count), weights, strict=True))


@settings(max_examples=150, deadline=None)
@given(placements(max_splits=7, max_readers=4))
def test_the_largest_load_is_within_four_thirds_of_the_optimum(placement: Placement) -> None:
    owners = answer(placement)

    weights = [
        sum(loads({s: 0}, {**placement.weights}, 1)) if s in placement.weights else None
        for s in owners
    ]
    known = [w for w in weights if w is not None]
    mean = sum(known) / len(known) if any(known) else 1.0
    filled = [w if w is not None and any(known) else mean for w in weights]
    assert largest(placement, owners) <= 4 / 3 * optimum(filled, placement.parallelism) * (1 + 1e-9)


@settings(max_examples=150, deadline=None)
@given(st.lists(WEIGHTS, min_size=1, max_size=7), st.integers(1, 4))
def test_the_lower_bound_is_one(weights: list[float], n: int) -> None:
    bound = lower_bound(weights, n)

    assert bound <= optimum(weights, n) * (1 + 1e-9)
    assert (
        bound >= max(sum(weights) / n, *weights) * (1 - 1e-9)
        if len(weights) > 1
        else bound >= weights[0]
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "begin", ["nothing", "round robin", "one reader less", "one reader more", "all on one"]
)
def test_a_thousand_splits_of_zipf_reach_the_bound(begin: str, seed: int) -> None:
    # uncapped, the heaviest split alone is 18 % of the whole
    weights = zipf(1000, seed=seed, cap=1 / 16)
    ids, n = list(weights), 16
    balanced = {
        "nothing": {},
        "round robin": place(RoundRobinAssigner(), Placement(parallelism=n, pending=ids)),
        "one reader less": place(ASSIGNER, Placement(parallelism=15, pending=ids, weights=weights)),
        "one reader more": place(ASSIGNER, Placement(parallelism=17, pending=ids, weights=weights)),
        "all on one": dict.fromkeys(ids, 3),
    }[begin]
    owners = {s: o for s, o in balanced.items() if o < n}
    pending = [s for s in ids if s not in owners]

    placement = Placement(
        parallelism=n, owners=owners, pending=pending, may_move=True, weights=weights
    )
    bound = max(sum(weights.values()) / n, *weights.values())

    assert largest(placement, answer(placement)) <= 1.02 * bound


def test_where_one_split_is_heavier_than_a_fair_share_it_gets_a_reader_of_its_own() -> None:
    weights = zipf(1000)
    placement = Placement(parallelism=16, pending=list(weights), may_move=True, weights=weights)

    assert largest(placement, answer(placement)) == pytest.approx(max(weights.values()))


@settings(max_examples=100, deadline=None)
@given(placements(), st.integers(0, 2**32))
def test_the_order_of_the_input_does_not_matter(placement: Placement, seed: int) -> None:
    assert place(ASSIGNER, placement) == place(ASSIGNER, shuffled(placement, seed))


def test_which_of_two_equal_splits_moves_does_not_depend_on_the_order_of_owners() -> None:
    ids = split_ids(3)
    placement = Placement(
        parallelism=2,
        owners=dict(zip(ids, (1, 0, 1), strict=True)),
        weights=dict(zip(ids, (4.0, 1.0, 4.0), strict=True)),
        may_move=True,
    )
    backwards = replace(placement, owners=dict(reversed(placement.owners.items())))

    assert place(ASSIGNER, backwards) == place(ASSIGNER, placement)


@settings(max_examples=100, deadline=None)
@given(placements())
def test_once_balanced_nothing_moves(placement: Placement) -> None:
    owners = answer(placement)
    again = replace(placement, owners=owners, pending=[])

    first = answer(again)
    assert answer(replace(again, owners=first)) == first
    assert largest(again, first) <= largest(again, owners) * (1 + 1e-9)


def test_a_search_that_ends_above_the_tolerance_restarts_from_its_result() -> None:
    """Its path stopped where moves were not worth their price.

    Another search finds some that are.
    """
    weights = {0: 1.0, 1: 230048.0, 2: 647940.0, 4: 99225.0, 5: 619569.0}
    weights |= {
        10: 619569.0,
        11: 0.0,
        12: 0.0,
        13: 0.0,
        14: 306526.0,
        15: 577306.0,
        23: 0.0,
        24: 0.0,
        25: 0.0,
    }
    known = {("c", str(number), 0): weight for number, weight in weights.items()}
    splits = [("c", str(number), 0) for number in (*range(6), *range(10, 16), *range(20, 26))]
    owners: dict[SplitId, int] = {s: int(s == ("c", "4", 0)) for s in splits}
    question = Placement(parallelism=6, owners=owners, may_move=True, weights=known)

    answer = place(LoadAwareAssigner(), question)

    assert answer, "something moves"
    settled = replace(question, owners={**owners, **answer})
    assert place(LoadAwareAssigner(), settled) == {}, "and nothing more when it is asked again"


@settings(max_examples=100, deadline=None)
@given(placements(), st.integers(0, 6))
def test_at_most_the_allowed_number_of_splits_moves_and_never_for_the_worse(
    placement: Placement, limit: int
) -> None:
    limited = replace(placement, max_moves=limit)
    still = {**placement.owners, **place(ASSIGNER, replace(placement, may_move=False))}

    owners = answer(limited)
    assert moved(placement, owners) <= limit
    assert largest(placement, owners) <= largest(placement, still) * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(placements())
def test_without_leave_nothing_moves(placement: Placement) -> None:
    assert place(ASSIGNER, replace(placement, may_move=False)).keys() == set(placement.pending)


def test_few_moves_take_the_most() -> None:
    """One hot reader of four: three moves bring nearly all that there is to gain."""
    ids = split_ids(40)
    owners = {s: i % 4 for i, s in enumerate(ids)}
    weights = {s: 10.0 if owners[s] == 0 and i < 16 else 1.0 for i, s in enumerate(ids)}
    placement = Placement(parallelism=4, owners=owners, may_move=True, weights=weights)

    before = largest(placement, owners)
    after = largest(placement, answer(replace(placement, max_moves=2)))

    assert (before, after) == (46.0, 26.0)


def test_moves_that_gain_next_to_nothing_are_not_made() -> None:
    """Loads of 102 and 98 in a hundred splits of weight 2.

    One move would gain 2 %, and costs one of a hundred.
    """
    ids = split_ids(100)
    owners = {s: 0 if i < 51 else 1 for i, s in enumerate(ids)}
    weights = dict.fromkeys(ids, 2.0)
    placement = Placement(parallelism=2, owners=owners, may_move=True, weights=weights)

    assert moved(placement, answer(placement)) == 1
    reluctant = LoadAwareAssigner(aversion=3.0)
    assert place(reluctant, placement) == {}


def test_the_least_loaded_reader_gets_new_splits() -> None:
    owners: dict[SplitId, int] = {("c", "t", 0): 0, ("c", "t", 1): 1, ("c", "t", 2): 1}
    weights = {("c", "t", 0): 9.0, ("c", "t", 1): 1.0, ("c", "t", 2): 1.0, ("c", "t", 3): 4.0}
    placement = Placement(parallelism=2, owners=owners, pending=[("c", "t", 3)], weights=weights)

    assert place(ASSIGNER, placement) == {("c", "t", 3): 1}


def test_without_weights_numbers_are_balanced() -> None:
    placement = Placement(parallelism=4, pending=split_ids(10))

    assert sorted(Counter(place(ASSIGNER, placement).values()).values()) == [2, 2, 3, 3]


def test_idle_splits_do_not_pile_up_on_the_idlest_reader() -> None:
    ids = split_ids(33)
    weights = {s: 5.0 if i == 0 else 0.0 for i, s in enumerate(ids)}
    placement = Placement(parallelism=4, pending=ids, weights=weights)

    assert max(Counter(place(ASSIGNER, placement).values()).values()) == 9


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_an_invalid_weight_is_rejected(weight: Any) -> None:
    with pytest.raises(ContractViolationError, match=r"split \('c', 't0', 0\) weighs"):
        place(
            ASSIGNER,
            Placement(parallelism=2, pending=split_ids(1), weights={("c", "t0", 0): weight}),
        )


def test_equal_weights_are_in_the_order_of_their_ids() -> None:
    """Whatever the order of the question is, the heaviest come first."""
    ids = [("c", "t", number) for number in (3, 1, 2, 0)]

    table = WeightTable.of(list(ids), {ids[2]: 5.0, ids[0]: 1.0, ids[1]: 1.0, ids[3]: 1.0})
    same = WeightTable.of(list(ids), {})

    assert [ids[split] for split in table.order] == [
        ("c", "t", 2),
        ("c", "t", 0),
        ("c", "t", 1),
        ("c", "t", 3),
    ]
    assert [ids[split] for split in same.order] == sorted(ids)
    assert table.falling == [table.weights[split] for split in table.order]
    assert sorted(range(4), key=same.rank, reverse=True) == list(same.order)


def test_heavy_splits_are_cut_to_the_ceiling_and_all_others_stay() -> None:
    ids = [("c", "t", number) for number in range(5)]
    table = WeightTable(ids, [10, 50, 20, 70, 5])

    clipped = table.clipped(20)

    assert clipped.weights == [10, 20, 20, 20, 5]
    assert list(clipped.order) == [1, 2, 3, 0, 4], "equal ones in the order of their ids"
    assert list(clipped.falling) == [20, 20, 20, 10, 5]
    assert table.clipped(70) is table
    assert table.heavier_than(19) == [3, 1, 2]
    assert table.loads([0, 1, 0, 1, 2], 3) == [30, 120, 5]


@pytest.mark.parametrize(
    ("weights", "owners", "best"),
    [((5, 6, 8), (1, 0, 1), 11), ((7, 6, 6), (1, 0, 1), 12)],
    ids=["a gift", "a swap"],
)
def test_what_readers_above_their_share_cannot_give_is_mended_split_by_split(
    weights: tuple[int, ...], owners: tuple[int, ...], best: int
) -> None:
    ids = split_ids(3)
    placement = Placement(
        parallelism=2,
        owners=dict(zip(ids, owners, strict=True)),
        weights=dict(zip(ids, map(float, weights), strict=True)),
        may_move=True,
    )

    assert largest(placement, answer(placement)) == best


def test_the_guarantee_counts_more_than_moves() -> None:
    """Moves that are not worth their gain are made above four thirds of a fair share."""
    ids = split_ids(12)
    owners = {s: 0 if i < 9 else 1 for i, s in enumerate(ids)}
    placement = Placement(
        parallelism=2, owners=owners, may_move=True, weights=dict.fromkeys(ids, 1.0)
    )
    reluctant = LoadAwareAssigner(aversion=100.0)

    after = {**owners, **place(reluctant, placement)}

    assert largest(placement, owners) == 9
    assert largest(placement, after) == 8


def numbered(
    weights: Sequence[float], owners: Sequence[int], readers: int, *, max_moves: int | None = None
) -> Placement:
    """Return a placement of splits that may move, with a weight and an owner each."""
    ids = split_ids(len(weights))
    return Placement(
        parallelism=readers,
        owners=dict(zip(ids, owners, strict=True)),
        weights=dict(zip(ids, weights, strict=True)),
        may_move=True,
        max_moves=max_moves,
    )


def test_loads_that_cannot_be_more_even_stay_although_they_are_above_four_thirds_of_the_mean() -> (
    None
):
    """Eleven on five readers: the mean is 2.2, and one reader has 3.

    To deal out all of them again would move splits and gain nothing.
    """
    placement = numbered((1, 2, 1, 2, 1, 2, 2), (3, 4, 0, 3, 4, 1, 0), 5)

    assert largest(placement, placement.owners) == 3
    assert place(ASSIGNER, placement) == {}


def test_what_single_steps_cannot_reach_is_dealt_out_again() -> None:
    """Within a limit of moves, and without one where a step of the search ends too early."""
    limited = numbered((9, 1, 8, 3, 1), (0, 0, 0, 1, 1), 2, max_moves=2)
    free = numbered((1, 1, 3, 1, 2, 0, 3), (2, 1, 2, 1, 2, 0, 0), 4)
    more: dict[SplitId, float] = {("c", "u", 0): 3, ("c", "u", 1): 1}
    free = replace(free, pending=list(more), weights={**free.weights, **more})

    owners = answer(limited)

    assert (largest(limited, owners), moved(limited, owners)) == (11, 2)
    assert largest(free, answer(free)) == 4, "5 is above four thirds of a fair share"


def test_within_four_thirds_of_the_optimum_the_few_moves_are_kept() -> None:
    """A deal of everything would reach 8, with a move more."""
    placement = numbered((6, 5, 8, 3, 3, 1), (1, 1, 1, 0, 1, 3), 4, max_moves=3)

    owners = answer(placement)

    assert (largest(placement, owners), moved(placement, owners)) == (9, 2)


@pytest.mark.parametrize(("tolerance", "moves"), [(0.01, 0), (0.009, 1)])
def test_within_the_tolerance_no_move_is_worth_anything(tolerance: float, moves: int) -> None:
    """Loads of 101 and 99, although moves cost nothing."""
    placement = numbered([1.0] * 200, [int(number > 100) for number in range(200)], 2)
    eager = LoadAwareAssigner(tolerance=tolerance, aversion=0.0)

    assert len(place(eager, placement)) == moves
