"""Plays a walk from its first action to its verdict."""

import random
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from support import virtual_time
from support.builders import spec_json
from support.cluster_story import SPEC, Story
from support.played_story import virtual_clock
from support.virtual_time import clock
from walks.actions.base import Step
from walks.actions.text import text_of
from walks.cast import Cast, EndingCast, Mode
from walks.rules import BrokenRuleError, Rule
from walks.verdict import REST, reported, reports, rested, settled
from walks.walk import BROKEN_IMAGE, GOOD_IMAGE, Walk
from walks.worlds import World

PACES: Final = (0.03, 0.1, 0.3, 1.0)
"""How fast drivers of a bounded source read."""

LENGTHS: Final = (0, 2, 10, 30)
"""Records of a split of a bounded source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What is played.

    Attributes:
        seed: of everything that drivers and the Spark operator do.
        rest: seconds in which nothing must move in the end.
    """

    world: World
    seed: int
    steps: tuple[Step, ...]
    rest: float = REST


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """How a walk broke a rule."""

    rule: Rule
    details: str


def play(script: Script, listen: Callable[[str], None] = lambda _: None) -> Problem | None:
    """Play a walk.

    Args:
        script: the walk.
        listen: gets a line before each action.

    Returns:
        The rule that the walk has broken; None if it has kept all.
    """
    try:
        with virtual_clock():
            virtual_time.run(_story(script, listen))
    except BrokenRuleError as error:
        return Problem(rule=error.rule, details=error.details)
    except Exception:  # noqa: BLE001 - whatever fails in the operator or in a driver
        return Problem(rule=Rule.NO_EXCEPTION, details=traceback.format_exc())
    return None


async def _story(script: Script, listen: Callable[[str], None]) -> None:
    late = random.Random(script.seed)
    story = Story(lag=lambda: late.random() * 2) if script.seed % 3 == 0 else Story()
    walk = Walk(story, _cast(story, script), script.world.promises)
    try:
        await _begin(walk, script)
        for step in script.steps:
            listen(_line(walk, text_of([step])))
            await step.action.carry_out(walk)
            await walk.wait(step.wait)
        if Rule.STANDSTILL_REPORTED in walk.promises:
            listen(_line(walk, "leave broken what is broken"))
            await reported(walk)
        listen(_line(walk, "heal everything"))
        _heal(walk)
        await settled(walk, is_bounded=script.world.is_bounded)
        listen(_line(walk, "rest"))
        await rested(walk, is_bounded=script.world.is_bounded, rest=script.rest)
    finally:
        await story.end()


def _cast(story: Story, script: Script) -> Cast:
    generator = random.Random(script.seed)
    if not script.world.is_bounded:
        return Cast(story, generator)
    pace = random.Random(script.seed).choice(PACES)
    return EndingCast(story, generator, has_traffic=False, pace=pace)


async def _begin(walk: Walk, script: Script) -> None:
    """Create the source, and let it run for a while."""
    world, story = script.world, walk.story
    parallelism, application = 4 if world.is_blue_green else 6, _application(world)
    if not world.is_bounded:
        await story.begin(parallelism=parallelism, application=application)
        await walk.wait(60)
    else:
        generator = random.Random(script.seed + 5)
        story.broker.is_bounded = True
        source = {"kafka": {**SPEC["source"]["kafka"], "stoppingOffsets": {"type": "Latest"}}}
        await story.begin(parallelism=parallelism, application=application, source=source)
        for split in story.broker.ends:
            story.broker.ends[split] = generator.choice(LENGTHS)
        await walk.wait(generator.choice((5, 15, 60)))
    walk.cast.gaps.clear()


def _application(world: World) -> dict[str, Any]:
    sink = {"format": "delta", "options": {"path": "s3a://shop/orders"}}
    application = {
        **spec_json(**SPEC)["application"],
        "image": GOOD_IMAGE,
        "pipeline": {"checkpointLocation": "s3a://shop/checkpoint", "sink": sink},
    }
    if world.is_blue_green:
        return {**application, "restart": {"rollbackAfter": "3m", "strategy": "BlueGreen"}}
    return {**application, "restart": {"rollbackAfter": "3m"}, "hosts": {"count": 2}}


def _heal(walk: Walk) -> None:
    """Mend everything that actions may have broken, and ask for settings that work."""
    walk.cast.down.clear()
    walk.cast.broken_on_host.clear()
    for host, process in walk.cast.processes.items():
        if process.mode is not Mode.WORKS:
            walk.cast.release(host)
    walk.set_paused(is_paused=False)
    walk.image = GOOD_IMAGE if walk.image == BROKEN_IMAGE else walk.image
    walk.nonce += 1
    restart = {"policy": "Automatic", "window": None, "nonce": walk.nonce}
    walk.story.patch(suspend=False, application={"image": walk.image, "restart": restart})


def _line(walk: Walk, what: str) -> str:
    """Return a line with the time, what happens now, and what the status says."""
    hosts = [
        " ".join(str(host.get(key)) for key in ("name", "role", "state", "image", "splits"))
        for host in walk.story.status.get("hosts", [])
    ]
    seconds = clock() - virtual_time.EPOCH
    return f"{seconds:7.1f} s  {what}\n           {hosts} {reports(walk)}"


def shorter(script: Script, steps: Iterable[Step]) -> Script:
    """Return the same walk with fewer steps."""
    return Script(world=script.world, seed=script.seed, steps=tuple(steps), rest=script.rest)
