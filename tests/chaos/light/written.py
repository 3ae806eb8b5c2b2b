"""Schedules over a source of which a writer knows what there is, and nothing changes it."""

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from chaos.children import judge_written
from chaos.light.brokers import Brokers
from chaos.light.faults import FAULTS, Act, Scene
from chaos.light.run import NOTHING, PATIENCE, Outcome, Tell, disturb
from chaos.light.stage import Stage
from chaos.world import Fault
from testbed.errors import DeadlineError, TestbedError
from testbed.waiting import wait_until

KINDS: Final = (
    "kill_worker",
    "freeze_worker",
    "kill_driver",
    "crash_driver",
    "crash_driver",
    "crash_driver",
    "freeze_driver",
    "stop_driver",
    "kill_operator",
    "freeze_operator",
    "rescale",
    "rescale",
)
"""Faults of `chaos.light.faults` that need no broker and lose no state, with weights."""

_BEGIN: Final = 180.0
"""Seconds until the first records are there."""


class Writer(ABC):
    """Adds records to a source: some before the query starts, and more from a thread.

    Args:
        seed: decides how many at a time, and when.
    """

    def __init__(self, seed: str) -> None:
        self.dice = random.Random(seed)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @abstractmethod
    def begin(self) -> None:
        """Write what is there before the query starts."""

    @abstractmethod
    def write_some(self) -> None:
        """Write a few more."""

    @property
    @abstractmethod
    def total(self) -> int:
        """Number of records, known when it has stopped."""

    @abstractmethod
    def note(self) -> None:
        """Say in the folder of the schedule what was written."""

    def start(self) -> None:
        """Go on writing until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Write no more, and say what was written."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()
        self.note()

    def _run(self) -> None:
        while not self._is_over.wait(self.dice.uniform(0.05, 0.4)):
            self.write_some()


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What is read, and who knows what should arrive.

    Attributes:
        stage: processes and documents.
        writer: adds records.
        delivered: how many different records the sink of a folder has.
        checker: module of `chaos.checker` that compares the sink with what was written.
        acts: faults of this kind of source alone, by their names.
        brokers: that faults may disturb; None if it needs none.
    """

    stage: Stage
    writer: Writer
    delivered: Callable[[Path], int]
    checker: str
    acts: Mapping[str, Act] = field(default_factory=dict)
    brokers: Brokers | None = None


def drawn(dice: random.Random, *more: str, pause: float = 2.0) -> tuple[Fault, ...]:
    """Draw the faults of a schedule.

    Args:
        dice: decides.
        more: kinds beside `KINDS`.
        pause: seconds between two of them, at most.
    """
    return tuple(
        Fault(
            kind=dice.choice((*KINDS, *more)),
            number=dice.randrange(2**30),
            after=round(dice.uniform(0.3, pause), 2),
            lasts=round(dice.uniform(0.3, 5), 2),
        )
        for _ in range(18)
    )


def run_written(source: Written, faults: tuple[Fault, ...], tell: Tell) -> Outcome:
    """Run a schedule and check it.

    Args:
        source: that is read.
        faults: that happen.
        tell: gets a line per fault.
    """
    began = time.monotonic()
    # No fault of `KINDS` asks for a broker.
    scene = Scene(stage=source.stage, brokers=cast("Brokers", source.brokers), loads={})
    verdict, is_stuck, given_up = NOTHING, False, None
    try:
        is_stuck = not _play(source, scene, faults, tell)
        verdict = judge_written(source.checker, source.stage.folder)
    except TestbedError as error:
        given_up = f"{type(error).__name__}: {error}"
    finally:
        scene.end_faults()
        source.writer.stop()
        source.stage.close()
    return Outcome(
        verdict=verdict,
        is_stuck=is_stuck,
        seconds=time.monotonic() - began,
        failures=tuple(source.stage.failures),
        user_actions=tuple(source.stage.user_actions),
        given_up=given_up,
    )


def _play(source: Written, scene: Scene, faults: tuple[Fault, ...], tell: Tell) -> bool:
    """Let everything happen; returns whether everything arrived."""
    stage, writer = source.stage, source.writer
    writer.begin()

    def count() -> int:
        scene.tend()
        return source.delivered(stage.folder / "sink")

    wait_until(lambda: count() > 0, _BEGIN, "the first records", interval=0.3)
    writer.start()
    disturb(scene, faults, tell, FAULTS | dict(source.acts))
    writer.stop()
    tell("heal and read the rest")
    stage.wants_driver, stage.wants_operator = True, not stage.world.is_embedded
    (stage.folder / "crash.json").unlink(missing_ok=True)
    while (before := count()) < writer.total:
        try:
            wait_until(lambda known=before: count() > known, PATIENCE, "progress", interval=0.5)  # type: ignore[misc]
        except DeadlineError:
            return False
    stage.stop_driver()
    return True
