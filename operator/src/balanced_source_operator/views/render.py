"""Views as tables and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from balanced_source.api import SplitId
from balanced_source.names import counted, split_name
from balanced_source_operator.views.model import (
    OwnerChange,
    SourceView,
    moves_under_way,
    readers,
)

UNKNOWN: Final = "–"
SHOWN: Final = 12
"""Splits that one row names; JSON names all."""


def overview(views: Sequence[SourceView]) -> RenderableType:
    """Return a row per source, then what is wrong with each."""
    table = Table(
        "source",
        "ready",
        "readers",
        "splits",
        "per reader",
        "epoch",
        "lag",
        "application",
        box=None,
    )
    for view in views:
        table.add_row(*map(escape, _overview_row(view)))
    problems = [line for view in views for line in _problems(view)]
    return Group(table, *problems)


def _overview_row(view: SourceView) -> tuple[str, ...]:
    ready = view.condition("Ready")
    counts = [len(row.splits) for row in readers(view)]
    shown = (
        UNKNOWN
        if not counts
        else str(counts[0])
        if len(set(counts)) == 1
        else f"{min(counts)}–{max(counts)}"
    )
    return (
        view.name,
        ready.status if ready else UNKNOWN,
        _readers_text(view),
        str(len(view.owners)) + (f" (+{view.pending} pending)" if view.pending else ""),
        shown,
        _epoch_text(view),
        lag_text(view),
        view.application or UNKNOWN,
    )


def _readers_text(view: SourceView) -> str:
    adopted = view.adopted.parallelism if view.adopted is not None else None
    now = number(adopted)
    target = view.desired if view.desired is not None else view.parallelism
    return now if adopted == target else f"{now} → {target}"


def _epoch_text(view: SourceView) -> str:
    adopted = view.adopted.epoch if view.adopted is not None else None
    return str(view.epoch) if adopted == view.epoch else f"{number(adopted)} → {view.epoch}"


def number(value: float | None) -> str:
    """Return a number with separators; a dash if it is unknown."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def lag_text(view: SourceView) -> str:
    """Return the records that are not read yet, or else the seconds; a dash if neither is known."""
    return (
        f"{view.behind:,} s" if view.lag is None and view.behind is not None else number(view.lag)
    )


def _problems(view: SourceView) -> list[Text]:
    lines = []
    for condition in view.conditions:
        is_bad = condition.type in ("Degraded", "DataLoss") and condition.status != "False"
        is_unready = condition.type == "Ready" and condition.status != "True"
        if is_bad or is_unready:
            lines.append(
                Text(
                    f"{view.name}: {condition.type}={condition.status} {condition.reason}:"
                    f" {condition.message}"
                )
            )
    return [*lines, *(Text(f"{view.name}: {note}") for note in view.sentences)]


def detail(
    view: SourceView, before: SourceView | None = None, recent: Sequence[OwnerChange] = ()
) -> RenderableType:
    """Return a source with a row per reader: its splits and, given an earlier view, its rate."""
    title = (
        f"{view.name}: epoch {_epoch_text(view)}, readers {_readers_text(view)}, splits"
        f" {len(view.owners)}, lag {lag_text(view)}"
    )
    table = Table("reader", "splits", "records/s", "which", box=None)
    for row in readers(view, before):
        table.add_row(
            str(row.reader), str(len(row.splits)), number(row.rate), escape(_names(row.splits))
        )
    hosts = [_hosts(view)] if view.hosts else []
    moves = moves_under_way(view)
    lines = [Text(f"moving: {_moves_text(moves)}")] if moves else []
    if recent:
        lines.append(Text(f"moved since the last look: {_moves_text(recent)}"))
    conditions = [Text(f"{c.type}={c.status} {c.reason}: {c.message}") for c in view.conditions]
    return Group(
        Text(title, style="bold"), *hosts, table, *lines, *conditions, *map(Text, view.sentences)
    )


def _hosts(view: SourceView) -> Table:
    table = Table(
        "host", "role", "application", "state", "readers", "splits", "epoch", "lag", box=None
    )
    for host in view.hosts:
        counts = (str(host.readers), str(host.splits), str(host.epoch), number(host.lag))
        texts = (host.name, host.role, host.application or UNKNOWN, host.state or UNKNOWN)
        table.add_row(*map(escape, (*texts, *counts)))
    return table


def _names(splits: Sequence[SplitId]) -> str:
    more = f" … {len(splits) - SHOWN} more" if len(splits) > SHOWN else ""
    return " ".join(map(split_name, splits[:SHOWN])) + more


def _moves_text(moves: Sequence[OwnerChange]) -> str:
    def side(reader: int | None) -> str:
        return "none" if reader is None else str(reader)

    shown = (f"{split_name(m.split)} {side(m.before)} → {side(m.after)}" for m in moves[:SHOWN])
    more = f" … {len(moves) - SHOWN} more" if len(moves) > SHOWN else ""
    return f"{counted(len(moves), 'split')}: {', '.join(shown)}{more}"


def as_json(view: SourceView, before: SourceView | None = None) -> dict[str, Any]:
    """Return everything that is known, for programs. Unknown numbers are null."""
    adopted = view.adopted
    return {
        "namespace": view.namespace,
        "name": view.name,
        "desiredReaders": view.desired,
        "epoch": view.epoch,
        "readers": view.parallelism,
        "adoptedEpoch": adopted.epoch if adopted else None,
        "adoptedReaders": adopted.parallelism if adopted else None,
        "pendingSplits": view.pending,
        "lag": view.lag,
        "secondsBehind": view.behind,
        "application": view.application or None,
        "hosts": [asdict(host) for host in view.hosts],
        "conditions": [
            {"type": c.type, "status": c.status, "reason": c.reason, "message": c.message}
            for c in view.conditions
        ],
        "assignment": [
            {
                "reader": row.reader,
                "splits": [list(s) for s in row.splits],
                "recordsPerSecond": row.rate,
            }
            for row in readers(view, before)
        ],
        "moving": [
            {"split": list(m.split), "from": m.before, "to": m.after} for m in moves_under_way(view)
        ],
        "notes": list(view.sentences),
    }


def together(parts: Sequence[RenderableType]) -> RenderableType:
    """Return several pictures below each other."""
    return Group(*parts) if parts else Text("No BalancedSource found.")
