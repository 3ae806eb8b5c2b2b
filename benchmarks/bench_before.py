"""Our reader of this checkout beside that of an earlier one, in one interleaved run.

Each side is a Spark session of its own, started by the Python of its checkout; while one reads,
the other waits. Ratios are computed within a round, so that a change of the machine's speed affects
both sides. Above 1 means that this checkout is faster, or needs less.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Final, Self

import typer
from rich.console import Console

from benchmarks.reading.topics import drip, fill
from testbed.kafka import KafkaCluster
from testbed.progress import Progress

TOPIC: Final = "before"
SIDES: Final = ("before", "now")
ROOT: Final = Path(__file__).parent.parent
SIDE: Final = ROOT / "benchmarks" / "reading" / "side.py"

console = Console(stderr=True, highlight=False, soft_wrap=True)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Side:
    """A Spark session of one checkout, in a process of its own."""

    def __init__(self, checkout: Path) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - the checkout that the user names
            [str(checkout / ".venv" / "bin" / "python"), str(SIDE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=checkout,
        )
        self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, **command: Any) -> dict[str, Any]:
        """Send one command, and wait for its answer."""
        assert self._process.stdin is not None  # noqa: S101 - a pipe, see above
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None  # noqa: S101 - a pipe, see above
        for line in self._process.stdout:
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise typer.Exit(2)  # the side has printed why


@app.command()
def main(
    before: Annotated[Path, typer.Argument(help="Checkout with its .venv and native reader.")],
    *,
    rounds: Annotated[int, typer.Option(help="Interleaved rounds; one more warms up.")] = 5,
    records: Annotated[int, typer.Option(help="Of the backlog.")] = 4_000_000,
    size: Annotated[int, typer.Option(help="Bytes of each record.")] = 100,
    partitions: Annotated[int, typer.Option(help="Of the topic.")] = 16,
    batches: Annotated[int, typer.Option(help="Micro-batches for the planner's CPU.")] = 100,
) -> None:
    """Measure both sides, and print the raw rounds as JSON to stdout, then ratios to stderr."""
    with _broker() as kafka, ExitStack() as stack:
        fill(kafka, TOPIC, partitions=partitions, records=records, size=size)
        checkouts = zip(SIDES, (before.resolve(), ROOT), strict=True)
        sides = {name: stack.enter_context(Side(checkout)) for name, checkout in checkouts}
        options = _options(kafka)
        backlog = [*_backlogs(sides, options, rounds)]
        with drip(kafka, TOPIC, partitions=partitions, rate=1000):
            planning = [*_planning(sides, options, batches, max(1, rounds // 2))]
    # The rounds come first: an error in what follows must not lose them.
    sys.stdout.write(json.dumps({"backlog": backlog, "planning": planning}, indent=1) + "\n")
    sys.stdout.flush()
    _show("rows/s running", [_ratio(each, "running") for each in backlog])
    _show("rows/s whole run", [_ratio(each, "whole") for each in backlog])
    _show("CPU per record", [_ratio(each, "cpu") for each in backlog])
    _show("planner CPU per micro-batch", [_ratio(each, "planner_cpu") for each in planning])
    is_whole = all(side["rows"] == records for each in backlog for side in each.values())
    raise typer.Exit(0 if is_whole else 1)


@contextmanager
def _broker() -> Iterator[KafkaCluster]:
    folder = Path(tempfile.mkdtemp(prefix="balanced-source-bench-"))
    with KafkaCluster("bench", folder, heap="1g", progress=Progress(console)) as kafka:
        yield kafka


def _options(kafka: KafkaCluster) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": TOPIC,
        "parallelism": "2",
        "reader": "native",
    }


def _backlogs(
    sides: dict[str, Side], options: dict[str, str], rounds: int
) -> Iterator[dict[str, dict[str, Any]]]:
    """Read the backlog in turn, each side first in every other round; the first does not count."""
    for number in range(rounds + 1):
        order = SIDES if number % 2 else SIDES[::-1]
        given = {**options, "startingOffsets": "earliest"}
        read = {name: sides[name].ask(do="read", options=given) for name in order}
        console.print(f"round {number}: {read}", markup=False)
        if number:
            yield read


def _planning(
    sides: dict[str, Side], options: dict[str, str], batches: int, rounds: int
) -> Iterator[dict[str, dict[str, Any]]]:
    given = {**options, "startingOffsets": "latest"}
    for number in range(rounds):
        order = SIDES if number % 2 else SIDES[::-1]
        call = {"do": "watch", "options": given, "warm_up": 20, "batches": batches}
        seen = {name: sides[name].ask(**call) for name in order}
        for side in seen.values():
            if side["batches"]:
                side["planner_cpu"] /= side["batches"]
            else:
                side["planner_cpu"] = 0.0
        console.print(f"planning {number}: {seen}", markup=False)
        yield seen


def _ratio(measured: dict[str, dict[str, Any]], figure: str) -> float | None:
    """Return the ratio of one round, or None if a side measured 0, as with less than a tick."""
    before, now = float(measured["before"][figure]), float(measured["now"][figure])
    return before / now if before and now else None


def _show(what: str, ratios: list[float | None]) -> None:
    """Print the median and the spread, and how many rounds have no ratio."""
    formed = [ratio for ratio in ratios if ratio is not None]
    text = "–"
    if formed:
        text = f"{statistics.median(formed):.3f} ({min(formed):.2f} to {max(formed):.2f})"
    if missing := len(ratios) - len(formed):
        text += f", {missing} of {len(ratios)} rounds without a ratio"
    console.print(f"{what}: {text}", markup=False)


if __name__ == "__main__":
    app()
