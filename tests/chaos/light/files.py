"""Schedules over a folder of files: new and late ones, rescales, and processes that die.

The files are the truth, and stay as they are; see `checker.lines`.
"""

import os
import random
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from chaos.checker import lines
from chaos.children import judge_lines
from chaos.light.brokers import Brokers
from chaos.light.faults import Scene
from chaos.light.run import NOTHING, PATIENCE, Outcome, Tell, disturb
from chaos.light.stage import Stage
from chaos.light.zygote import Zygote
from chaos.world import Fault, World
from support.builders import spec_json
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

LATE: Final = 3.0
"""Seconds by which some files are older than they were found."""

SCHEMA: Final[Mapping[str, str]] = {"value": "string", "_path": "string", "_block_offset": "bigint"}


class Writer:
    """Lets files appear in a thread: small and large ones, and some with an earlier time.

    Args:
        folder: for the files.
        seed: decides sizes and times.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._dice, self._count = folder, random.Random(f"files-{seed}"), 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        folder.mkdir(parents=True)

    def write(self, files: int) -> None:
        """Write some files, each as a whole."""
        for _ in range(files):
            count = self._dice.choice((1, 20, 20, 2000))
            text = "".join(f"{self._count}-{n}-{'x' * (n % 30)}\n" for n in range(count))
            hidden = self._folder / f"_{self._count:05}"
            hidden.write_text(text)
            if self._dice.random() < 0.2:
                at = time.time() - self._dice.uniform(0, LATE)
                os.utime(hidden, (at, at))
            hidden.rename(self._folder / f"{self._count:05}.txt")
            self._count += 1

    def start(self) -> None:
        """Go on writing until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Write no more."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(self._dice.uniform(0.05, 0.4)):
            self.write(1)


def run_files(
    seed: int, folder: Path, *, zygote: Zygote, tell: Tell, faults: tuple[Fault, ...] | None = None
) -> Outcome:
    """Run a schedule and check it.

    Args:
        seed: decides everything.
        folder: gets everything.
        zygote: starts processes.
        tell: gets a line per fault.
        faults: instead of those that follow from the seed.
    """
    began = time.monotonic()
    dice = random.Random(f"files-world-{seed}")
    world = World(
        seed=seed,
        topics={},
        is_embedded=dice.random() < 0.3,
        max_records_per_reader=dice.choice((None, None, 3000)),
        parallelism=dice.randint(1, 5),
        drop_share=dice.choice((0.0, 0.05, 0.2)),
    )
    drawn = faults if faults is not None else _faults(dice)
    stage, writer = files_stage(world, folder, zygote), Writer(folder / "in", seed)
    # No fault of `KINDS` asks for a broker.
    scene = Scene(stage=stage, brokers=cast("Brokers", None), loads={})
    verdict, is_stuck, given_up = NOTHING, False, None
    try:
        is_stuck = not _play(scene, writer, drawn, tell)
        verdict = judge_lines(folder)
    except TestbedError as error:
        given_up = f"{type(error).__name__}: {error}"
    finally:
        scene.end_faults()
        writer.stop()
        stage.close()
    return Outcome(
        verdict=verdict,
        is_stuck=is_stuck,
        seconds=time.monotonic() - began,
        failures=tuple(stage.failures),
        user_actions=tuple(stage.user_actions),
        given_up=given_up,
    )


def _faults(dice: random.Random) -> tuple[Fault, ...]:
    return tuple(
        Fault(
            kind=dice.choice(KINDS),
            number=dice.randrange(2**30),
            after=round(dice.uniform(0.3, 2), 2),
            lasts=round(dice.uniform(0.3, 5), 2),
        )
        for _ in range(18)
    )


def files_stage(world: World, folder: Path, zygote: Zygote) -> Stage:
    """Return the stage of a source that reads ``in`` in a folder."""
    place, shared = str(folder / "in"), {"connector": "files"}
    if world.max_records_per_reader is not None:  # counts bytes, and cuts blocks
        shared["maxRecordsPerReader"] = str(world.max_records_per_reader)
    files: dict[str, Any] = {
        "paths": [place],
        "format": "Text",
        "discoveryInterval": "1s",
        "splitBytes": 65536,
    }
    options = {
        "path": place,
        "discoveryInterval": "500ms",
        "splitBytes": "10000",
        "stateDir": str(folder / "state"),
        "parallelism": str(world.parallelism),
    }
    return Stage(
        world,
        folder,
        zygote,
        spec=dict(spec_json(parallelism=world.parallelism, source={"files": files})),
        options=shared
        | (options if world.is_embedded else {"assignmentDir": str(folder / "documents")}),
        schema=SCHEMA,
    )


def _play(scene: Scene, writer: Writer, faults: tuple[Fault, ...], tell: Tell) -> bool:
    """Let everything happen; returns whether everything arrived."""
    folder = scene.stage.folder
    writer.write(20)

    def count() -> int:
        scene.tend()
        return len(lines.delivered(folder / "sink"))

    wait_until(lambda: count() > 0, 180, "the first lines", interval=0.3)
    writer.start()
    disturb(scene, faults, tell)
    writer.stop()
    tell("heal and read the rest")
    scene.stage.wants_driver, scene.stage.wants_operator = True, not scene.stage.world.is_embedded
    (folder / "crash.json").unlink(missing_ok=True)
    total = len(lines.written(folder / "in"))
    while (before := count()) < total:
        try:
            wait_until(lambda known=before: count() > known, PATIENCE, "progress", interval=0.5)  # type: ignore[misc]
        except DeadlineError:
            return False
    scene.stage.stop_driver()
    return True
