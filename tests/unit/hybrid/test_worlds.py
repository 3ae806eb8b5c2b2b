"""Operators and drivers die at every step, and readers come and go.

Each number once, part after part.
"""

import random

import pytest

from balanced_source.connectors.hybrid import checked_hybrid
from support.hybrid_world import TIME, AssignedLists, HybridModel, MeasuredLists, two_parts
from support.pull_source import NumberLists
from support.pull_values import Budget, World

SMALL = {
    "a driver dies": World(budget=Budget(driver=1)),
    "an operator dies": World(budget=Budget(operator=1)),
}


@pytest.mark.parametrize("name", SMALL)
def test_all_rules_hold_in_every_interleaving(name: str) -> None:
    found = HybridModel(two_parts(1, 1)).explore(SMALL[name])

    assert found.problem is None, (found.problem, found.trace)
    assert found.worlds > 30


LIVES = {
    "files, files": two_parts(3, 2, length=2),
    "files, Kafka": checked_hybrid(
        [(NumberLists(count=3), None), (AssignedLists(count=3, length=4), None)], field=""
    ),
    "Kafka, files": checked_hybrid(
        [(AssignedLists(count=3, length=2), None), (NumberLists(count=3), None)], field=""
    ),
    "Kafka, Kafka": checked_hybrid(
        [(AssignedLists(count=2), None), (AssignedLists(count=3), None)], field=""
    ),
    "files, nothing, Kafka": checked_hybrid(
        [
            (NumberLists(count=3), None),
            (NumberLists(count=0), None),
            (AssignedLists(count=3, length=3), None),
        ],
        field="",
    ),
    "three that are measured": checked_hybrid(
        [
            (MeasuredLists(count=2, length=2), None),
            *[(MeasuredLists(count=2, length=0), TIME)] * 2,
        ],
        field="",
    ),
}


@pytest.mark.parametrize("name", LIVES)
def test_all_rules_hold_in_random_lives(name: str) -> None:
    first = World(parallelism=2, budget=Budget(operator=2, driver=2, rescales=3))
    for seed in range(8):
        found = HybridModel(LIVES[name], parallelisms=(2, 1, 3)).live(first, random.Random(seed))
        assert found.problem is None, (seed, found.problem, found.trace)
