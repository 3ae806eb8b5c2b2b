"""The local search of the weighted strategy, against trying everything.

Groups keep their readers.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from balanced_source.assigners._moves import Holdings, Refinement, Step, _fullest_first, relabel
from balanced_source.assigners._weights import WeightTable, fair_ceiling
from support.placements import levelled

HUGE = 10**9

weighed = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 1)), min_size=1, max_size=8)


def table(weights: Sequence[int]) -> WeightTable:
    return WeightTable([("c", "t", number) for number in range(len(weights))], weights)


def loads(weights: Sequence[int], owners: Sequence[int], parallelism: int) -> list[int]:
    found = [0] * parallelism
    for weight, owner in zip(weights, owners, strict=True):
        found[owner] += weight
    return found


def held(weights: Sequence[int], owners: Sequence[int], parallelism: int) -> Holdings:
    return Holdings(table(weights), owners, loads(weights, owners, parallelism))


def after(owners: Sequence[int], step: Step) -> list[int]:
    moved = dict(step.moves)
    return [moved.get(split, owner) for split, owner in enumerate(owners)]


def gifts_and_swaps(weights: Sequence[int], owners: Sequence[int], fullest: int) -> Iterator[int]:
    """Yield the largest load after each gift or swap between the fullest and another reader."""
    mine = [split for split, owner in enumerate(owners) if owner == fullest]
    others = [split for split, owner in enumerate(owners) if owner != fullest]
    high, low = (sum(weights[split] for split in splits) for splits in (mine, others))
    for given_split in mine:
        for back in (0, *(weights[split] for split in others)):
            shift = weights[given_split] - back
            yield max(high - shift, low + shift)


@given(weighed)
def test_the_first_step_between_two_readers_is_the_best_there_is(
    case: list[tuple[int, int]],
) -> None:
    weights, owners = [weight for weight, _ in case], [owner for _, owner in case]
    before = loads(weights, owners, 2)
    fullest = before.index(max(before))
    best = min(gifts_and_swaps(weights, owners, fullest), default=max(before))

    step = next(Refinement(held(weights, owners, 2), ceiling=HUGE, goal=0).steps(), None)

    if best >= max(before):
        assert step is None
    else:
        assert step is not None
        assert step.largest == best == max(loads(weights, after(owners, step), 2))


three_readers = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2)), min_size=3, max_size=9)


@given(three_readers)
def test_the_first_step_is_taken_with_the_best_partner(case: list[tuple[int, int]]) -> None:
    """The larger of the two loads is as small as any partner makes it."""
    weights, owners = [weight for weight, _ in case], [owner for _, owner in case]
    before = loads(weights, owners, 3)
    fullest = before.index(max(before))
    step = next(Refinement(held(weights, owners, 3), ceiling=HUGE, goal=0).steps(), None)
    largest = [
        min(gifts_and_swaps(*between(weights, owners, fullest, partner)), default=max(before))
        for partner in range(3)
        if partner != fullest
    ]

    if step is not None:
        (partner,) = {owner for _, owner in step.moves if owner != fullest}
        found = loads(weights, after(owners, step), 3)
        assert max(found[fullest], found[partner]) == min(largest) < max(before)
    else:
        assert min(largest) >= max(before)


def test_a_swap_with_a_fuller_partner_is_taken_where_it_evens_out_more() -> None:
    weights, owners = [5, 5, 4, 2, 3], [0, 0, 1, 2, 2]

    step = next(Refinement(held(weights, owners, 3), ceiling=HUGE, goal=0).steps())
    assert sorted(loads(weights, after(owners, step), 3)) == [4, 7, 8]


def between(
    weights: Sequence[int], owners: Sequence[int], fullest: int, partner: int
) -> tuple[list[int], list[int], int]:
    """Return weights and owners of the splits of two readers, and the fuller one."""
    two = [place for place, owner in enumerate(owners) if owner in (fullest, partner)]
    return [weights[place] for place in two], [owners[place] for place in two], fullest


@given(weighed)
def test_each_step_lowers_the_largest_load_and_says_to_what(case: list[tuple[int, int]]) -> None:
    weights, owners = [weight for weight, _ in case], [owner for _, owner in case]
    largest = max(loads(weights, owners, 3))
    for step in Refinement(held(weights, owners, 3), ceiling=HUGE, goal=0).steps():
        owners = after(owners, step)
        assert step.largest == max(loads(weights, owners, 3)) <= largest
        largest = step.largest


def test_the_search_ends_at_its_goal_and_readers_at_the_ceiling_take_nothing() -> None:
    weights, owners = [10, 10, 10, 10], [0, 0, 0, 1]

    def steps(*, ceiling: int, goal: int) -> list[Step]:
        return list(Refinement(held(weights, owners, 2), ceiling=ceiling, goal=goal).steps())

    assert steps(ceiling=HUGE, goal=30) == []
    assert steps(ceiling=10, goal=0) == []
    (step,) = steps(ceiling=11, goal=20)
    assert step.largest == 20


def test_only_readers_above_the_ceiling_give_and_only_those_below_take() -> None:
    weights, owners = [6, 6, 6, 6, 6], [0, 0, 0, 1, 2]

    assert levelled(held(weights, owners, 3), ceiling=18) == []
    steps = levelled(held(weights, [0, 0, 0, 1, 1], 3), ceiling=12)
    assert [taker for step in steps for _, taker in step.moves] == [2]
    assert steps[-1].largest == 12


def test_readers_that_can_give_nothing_count_in_the_largest_load() -> None:
    """Their only splits are heavier than what any other reader may take."""
    weights, owners = [100, 90, *[10] * 5], [0, 1, *[2] * 5]

    steps = levelled(held(weights, owners, 4), ceiling=30)

    assert [step.largest for step in steps] == [100, 100]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), min_size=1, max_size=12),
    st.integers(1, 80),
)
@example([(5, 0), (5, 0), (7, 1), (1, 2)], 8)  # the fullest of all readers that stay as they are
def test_each_step_of_levelling_says_what_the_largest_load_is_after_it(
    case: list[tuple[int, int]], ceiling: int
) -> None:
    weights, owners = [weight for weight, _ in case], [owner for _, owner in case]

    for step in levelled(held(weights, owners, 4), ceiling=ceiling):
        owners = after(owners, step)
        assert step.largest == max(loads(weights, owners, 4))


@pytest.mark.parametrize("count", [3, 40])
def test_few_and_many_splits_leave_their_reader_alike(count: int) -> None:
    weights, owners = [1] * 100, [0] * 100
    found = held(weights, owners, 2)

    levelled(found, ceiling=100 - count)

    assert [len(places) for places in found.places] == [100 - count, count]
    assert sorted(place for places in found.places for place in places) == list(range(100))


@given(weighed, st.integers(0, 120))
def test_loads_of_readers_follow_the_moves(case: list[tuple[int, int]], ceiling: int) -> None:
    weights, owners = [weight for weight, _ in case], [owner for _, owner in case]
    found = held(weights, owners, 3)

    steps = [*levelled(found, ceiling=ceiling), *Refinement(found, ceiling=HUGE, goal=0).steps()]

    for step in steps:
        owners = after(owners, step)
    anew = held(weights, owners, 3)
    assert (found.places, found.loads) == (anew.places, anew.loads)


def test_groups_go_to_the_readers_that_hold_most_of_them() -> None:
    dealt = [0, 0, 0, 1, 1, 2]

    assert relabel(dealt, [(0, 1), (1, 1), (2, 0), (3, 0)], 3) == [1, 1, 1, 0, 0, 2]
    assert sorted(Counter(relabel(dealt, [], 3)).values()) == [1, 2, 3]


@pytest.mark.parametrize(
    ("weights", "parallelism", "ceiling"),
    [
        ([10, 10, 10, 10], 2, 20),
        ([100, 10, 10], 2, 20),  # the heavy one has a reader of its own
        ([100, 50, 10, 10, 10], 3, 30),
        ([7], 3, 7),
        ([0, 0], 2, 1),
    ],
)
def test_a_split_heavier_than_the_mean_of_the_rest_does_not_count_for_the_others(
    weights: list[int], parallelism: int, ceiling: int
) -> None:
    assert fair_ceiling(weights, parallelism) == ceiling


@pytest.mark.parametrize("givers", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_fullest_reader_gives_first_whatever_order_they_come_in(givers: Sequence[int]) -> None:
    before, weights = [5, 9, 7, 0], [1, 1, 1]
    loads = list(before)

    steps = _fullest_first({giver: ([giver], [3]) for giver in givers}, weights, loads)

    assert [place for place, _, _ in steps] == [1, 2, 0]
    assert loads == [4, 8, 6, 3]
