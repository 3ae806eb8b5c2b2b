"""Reading Kafka: ours beside Spark's own source and a bare librdkafka loop, interleaved in one run.

JSON on stdout, tables on stderr. Ratios are computed within a round, so that drift of the machine's speed hits all;
above 1 means faster than Spark's own source with its default settings, with `kafka.fetch.max.wait.ms=10`, or Flink.
"""

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import typer
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.reading import flink as on_flink
from benchmarks.reading.contestants import BARE, OURS, OURS_CUT, PYTHON, SPARK, SPARK_TUNED, Contestant, bare_loop
from benchmarks.reading.session import Backlog as Reading
from benchmarks.reading.session import new_session, read_backlog, watch_stream
from benchmarks.reading.topics import drip, fill
from benchmarks.statistics_of import spread
from testbed.flink.cluster import FlinkCluster
from testbed.kafka import KafkaCluster
from testbed.progress import Progress

T = TypeVar("T")
console = Console(stderr=True, highlight=False, soft_wrap=True)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """A topic that is read from its first record to its last."""

    records: int
    size: int
    partitions: int = 16
    readers: int = 2
    zipf: float = 0.0
    contestants: tuple[Contestant, ...] = (OURS, PYTHON, SPARK, SPARK_TUNED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drip:
    """New records, read as they come."""

    partitions: int
    seconds: float
    rate: int = 2000
    readers: int = 2
    contestants: tuple[Contestant, ...] = (OURS, PYTHON, SPARK, SPARK_TUNED)


CASES: Final[Mapping[str, Backlog | Drip]] = {
    "backlog-100B": Backlog(records=4_000_000, size=100),
    "backlog-1KB": Backlog(records=800_000, size=1024),
    "backlog-10KB": Backlog(records=80_000, size=10_240),
    "backlog-100B-1-reader": Backlog(records=2_000_000, size=100, readers=1, contestants=(OURS, SPARK_TUNED)),
    "backlog-100B-4-readers": Backlog(records=2_000_000, size=100, readers=4, contestants=(OURS, SPARK_TUNED)),
    "backlog-100B-zipf": Backlog(
        records=4_000_000, size=100, zipf=1.2, contestants=(OURS, OURS_CUT, SPARK, SPARK_TUNED)
    ),
    "drip-16": Drip(partitions=16, seconds=30),
    "drip-1000": Drip(partitions=1000, seconds=75),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What runs while a case is measured; brokers and rivals that wait are nobody's cost."""

    spark: SparkSession
    kafka: KafkaCluster
    flink: FlinkCluster | None = None

    def others(self, *further: int) -> frozenset[int]:
        """Processes that are not Spark's."""
        return self.kafka.pids | (self.flink.pids if self.flink else frozenset()) | set(further)


QUICK: Final = ("backlog-100B", "drip-16")


@app.command()
def main(
    quick: bool = typer.Option(False, help="Two cases, a quarter of the records, two rounds."),
    case: list[str] = typer.Option([], help="Only these cases."),
    rounds: int = typer.Option(0, help="Interleaved rounds of each case; 5, or 2 if quick."),
    scale: float = typer.Option(0.0, help="Factor of records and seconds; 1, or 0.25 if quick."),
    flink: bool = typer.Option(False, help="Flink reads the backlogs too, if its packages can be had."),
) -> None:
    """Measure and print; exit code 1 if a row was lost or came twice."""
    chosen = case or (list(QUICK) if quick else list(CASES))
    rounds, scale = rounds or (2 if quick else 5), scale or (0.25 if quick else 1.0)
    folder = Path(tempfile.mkdtemp(prefix="balanced-source-bench-"))
    results: dict[str, Any] = {"benchmark": "read", "rounds": rounds, "scale": scale, "machine": machine(), "cases": {}}
    progress = Progress(console)
    with ExitStack() as stack:
        kafka = stack.enter_context(KafkaCluster("bench", folder, heap="1g", progress=progress))
        rival = stack.enter_context(on_flink.flink_cluster(folder, progress)) if flink else None
        parts = Parts(spark=new_session(), kafka=kafka, flink=rival)
        stack.callback(parts.spark.stop)
        for name in chosen:
            results["cases"][name] = measure(parts, name, CASES[name], rounds=rounds, scale=scale)
            show(name, results["cases"][name])
    sys.stdout.write(json.dumps(results, indent=1) + "\n")
    raise typer.Exit(1 if any(c.get("wrong") for c in results["cases"].values()) else 0)


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    return {"cpus": os.cpu_count(), "load_before": round(os.getloadavg()[0], 1)}


def measure(parts: Parts, name: str, case: Backlog | Drip, *, rounds: int, scale: float) -> dict[str, Any]:
    """One case, of either kind."""
    if isinstance(case, Backlog):
        return measure_backlog(parts, name, case, rounds=rounds, scale=scale)
    return measure_drip(parts, name, case, rounds=rounds, scale=scale)


def measure_backlog(parts: Parts, name: str, case: Backlog, *, rounds: int, scale: float) -> dict[str, Any]:
    """One case; the first round warms up and does not count."""
    records = int(case.records * scale)
    fill(parts.kafka, name, partitions=case.partitions, records=records, size=case.size, zipf=case.zipf)
    figures: dict[str, list[dict[str, float]]] = {}
    wrong = 0
    for number in range(rounds + 1):
        for who, reading in rotated(readings(parts, name, case), number):
            read = reading()
            wrong += read.rows != records
            _note(figures, who, number, _of_backlog(read))
        wall, cpu, rows = bare_loop(parts.kafka, name, readers=case.readers)
        wrong += rows != records
        _note(figures, BARE, number, _per_row(rows, wall, wall, cpu))
    parts.kafka.admin.delete_topic(name)
    return {"records": records, "wrong": wrong, **summary(figures, ("rows_per_s", "rows_per_s_running"), higher=True)}


def readings(parts: Parts, topic: str, case: Backlog) -> list[tuple[str, Callable[[], Reading]]]:
    """Names of all who read a backlog, and how."""
    found: list[tuple[str, Callable[[], Reading]]] = [
        (
            each.name,
            partial(read_backlog, parts.spark, parts.kafka, topic, each, readers=case.readers, ignored=parts.others()),
        )
        for each in case.contestants
    ]
    if parts.flink:
        flink = partial(on_flink.read_backlog, parts.flink, parts.kafka, topic, readers=case.readers)
        found.append((on_flink.FLINK, flink))
    return found


def measure_drip(parts: Parts, name: str, case: Drip, *, rounds: int, scale: float) -> dict[str, Any]:
    """One case; contestants one after the other in each round, for long enough to settle."""
    kafka = parts.kafka
    kafka.admin.create_topic(name, partitions=case.partitions)
    figures: dict[str, list[dict[str, float]]] = {}
    seconds = max(15.0, case.seconds * scale)
    for number in range(1, max(1, rounds // 2) + 1):
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
            _note(figures, contestant.name, number, _of_stream(seen, seconds))
    kafka.admin.delete_topic(name)
    return {"rate": case.rate, "seconds": seconds, **summary(figures, ("addBatch_p50", "trigger_p50"), higher=False)}


def rotated(contestants: Sequence[T], number: int) -> Sequence[T]:
    """In another order each round: who comes first has cold caches."""
    cut = number % len(contestants)
    return [*contestants[cut:], *contestants[:cut]]


def summary(
    figures: Mapping[str, Sequence[Mapping[str, float]]], compared: tuple[str, ...], *, higher: bool
) -> dict[str, Any]:
    """Figures of all contestants, and ratios to each rival, above 1 where the contestant is better."""
    result: dict[str, Any] = {"contestants": {}}
    for name, rounds in figures.items():
        keys = sorted({key for each in rounds for key in each})
        result["contestants"][name] = {
            key: spread([each[key] for each in rounds if key in each], digits=2) for key in keys
        }
    for rival in (SPARK.name, SPARK_TUNED.name, on_flink.FLINK):
        for name in figures:
            if rival in figures and name != rival:
                result.setdefault("ratios", {}).setdefault(rival, {})[name] = {
                    key: _ratio(figures[name], figures[rival], key, higher=higher) for key in compared
                }
    return result


def _ratio(
    ours: Sequence[Mapping[str, float]], theirs: Sequence[Mapping[str, float]], key: str, *, higher: bool
) -> dict[str, float] | None:
    pairs = [(a[key], b[key]) for a, b in zip(ours, theirs, strict=True) if a.get(key) and b.get(key)]
    return spread([a / b if higher else b / a for a, b in pairs], digits=2) if pairs else None


def _note(figures: dict[str, list[dict[str, float]]], name: str, number: int, entry: dict[str, float]) -> None:
    console.print(f"  round {number} {name}: {entry}", markup=False)
    if number:
        figures.setdefault(name, []).append(entry)


def _per_row(rows: int, whole: float, running: float, cpu: float) -> dict[str, float]:
    return {
        "rows_per_s": round(rows / whole),
        "rows_per_s_running": round(rows / running) if running else 0,
        "cpu_s_per_million": round(cpu / rows * 1e6, 3) if rows else 0,
    }


def _of_backlog(read: Reading) -> dict[str, float]:
    entry = _per_row(read.rows, read.whole, read.running, read.cpu)
    if read.rows:
        entry["jvm_cpu_s_per_million"] = round(read.jvm_cpu / read.rows * 1e6, 3)
    return {**entry, "python_mb": round(read.python_mb), "jvm_mb": round(read.jvm_mb)}


def _of_stream(seen: Mapping[str, Any], seconds: float) -> dict[str, float]:
    """A source that finished no micro-batch has no figures but that."""
    entry = {
        "warm_up_s": round(seen["warm_up"], 1),
        "batches": float(seen["batches"]),
        "cpu_s_per_s": round(seen["cpu"] / seconds, 2),
    }
    entry |= {"python_mb": round(seen["python_mb"]), "jvm_mb": round(seen["jvm_mb"])}
    quantile: Callable[[Sequence[float], int], float] = lambda v, q: statistics.quantiles(v, n=20)[q]  # noqa: E731
    for key in ("trigger", "addBatch", "planning", "logs", "latency"):
        values = seen[key]
        if values:
            entry[f"{key}_p50"] = round(statistics.median(values))
            entry[f"{key}_p95"] = round(quantile(values, 18) if len(values) > 1 else values[0])
    return entry


def show(name: str, result: Mapping[str, Any]) -> None:
    """The table for people: medians, and the spread of ratios."""
    keys = sorted({key for each in result["contestants"].values() for key in each})
    table = Table("", *result["contestants"], title=name)
    for key in keys:
        figures = (each.get(key) for each in result["contestants"].values())
        table.add_row(key, *(str(each["median"]) if each else "-" for each in figures))
    console.print(table)
    for rival, ratios in result.get("ratios", {}).items():
        for contestant, by_key in ratios.items():
            told = (f"{k} {v['median']} ({v['min']} to {v['max']})" if v else f"{k} -" for k, v in by_key.items())
            console.print(f"  {contestant} : {rival}   {'   '.join(told)}", markup=False)


if __name__ == "__main__":
    app()
