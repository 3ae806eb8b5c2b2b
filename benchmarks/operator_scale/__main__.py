"""`make bench-operator`.

What the operator costs with 1 … 1,000 sources, on a real API server and broker.

    python -m benchmarks.operator_scale [--sources 1,30] [--window 300] [--patches 50]
        [--autoscaling] [--json FILE]

For each number of sources: heartbeats every 10 s (idle), positions every 2 s (busy), patches of
parallelism under both loads, and a new start of the operator beside running drivers. Processor
share is the time that the operator's process was charged for, divided by wall time; requests are
counted by the API server's audit log. Ends with status 1 if a goal for 1,000 sources is missed.
"""

import argparse
import asyncio
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.operator_scale.api import Api
from benchmarks.operator_scale.drivers import HEARTBEAT, POSITIONS, Drivers
from benchmarks.operator_scale.world import FIRST_READERS, NAMESPACE, Look, World, between, name_of
from testbed.progress import Progress

PATCHES_PER_SECOND: Final = 4.0
SETTLE: Final = 30.0
"""Seconds between a change of the load and the measurement: two heartbeats, in which drivers
register and adopt …"""
SETTLE_SOURCE: Final = 0.09
"""… and seconds for each source: the operator stores what each driver says at its first report, and
writes each status; about 50 requests a second were made by a slow machine."""

WINDOW: Final = 300.0
"""Seconds of the measurement at rest: a whole period of the checks and of discovery (5 minutes each
by default), which come in waves."""

BUSY_WINDOW: Final = 120.0
"""Seconds of the measurement under load, at most: it goes up and down within seconds."""

GOAL_SOURCES: Final = 1000

_DEADLINE: Final = 900.0

