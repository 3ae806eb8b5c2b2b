"""``python -m walks``: plays random walks, and ends with one line that says what came of them."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import typer
from rich.console import Console

from walks.actions.text import steps_of
from walks.campaign import Failure, campaign, judged, quiet, script_of
from walks.play import play, shorter
from walks.worlds import WORLDS

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(stderr=True, highlight=False, soft_wrap=True)

INTERVAL: Final = 20.0
"""Seconds between two lines of progress."""


@app.command()
def main(
    *,
    world: Annotated[
        str, typer.Option(help=f"Some of these, with commas between them: {', '.join(WORLDS)}.")
    ] = ",".join(WORLDS),
    seeds: Annotated[str, typer.Option(help="A seed, or the first and the last one.")] = "0-19",
    actions: Annotated[
        str | None,
        typer.Option(help="Play these instead of drawn ones, and show the status before each."),
    ] = None,
    shrink: Annotated[
        float, typer.Option(help="Seconds to look for a shorter walk that breaks the same rule.")
    ] = 60.0,
    workers: Annotated[int, typer.Option(help="Processes at once.")] = 2,
) -> None:
    """Play walks; exit code 1 when one of them breaks a rule."""
    names, numbers = _worlds(world), _seeds(seeds)
    if actions is not None:
        results = _replayed(names, numbers, actions)
    else:
        results = _played(names, numbers, workers=workers, shrink=shrink)
    stories, broken = 0, 0
    for failure in results:
        stories += 1
        broken += failure is not None
    words = "FAILED" if broken else "OK"
    sys.stdout.write(f"walks: {words} stories={stories} broken={broken}\n")
    raise typer.Exit(1 if broken else 0)


def _worlds(text: str) -> list[str]:
    names = [name.strip().replace(" ", "-") for name in text.split(",")]
    if unknown := sorted(set(names) - set(WORLDS)):
        raise typer.BadParameter(f"unknown worlds {unknown}; choose from {', '.join(WORLDS)}")
    return names


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    try:
        return range(int(first), int(last or first) + 1)
    except ValueError:
        raise typer.BadParameter(f'"{text}" is not a seed or a range such as 0-200') from None


def _played(
    worlds: list[str], seeds: range, *, workers: int, shrink: float
) -> Iterator[Failure | None]:
    began = reported = time.monotonic()
    done, broken = dict.fromkeys(worlds, 0), dict.fromkeys(worlds, 0)
    for world, failure in campaign(worlds, seeds, workers=workers, shrink=shrink):
        done[world] += 1
        broken[world] += failure is not None
        if failure is not None:
            console.print(str(failure), markup=False, style="red")
        if done[world] == len(seeds) or time.monotonic() - reported > INTERVAL:
            reported = time.monotonic()
            count = f"{done[world]:,} of {len(seeds):,} walks, {broken[world]} broken"
            console.print(f"[{world}] {reported - began:6.1f} s  {count}", markup=False)
        yield failure


def _replayed(worlds: list[str], seeds: Iterable[int], actions: str) -> Iterator[Failure | None]:
    """Play given actions, and show what the status says before each of them."""
    quiet()
    try:
        steps = steps_of(actions)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    for world in worlds:
        for seed in seeds:
            script = shorter(script_of(world, seed), steps)
            play(script, lambda line: console.print(line, markup=False))
            failure = judged(script, shrink=0)
            if failure is not None:
                console.print(str(failure), markup=False, style="red")
            yield failure


if __name__ == "__main__":
    app()
