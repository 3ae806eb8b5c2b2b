"""`RoundRobin`: equal numbers within one, with the fewest moves, in any order of the input."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.api import SplitId
from balanced_source.assigners import Placement, RoundRobinAssigner, place
from support.placements import fewest_moves, placements, shuffled, split_ids, spread

ASSIGNER = RoundRobinAssigner()


def answer(placement: Placement) -> dict[SplitId, int]:
    return {**placement.owners, **place(ASSIGNER, placement)}


def moved(placement: Placement) -> int:
    changes = place(ASSIGNER, placement)
    return sum(s in placement.owners for s in changes)


@settings(max_examples=150, deadline=None)
@given(placements(weighted=False))
def test_numbers_differ_by_one_at_most(placement: Placement) -> None:
    assert spread(Counter(answer(placement).values()), placement.parallelism) <= 1


@settings(max_examples=100, deadline=None)
@given(placements(max_splits=6, max_readers=3, weighted=False))
def test_the_fewest_splits_move(placement: Placement) -> None:
    assert moved(placement) == fewest_moves(placement)


@settings(max_examples=100, deadline=None)
@given(placements(weighted=False), st.integers(0, 2**32))
def test_the_order_of_the_input_does_not_matter(placement: Placement, seed: int) -> None:
    assert place(ASSIGNER, placement) == place(ASSIGNER, shuffled(placement, seed))


@settings(max_examples=100, deadline=None)
@given(placements(weighted=False))
def test_without_leave_nothing_moves_and_no_reader_is_filled_while_another_has_less(
    placement: Placement,
) -> None:
    still = replace(placement, may_move=False)
    counts = Counter(placement.owners.values())
    changes = place(ASSIGNER, still)

    assert changes.keys() == set(placement.pending)
    after = counts + Counter(changes.values())
    got = [after[reader] for reader in set(changes.values())]
    assert max(got, default=0) <= min(after[reader] for reader in range(placement.parallelism)) + 1


@settings(max_examples=100, deadline=None)
@given(placements(weighted=False), st.integers(0, 6))
def test_at_most_the_allowed_number_of_splits_moves(placement: Placement, limit: int) -> None:
    limited = replace(placement, max_moves=limit)

    assert moved(limited) == min(limit, moved(placement))
    before = {**placement.owners, **place(ASSIGNER, replace(placement, may_move=False))}
    n = placement.parallelism
    assert spread(Counter(answer(limited).values()), n) <= spread(Counter(before.values()), n)


@pytest.mark.parametrize(("before", "after"), [(4, 5), (5, 4), (3, 6), (6, 3), (1, 7), (7, 1)])
def test_a_rescale_there_and_back(before: int, after: int) -> None:
    ids = split_ids(100)
    first = place(ASSIGNER, Placement(parallelism=before, pending=ids))
    kept = {s: o for s, o in first.items() if o < after}
    placement = Placement(
        parallelism=after, owners=kept, pending=sorted(set(ids) - set(kept)), may_move=True
    )

    owners = answer(placement)
    assert spread(Counter(owners.values()), after) <= 1
    new_readers = sum(o >= before for o in owners.values())
    assert moved(placement) == new_readers, "only what the new readers need moves"


def test_ties_go_to_the_lowest_reader() -> None:
    assert place(ASSIGNER, Placement(parallelism=3, pending=split_ids(4))) == {
        ("c", "t0", 0): 0,
        ("c", "t0", 1): 1,
        ("c", "t1", 0): 2,
        ("c", "t1", 1): 0,
    }
