"""How many readers a load needs, by how the assigner would spread it."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source_operator.controller.autoscaling import Policy
from balanced_source_operator.controller.autoscaling.needs import (
    beside_hot_split,
    most_useful,
    needed,
    next_step,
)
from support import loads

POLICY = Policy(min_readers=2, max_readers=12, target_utilization=0.8)
LOAD = replace(loads.LOAD, splits=1000, is_countable=False)


@pytest.mark.parametrize(
    ("demand", "capacity", "readers"),
    [
        (0.0, 0.0, 2),
        (-1.0, 0.0, 2),
        (0.5, 0.0, None),
        (400.0, 100.0, 5),
        (400.0, 1000.0, 2),
        (961.0, 100.0, None),
    ],
)
def test_the_fewest_readers_that_stay_at_the_target(
    demand: float, capacity: float, readers: int | None
) -> None:
    """Without any load the fewest do; where no capacity is known, none does for a load."""
    assert needed(POLICY, replace(LOAD, demand=demand), capacity) == readers


def test_more_readers_than_splits_are_of_no_use() -> None:
    """With 35 splits, 18 readers have two at most, and so have 30."""
    policy = replace(POLICY, max_readers=30)
    countable = replace(LOAD, splits=35, hottest=1 / 35, is_countable=True)

    assert most_useful(policy, countable) == 18


@pytest.mark.parametrize(("hottest", "readers"), [(0.5, 4), (1.0, 2), (0.2, 5)])
def test_one_reader_has_the_hottest_split_and_the_others_carry_the_rest(
    hottest: float, readers: int
) -> None:
    assert beside_hot_split(POLICY, replace(LOAD, hottest=hottest), 100.0) == readers


def test_the_busiest_of_some_readers_has_a_part_of_the_load_or_the_hottest_split() -> None:
    found: Any = replace(LOAD, hottest=0.5)

    assert found.of_busiest(1) == 400.0
    assert found.of_busiest(8) == 200.0
    assert replace(found, is_shared=True).of_busiest(8) == 50.0


@pytest.mark.parametrize(("wanted", "readers"), [(4, 5), (10, 11), (40, 44), (60, 60), (57, 57)])
def test_the_next_step_is_one_more_reader_of_each_ten(wanted: int, readers: int) -> None:
    policy = replace(POLICY, max_readers=60)

    assert next_step(policy, LOAD, wanted, share=10) == readers


def test_the_next_step_skips_numbers_that_relieve_no_reader() -> None:
    """With six splits, three readers have two splits each, and so has the busiest of five."""
    countable = replace(LOAD, splits=6, hottest=1 / 6, is_countable=True)

    assert next_step(POLICY, countable, 3, share=10) == 6
    assert next_step(POLICY, countable, 6, share=10) == 6
