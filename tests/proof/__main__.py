"""``python -m proof``: large closures, random lives, executed lines, seeded bugs.

Fails if anything is wrong.

Tables for people go to stderr, one JSON row per search to stdout.
"""

import json
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from itertools import repeat
from queue import Queue
from typing import Annotated, Any, Final

import typer

from proof import journal, ledger_lives, lines, pull
from proof.closures import LARGE, LIVES, SMALL
from proof.explorer import Explorer, Report
from proof.lives import Fate, live, relive
from proof.mutants import MUTANTS
from proof.show import KINDS, Show, disturbances
from proof.values import Setting
from support.pull_values import Found

CLOSURES: Final = (*LARGE, *SMALL)

MUTANT_LIMIT: Final = 200_000
"""States after which a mutant counts as survivor."""

CLOSURE_LIMIT: Final = 200_000
"""States after which a closure is cut: it has then visited everything up to some depth, and says
so."""

CHUNK: Final = 50
"""Lives that one process lives in a row."""

SHRINK: Final = 60.0
"""Seconds to look for a shorter life that breaks the same rule."""

TRACED: Final = 20
"""Lives of each setting whose lines are recorded, besides all small closures."""

LEDGERS: Final = 60
"""The same of the ledger, with one host and with two."""

LONG: Final = 6
"""Events of a counterexample that counts as long."""

PARTS: Final = ("closures", "lives", "lines", "bugs", "journal", "pull", "ledger")
"""What can be run alone, in the order in which it is run."""

app = typer.Typer(add_completion=False)


def explore(number: int, told: "Queue[Report | None]", limit: int) -> Report:
    """One closure; it runs in a process of its own."""
    return Explorer(CLOSURES[number], told.put, limit=limit).run()


def hunt(number: int) -> Report:
    """One mutant; the same."""
    return MUTANTS[number].hunted(limit=MUTANT_LIMIT, shrink=SHRINK)


def several(number: int, first: int, count: int) -> tuple[int, Fate | None]:
    """Some lives of a setting; returns how many, and the first that breaks a rule."""
    for done, fate in enumerate(live(LIVES[number], range(first, first + count)), start=1):
        if fate.problem is not None:
            return done, relive(fate, SHRINK)
    return count, None


def trace(number: int) -> set[lines.Line]:
    """Lines that are executed by one of the runs that are counted."""
    executed: set[lines.Line] = set()
    with lines.recorded(executed):
        _counted()[number]()
    return executed


def _counted() -> list[Callable[[], object]]:
    """Small closures, and some lives of each setting, of the ledger and of pulling readers."""
    return [
        *(partial(_explored, setting) for setting in SMALL),
        *(partial(_lived, setting) for setting in LIVES),
        *(partial(ledger_lives.lived, hosts, 0, LEDGERS) for hosts in ledger_lives.HOSTS),
        *(partial(pull.closed, name) for name in pull.SMALL),
        *(partial(pull.lived, name, TRACED) for name in pull.LIVES),
    ]


def _explored(setting: Setting) -> None:
    Explorer(setting).run()


def _lived(setting: Setting) -> None:
    for _ in live(setting, range(TRACED)):
        pass


@app.command()
def main(
    *,
    workers: Annotated[int, typer.Option(help="Processes at once.")] = 2,
    only: Annotated[
        str, typer.Option(help="Only closures, lives and seeded bugs with this in their name.")
    ] = "",
    lives: Annotated[int, typer.Option(help="Number of random lives.")] = 10_000,
    seed: Annotated[
        int, typer.Option(help="Of the first life of each setting; a failure prints its own.")
    ] = 0,
    states: Annotated[
        int, typer.Option(help="States after which a closure is cut.")
    ] = CLOSURE_LIMIT,
    parts: Annotated[str, typer.Option(help="Some of these, with commas between them.")] = ",".join(
        PARTS
    ),
) -> None:
    """Prove the protocol on the real code."""
    chosen = frozenset(parts.split(","))
    if unknown := sorted(chosen - frozenset(PARTS)):
        raise typer.BadParameter(f"unknown parts {unknown}; choose from {', '.join(PARTS)}")
    show, began = Show(), time.monotonic()
    with multiprocessing.Manager() as manager, ProcessPoolExecutor(workers) as pool, show.progress:
        told: Queue[Report | None] = manager.Queue()
        listener = threading.Thread(target=_listen, args=(told, show))
        listener.start()
        is_sound = "closures" not in chosen or all([*_closures(pool, told, show, only, states)])
        told.put(None)
        listener.join()
        is_sound &= "lives" not in chosen or _lives(pool, show, only, total=lives, first=seed)
        is_sound &= "lines" not in chosen or bool(only) or _lines(workers, show)
        is_sound &= "bugs" not in chosen or all([*_mutants(pool, show, only)])
        is_sound &= "journal" not in chosen or bool(only) or all([*_journal(show)])
        is_sound &= "pull" not in chosen or bool(only) or all([*_pull(pool, show)])
        is_sound &= (
            "ledger" not in chosen or bool(only) or _ledger(pool, show, total=lives, first=seed)
        )
    show.say(
        f"{'proof: OK' if is_sound else '[bold red]proof: FAILED[/]'},"
        f" {time.monotonic() - began:.0f} s in all"
    )
    sys.exit(0 if is_sound else 1)


