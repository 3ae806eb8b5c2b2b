"""Shows how searches continue, bars on a terminal and lines in a log, and what came out."""

import time
from collections.abc import Iterable, Mapping
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from proof.explorer import Report
from proof.values import Budget, Setting

LOG_INTERVAL: Final = 20.0
"""Seconds between two lines about one search, where there is no terminal."""


class Show:
    """Of several searches at once."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self.progress = Progress(
            TextColumn("{task.description:<22}"),
            BarColumn(),
            TextColumn("{task.fields[line]}"),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}
        self._said: dict[str, float] = {}
        self.interval = LOG_INTERVAL

    def tell(self, report: Report) -> None:
        """Something new about a search."""
        name = report.setting.name
        if self.console.is_terminal:
            if name not in self._tasks:
                self._tasks[name] = self.progress.add_task(name, line="", total=None)
            done = report.states - report.frontier
            self.progress.update(
                self._tasks[name], completed=done, total=report.states, line=line_of(report)
            )
        elif time.monotonic() - self._said.get(name, 0.0) >= LOG_INTERVAL:
            self._said[name] = time.monotonic()
            self.say(f"{name}: {line_of(report)}")

    def say(self, text: str) -> None:
        """A line."""
        self.console.print(text, highlight=False, soft_wrap=True)

    def failed(self, report: Report) -> None:
        """A broken rule, and how it came to that."""
        self.say(f"[bold red]{report.setting.name}: {report.problem}[/]")
        self.trace(report)

    def trace(self, report: Report) -> None:
        """The steps, one a line."""
        for number, label in enumerate(report.trace, start=1):
            self.say(f"  {number:>2}. " + " ".join(map(str, label)).replace("[", "\\["))

    def table(self, reports: list[Report]) -> None:
        """All closures."""
        table = Table(title="Every state of the protocol", title_justify="left")
        for column in (
            "closure",
            "what may happen",
            "readers × splits × hosts",
            "states",
            "steps",
            "depth",
            "turns",
            "s",
        ):
            table.add_column(
                column, justify="left" if column in ("closure", "what may happen") else "right"
            )
        for r in reports:
            counts = (
                f"{r.states:,}",
                f"{r.transitions:,}",
                f"{'cut at ' if r.is_cut else ''}{r.depth}",
                f"{r.turns:,}",
                f"{r.seconds:.0f}",
            )
            table.add_row(r.setting.name, budget_of(r.setting.budget), size_of(r.setting), *counts)
        self.console.print(table)


def line_of(report: Report) -> str:
    """A search in a line."""
    return (
        f"{report.states:,} states, {report.transitions:,} steps, depth {report.depth},"
        f" {report.frontier:,} to look at, {report.turns:,} turns, {report.seconds:.0f} s of"
        " processor time"
    )


def budget_of(budget: Budget) -> str:
    """The disturbances of a budget in words."""
    kinds = {
        "old_news": "old news",
        "blind": "blind discoveries",
        "amnesia": "lost states",
        "wipes": "lost checkpoints",
        "edits": "changes of the source",
        "recreations": "recreated topics",
        "restores": "restored states",
        "rivals": "second operators",
        "losses": "hosts given up",
        "silences": "silent hosts",
        "moves": "moves to another cluster",
        "copies": "older checkpoints",
    }
    return (
        ", ".join(f"{n} {kinds.get(k, k)}" for k, n in budget._asdict().items() if n) or "nothing"
    )


def size_of(setting: Setting) -> str:
    """How large the world is."""
    readers = max((setting.parallelism, *(setting.parallelisms if setting.budget.rescales else ())))
    return f"{readers} × {setting.splits} × {len(setting.all_hosts)}"


KINDS: Final[Mapping[str, str]] = {
    "crashes": "crash",
    "zombies": "crash",
    "amnesia": "loss",
    "wipes": "loss",
    "restores": "loss",
    "moves": "loss",
    "copies": "loss",
    "blind": "loss",
    "faults": "loss",
    "old_news": "reordering",
    "rivals": "reordering",
}
"""Disturbance → what it is to a distributed system; the others are what users and brokers do."""


def disturbances(kinds: Iterable[str]) -> str:
    """Returns the kinds of disturbances in a counterexample, in words."""
    return ", ".join(
        dict.fromkeys(
            KINDS.get(kind, budget_of(Budget(**{kind: 1})).removeprefix("1 ")) for kind in kinds
        )
    )
