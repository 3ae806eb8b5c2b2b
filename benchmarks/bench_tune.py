"""Searches the best settings of each rival, one knob after the other.

Prints each step and the settings found.

A value is kept only if it beats the best settings so far in interleaved rounds: median ratio of
rows per second of the whole run. So each rival is tuned as carefully as ours, and noise of a few
per cent changes nothing.
"""

import json
import statistics
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import typer
from rich.console import Console

from benchmarks.bench_read import open_parts
from benchmarks.reading import flink as on_flink
from benchmarks.reading.cases import Backlog
from benchmarks.reading.contestants import TEN_MS, native
from benchmarks.reading.measure import Parts
from benchmarks.reading.session import read_backlog
from benchmarks.reading.topics import fill
from testbed.flink.cluster import FlinkCluster

KNOBS: Final[Mapping[str, tuple[str, ...]]] = {
    "max.poll.records": ("2000", "10000", "50000"),
    "max.partition.fetch.bytes": (str(4 << 20), str(16 << 20)),
    "fetch.max.bytes": (str(64 << 20), str(128 << 20)),
    "receive.buffer.bytes": (str(1 << 20), "-1"),
    "check.crcs": ("false",),
    "fetch.min.bytes": (str(1 << 20),),
    "fetch.max.wait.ms": ("1", "100"),
}
"""Properties of the Java consumer that change throughput, and the values that are tried."""

GAIN: Final = 1.02
"""A value is kept from this median ratio on."""

Settings = dict[str, str]
console = Console(stderr=True, highlight=False, soft_wrap=True)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    records: int = typer.Option(4_000_000, help="Records of the backlog."),
    size: int = typer.Option(100, help="Bytes of a record."),
    rounds: int = typer.Option(3, help="Interleaved rounds of each comparison."),
    flink: bool = typer.Option(False, help="Tune Flink too, if its packages are available."),
) -> None:
    """Search, and print the settings of each rival as JSON."""
    case = Backlog(records=records, size=size)
    with open_parts(flink=flink) as parts:
        fill(parts.kafka, "tune", partitions=case.partitions, records=records, size=size)
        speed_of: dict[str, Callable[[Settings], float]] = {"spark": partial(_spark, parts, case)}
        if parts.flink:
            speed_of["flink"] = partial(_flink, parts, parts.flink, case)
        found = {name: search(name, speed, rounds) for name, speed in speed_of.items()}
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


def search(name: str, speed: Callable[[Settings], float], rounds: int) -> Settings:
    """Return the best settings found, starting from `fetch.max.wait.ms=10`."""
    best: Settings = dict(TEN_MS)
    speed(best)  # a warm-up
    for knob, values in KNOBS.items():
        for value in values:
            candidate = {**best, knob: value}
            ratio = _ratio(speed, candidate, best, rounds)
            console.print(f"{name}: {knob}={value}: {ratio:.2f} of the best so far", markup=False)
            if ratio >= GAIN:
                best = candidate
    return best


def _ratio(
    speed: Callable[[Settings], float], candidate: Settings, best: Settings, rounds: int
) -> float:
    """Return the median ratio.

    Who reads first alternates, because the JVM gets faster with each reading.
    """
    ratios = []
    for number in range(rounds):
        order = (candidate, best) if number % 2 else (best, candidate)
        speeds = [speed(each) for each in order]
        ratios.append(speeds[0] / speeds[1] if number % 2 else speeds[1] / speeds[0])
    return statistics.median(ratios)


def _spark(parts: Parts, case: Backlog, settings: Settings) -> float:
    contestant = native("spark", settings)
    read = read_backlog(
        parts.spark, parts.kafka, "tune", contestant, readers=case.readers, ignored=parts.others()
    )
    return read.rows / read.whole


def _flink(parts: Parts, flink: FlinkCluster, case: Backlog, settings: Settings) -> float:
    read = on_flink.read_backlog(
        flink, parts.kafka, "tune", readers=case.readers, properties=settings
    )
    return read.rows / read.whole


if __name__ == "__main__":
    app()