_HEAD: Final = """\
| sources | CPU idle | CPU busy | RSS MiB | threads | TCP | requests/s idle \
| busy | patch p50 | p99 | busy p99 | start |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The operator under one load."""

    cpu: float
    mib: float
    threads: int
    connections: int
    requests: tuple[tuple[str, float], ...]

    @property
    def rate(self) -> float:
        """Requests per second."""
        return sum(rate for _, rate in self.requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """All figures for one number of sources; seconds, but `cpu` of a core."""

    sources: int
    idle: Load
    busy: Load
    patches: tuple[float, ...]
    busy_patches: tuple[float, ...]
    start: float
    start_cpu: float

    def missed(self) -> list[str]:
        """Return the goals for 1,000 sources that are not reached; none for fewer sources."""
        if self.sources < GOAL_SOURCES:
            return []
        goals = (
            ("a core while idle", self.idle.cpu, 0.1),
            ("MiB", max(self.idle.mib, self.busy.mib), 500.0),
            ("requests/s while idle", self.idle.rate, 10.0),
            ("s until a patch is published (p99)", quantile(self.patches, 0.99), 1.0),
            ("s until all are served after a new start", self.start, 30.0),
        )
        return [
            f"{found:.3g} {what}, the goal is {goal:g}"
            for what, found, goal in goals
            if found > goal
        ]

    def text(self) -> str:
        """Return the row of the table."""
        idle, busy = self.idle, self.busy
        cells = (
            self.sources,
            f"{idle.cpu:.1%}",
            f"{busy.cpu:.1%}",
            f"{busy.mib:.0f}",
            idle.threads,
            idle.connections,
            f"{idle.rate:.2f}",
            f"{busy.rate:.2f}",
            _seconds(quantile(self.patches, 0.5)),
            _seconds(quantile(self.patches, 0.99)),
            _seconds(quantile(self.busy_patches, 0.99)),
            f"{self.start:.1f} s",
        )
        return f"| {' | '.join(map(str, cells))} |"


def _seconds(value: float) -> str:
    return "not measured" if math.isnan(value) else f"{value:.3f} s"


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of the values do not exceed; NaN of none."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)] if ranked else math.nan


def extrapolated(rows: Sequence[Row], sources: int, of: Callable[[Row], float]) -> float:
    """Return what the line through the first and the last row says for a number of sources."""
    first, last = rows[0], rows[-1]
    if first.sources == last.sources:
        return of(last) * sources / last.sources
    slope = (of(last) - of(first)) / (last.sources - first.sources)
    return of(last) + slope * (sources - last.sources)


class Bench:
    """One run.

    Args:
        world: with the API server, the broker and the operator.
        window: seconds of each measurement.
        patches: how many for each number of sources.
        progress: is told what happens.
    """

    def __init__(self, world: World, *, window: float, patches: int, progress: Progress) -> None:
        self._world = world
        self._window = window
        self._patches = patches
        self._progress = progress
        self._sources = 0
        self._readers: dict[str, int] = {}

    async def measure(self, api: Api, sources: int) -> Row:
        """Grow to a number of sources and return all figures."""
        world, drivers = self._world, Drivers(api, NAMESPACE)
        await self._grow(api, sources)
        await drivers.follow()
        await self._until(lambda: drivers.assigned, sources, "assigned")
        await drivers.run()
        try:
            idle = await self._load(
                drivers, "heartbeats every 10 s", interval=HEARTBEAT, has_progress=False
            )
            patches = await self._patch(drivers)
            busy = await self._load(
                drivers, "positions every 2 s", interval=POSITIONS, has_progress=True
            )
            busy_patches = await self._patch(drivers)
            drivers.interval, drivers.has_progress = HEARTBEAT, False
            await self._settle()
            begin = await asyncio.to_thread(world.start_operator)
            await self._until(world.served, sources, "served after a new start")
            start, start_cpu = time.monotonic() - begin, world.look().cpu
        finally:
            await drivers.stop()
        return Row(
            sources=sources,
            idle=idle,
            busy=busy,
            patches=patches,
            busy_patches=busy_patches,
            start=start,
            start_cpu=start_cpu,
        )

    async def _grow(self, api: Api, sources: int) -> None:
        if not self._world.operator.is_running:
            await asyncio.to_thread(self._world.start_operator)
        begin = time.monotonic()
        await self._world.grow(api, before=self._sources, after=sources)
        self._sources = sources
        await self._until(self._world.served, sources, "served")
        self._progress.line(
            f"{sources} sources: created and served in {time.monotonic() - begin:.1f} s"
        )

    async def _load(
        self, drivers: Drivers, name: str, *, interval: float, has_progress: bool
    ) -> Load:
        drivers.interval, drivers.has_progress = interval, has_progress
        await self._settle()
        first, written = self._world.look(), drivers.written
        await asyncio.sleep(min(self._window, BUSY_WINDOW) if has_progress else self._window)
        last = self._world.look()
        load = _load(first, last)
        reports = (drivers.written - written) / (last.at - first.at)
        self._progress.line(
            f"{self._sources} sources, {name} ({reports:.1f} reports/s): {load.cpu:.1%} of a core,"
            f" {load.mib:.0f} MiB, {load.threads} threads, {load.rate:.2f} requests/s:"
            f" {_words(load)}; machine load {os.getloadavg()[0]:.0f}"
        )
        return load

    async def _settle(self) -> None:
        """Wait until what another load has caused is done."""
        await asyncio.sleep(SETTLE + SETTLE_SOURCE * self._sources)

    async def _patch(self, drivers: Drivers) -> tuple[float, ...]:
        """Change the number of readers of source after source, without waiting in between."""
        if not self._patches:
            return ()
        tasks: list[asyncio.Task[float]] = []
        for number in range(self._patches):
            name = name_of(number % self._sources)
            if number >= self._sources:  # one patch of a source at a time
                await tasks[number - self._sources]
            # another number than at any time before
            self._readers[name] = self._readers.get(name, FIRST_READERS) + 1
            tasks.append(asyncio.create_task(drivers.rescale(name, self._readers[name])))
            await asyncio.sleep(1 / PATCHES_PER_SECOND)
        seconds = tuple(await asyncio.gather(*tasks))
        self._progress.line(
            f"{self._sources} sources, {len(seconds)} patches: published after"
            f" {quantile(seconds, 0.5):.3f} s (p50), {quantile(seconds, 0.99):.3f} s (p99)"
        )
        return seconds

    async def _until(self, count: Callable[[], int], wanted: int, what: str) -> None:
        """Wait until so many sources are what they should be."""
        begin, told = time.monotonic(), time.monotonic()
        while (found := await asyncio.to_thread(count)) < wanted:
            await asyncio.sleep(0.5)
            if time.monotonic() - begin > _DEADLINE:
                raise TimeoutError(f"only {found} of {wanted} sources are {what}")
            if time.monotonic() - told > 10:
                told = time.monotonic()
                self._progress.line(f"{found} of {wanted} sources are {what} …")


def _load(first: Look, last: Look) -> Load:
    return Load(
        cpu=(last.cpu - first.cpu) / (last.at - first.at),
        mib=last.mib,
        threads=last.threads,
        connections=last.connections,
        requests=tuple(between(first, last)),
    )


def _words(load: Load) -> str:
    return ", ".join(f"{rate:.2f} {word}" for word, rate in load.requests[:8]) or "none"


def _tell(rows: Sequence[Row]) -> None:
    print(_HEAD)
    for row in rows:
        print(row.text())
    if len(rows) > 1:
        print(_line(rows, GOAL_SOURCES if rows[-1].sources < GOAL_SOURCES else 3 * GOAL_SOURCES))


def _line(rows: Sequence[Row], sources: int) -> str:
    cpu = extrapolated(rows, sources, lambda row: row.idle.cpu)
    mib = extrapolated(rows, sources, lambda row: row.busy.mib)
    rate = extrapolated(rows, sources, lambda row: row.idle.rate)
    start = extrapolated(rows, sources, lambda row: row.start)
    return (
        f"straight line to {sources:,} sources, idle: {cpu:.1%} of a core, {mib:.0f} MiB,"
        f" {rate:.2f} requests/s, start {start:.0f} s"
    )


async def _run(bench: Bench, world: World, sizes: Sequence[int], rows: list[Row]) -> None:
    """Add a row for each number of sources: those before a failure are worth having."""
    async with world.api() as api:
        for sources in sizes:
            row = await bench.measure(api, sources)
            rows.append(row)


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sources", default="1,30,100,300,1000", help="numbers of sources, ascending"
    )
    parser.add_argument(
        "--window", type=float, default=WINDOW, help="seconds of the measurement at rest"
    )
    parser.add_argument(
        "--patches", type=int, default=40, help="changes of parallelism for each number of sources"
    )
    parser.add_argument(
        "--autoscaling",
        action="store_true",
        help="sources have spec.autoscaling, and a load that their readers carry; no patches, which"
        " the autoscaler would undo",
    )
    parser.add_argument("--json", type=Path, help="where all figures are written")
    parser.add_argument("--folder", type=Path, help="where logs go; a temporary folder by default")
    arguments = parser.parse_args()
    sizes = sorted({int(size) for size in arguments.sources.split(",")})
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="bench-operator-"))
    progress = Progress()
    progress.line(f"folder {folder}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    rows: list[Row] = []
    try:
        with World(folder, progress=progress, autoscaling=arguments.autoscaling) as world:
            patches = 0 if arguments.autoscaling else arguments.patches
            bench = Bench(world, window=arguments.window, patches=patches, progress=progress)
            asyncio.run(_run(bench, world, sizes, rows))
    finally:
        if rows:
            _tell(rows)
        if arguments.json is not None:
            arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    if missed := [f"{row.sources} sources: {text}" for row in rows for text in row.missed()]:
        raise SystemExit("bench-operator: missed:\n" + "\n".join(missed))


if __name__ == "__main__":
    main()
