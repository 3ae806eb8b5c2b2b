"""``python -m soak``: hours of many sources with rescales; fails if anything grows."""

import json
import math
import random
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from soak.slopes import Sample, behind, judge
from soak.world import World
from testbed.progress import Progress

HOUR: Final = 3600.0

WARM_UP: Final = 20 / 60
"""Hours that do not count: caches fill, and allocators settle."""

WARM_UP_PACE: Final = 10
"""How many times as often sources are rescaled during the warm-up.

Drivers and workers keep something for each reader that they have seen, so each source should have
had its most readers by then.
"""

BURSTS: Final = 8
"""How many times all sources are rescaled at once during the warm-up.

The memory of a process shows the most that it ever needed at one time. When that happens by chance
an hour later, it looks like a leak.
"""

TELL_EVERY: Final = 60.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long, of which how much is warm-up, and seconds between two rescales and two samples."""

    hours: float
    warm_up: float
    rescale_every: float
    sample_every: float


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False, soft_wrap=True)


@app.command()
def main(  # noqa: PLR0917 - options of the command line
    hours: Annotated[
        float, typer.Option(help="How long; a third of a run below one hour is warm-up.")
    ] = 2.0,
    sources: Annotated[int, typer.Option(help="How many BalancedSources.")] = 50,
    workers: Annotated[int, typer.Option(help="Processes that read.")] = 2,
    rate: Annotated[int, typer.Option(help="Records per second, over all sources.")] = 500,
    interval: Annotated[
        float, typer.Option(help="Seconds between two micro-batches of a source.")
    ] = 5.0,
    rescale_every: Annotated[float, typer.Option(help="Seconds between two rescales.")] = 10.0,
    sample_every: Annotated[float, typer.Option(help="Seconds between two samples.")] = 15.0,
    reader: Annotated[str, typer.Option(help="auto, native or python.")] = "auto",
    seed: Annotated[int, typer.Option(help="Of the rescales.")] = 1,
    folder: Annotated[
        Path | None, typer.Option(help="Where everything goes; a temporary folder by default.")
    ] = None,
) -> None:
    """Run, and print a verdict; exit code 1 when something grows too fast or tasks fail."""
    run_dir = folder or Path(tempfile.mkdtemp(prefix="balanced-source-soak-"))
    console.print(f"soak: seed={seed} folder={run_dir}", markup=False)
    world = World(
        run_dir,
        sources=sources,
        workers=workers,
        rate=rate,
        interval=interval,
        reader=reader,
        progress=Progress(console),
    )
    with world:
        world.wait_until_all_read()
        warm_up = hours / 3 if hours < 1 else WARM_UP
        pace = Pace(
            hours=hours, warm_up=warm_up, rescale_every=rescale_every, sample_every=sample_every
        )
        samples = _watch(world, run_dir / "samples.jsonl", pace, random.Random(seed))
    verdict = judge(samples, warm_up=warm_up, is_short=hours < 1)
    failures = [*verdict.failures, *([f"{world.failed} tasks failed"] if world.failed else [])]
    for failure in failures:
        console.print(f"soak: {failure}", markup=False)
    first, last = behind(samples, warm_up=warm_up)
    console.print(
        f"soak: {world.rows} rows read; records behind: {first:.0f} in the first quarter,"
        f" {last:.0f} in the last one. If they grow, other work takes time from the soak, and"
        " workers hold what is not read yet",
        markup=False,
    )
    console.print(str(verdict).replace("OK", "FAILED") if failures else str(verdict), markup=False)
    raise typer.Exit(1 if failures else 0)


def _watch(world: World, file: Path, pace: Pace, dice: random.Random) -> list[Sample]:
    """Rescale and take samples until the time is over."""
    began = time.monotonic()
    due = {"rescale": began, "burst": began, "sample": began, "tell": began}
    samples: list[Sample] = []
    rescales = 0
    with file.open("w") as out:
        while (now := time.monotonic()) - began < pace.hours * HOUR:
            is_warming_up = now - began < pace.warm_up * HOUR
            if now >= due["rescale"]:
                due["rescale"] = now + pace.rescale_every / (WARM_UP_PACE if is_warming_up else 1)
                rescales += world.rescale(dice)
            if now >= due["burst"]:
                due["burst"] = now + pace.warm_up * HOUR / BURSTS if is_warming_up else math.inf
                rescales += world.rescale_all(dice) if is_warming_up else 0
            if now >= due["sample"]:
                due["sample"] = now + pace.sample_every
                samples.append(world.sample((now - began) / HOUR))
                out.write(json.dumps(asdict(samples[-1])) + "\n")
                out.flush()
            if now >= due["tell"]:
                due["tell"] = now + TELL_EVERY
                console.print(_line(samples[-1], world.rows, rescales), markup=False)
            time.sleep(max(0.0, min(due.values()) - time.monotonic()))
    return samples


def _line(sample: Sample, rows: int, rescales: int) -> str:
    figures = ", ".join(
        f"{name} {found['mib']:.0f} MiB {found['threads']:.0f} threads {found['fds']:.0f} fds"
        for name, found in sample.processes.items()
    )
    done = f"{rescales} rescales, {rows} rows, {sample.behind} behind"
    return f"soak: {sample.at * 60:.0f} min, {done}: {figures}"


app()
