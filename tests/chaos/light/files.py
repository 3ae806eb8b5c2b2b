"""Schedules over a folder of files: new and late ones, rescales, and processes that die.

The files are the truth, and stay as they are; see `checker.lines`.
"""

import os
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from chaos.checker import lines
from chaos.light.run import Outcome, Tell
from chaos.light.stage import Stage
from chaos.light.written import Writer, Written, drawn, run_written
from chaos.light.zygote import Zygote
from chaos.world import Fault, World
from support.builders import spec_json

LATE: Final = 3.0
"""Seconds by which some files are older than they were found."""

SCHEMA: Final[Mapping[str, str]] = {"value": "string", "_path": "string", "_block_offset": "bigint"}


class FileWriter(Writer):
    """Lets files appear in a thread: small and large ones, and some with an earlier time.

    Args:
        folder: for the files.
        seed: decides sizes and times.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(f"files-{seed}")
        self._folder, self._count = folder, 0
        folder.mkdir(parents=True)

    def write(self, files: int) -> None:
        """Write some files, each as a whole."""
        for _ in range(files):
            count = self.dice.choice((1, 20, 20, 2000))
            text = "".join(f"{self._count}-{n}-{'x' * (n % 30)}\n" for n in range(count))
            hidden = self._folder / f"_{self._count:05}"
            hidden.write_text(text)
            if self.dice.random() < 0.2:
                at = time.time() - self.dice.uniform(0, LATE)
                os.utime(hidden, (at, at))
            hidden.rename(self._folder / f"{self._count:05}.txt")
            self._count += 1

    def begin(self) -> None:
        """Write the first files."""
        self.write(20)

    @property
    def total(self) -> int:
        """Number of lines."""
        return len(lines.written(self._folder))

    def write_some(self) -> None:
        """Write one more file."""
        self.write(1)

    def note(self) -> None:
        """Nothing to do: the files are there."""


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
    dice = random.Random(f"files-world-{seed}")
    world = World(
        seed=seed,
        topics={},
        is_embedded=dice.random() < 0.3,
        max_records_per_reader=dice.choice((None, None, 3000)),
        parallelism=dice.randint(1, 5),
        drop_share=dice.choice((0.0, 0.05, 0.2)),
    )
    happen = faults if faults is not None else drawn(dice)
    source = Written(
        stage=files_stage(world, folder, zygote),
        writer=FileWriter(folder / "in", seed),
        delivered=lambda sink: len(lines.delivered(sink)),
        checker="lines",
    )
    return run_written(source, happen, tell)


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
