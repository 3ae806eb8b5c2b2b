"""``status``, ``top``, ``plan`` and ``rebalance``.

Commands that look at sources of a cluster or of a folder.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console, RenderableType
from rich.live import Live

from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.folder import state_path
from balanced_source_operator.cli.errors import in_sentences
from balanced_source_operator.cli.options import (
    ContextOption,
    NamespaceOption,
    Output,
    OutputOption,
)
from balanced_source_operator.kube.connect import connect
from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from balanced_source_operator.views import gather, render
from balanced_source_operator.views.folders import name_of, stored_view
from balanced_source_operator.views.model import OwnerChange, SourceView, moves_between

Look = Callable[[], list[SourceView]]

_WIDE: Final = 10_000
"""Characters of a line where nothing says how many there is room for."""

_KEEP: Final = 30.0
"""Seconds that `top` continues showing what has moved."""

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Name of the BalancedSource. Default: all in the namespace."
    ),
]
DirOption = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        metavar="FOLDER",
        help="Folder of local mode, instead of a cluster: .balanced-source/NAME for run.",
    ),
]
WatchOption = Annotated[bool, typer.Option("-w", "--watch", help="Repeat until interrupted.")]
IntervalOption = Annotated[
    float, typer.Option(min=0.2, max=3600, metavar="SECONDS", help="Seconds between two refreshes.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (status, top, plan, rebalance):
        app.command()(in_sentences(command))


def status(
    name: NameArgument = "",
    *,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    folder: DirOption = None,
    watch: WatchOption = False,
    interval: IntervalOption = 2.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show sources: readiness, readers, splits, epoch, lag and problems."""
    look = _look(name, namespace, context, folder)
    _show(look, output, lambda views, _: render.overview(views), interval if watch else None)


def top(
    name: NameArgument = "",
    *,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    folder: DirOption = None,
    watch: WatchOption = False,
    interval: IntervalOption = 2.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show which reader has which splits, what is moving and (--watch) how fast each one reads."""
    _show(_look(name, namespace, context, folder), output, Details(), interval if watch else None)


class Details:
    """Draws sources in detail, and remembers what has moved lately."""

    def __init__(self) -> None:
        self._moved: dict[str, tuple[float, Sequence[OwnerChange]]] = {}

    def __call__(
        self, views: Sequence[SourceView], before: dict[str, SourceView]
    ) -> RenderableType:
        """Return the picture of all views."""
        return render.together([self._of(view, before.get(view.name)) for view in views])

    def _of(self, view: SourceView, before: SourceView | None) -> RenderableType:
        now = time.monotonic()
        if before is not None and before.epoch != view.epoch:
            self._moved[view.name] = (now, moves_between(before, view))
        at, moved = self._moved.get(view.name, (now, ()))
        return render.detail(view, before, moved if now - at < _KEEP else ())


def _look(name: str, namespace: str, context: str, folder: Path | None) -> Look:
    if folder is not None:
        found = name_of(folder, name)
        return lambda: [stored_view(folder, name=found)]
    return lambda: asyncio.run(_of_cluster(name, namespace, context))


async def _of_cluster(name: str, namespace: str, context: str) -> list[SourceView]:
    local = "name the folder of local mode with --dir"
    async with connect(context=context, otherwise=local) as (api, default):
        return await gather.of_cluster(api, namespace or default, name)


def _show(
    look: Look,
    output: Output,
    draw: Callable[[Sequence[SourceView], dict[str, SourceView]], RenderableType],
    interval: float | None,
) -> None:
    looks = _looks(look, interval)
    if output is Output.JSON:
        for views, before in looks:
            typer.echo(json.dumps([render.as_json(view, before.get(view.name)) for view in views]))
        return
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        # What reads a file or a pipe wants a line per row, however long.
        console = Console(width=_WIDE)
    if interval is None:
        console.print(draw(*next(looks)))
        return
    with Live(console=console, auto_refresh=False, screen=console.is_terminal) as live:
        for views, before in looks:
            live.update(draw(views, before), refresh=True)


def _looks(
    look: Look, interval: float | None
) -> Iterator[tuple[list[SourceView], dict[str, SourceView]]]:
    """Yield what exists and, by name, what existed before: once, or again and again."""
    before: dict[str, SourceView] = {}
    while True:
        views = look()
        yield views, before
        if interval is None:
            return
        before = {view.name: view for view in views}
        time.sleep(interval)


def plan(  # noqa: PLR0917 - options of the command line
    file: Annotated[
        Path, typer.Option("-f", "--file", metavar="FILE", help="The new BalancedSource manifest.")
    ],
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Enumerator state: the ConfigMap NAME-enumerator as YAML or JSON, or the file"
            " enumerator.json of local mode. Default: the state in the cluster.",
        ),
    ] = None,
    folder: DirOption = None,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Print what applying a changed BalancedSource would move. Nothing is changed."""
    from balanced_source_operator import dry_run

    if folder is not None:
        if state is not None:
            raise InvalidSpecError("name a folder or a state, not both", field="--dir, --state")
        name_of(folder)
        state = state_path(folder)
    found = (
        dry_run.from_file(file, state)
        if state is not None
        else dry_run.from_cluster(file, namespace=namespace, context=context)
    )
    typer.echo(
        dry_run.as_json(found) if output is Output.JSON else dry_run.as_table(found), nl=False
    )


def rebalance(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the BalancedSource.")],
    namespace: NamespaceOption = "",
    context: ContextOption = "",
) -> None:
    """Rebalance a source now, regardless of its rebalance mode, by changing spec.rebalanceNonce."""
    before, after = asyncio.run(_rebalanced(name, namespace, context))
    typer.echo(
        f"rebalance of {name} requested: spec.rebalanceNonce {before} → {after}. See:"
        f" balanced-source top {name}"
    )


async def _rebalanced(name: str, namespace: str, context: str) -> tuple[int, int]:
    async with connect(context=context) as (api, default):
        return await api.count_up(
            BALANCED_SOURCE, namespace or default, name, "rebalanceNonce", most=2**31 - 1
        )
