"""Which actions a walk has, how often, and what is promised."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from walks import families
from walks.actions.base import Step
from walks.rules import ALWAYS, Rule

Menu: TypeAlias = Mapping[families.Family, float]
"""Weights of what can happen."""

WAITS: Final = (0, 2, 4, 10, 30, 70, 150, 400)
"""Seconds from one action to the next one."""

FEW_HOSTS: Final = ("0", "1")
HOSTS: Final = ("0", "1", "2", "3")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What walks have in common.

    Attributes:
        name: as on the command line.
        menu: what can happen.
        promises: rules that each walk must keep.
        is_blue_green: whether the source has one application, and a second one while that restarts.
        is_bounded: whether the source ends.
    """

    name: str
    menu: Menu
    promises: frozenset[Rule] = ALWAYS
    is_blue_green: bool = False
    is_bounded: bool = False


EVERYTHING: Final[Menu] = {
    families.HOSTS: 4,
    families.READERS_PER_HOST: 2,
    families.PARALLELISM: 3,
    families.LOSS_POLICY: 3,
    families.CRASH: 3,
    families.TAKE_DOWN: 3,
    families.BRING_UP: 3,
    families.HANG: 2,
    families.CUT_OFF: 2,
    families.IMAGE: 5,
    families.BROKEN_IMAGE: 2,
    families.BREAK_ON_HOST: 2,
    families.RESTART_POLICY: 2,
    families.NONCE: 2,
    families.SUSPEND: 1,
    families.RESUME: 2,
    families.PAUSE: 1,
    families.UNPAUSE: 2,
    families.RESTART_OPERATOR: 3,
    families.KILL_OPERATOR: 2,
    families.LOSE_STATE: 1,
    families.APPLY_AGAIN: 0.7,
    families.DELETE_APPLICATION: 1,
    families.PARTITIONS: 1,
    families.RELEASE: 2,
    families.COPY_STATE: 0,
    families.RESTORE_STATE: 0,
    families.DELETE_DOCUMENT: 0,
}

ONE_HOST: Final[Menu] = {families.HOSTS: 0, families.READERS_PER_HOST: 0, families.LOSS_POLICY: 0}
"""A source with blue-green restarts has one host."""

ENDING: Final[Menu] = {families.PARTITIONS: 0, families.APPLY_AGAIN: 0}
"""A bounded source ends at the records that it has found first."""

DOCUMENTS: Final[Menu] = {
    families.COPY_STATE: 3,
    families.RESTORE_STATE: 3,
    families.DELETE_DOCUMENT: 3,
    families.LOSE_STATE: 2,
    families.APPLY_AGAIN: 0.5,
}

ROLLING: Final[Menu] = {
    families.IMAGE: 10,
    families.RESTART_POLICY: 4,
    families.NONCE: 4,
    families.LOSE_STATE: 0,
    families.APPLY_AGAIN: 0,
    families.SUSPEND: 0.5,
    families.PAUSE: 0.5,
}

HAND_OVERS: Final[Menu] = {
    families.LARGER_PARALLELISM: 3,
    families.IMAGE: 8,
    families.RESTART_POLICY: 2,
    families.NONCE: 3,
    families.RESTART_OPERATOR: 3,
    families.KILL_OPERATOR: 2,
}
"""Nothing that keeps a driver from reading until another one has taken over its splits."""

HOST_CHANGES: Final[Menu] = {
    families.SEVERAL_HOSTS: 4,
    families.TWO_READERS_PER_HOST: 1,
    families.LOSS_POLICY: 2,
}

BROKEN: Final[Menu] = {
    families.RELEASE: 0,
    families.BRING_UP: 0,
    families.APPLY_AGAIN: 0,
    families.LOSE_STATE: 0.5,
}
"""What is broken stays so."""

ANY_GUARANTEE: Final[Menu] = {
    (families.ANY_LOSS_POLICY if family is families.LOSS_POLICY else family): weight
    for family, weight in EVERYTHING.items()
}

WORLDS: Final = {
    world.name: world
    for world in (
        World(name="hosts", menu=EVERYTHING),
        World(name="roll", menu={**EVERYTHING, **ROLLING}),
        World(
            name="blue-green",
            menu={**EVERYTHING, **ONE_HOST, families.IMAGE: 7},
            is_blue_green=True,
        ),
        World(name="bounded", menu={**EVERYTHING, **ENDING}, is_bounded=True),
        World(name="documents", menu={**EVERYTHING, **DOCUMENTS}),
        World(
            name="bounded-documents",
            menu={**EVERYTHING, **DOCUMENTS, **ENDING},
            is_bounded=True,
        ),
        World(
            name="at-least-once",
            menu=ANY_GUARANTEE,
            promises=ALWAYS - {Rule.NO_RECORD_TWICE},
        ),
        World(
            name="smooth",
            menu={**HOST_CHANGES, **HAND_OVERS},
            promises=ALWAYS | {Rule.SHORT_GAPS},
        ),
        World(
            name="smooth-blue-green",
            menu=HAND_OVERS,
            promises=ALWAYS | {Rule.SHORT_GAPS},
            is_blue_green=True,
        ),
        World(
            name="silence",
            menu={**EVERYTHING, **BROKEN},
            promises=ALWAYS | {Rule.STANDSTILL_REPORTED, Rule.NO_ENDLESS_RESTARTS},
        ),
    )
}


def draw(world: World, seed: int) -> tuple[Step, ...]:
    """Return the steps of the walk with this seed."""
    generator = random.Random(seed * 7919 + 13)
    return tuple(_step(world, generator) for _ in range(generator.randint(4, 12)))


def _step(world: World, generator: random.Random) -> Step:
    (chosen,) = generator.choices(list(world.menu), list(world.menu.values()))
    host = generator.choice(FEW_HOSTS if generator.random() < 0.7 else HOSTS)
    wait = generator.choice(WAITS)
    return Step(chosen.draw(generator, host), wait)
