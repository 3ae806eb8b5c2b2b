"""Readers above their share give to those below it: which splits, and how full that leaves them."""

from collections.abc import Sequence

import pytest

from balanced_source.assigners import LoadAwareAssigner, Placement, place
from balanced_source.assigners._moves import Holdings, Steps, _fullest_first, level
from balanced_source.assigners._weights import WeightTable
from balanced_source.errors import ContractViolationError
from support.placements import split_ids


def levelled_steps(weights: Sequence[int], owners: Sequence[int], readers: int) -> Steps:
    """Return the steps that bring readers down to a load of 100."""
    table = WeightTable(split_ids(len(weights)), weights)
    steps = Steps()
    level(Holdings(table, owners, table.loads(owners, readers)), steps, ceiling=100)
    return steps


@pytest.mark.parametrize(
    ("weights", "given"),
    [
        ((100, 60, 40), [0]),
        ((107, 60, 40), [0]),
        ((111, 60, 40), [1, 2]),
        ((120, 30), [1]),
        ((45, 40, 35), [2]),
        ((39, 81), [0]),
        ((40, 80), []),
    ],
    ids=[
        "half",
        "a bit more than half",
        "too much more than half",
        "far too heavy",
        "nearer to the ceiling",
        "a bit nearer",
        "as far below it as above",
    ],
)
def test_the_heaviest_split_goes_that_makes_the_taker_hardly_fuller(
    weights: tuple[int, ...], given: list[int]
) -> None:
    assert levelled_steps(weights, [0] * len(weights), 2).splits == given


def test_a_reader_that_gives_nothing_bounds_how_far_the_largest_load_falls() -> None:
    loads = [10, 0, 7, 3]

    assert list(_fullest_first({0: ([0], [1])}, [6], loads)) == [(0, 1, 7)]
    assert loads == [4, 6, 7, 3]


def test_the_fullest_reader_by_then_gives_next() -> None:
    moves = {0: ([0, 1], [2, 2]), 1: ([2], [2])}

    found = list(_fullest_first(moves, [2, 2, 3], [12, 11, 0]))

    assert found == [(0, 2, 11), (2, 2, 10), (1, 2, 8)]


@pytest.mark.parametrize("ids", [[1, 0], [1, 0, 3, 2], [0, 2, 1], [2, 1, 0]])
def test_ids_that_are_nearly_in_order_are_sorted(ids: list[int]) -> None:
    table = WeightTable.of([("c", "t", number) for number in ids], {})

    assert [ids[split] for split in table.order] == sorted(ids)


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_an_error_names_the_split_with_the_invalid_weight(weight: float) -> None:
    ids = split_ids(4)
    weights = dict(zip(ids, (0.0, 0.5, weight, 2.0), strict=True))

    with pytest.raises(ContractViolationError, match=rf"split \('c', '{ids[2][1]}', {ids[2][2]}\)"):
        place(LoadAwareAssigner(), Placement(parallelism=2, pending=ids, weights=weights))
