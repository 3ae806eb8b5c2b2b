"""Measures a case: contestants in interleaved rounds, each round in another order."""

import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.filing.cases import Backlog, Case, Growing, Listing
from benchmarks.filing.folders import fill, grow
from benchmarks.filing.listing import measure_listing
from benchmarks.filing.queries import CONTESTANTS, Watch, read_backlog, watching
from benchmarks.reading.cost import Cost
from benchmarks.reading.figures import Rounds, of_backlog, summary
from benchmarks.reading.measure import rotated


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What runs during a case.

    Attributes:
        spark: session of all contestants.
        console: gets a line per figure.
        folder: for files and checkpoints.
    """

    spark: SparkSession
    console: Console
    folder: Path

    def note(
        self, figures: Rounds, who: str, what: str, entry: Mapping[str, float], *, counts: bool
    ) -> None:
        """Keep the figures of a contestant in a round, unless it was to warm up."""
        self.console.print(f"  {what} {who}: {dict(entry)}", markup=False)
        if counts:
            figures.setdefault(who, []).append(dict(entry))


def measure(parts: Parts, name: str, case: Case, *, rounds: int) -> dict[str, Any]:
    """Measure one case of any kind; the files are deleted afterwards."""
    if isinstance(case, Listing):
        found = measure_listing(case.objects)
        parts.console.print(f"  listing: {found}", markup=False)
        return found
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parts.folder))
    try:
        if isinstance(case, Backlog):
            return _measure_backlog(parts, folder / "in", case, rounds=rounds)
        return _measure_growing(parts, folder, case)
    finally:
        shutil.rmtree(folder)


def _measure_backlog(parts: Parts, folder: Path, case: Backlog, *, rounds: int) -> dict[str, Any]:
    """The first round warms up and does not count."""
    records = fill(folder, case)
    size = sum(file.stat().st_size for file in folder.iterdir())
    figures: Rounds = {}
    wrong = 0
    for number in range(rounds + 1):
        for who in rotated(CONTESTANTS, number):
            read = read_backlog(parts.spark, who, folder, case.kind)
            wrong += read.rows != records
            entry = {**of_backlog(read), "mb_per_s": round(size / read.whole / 1e6, 2)}
            parts.note(figures, who.name, f"round {number}", entry, counts=number > 0)
    compared = ("rows_per_s", "rows_per_s_running")
    return {"records": records, "wrong": wrong, **summary(figures, compared, higher=True)}


def _measure_growing(parts: Parts, folder: Path, case: Growing) -> dict[str, Any]:
    """Measure the contestants one after the other at each number of files.

    A contestant first reads what appeared while the other one was measured.
    """
    files = folder / "in"
    files.mkdir()
    done, count = dict.fromkeys((who.name for who in CONTESTANTS), 0), 0
    steps: dict[str, Any] = {}
    for number, step in enumerate(case.steps):
        grow(files, count, step)
        count, figures = max(count, step), Rounds()
        for who in rotated(CONTESTANTS, number):
            home = folder / who.name
            with watching(parts.spark, who, files, home, rows=done[who.name]) as watch:
                catching_up = time.monotonic()
                watch.wait_rows(count)
                caught = time.monotonic() - catching_up
                for entry in _appearances(watch, files, count, case):
                    entry["catching_up_s"] = round(caught, 1)
                    parts.note(figures, who.name, f"{step} files", entry, counts=True)
                count += (case.times + 1) * case.added
                done[who.name] = watch.rows
        compared = ("batch_ms", "seen_s")
        steps[str(step)] = summary(figures, compared, higher=False)
    wrong = sum(rows > count for rows in done.values())
    return {"steps": steps, "wrong": wrong}


def _appearances(
    watch: Watch, files: Path, count: int, case: Growing
) -> Sequence[dict[str, float]]:
    """Let files appear, and return the figures of each time; the first one warms up."""
    found = []
    for _ in range(case.times + 1):
        before = len(watch.batches)
        with Cost() as cost:
            grow(files, count, count + case.added)
            began = time.monotonic()
            count += case.added
            watch.wait_rows(count)
            seen = time.monotonic() - began
        batches = watch.batches[before:]
        found.append(
            {
                "batch_ms": statistics.mean(b.took["triggerExecution"] for b in batches),
                "planning_ms": statistics.mean(
                    sum(b.took.get(s, 0) for s in ("latestOffset", "getBatch")) for b in batches
                ),
                "seen_s": round(seen, 2),
                "cpu_s": round(cost.cpu, 2),
            }
        )
    return found[1:]
