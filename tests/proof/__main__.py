"""``python -m proof``: explores the large closures, then looks for all seeded bugs; fails if anything is wrong.

A human table goes to stderr, one JSON row per search to stdout.
"""

import json
import multiprocessing
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from queue import Queue
from typing import Annotated, Any, Final

import typer

from proof.closures import LARGE, SMALL
from proof.explorer import Explorer, Report
from proof.mutants import MUTANTS
from proof.show import Show

CLOSURES: Final = (*LARGE, *SMALL)

MUTANT_LIMIT: Final = 200_000
"""States after which a mutant counts as survivor."""

app = typer.Typer(add_completion=False)


def explore(number: int, told: "Queue[Report | None]") -> Report:
    """One closure; it runs in a process of its own."""
    return Explorer(CLOSURES[number], told.put).run()


def hunt(number: int) -> Report:
    """One mutant; the same."""
    mutant = MUTANTS[number]
    with mutant.applied():
        return Explorer(mutant.setting, limit=MUTANT_LIMIT).run()


@app.command()
def main(
    workers: Annotated[int, typer.Option(help="Processes at once.")] = 2,
    only: Annotated[str, typer.Option(help="Only closures and mutants with this in their name.")] = "",
) -> None:
    """Prove the protocol on the real code."""
    show, began = Show(), time.monotonic()
    with multiprocessing.Manager() as manager, ProcessPoolExecutor(workers) as pool, show.progress:
        told: Queue[Report | None] = manager.Queue()
        listener = threading.Thread(target=_listen, args=(told, show))
        listener.start()
        is_sound = all([*_closures(pool, told, show, only)])
        told.put(None)
        listener.join()
        is_found = all([*_mutants(pool, show, only)])
    show.say(f"{time.monotonic() - began:.0f} s in all")
    sys.exit(0 if is_sound and is_found else 1)


def _listen(told: "Queue[Report | None]", show: Show) -> None:
    while (report := told.get()) is not None:
        show.tell(report)


def _closures(pool: ProcessPoolExecutor, told: "Queue[Report | None]", show: Show, only: str) -> Iterator[bool]:
    numbers = [number for number, setting in enumerate(CLOSURES) if only in setting.name]
    searches = {pool.submit(explore, number, told): number for number in numbers}
    done: dict[int, Report] = {}
    for search in as_completed(searches):
        report = done[searches[search]] = search.result()
        if report.problem is not None:
            show.failed(report)
        yield report.problem is None
    for _, report in sorted(done.items()):
        _row("closure", report, report.setting.name)
    show.table([report for _, report in sorted(done.items())])


def _mutants(pool: ProcessPoolExecutor, show: Show, only: str) -> Iterator[bool]:
    for mutant, report in zip(MUTANTS, pool.map(hunt, range(len(MUTANTS))), strict=True):
        if only not in mutant.name:
            continue
        what = f"{mutant.name} ({', '.join(mutant.breaks)})"
        if not report.breaks_a_rule:
            show.say(f"[bold red]survives: {what}[/], {report.states:,} states, {report.problem or 'no rule broken'}")
        else:
            show.say(f"[green]found:[/] {what}, {report.states:,} states, {report.problem}")
            show.trace(report)
        _row("mutant", report, mutant.name)
        yield report.breaks_a_rule


def _row(kind: str, report: Report, name: str) -> None:
    row: dict[str, Any] = {
        "kind": kind,
        "name": name,
        "states": report.states,
        "transitions": report.transitions,
        "depth": report.depth,
        "turns": report.turns,
        "ends": report.ends,
        "seconds": round(report.seconds, 1),
        "problem": report.problem,
        "trace": [" ".join(map(str, label)) for label in report.trace],
    }
    sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    app()
