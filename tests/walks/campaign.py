"""Plays the walks of worlds and seeds, several at once."""

import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

import structlog

from walks.actions.text import text_of
from walks.play import Problem, Script, play
from walks.shrinker import shrunk
from walks.worlds import WORLDS, draw

MAX_DETAILS = 1500
"""Characters of a failure; of more, the last ones say most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A walk that broke a rule, as short as it could be made."""

    world: str
    seed: int
    actions: str
    problem: Problem

    def __str__(self) -> str:
        """Return what happened, and the command that repeats it."""
        option = f"--world {self.world} --seeds {self.seed} --actions '{self.actions}'"
        details = self.problem.details[-MAX_DETAILS:]
        return (
            f"{self.world} {self.seed} breaks the rule: {self.problem.rule}\n"
            f"  {details}\n"
            f'  make walks WALKS="{option}"'
        )


def script_of(world: str, seed: int) -> Script:
    """Return the walk with this seed."""
    return Script(world=WORLDS[world], seed=seed, steps=draw(WORLDS[world], seed))


def quiet() -> None:
    """Silence the log of the operators."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def judged(script: Script, *, shrink: float) -> Failure | None:
    """Play a walk; return how it failed, after so many seconds of shrinking at most."""
    problem = play(script)
    if problem is None:
        return None
    script, problem = shrunk(script, problem, seconds=shrink)
    return Failure(
        world=script.world.name, seed=script.seed, actions=text_of(script.steps), problem=problem
    )


def campaign(
    worlds: Iterable[str], seeds: range, *, workers: int, shrink: float
) -> Iterator[tuple[str, Failure | None]]:
    """Play all walks; yields the world and the failure of each one, as they end."""
    for world in worlds:
        with ProcessPoolExecutor(workers, initializer=quiet) as pool:
            stories = [pool.submit(_judged, world, seed, shrink) for seed in seeds]
            yield from ((world, story.result()) for story in as_completed(stories))


def _judged(world: str, seed: int, shrink: float) -> Failure | None:
    return judged(script_of(world, seed), shrink=shrink)
