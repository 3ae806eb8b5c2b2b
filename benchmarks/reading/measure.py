"""Measures one case: all contestants in interleaved rounds, each round in another order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.reading import flink as on_flink
from benchmarks.reading.cases import Backlog, Drip
from benchmarks.reading.contestants import BARE, bare_loop
from benchmarks.reading.figures import Rounds, of_backlog, of_stream, per_row, summary
from benchmarks.reading.session import Backlog as Reading
from benchmarks.reading.session import read_backlog, watch_stream
from benchmarks.reading.topics import drip, fill
from testbed.flink.cluster import FlinkCluster
from testbed.kafka import KafkaCluster

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What runs during a case. CPU and memory of brokers and of waiting rivals are not counted."""

    spark: SparkSession
    kafka: KafkaCluster
    console: Console
    flink: FlinkCluster | None = None

    def others(self, *further: int) -> frozenset[int]:
        """Return the processes that do not belong to Spark."""
        return self.kafka.pids | (self.flink.pids if self.flink else frozenset()) | set(further)


def measure(
    parts: Parts, name: str, case: Backlog | Drip, *, rounds: int, scale: float
) -> dict[str, Any]:
    """Measure one case of either kind."""
    if isinstance(case, Backlog):
        return _measure_backlog(parts, name, case, rounds=rounds, scale=scale)
    return _measure_drip(parts, name, case, rounds=rounds, scale=scale)


def _measure_backlog(
    parts: Parts, name: str, case: Backlog, *, rounds: int, scale: float
) -> dict[str, Any]:
    """Measure one case; the first round warms up and does not count."""
    records = int(case.records * scale)
    fill(
        parts.kafka,
        name,
        partitions=case.partitions,
        records=records,
        size=case.size,
        zipf=case.zipf,
    )
    figures: Rounds = {}
    wrong = 0
    for number in range(rounds + 1):
        for who, reading in rotated(readings(parts, name, case), number):
            read = reading()
            wrong += read.rows != records
            _note(parts, figures, who, number, of_backlog(read))
        wall, cpu, rows = bare_loop(parts.kafka, name, readers=case.readers)
        wrong += rows != records
        entry = per_row(rows, wall, wall, cpu)
        del entry["rows_per_s"]  # no query starts here, so this is no whole run
        _note(parts, figures, BARE, number, entry)
    parts.kafka.admin.delete_topic(name)
    return {
        "records": records,
        "wrong": wrong,
        **summary(figures, ("rows_per_s", "rows_per_s_running"), higher=True),
    }


def readings(parts: Parts, topic: str, case: Backlog) -> list[tuple[str, Callable[[], Reading]]]:
    """Return the name of each contestant that reads a backlog, and the call that reads it."""
    found: list[tuple[str, Callable[[], Reading]]] = [
        (
            each.name,
            partial(
                read_backlog,
                parts.spark,
                parts.kafka,
                topic,
                each,
                readers=case.readers,
                ignored=parts.others(),
            ),
        )
        for each in case.contestants
    ]
    if parts.flink:
        read = partial(on_flink.read_backlog, parts.flink, parts.kafka, topic, readers=case.readers)
        found += [
            (who, partial(read, properties=given)) for who, given in on_flink.PROPERTIES.items()
        ]
    return found


def _measure_drip(
    parts: Parts, name: str, case: Drip, *, rounds: int, scale: float
) -> dict[str, Any]:
    """Measure the contestants in turn in each round, each long enough to settle."""
    kafka = parts.kafka
    kafka.admin.create_topic(name, partitions=case.partitions)
    figures: Rounds = {}
    seconds = max(15.0, case.seconds * scale)
    for number in range(1, max(1, rounds) + 1):
        for contestant in rotated(case.contestants, number):
            with drip(kafka, name, partitions=case.partitions, rate=case.rate) as producer:
                seen = watch_stream(
                    parts.spark,
                    kafka,
                    name,
                    contestant,
                    readers=case.readers,
                    seconds=seconds,
                    ignored=parts.others(producer),
                )
            _note(parts, figures, contestant.name, number, of_stream(seen, seconds))
    kafka.admin.delete_topic(name)
    return {
        "rate": case.rate,
        "seconds": seconds,
        **summary(figures, ("addBatch_p50", "trigger_p50"), higher=False),
    }


def rotated(contestants: Sequence[T], number: int) -> Sequence[T]:
    """Return the contestants in another order each round: the first one has cold caches."""
    cut = number % len(contestants)
    return [*contestants[cut:], *contestants[:cut]]


def _note(
    parts: Parts, figures: Rounds, name: str, number: int, entry: Mapping[str, float]
) -> None:
    parts.console.print(f"  round {number} {name}: {entry}", markup=False)
    if number:
        figures.setdefault(name, []).append(dict(entry))
