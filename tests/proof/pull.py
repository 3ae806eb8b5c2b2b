"""Readers that ask for splits.

Every interleaving of small worlds, random lives of larger ones, and seeded bugs.

The model is `support.pull_world`. The unit tests search the small worlds; ``python -m proof --parts
pull`` all of them.
"""

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from balanced_source.api import SplitsAssignment
from balanced_source.connectors.pull import PullingSplitEnumerator
from balanced_source.coordinator import requests
from balanced_source.coordinator.context import CoordinatorContext
from support.pull_source import NumberLists
from support.pull_values import Budget, Found, World
from support.pull_world import Model

LIMIT: Final = 300_000
"""Worlds after which a large closure is cut."""

LIVES_EACH: Final = 500
"""Random lives of each large world in a whole proof."""

BUG_LIVES: Final = 60
"""Random lives in which a seeded bug must be found."""

_ONE_LIST: Final = NumberLists(count=1, length=1)
_TWO_LISTS: Final = NumberLists(count=2, length=1)
_MANY_LISTS: Final = NumberLists(count=5, length=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A world to search from.

    Attributes:
        source: what is read.
        first: the world at the beginning.
        is_embedded: whether the coordinator lives and dies with the driver.
        parallelisms: what the user may rescale to.
    """

    source: NumberLists
    first: World
    is_embedded: bool = False
    parallelisms: tuple[int, ...] = (1, 2)

    def model(self) -> Model:
        """Returns a model that remembers nothing of earlier searches."""
        return Model(self.source, is_embedded=self.is_embedded, parallelisms=self.parallelisms)


SMALL: Final[Mapping[str, Place]] = {
    "two lists": Place(source=_TWO_LISTS, first=World()),
    "a driver dies": Place(source=_ONE_LIST, first=World(budget=Budget(driver=1))),
    "an operator dies": Place(source=_ONE_LIST, first=World(budget=Budget(operator=1))),
    "nothing is stored but the checkpoint": Place(
        source=_ONE_LIST, first=World(budget=Budget(driver=1)), is_embedded=True
    ),
    "nothing is stored but the checkpoint, a reader less": Place(
        source=_TWO_LISTS,
        first=World(parallelism=2, budget=Budget(driver=1, rescales=1)),
        is_embedded=True,
        parallelisms=(2, 1),
    ),
    "the source moves": Place(source=_ONE_LIST, first=World(budget=Budget(moves=1))),
    "a reader more": Place(source=_ONE_LIST, first=World(budget=Budget(rescales=1))),
    "a reader less": Place(
        source=_ONE_LIST, first=World(parallelism=2, budget=Budget(rescales=1)), parallelisms=(2, 1)
    ),
}
"""Together a few seconds."""

LARGE: Final[Mapping[str, Place]] = {
    "a driver and an operator die": Place(
        source=_ONE_LIST, first=World(budget=Budget(driver=1, operator=1))
    ),
    "a driver dies, a reader less": Place(
        source=_ONE_LIST,
        first=World(parallelism=2, budget=Budget(driver=1, rescales=1)),
        parallelisms=(2, 1),
    ),
    "two lists, a driver dies": Place(source=_TWO_LISTS, first=World(budget=Budget(driver=1))),
    "two lists, two readers, an operator dies": Place(
        source=_TWO_LISTS, first=World(parallelism=2, budget=Budget(operator=1)), parallelisms=(2,)
    ),
}

LIVES: Final[Mapping[str, Place]] = {
    "with an operator": Place(
        source=_MANY_LISTS,
        first=World(parallelism=3, budget=Budget(operator=2, driver=2, rescales=2, moves=1)),
        parallelisms=(3, 1, 2),
    ),
    "without an operator": Place(
        source=_MANY_LISTS,
        first=World(parallelism=2, budget=Budget(driver=2, rescales=1)),
        is_embedded=True,
        parallelisms=(2, 1),
    ),
}

_ONE_READER: Final = Place(source=NumberLists(count=6, length=1), first=World(), parallelisms=(1,))

_LAST_READER_GOES: Final = Place(
    source=NumberLists(count=2, length=1, growth=3),
    first=World(parallelism=2, budget=Budget(rescales=1)),
    parallelisms=(2, 1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
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
    world: Place
    breaks: str

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """The code is broken inside of the context."""
        before = getattr(self.place, self.name)
        setattr(self.place, self.name, lambda *arguments: self.instead(before, *arguments))
        try:
            yield
        finally:
            setattr(self.place, self.name, before)


def _registered_without_a_look(_: Any, self: PullingSplitEnumerator[Any], subtask_ids: Any) -> None:
    """As `add_readers`, but what the readers hold stays pending."""
    self.waiting = replace(
        self.waiting, counts={s: n for s, n in self.waiting.counts.items() if s not in subtask_ids}
    )
    self._give()


def _given_and_kept(_: Any, self: PullingSplitEnumerator[Any], given: Any) -> None:
    """As `_assign`, but the splits stay pending."""
    if given:
        self.context.assign_splits(SplitsAssignment(assignment=given))


BUGS: Final[Mapping[str, Bug]] = {
    "a request is answered again with each report that repeats it": Bug(
        place=requests,
        name="unanswered",
        instead=lambda *arguments: arguments[2].requests,
        world=_ONE_READER,
        breaks="a reader hoards",
    ),
    "requests of a former driver count as asked": Bug(
        place=CoordinatorContext,
        name="set_readers",
        instead=lambda _, self, readers: setattr(self, "readers", readers),
        world=SMALL["a driver dies"],
        breaks="lost",
    ),
    "splits that come back wait for a request": Bug(
        place=PullingSplitEnumerator,
        name="_give_returned",
        instead=lambda *_: None,
        world=_LAST_READER_GOES,
        breaks="lost",
    ),
    "what a reader holds stays pending": Bug(
        place=PullingSplitEnumerator,
        name="add_readers",
        instead=_registered_without_a_look,
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
        instead=_given_and_kept,
        world=LIVES["with an operator"],
        breaks="never comes to rest",
    ),
}


def told(found: Found) -> str:
    """Returns a broken rule and what led to it, one step a line."""
    return "\n".join([str(found.problem), *(" ".join(map(str, label)) for label in found.trace)])


def closed(name: str) -> Found:
    """Visits every world of a closure."""
    place = {**SMALL, **LARGE}[name]
    return place.model().explore(place.first, limit=LIMIT)


def lived(name: str, count: int) -> Found:
    """Lives so many random lives.

    Returns the first that breaks a rule, else how many steps all took.
    """
    place, steps = LIVES[name], 0
    model = place.model()
    for seed in range(count):
        found = model.live(place.first, random.Random(seed))
        steps += found.worlds
        if found.problem is not None:
            return replace(found, problem=f"life {seed}: {found.problem}")
    return Found(steps)


def hunted(name: str) -> str:
    """Returns what the search says when a seeded bug is in the code.

    Of all interleavings, or of many lives.
    """
    bug = BUGS[name]
    with bug.applied():
        model, first = bug.world.model(), bug.world.first
        if bug.world.source == _ONE_LIST:
            return str(model.explore(first).problem)
        lives = (model.live(first, random.Random(seed)) for seed in range(BUG_LIVES))
        return str(next((found.problem for found in lives if found.problem is not None), None))
