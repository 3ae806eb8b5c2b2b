"""Reading files beside Spark's own file stream source, interleaved in one run.

Tables on stderr; JSON with the raw rounds on stdout, and one file per case with `--keep`. Ratios
are computed within a round, so that a change of the machine's speed affects both; above 1 means
faster than Spark's source.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from benchmarks.bench_read import kept, machine
from benchmarks.filing.cases import FULL, QUICK
from benchmarks.filing.measure import Parts, measure
from benchmarks.reading.figures import show
from benchmarks.reading.session import new_session

console = Console(stderr=True, highlight=False, soft_wrap=True)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    *,
    quick: bool = typer.Option(False, help="Small folders, two rounds: a few minutes."),
    case: list[str] = typer.Option([], help="Only these cases."),
    rounds: int = typer.Option(0, help="Interleaved rounds of each backlog; 5, or 2 if quick."),
    keep: Path | None = typer.Option(
        None, help="Folder for one JSON file per case; cases that are there are skipped."
    ),
    folder: Path | None = typer.Option(None, help="Where the files are written."),
) -> None:
    """Measure and print; exit code 1 if a row was lost or duplicated."""
    cases, rounds = QUICK if quick else FULL, rounds or (2 if quick else 5)
    chosen = case or list(cases)
    results: dict[str, Any] = {"benchmark": "files", "rounds": rounds, "machine": machine(0)}
    results["cases"] = kept(keep, chosen)
    missing = [name for name in chosen if name not in results["cases"]]
    with tempfile.TemporaryDirectory(prefix="balanced-source-bench-", dir=folder) as work:
        spark = new_session(has_kafka=False)
        parts = Parts(spark=spark, console=console, folder=Path(work))
        for name in missing:
            results["cases"][name] = measure(parts, name, cases[name], rounds=rounds)
            _show(name, results["cases"][name])
            if keep:
                (keep / f"{name}.json").write_text(json.dumps(results["cases"][name], indent=1))
        spark.stop()
    sys.stdout.write(json.dumps(results, indent=1) + "\n")
    raise typer.Exit(1 if any(c.get("wrong") for c in results["cases"].values()) else 0)


def _show(name: str, result: dict[str, Any]) -> None:
    for step, figures in result.get("steps", {}).items():
        show(console, f"{name}, {step} files", figures)
    if "ratios" in result:
        show(console, name, result)


if __name__ == "__main__":
    app()
