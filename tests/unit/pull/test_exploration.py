"""Requests, answers, drivers and operators get lost at every step: each number is delivered once, and reading ends."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from balanced_source.api import SplitsAssignment
from balanced_source.connectors.pull import PullingSplitEnumerator
from balanced_source.coordinator import requests
from balanced_source.coordinator.context import CoordinatorContext
from support.pull_source import NumberLists
from support.pull_world import Budget, Found, Model, World

SMALL = NumberLists(count=1, length=1)
LARGE = NumberLists(count=5, length=2)

CLOSURES: dict[str, tuple[Model, World]] = {
    "two lists": (Model(NumberLists(count=2, length=1)), World()),
    "a driver dies": (Model(SMALL), World(budget=Budget(driver=1))),
    "an operator dies": (Model(SMALL), World(budget=Budget(operator=1))),
    "nothing is stored but the checkpoint": (Model(SMALL, is_embedded=True), World(budget=Budget(driver=1))),
    "a reader more": (Model(SMALL), World(budget=Budget(rescales=1))),
    "a reader less": (Model(SMALL, parallelisms=(2, 1)), World(parallelism=2, budget=Budget(rescales=1))),
}

ONE_READER = (Model(NumberLists(count=6, length=1), parallelisms=(1,)), World())

LAST_READER_GOES = (
    Model(NumberLists(count=2, length=1, growth=3), parallelisms=(2, 1)),
    World(parallelism=2, budget=Budget(rescales=1)),
)

LIVES: dict[str, tuple[Model, World]] = {
    "with an operator": (
        Model(LARGE, parallelisms=(3, 1, 2)),
        World(parallelism=3, budget=Budget(operator=2, driver=2, rescales=2)),
    ),
    "without an operator": (
        Model(LARGE, is_embedded=True, parallelisms=(2, 1)),
        World(parallelism=2, budget=Budget(driver=2, rescales=1)),
    ),
}


def told(found: Found) -> str:
    return "\n".join([str(found.problem), *(" ".join(map(str, label)) for label in found.trace)])


@pytest.mark.parametrize("name", CLOSURES)
def test_all_rules_hold_in_every_interleaving(name: str) -> None:
    model, first = CLOSURES[name]

    found = model.explore(first)

    assert found.problem is None, told(found)
    assert found.worlds > 100


@pytest.mark.parametrize("name", LIVES)
def test_all_rules_hold_in_random_lives(name: str) -> None:
    model, first = LIVES[name]

    for seed in range(25):
        found = model.live(first, random.Random(seed))
        assert found.problem is None, f"seed {seed}: {told(found)}"


@dataclass(frozen=True)
class Bug:
    """A change of the product's code that the search must find.

    Attributes:
        place: what is changed.
        name: of the method or function.
        instead: what is there now; gets what was there before as its first argument.
        world: where it is found.
        breaks: what the search says.
    """

    place: Any
    name: str
    instead: Callable[..., Any]
    world: tuple[Model, World]
    breaks: str


def registered_without_a_look(_: Any, self: PullingSplitEnumerator[Any], subtask_ids: Any) -> None:
    """As `add_readers`, but what the readers hold stays pending."""
    self.waiting = replace(self.waiting, counts={s: n for s, n in self.waiting.counts.items() if s not in subtask_ids})
    self._give()


def given_and_kept(_: Any, self: PullingSplitEnumerator[Any], given: Any) -> None:
    """As `_assign`, but the splits stay pending."""
    if given:
        self.context.assign_splits(SplitsAssignment(assignment=given))


BUGS = {
    "a request is answered again with each report that repeats it": Bug(
        place=requests,
        name="unanswered",
        instead=lambda *arguments: arguments[2].requests,
        world=ONE_READER,
        breaks="a reader hoards",
    ),
    "requests of a former driver count as asked": Bug(
        place=CoordinatorContext,
        name="set_readers",
        instead=lambda _, self, readers: setattr(self, "readers", readers),
        world=CLOSURES["a driver dies"],
        breaks="lost",
    ),
    "splits that come back wait for a request": Bug(
        place=PullingSplitEnumerator,
        name="_give_returned",
        instead=lambda *_: None,
        world=LAST_READER_GOES,
        breaks="lost",
    ),
    "what a reader holds stays pending": Bug(
        place=PullingSplitEnumerator,
        name="add_readers",
        instead=registered_without_a_look,
        world=LIVES["without an operator"],
        breaks="delivered",
    ),
    "splits that were read leave a state that nobody stores": Bug(
        place=CoordinatorContext,
        name="finish_splits",
        instead=lambda _, self, split_ids: self.revoke_splits(split_ids),
        world=LIVES["without an operator"],
        breaks="is read from",
    ),
    "what was given out can be given out again": Bug(
        place=PullingSplitEnumerator,
        name="_assign",
        instead=given_and_kept,
        world=LIVES["with an operator"],
        breaks="never comes to rest",
    ),
}


@pytest.mark.parametrize("name", BUGS)
def test_each_seeded_bug_breaks_a_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the search would prove nothing."""
    bug = BUGS[name]
    before = getattr(bug.place, bug.name)
    monkeypatch.setattr(bug.place, bug.name, lambda *arguments: bug.instead(before, *arguments))
    known, first = bug.world
    model = Model(known.source, is_embedded=known.is_embedded, parallelisms=known.parallelisms)

    assert bug.breaks in searched(model, first)


def searched(model: Model, first: World) -> str:
    """What all interleavings of a small world, or many lives of a large one, say."""
    if model.source == SMALL:
        return str(model.explore(first).problem)
    lives = (model.live(first, random.Random(seed)) for seed in range(60))
    return str(next((found.problem for found in lives if found.problem is not None), None))