def _listen(told: "Queue[Report | None]", show: Show) -> None:
    while (report := told.get()) is not None:
        show.tell(report)


def _closures(
    pool: ProcessPoolExecutor, told: "Queue[Report | None]", show: Show, only: str, states: int
) -> Iterator[bool]:
    numbers = [number for number, setting in enumerate(CLOSURES) if only in setting.name]
    searches = {pool.submit(explore, number, told, states): number for number in numbers}
    done: dict[int, Report] = {}
    for search in as_completed(searches):
        report = done[searches[search]] = search.result()
        if report.problem is not None:
            show.failed(report)
        yield report.problem is None
    for _, report in sorted(done.items()):
        _row("closure", report, report.setting.name)
    show.table([report for _, report in sorted(done.items())])


def _lives(pool: ProcessPoolExecutor, show: Show, only: str, *, total: int, first: int) -> bool:
    numbers = [number for number, setting in enumerate(LIVES) if only in setting.name]
    each = -(-total // len(numbers)) if numbers else 0
    chunks = [(start, number) for start in range(first, first + each, CHUNK) for number in numbers]
    searches = [
        pool.submit(several, n, start, min(CHUNK, first + each - start)) for start, n in chunks
    ]
    lived, broken, said = 0, 0, time.monotonic()
    for search in as_completed(searches):
        count, fate = search.result()
        lived += count
        if fate is not None:
            broken += 1
            show.say(f"[bold red]{str(fate).replace('[', chr(92) + '[')}[/]")
        if time.monotonic() - said > show.interval:
            said = time.monotonic()
            show.say(f"{lived:,} of {each * len(numbers):,} random lives, {broken} break a rule")
    show.say(
        f"{lived:,} random lives, seeds {first} to {first + each - 1} of {len(numbers)} settings:"
        f" {broken} broken"
    )
    return not broken


def _lines(workers: int, show: Show) -> bool:
    runs = range(len(_counted()))
    # New processes: those that have lived lives remember answers, and execute less.
    with ProcessPoolExecutor(workers) as pool:
        executed = set[lines.Line]().union(*pool.map(trace, runs))
    account = lines.account(executed)
    for gap in account.gaps:
        show.say(f"not executed: {gap}")
    for name in account.needless:
        show.say(
            f"[bold red]all of {name} is executed: take its reason out of proof/unreached.py[/]"
        )
    colour = "green" if account.is_enough else "bold red"
    said = (
        f"{account.executed:,} of {account.total:,} lines are executed; with reasons"
        f" {account.share:.1%}"
    )
    show.say(f"[{colour}]{said}, {lines.GOAL:.0%} are needed[/]")
    return account.is_enough and not account.needless


def _mutants(pool: ProcessPoolExecutor, show: Show, only: str) -> Iterator[bool]:
    long = 0
    for mutant, report in zip(MUTANTS, pool.map(hunt, range(len(MUTANTS))), strict=True):
        if only not in mutant.name:
            continue
        is_found = mutant.is_found_by(report)
        word = "[green]found[/]" if is_found else "[bold red]not found as expected[/]"
        events = f"{len(report.trace)} events, {disturbances(report.kinds) or 'no disturbance'}"
        what = "lives" if mutant.lives else "states"
        show.say(
            f"{word}: {mutant.name} ({mutant.rule}): {events}, {report.states:,} {what}:"
            f" {report.broken}"
        )
        if not is_found:
            show.trace(report)
        long += len(report.trace) >= LONG and any(kind in KINDS for kind in report.kinds)
        _row("mutant", report, mutant.name)
        yield is_found
    if not only:
        show.say(
            f"{long} of {len(MUTANTS)} need {LONG} events or more with a crash, a loss or a"
            " reordering"
        )
        yield 2 * long >= len(MUTANTS)


def _journal(show: Show) -> Iterator[bool]:
    """The protocol of the journal has a small model of its own."""
    worlds, broken = journal.explored()
    colour = "bold red" if broken else "green"
    show.say(
        f"[{colour}]journal: {worlds:,} states, {', '.join(sorted(broken)) or 'all rules hold'}[/]"
    )
    yield not broken
    for make, closes, breaks in journal.BUGS:
        is_found = breaks in journal.explored(make, closes, until=breaks)[1]
        word = "[green]found[/]" if is_found else "[bold red]not found[/]"
        show.say(f"{word}: journal, {make.__name__} attempts, {closes.__name__}: {breaks}")
        yield is_found


def _pull(pool: ProcessPoolExecutor, show: Show) -> Iterator[bool]:
    """So have readers that ask for splits."""
    places = {**pull.LARGE, **pull.SMALL}
    for name, found in zip(places, pool.map(pull.closed, places), strict=True):
        cut = f", cut after {found.worlds:,}" if found.worlds >= pull.LIMIT else ""
        yield _told(show, f"pull: {name}: {found.worlds:,} states{cut}", found)
    for name, found in zip(
        pull.LIVES,
        pool.map(pull.lived, pull.LIVES, repeat(pull.LIVES_EACH, len(pull.LIVES))),
        strict=True,
    ):
        yield _told(
            show, f"pull: {pull.LIVES_EACH} random lives {name}, {found.worlds:,} steps", found
        )
    for name, problem in zip(pull.BUGS, pool.map(pull.hunted, pull.BUGS), strict=True):
        is_found = pull.BUGS[name].breaks in problem
        show.say(
            f"{'[green]found[/]' if is_found else '[bold red]not found[/]'}: pull, {name}:"
            f" {problem}"
        )
        yield is_found


def _ledger(pool: ProcessPoolExecutor, show: Show, *, total: int, first: int) -> bool:
    """Lives of a second model; as many as of the first one."""
    each = -(-total // len(ledger_lives.HOSTS))
    chunks = [(hosts, n) for n in range(first, first + each, CHUNK) for hosts in ledger_lives.HOSTS]
    searches = [
        pool.submit(ledger_lives.lived, hosts, n, min(CHUNK, first + each - n))
        for hosts, n in chunks
    ]
    lived, broken, said = 0, 0, time.monotonic()
    for search in as_completed(searches):
        count, problem = search.result()
        lived += count
        if problem is not None:
            broken += 1
            show.say(f"[bold red]{problem.replace('[', chr(92) + '[')}[/]")
        if time.monotonic() - said > show.interval:
            said = time.monotonic()
            show.say(
                f"ledger: {lived:,} of {each * len(ledger_lives.HOSTS):,} random lives, {broken}"
                " broken"
            )
    show.say(
        f"ledger: {lived:,} random lives, seeds {first} to {first + each - 1} of one and two hosts:"
        f" {broken} broken"
    )
    return not broken


def _told(show: Show, what: str, found: Found) -> bool:
    if found.problem is None:
        show.say(f"[green]{what}, all rules hold[/]")
    else:
        show.say(f"[bold red]{what}: {pull.told(found)}[/]")
    return found.problem is None


def _row(kind: str, report: Report, name: str) -> None:
    row: dict[str, Any] = {
        "kind": kind,
        "name": name,
        "states": report.states,
        "transitions": report.transitions,
        "depth": report.depth,
        "is_cut": report.is_cut,
        "turns": report.turns,
        "ends": report.ends,
        "seconds": round(report.seconds, 1),
        "problem": report.problem,
        "disturbances": report.kinds,
        "trace": [" ".join(map(str, label)) for label in report.trace],
    }
    sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    app()
