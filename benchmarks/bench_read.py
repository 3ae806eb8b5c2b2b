"""Reading Kafka.

Ours beside Spark's own source, Flink and our native reader without Spark, interleaved in one run.

Tables on stderr; JSON with the raw rounds on stdout, and one file per case with `--keep`. Ratios
are computed within a round, so that a change of the machine's speed affects all contestants; above
1 means faster than the rival.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from benchmarks.reading import flink as on_flink
from benchmarks.reading.cases import CASES, CORE, QUICK, with_only
from benchmarks.reading.compare import changes
from benchmarks.reading.figures import show
from benchmarks.reading.measure import Parts, measure
from benchmarks.reading.plots import write_plots
from benchmarks.reading.session import new_session
from testbed.kafka import KafkaCluster
from testbed.progress import Progress

console = Console(stderr=True, highlight=False, soft_wrap=True)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(  # noqa: PLR0917 - options of the command line
    quick: bool = typer.Option(False, help="Two cases, a quarter of the records, two rounds."),
    every: bool = typer.Option(False, "--all", help="All cases, also those that take long."),
    case: list[str] = typer.Option([], help="Only these cases."),
    who: list[str] = typer.Option([], "--contestant", help="Only these readers, by their names."),
    rounds: int = typer.Option(0, help="Interleaved rounds of each case; 5, or 2 if quick."),
    scale: float = typer.Option(0.0, help="Factor of records and seconds; 1, or 0.25 if quick."),
    flink: bool = typer.Option(
        False, help="Flink reads the backlogs too, if its packages are available."
    ),
    beside: int = typer.Option(0, help="Measure beside this many programs that each use a core."),
    keep: Path | None = typer.Option(
        None, help="Folder for one JSON file per case; cases that are there are skipped."
    ),
    compare: Path | None = typer.Option(
        None, help="JSON of an earlier run: name regressions of more than 5 %."
    ),
    plots: Path | None = typer.Option(None, help="Folder for a chart of each case (SVG)."),
) -> None:
    """Measure and print; exit code 1 if a row was lost or duplicated."""
    chosen = case or list(QUICK if quick else CASES if every else CORE)
    rounds, scale = rounds or (2 if quick else 5), scale or (0.25 if quick else 1.0)
    results: dict[str, Any] = {
        "benchmark": "read",
        "rounds": rounds,
        "scale": scale,
        "machine": machine(beside),
    }
    results["cases"] = kept(keep, chosen)
    missing = [name for name in chosen if name not in results["cases"]]
    with open_parts(flink=flink and bool(missing)) as parts, _busy(beside):
        for name in missing:
            asked = with_only(CASES[name], who)
            results["cases"][name] = measure(parts, name, asked, rounds=rounds, scale=scale)
            show(console, name, results["cases"][name])
            if keep:
                (keep / f"{name}.json").write_text(json.dumps(results["cases"][name], indent=1))
    sys.stdout.write(json.dumps(results, indent=1) + "\n")
    if plots:
        write_plots(plots, results["cases"])
    if compare:
        _show_changes(json.loads(compare.read_text()), results)
    raise typer.Exit(1 if any(c.get("wrong") for c in results["cases"].values()) else 0)


@contextmanager
def open_parts(*, flink: bool) -> Iterator[Parts]:
    """Start a broker, a Spark session and, where asked for, Flink."""
    folder = Path(tempfile.mkdtemp(prefix="balanced-source-bench-"))
    progress = Progress(console)
    with ExitStack() as stack:
        kafka = stack.enter_context(KafkaCluster("bench", folder, heap="1g", progress=progress))
        rival = stack.enter_context(on_flink.flink_cluster(folder, progress)) if flink else None
        parts = Parts(spark=new_session(), kafka=kafka, console=console, flink=rival)
        stack.callback(parts.spark.stop)
        yield parts


@contextmanager
def _busy(programs: int) -> Iterator[None]:
    """Use as many cores as there are programs, as a neighbour on a shared machine does."""
    command = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(command) for _ in range(programs)]  # noqa: S603 - this file
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def kept(keep: Path | None, chosen: list[str]) -> dict[str, Any]:
    """Read the cases that an earlier run has kept."""
    if keep is None:
        return {}
    keep.mkdir(parents=True, exist_ok=True)
    files = {name: keep / f"{name}.json" for name in chosen}
    return {name: json.loads(file.read_text()) for name, file in files.items() if file.exists()}


def _show_changes(earlier: dict[str, Any], results: dict[str, Any]) -> None:
    for change in changes(earlier, results):
        if change.is_regression:
            console.print(f"REGRESSION {change}", markup=False)


def machine(beside: int) -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "cpus": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 1),
        "busy_programs_beside": beside,
    }


if __name__ == "__main__":
    app()
