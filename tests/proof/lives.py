"""Random lives: worlds that are too large to visit whole, walked from a seed, under the same rules.

A life takes steps of the same model as the search, disturbances among them, for as long as it is
disturbed. Then nothing goes wrong any more, and it must come to rest, settled. A seed gives the
same life in every process.
"""

import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from proof.driver_steps import Step
from proof.model import Model
from proof.shell import quiet
from proof.values import Budget, Label, Setting, World

DISTURBED: Final = 90
"""Steps of a life during which anything may happen."""

REST: Final = 600
"""Steps without disturbances after which a life should have come to rest."""

SHARES: Final = (0.03, 0.06, 0.12, 0.25)
"""How often a disturbance is preferred, where one is possible; each life has one of these."""

NOTHING: Final = Budget()

_FORGET: Final = 400
"""Lives that share what was computed; memory stays small."""


@dataclass(slots=True, kw_only=True)
class Fate:
    """How a life went.

    Attributes:
        setting: what it was a life of.
        seed: it can be lived again.
        problem: the rule that was broken; None if all held.
        trace: what happened.
        kinds: the disturbances among it.
    """

    setting: Setting
    seed: int
    problem: str | None = None
    trace: list[Label] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        steps = (
            f"  {number:>3}. " + " ".join(map(str, label))
            for number, label in enumerate(self.trace, start=1)
        )
        return "\n".join([f"life {self.seed} of {self.setting.name!r}: {self.problem}", *steps])


def live(setting: Setting, seeds: Iterable[int]) -> Iterator[Fate]:
    """One life per seed."""
    model = Model(setting)
    with quiet():
        for count, seed in enumerate(seeds, start=1):
            yield _lived(model, Fate(setting=setting, seed=seed))
            if count % _FORGET == 0:
                model = Model(setting)


def relive(fate: Fate, seconds: float) -> Fate:
    """A shorter life that breaks the same rule: steps are left out for as long as it still does."""
    model, best, until = Model(fate.setting), fate, time.monotonic() + seconds
    rule = (fate.problem or "").split(":")[0]
    with quiet():
        size = max(1, len(best.trace) // 2)
        while size and time.monotonic() < until:
            place, was = 0, len(best.trace)
            while place < len(best.trace) and time.monotonic() < until:
                shorter = _replayed(model, fate, [*best.trace[:place], *best.trace[place + size :]])
                if shorter is not None and (shorter.problem or "").split(":")[0] == rule:
                    best = shorter
                else:
                    place += size
            size = size // 2 if len(best.trace) == was or size > 1 else size
    return best


def _lived(model: Model, fate: Fate) -> Fate:
    rng, world = random.Random(f"{fate.setting.name} {fate.seed}"), model.first()
    share = rng.choice(SHARES)
    for number in range(DISTURBED + REST):
        step = _any(model, world, rng, share=share if number < DISTURBED else 0.0)
        step = step or next(model.again(world), None)
        if step is None:
            fate.problem = model.unsettled(world)
            return fate
        fate.trace.append(step.label)
        fate.kinds += [step.kind] if step.kind else []
        if step.problem is not None:
            fate.problem = step.problem
            return fate
        world = step.world
    fate.problem = f"liveness: no rest after {REST} steps without disturbance"
    return fate


def _any(model: Model, world: World, rng: random.Random, *, share: float) -> Step | None:
    """A step by someone, chosen at random; None if nothing can happen."""
    if rng.random() < share and (step := _of(model, world, rng, is_disturbed=True)) is not None:
        return step
    # Without a budget, what no one chooses is not computed.
    step = _of(model, world._replace(budget=NOTHING), rng, is_disturbed=False)
    if step is None:
        return _of(model, world, rng, is_disturbed=True) if share else None
    return step._replace(world=step.world._replace(budget=world.budget))


def _of(model: Model, world: World, rng: random.Random, *, is_disturbed: bool) -> Step | None:
    families = model.families(world)
    rng.shuffle(families)
    for family in families:
        if steps := [
            s for s in family() if bool(s.kind) is is_disturbed and (s.world != world or s.problem)
        ]:
            return rng.choice(steps)
    return None


def _replayed(model: Model, fate: Fate, labels: list[Label]) -> Fate | None:
    """The life that takes these steps, as far as they are possible; None if it breaks no rule."""
    world, after = model.first(), Fate(setting=fate.setting, seed=fate.seed)
    for label in labels:
        step = next((s for s in _possible(model, world) if s.label == label), None)
        if step is None:
            continue
        after.trace.append(step.label)
        after.kinds += [step.kind] if step.kind else []
        if step.problem is not None:
            after.problem = step.problem
            return after
        world = step.world
    if len(after.trace) == len(labels) and all(s.kind for s in _possible(model, world)):
        after.problem = model.unsettled(world)
    return after if after.problem else None


def _possible(model: Model, world: World) -> list[Step]:
    """All that can happen, and what a user does when nothing else can."""
    steps = model.steps(world)
    return steps if any(not s.kind for s in steps) else [*steps, *model.again(world)]
