"""Runs one schedule of the light engine, and has it checked."""

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from chaos.checker import broker_log
from chaos.children import judge
from chaos.light.brokers import Brokers
from chaos.light.faults import FAULTS, Scene, Undo
from chaos.light.load import Load
from chaos.light.losses import LOSSES
from chaos.light.stage import Stage
from chaos.world import Fault, Schedule, World
from testbed.errors import DeadlineError, TestbedError
from testbed.waiting import wait_until

_BEGIN: Final = 90.0
PATIENCE: Final = 60.0
"""Seconds without any progress after which a schedule is stuck."""

NOTHING: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("records", "lost", "duplicated", "unexpected", "disordered", "replayed", "excused"), 0),
    "examples": [],
    "epochs": None,
    "is_ok": False,
}
"""The verdict about a schedule that was given up."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a schedule.

    Attributes:
        verdict: of the checker.
        is_stuck: whether not everything arrived although all faults were over.
        given_up: why a part of the testbed failed; nothing is known about the product then.
        seconds: that it took.
        failures: reasons for which the query has failed.
        user_actions: what had to be decided.
    """

    verdict: Mapping[str, Any]
    is_stuck: bool
    seconds: float
    failures: tuple[str, ...]
    user_actions: tuple[str, ...]
    given_up: str | None = None

    @property
    def is_ok(self) -> bool:
        """Return whether nothing is wrong."""
        return not self.is_stuck and self.given_up is None and bool(self.verdict["is_ok"])


def run(schedule: Schedule, brokers: Brokers, folder: Path, *, program: Path, tell: Tell) -> Outcome:
    """Run a schedule and check it.

    Args:
        schedule: what happens.
        brokers: that it may use.
        folder: gets everything.
        program: see `checker.epochs`.
        tell: gets a line per fault.
    """
    began = time.monotonic()
    scene = _scene(schedule.world, brokers, folder)
    is_stuck, given_up = False, None
    try:
        is_stuck = not _begin(scene)
        if not is_stuck:
            _disturb(scene, schedule.faults, tell)
            _heal(scene)
            is_stuck = not _wait_for_the_end(scene, tell)
    except TestbedError as error:
        given_up = str(error)
    finally:
        _heal(scene)
        scene.stage.close()
    verdict = _check(scene, program) if given_up is None else NOTHING
    return Outcome(
        given_up=given_up,
        verdict=verdict,
        is_stuck=is_stuck,
        seconds=time.monotonic() - began,
        failures=tuple(scene.stage.failures),
        user_actions=tuple(scene.stage.user_actions),
    )


def _heal(scene: Scene) -> None:
    scene.brokers.heal()
    for load in scene.loads.values():
        load.stop()


def _scene(world: World, brokers: Brokers, folder: Path) -> Scene:
    folder.mkdir(parents=True, exist_ok=True)
    loads = {}
    for name, topics in world.topics.items():
        brokers[name].admin.create_topics(topics)
        loads[name] = Load(name, brokers[name].bootstrap, dict(topics), rate=world.rate, seed=world.seed)
        loads[name].fill(world.prefill)
    return Scene(stage=Stage(world, brokers, folder), brokers=brokers, loads=loads)


def _begin(scene: Scene) -> bool:
    """Start everything, and produce once it is certain where the source begins and ends; returns whether it began."""
    world, stage = scene.stage.world, scene.stage
    _write_bounds(scene)
    splits = {
        (world.name_of(c), t, p) for c, topics in world.topics.items() for t, n in topics.items() for p in range(n)
    }

    def has_begun() -> bool:
        stage.tend()
        if not world.is_embedded:
            found = stage.assignment()
            return found is not None and splits <= found.owners.keys()
        return any(splits <= {(c, t, p) for c, t, p, *_ in event.get("ranges", ())} for event in stage.events())

    try:
        wait_until(has_begun, _BEGIN, "all splits to be assigned")
    except DeadlineError:
        return False
    for load in scene.loads.values():
        load.start()
    return True


def _write_bounds(scene: Scene) -> None:
    bounds = {}
    for name, topics in scene.stage.world.topics.items():
        ids = broker_log.topic_ids(scene.brokers[name].bootstrap, topics)
        for topic in topics:
            for partition, (_, end) in scene.brokers[name].admin.offsets(topic).items():
                first = end if scene.stage.world.is_latest else 0
                stop = end if scene.stage.world.is_bounded else None
                bounds[f"{scene.stage.world.name_of(name)}/{topic}/{partition}"] = [ids[topic], first, stop]
    (scene.stage.folder / "bounds.json").write_text(json.dumps(bounds))


def _disturb(scene: Scene, faults: tuple[Fault, ...], tell: Tell) -> None:
    undos: list[tuple[float, Undo]] = []
    due = time.monotonic()
    for fault in faults:
        due = max(due + fault.after, time.monotonic())
        _pass_until(scene, due, undos)
        if scene.stage.is_finished:
            break
        tell(fault.kind)
        scene.keep_copy()
        undo = (FAULTS | LOSSES)[fault.kind](scene, random.Random(fault.number))
        if undo is not None:
            undos.append((time.monotonic() + fault.lasts, undo))
    for _, undo in undos:
        undo()


def _pass_until(scene: Scene, due: float, undos: list[tuple[float, Undo]]) -> None:
    while True:
        now = time.monotonic()
        for at, undo in [entry for entry in undos if entry[0] <= now]:
            undos.remove((at, undo))
            undo()
        scene.stage.tend()
        if now >= due:
            return
        time.sleep(0.05)


def _wait_for_the_end(scene: Scene, tell: Tell) -> bool:
    """Wait until everything is delivered; returns False when nothing moves any more."""
    tell("heal and read the rest")
    scene.stage.wants_driver, scene.stage.wants_operator = True, not scene.stage.world.is_embedded
    (scene.stage.folder / "crash.json").unlink(missing_ok=True)
    ends = {} if scene.stage.world.is_bounded else _ends(scene)
    while True:
        before = scene.stage.committed()

        def moved(before: Any = before) -> bool:
            scene.stage.tend()
            return scene.stage.committed() != before or _is_done(scene, ends)

        try:
            wait_until(moved, PATIENCE, "progress", interval=0.3)
        except DeadlineError:
            return False
        if _is_done(scene, ends):
            return True


def _is_done(scene: Scene, ends: dict[tuple[str, str, int], tuple[str, int]]) -> bool:
    if scene.stage.world.is_bounded:
        return scene.stage.is_finished
    committed = scene.stage.committed()
    return all(committed.get(s, ("", -1))[0] == i and committed[s][1] >= to for s, (i, to) in ends.items())


def _ends(scene: Scene) -> dict[tuple[str, str, int], tuple[str, int]]:
    found = {}
    for name, load in scene.loads.items():
        ids = broker_log.topic_ids(scene.brokers[name].bootstrap, load.topics)
        for topic in load.topics:
            for partition, (_, end) in scene.brokers[name].admin.offsets(topic).items():
                found[scene.stage.world.name_of(name), topic, partition] = ids[topic], end
    return found


def _check(scene: Scene, program: Path) -> dict[str, Any]:
    """Dump what the logs hold, and let a process of its own decide."""
    folder = scene.stage.folder
    for name, load in scene.loads.items():
        named = scene.stage.world.name_of(name)
        broker_log.dump(folder / "dumps" / "final.csv", named, scene.brokers[name].bootstrap, load.topics)
    for name, load in scene.loads.items():
        scene.brokers[name].admin.delete_topic(*load.topics)
    return judge(folder, program)
