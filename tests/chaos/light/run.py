"""Runs one schedule of the light engine, and has it checked."""

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException

from chaos.checker import broker_log
from chaos.children import judge
from chaos.light.brokers import Brokers
from chaos.light.faults import FAULTS, Act, Scene
from chaos.light.load import Load
from chaos.light.losses import LOSSES
from chaos.light.stage import kafka_stage
from chaos.light.zygote import Zygote
from chaos.stable_ends import stable_ends
from chaos.world import Fault, Schedule
from testbed.errors import DeadlineError, TestbedError
from testbed.waiting import wait_until

_ACTS: Final[Mapping[str, Act]] = FAULTS | LOSSES
_BEGIN: Final = 180.0
PATIENCE: Final = 60.0
"""Seconds without any progress after which a schedule is stuck."""

NOTHING: Final[Mapping[str, Any]] = {
    **dict.fromkeys(
        ("records", "lost", "duplicated", "unexpected", "disordered", "replayed", "excused"), 0
    ),
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


def run(
    schedule: Schedule, brokers: Brokers, folder: Path, *, zygote: Zygote, program: Path, tell: Tell
) -> Outcome:
    """Run a schedule and check it.

    Args:
        schedule: what happens.
        brokers: that it may use.
        folder: gets everything.
        zygote: starts processes.
        program: see `checker.epochs`.
        tell: gets a line per fault.
    """
    began = time.monotonic()
    stage = kafka_stage(schedule.world, brokers, folder, zygote)
    scene = Scene(stage=stage, brokers=brokers, loads={})
    verdict, is_stuck, given_up = NOTHING, False, None
    try:
        is_stuck = not _play(scene, schedule, tell)
        verdict = _check(scene, program)
    except (TestbedError, KafkaException) as error:
        given_up = f"{type(error).__name__}: {error}"
    finally:
        _close(scene)
    return Outcome(
        given_up=given_up,
        verdict=verdict,
        is_stuck=is_stuck,
        seconds=time.monotonic() - began,
        failures=tuple(scene.stage.failures),
        user_actions=tuple(scene.stage.user_actions),
    )


def _play(scene: Scene, schedule: Schedule, tell: Tell) -> bool:
    """Let everything happen; returns whether everything arrived."""
    _produce(scene)
    if not _begin(scene):
        return False
    disturb(scene, schedule.faults, tell)
    _stop_loads(scene)
    has_ended = _wait_for_the_end(scene, tell)
    scene.stage.close()
    return has_ended


def _close(scene: Scene) -> None:
    scene.end_faults()
    _stop_loads(scene)
    scene.stage.close()


def _stop_loads(scene: Scene) -> None:
    for load in scene.loads.values():
        load.stop()


def _produce(scene: Scene) -> None:
    world, brokers = scene.stage.world, scene.brokers
    with brokers.steady(*world.clusters):
        for name, topics in world.topics.items():
            brokers[name].admin.create_topics(topics)
            load = Load(
                name, brokers[name].bootstrap, dict(topics), rate=world.rate, seed=world.seed
            )
            load.fill(world.prefill)
            scene.loads[name] = load
        _write_bounds(scene)


def _begin(scene: Scene) -> bool:
    """Start everything, and produce once it is certain where the source begins and ends.

    Returns whether it began.
    """
    world, stage = scene.stage.world, scene.stage
    splits = {
        (world.name_of(c), t, p)
        for c, topics in world.topics.items()
        for t, n in topics.items()
        for p in range(n)
    }

    def has_begun() -> bool:
        scene.tend()
        if not world.is_embedded:
            found = stage.assignment()
            return found is not None and splits <= found.owners.keys()
        return any(
            splits <= {(c, t, p) for c, t, p, *_ in event.get("ranges", ())}
            for event in stage.events()
        )

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
                bounds[f"{scene.stage.world.name_of(name)}/{topic}/{partition}"] = [
                    ids[topic],
                    first,
                    stop,
                ]
    (scene.stage.folder / "bounds.json").write_text(json.dumps(bounds))


def disturb(
    scene: Scene, faults: tuple[Fault, ...], tell: Tell, acts: Mapping[str, Act] = _ACTS
) -> None:
    """Let faults happen, each at its time, and undo those that last.

    Args:
        scene: that they happen to.
        faults: in their order.
        tell: gets a line per fault.
        acts: what the kinds of faults do.
    """
    due = time.monotonic()
    for fault in faults:
        due = max(due + fault.after, time.monotonic())
        while time.monotonic() < due:
            scene.tend()
            time.sleep(0.05)
        if scene.stage.is_finished:
            break
        tell(fault.kind)
        scene.keep_copy()
        undo = acts[fault.kind](scene, random.Random(fault.number))
        if undo is not None:
            scene.undos.append((time.monotonic() + fault.lasts, undo))
    scene.end_faults()


def _wait_for_the_end(scene: Scene, tell: Tell) -> bool:
    """Wait until everything is delivered; returns False when nothing moves any more."""
    tell("heal and read the rest")
    scene.stage.wants_driver, scene.stage.wants_operator = True, not scene.stage.world.is_embedded
    (scene.stage.folder / "crash.json").unlink(missing_ok=True)
    ends = {} if scene.stage.world.is_bounded else _ends(scene, tell)
    while not _is_done(scene, ends):
        if not _moves(scene):
            # perhaps other schedules disturb the brokers: they must not while it has its last
            # chance
            with scene.steady(*scene.loads):
                moves = _moves(scene)
            if not (moves or scene.stage.world.is_bounded):
                # An election among brokers that others disturb may have cut logs since.
                ends = _ends(scene, tell)
            if not (moves or _is_done(scene, ends)):
                return False
    return True


def _moves(scene: Scene) -> bool:
    """Wait for progress; returns whether there was any."""
    before = scene.stage.committed()

    def has_moved() -> bool:
        scene.tend()
        return scene.stage.committed() != before or scene.stage.is_finished

    try:
        return wait_until(has_moved, PATIENCE, "progress", interval=0.3)
    except DeadlineError:
        return False


def _is_done(scene: Scene, ends: dict[tuple[str, str, int], tuple[str, int]]) -> bool:
    if scene.stage.world.is_bounded:
        return scene.stage.is_finished
    committed = scene.stage.committed()
    return all(
        committed.get(s, ("", -1))[0] == i and committed[s][1] >= to for s, (i, to) in ends.items()
    )


def _ends(scene: Scene, tell: Tell) -> dict[tuple[str, str, int], tuple[str, int]]:
    with scene.steady(*scene.loads):
        return {
            split: end for name in scene.loads for split, end in _ends_of(scene, name, tell).items()
        }


def _ends_of(scene: Scene, name: str, tell: Tell) -> dict[tuple[str, str, int], tuple[str, int]]:
    topics, cluster = scene.loads[name].topics, scene.brokers[name]
    ids, named = broker_log.topic_ids(cluster.bootstrap, topics), scene.stage.world.name_of(name)
    return {
        (named, t, p): (ids[t], end)
        for t in topics
        for p, end in stable_ends(cluster.admin, name, t, tell=tell).items()
    }


def _check(scene: Scene, program: Path) -> dict[str, Any]:
    """Dump what the logs hold, and let a process of its own decide."""
    folder = scene.stage.folder
    with scene.steady(*scene.loads):
        for name, load in scene.loads.items():
            named = scene.stage.world.name_of(name)
            broker_log.dump(
                folder / "dumps" / "final.csv", named, scene.brokers[name].bootstrap, load.topics
            )
        for name, load in scene.loads.items():
            scene.brokers[name].admin.delete_topic(*load.topics)
    return judge(folder, program)
