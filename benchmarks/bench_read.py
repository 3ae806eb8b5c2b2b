"""Reading Kafka: ours beside Spark's own source and a bare librdkafka loop, interleaved in one run.

JSON on stdout, tables on stderr. Ratios are computed within a round, so that drift of the machine's speed hits all;
above 1 means faster than Spark's own source with its default settings, or with `kafka.fetch.max.wait.ms=10`.
"""

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.reading.contestants import BARE, OURS, OURS_CUT, PYTHON, SPARK, SPARK_TUNED, Contestant, bare_loop
from benchmarks.reading.session import new_session, read_backlog, watch_stream
from benchmarks.reading.topics import drip, fill
from benchmarks.statistics_of import spread
from testbed.kafka import KafkaCluster
from testbed.progress import Progress

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

QUICK: Final = ("backlog-100B", "drip-16")


@app.command()
def main(
    quick: bool = typer.Option(False, help="Two cases, a quarter of the records, two rounds."),
    case: list[str] = typer.Option([], help="Only these cases."),
    rounds: int = typer.Option(0, help="Interleaved rounds of each case; 5, or 2 if quick."),
    scale: float = typer.Option(0.0, help="Factor of records and seconds; 1, or 0.25 if quick."),
) -> None:
    """Measure and print; exit code 1 if a row was lost or came twice."""
    chosen = case or (list(QUICK) if quick else list(CASES))
    rounds, scale = rounds or (2 if quick else 5), scale or (0.25 if quick else 1.0)
    folder = Path(tempfile.mkdtemp(prefix="balanced-source-bench-"))
    results: dict[str, Any] = {"benchmark": "read", "rounds": rounds, "scale": scale, "machine": machine(), "cases": {}}
    with KafkaCluster("bench", folder, heap="1g", progress=Progress(console)) as kafka:
        spark = new_session()
        for name in chosen:
            each = CASES[name]
            measure = measure_backlog if isinstance(each, Backlog) else measure_drip
            results["cases"][name] = measure(spark, kafka, name, each, rounds=rounds, scale=scale)  # type: ignore[operator]
            show(name, results["cases"][name])
        spark.stop()
    sys.stdout.write(json.dumps(results, indent=1) + "\n")
    raise typer.Exit(1 if any(c.get("wrong") for c in results["cases"].values()) else 0)


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    return {"cpus": os.cpu_count(), "load_before": round(os.getloadavg()[0], 1)}


def measure_backlog(
    spark: SparkSession, kafka: KafkaCluster, name: str, case: Backlog, *, rounds: int, scale: float
) -> dict[str, Any]:
    """One case; the first round warms up and does not count."""
    records = int(case.records * scale)
    fill(kafka, name, partitions=case.partitions, records=records, size=case.size, zipf=case.zipf)
    figures: dict[str, list[dict[str, float]]] = {}
    wrong = 0
    for number in range(rounds + 1):
        for contestant in rotated(case.contestants, number):
            read = read_backlog(spark, kafka, name, contestant, readers=case.readers)
            wrong += read.rows != records
            _note(figures, contestant.name, number, _per_row(read.rows, read.whole, read.running, read.cpu))
            if number:
                figures[contestant.name][-1] |= {"python_mb": read.python_mb, "jvm_mb": read.jvm_mb}
        wall, cpu, rows = bare_loop(kafka, name, readers=case.readers)
        wrong += rows != records
        _note(figures, BARE, number, _per_row(rows, wall, wall, cpu))
    kafka.admin.delete_topic(name)
    return {"records": records, "wrong": wrong, **summary(figures, ("rows_per_s", "rows_per_s_running"), higher=True)}


def measure_drip(
    spark: SparkSession, kafka: KafkaCluster, name: str, case: Drip, *, rounds: int, scale: float
) -> dict[str, Any]:
    """One case; contestants one after the other in each round, for long enough to settle."""
    kafka.admin.create_topic(name, partitions=case.partitions)
    figures: dict[str, list[dict[str, float]]] = {}
    seconds = max(15.0, case.seconds * scale)
    for number in range(1, max(1, rounds // 2) + 1):
        for contestant in rotated(case.contestants, number):
            with drip(kafka, name, partitions=case.partitions, rate=case.rate) as producer:
                seen = watch_stream(
                    spark, kafka, name, contestant, readers=case.readers, seconds=seconds, producer=producer
                )
            _note(figures, contestant.name, number, _of_stream(seen, seconds))
    kafka.admin.delete_topic(name)
    return {"rate": case.rate, "seconds": seconds, **summary(figures, ("addBatch_p50", "trigger_p50"), higher=False)}


def rotated(contestants: Sequence[Contestant], number: int) -> Sequence[Contestant]:
    """In another order each round: who comes first has cold caches."""
    cut = number % len(contestants)
    return [*contestants[cut:], *contestants[:cut]]


def summary(
    figures: Mapping[str, Sequence[Mapping[str, float]]], compared: tuple[str, ...], *, higher: bool
) -> dict[str, Any]:
    """Figures of all contestants, and ratios to Spark's own source, above 1 where the contestant is better."""
    result: dict[str, Any] = {"contestants": {}}
    for name, rounds in figures.items():
        keys = sorted({key for each in rounds for key in each})
        result["contestants"][name] = {
            key: spread([each[key] for each in rounds if key in each], digits=2) for key in keys
        }
    for rival in (SPARK.name, SPARK_TUNED.name):
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
        "cpu_s_per_million": round(cpu / rows * 1e6, 3),
    }


def _of_stream(seen: Mapping[str, Any], seconds: float) -> dict[str, float]:
    """A source that finished no micro-batch has no figures but that."""
    entry = {"batches": float(seen["batches"]), "cpu_s_per_s": round(seen["cpu"] / seconds, 2)}
    entry |= {"python_mb": round(seen["python_mb"]), "jvm_mb": round(seen["jvm_mb"])}
    quantile: Callable[[Sequence[float], int], float] = lambda v, q: statistics.quantiles(v, n=20)[q]  # noqa: E731
    for key in ("trigger", "addBatch", "latency"):
        values = seen[key]
        if values:
            entry[f"{key}_p50"] = round(statistics.median(values))
            entry[f"{key}_p95"] = round(quantile(values, 18) if len(values) > 1 else values[0])
    return entry


def show(name: str, result: Mapping[str, Any]) -> None:
    """The table for people: medians, and the spread of ratios."""
    keys = sorted({key for each in result["contestants"].values() for key in each})
    table = Table("", *keys, title=name)
    for contestant, figures in result["contestants"].items():
        table.add_row(contestant, *(str(figures[key]["median"]) if key in figures else "-" for key in keys))
    console.print(table)
    for rival, ratios in result.get("ratios", {}).items():
        for contestant, by_key in ratios.items():
            told = (f"{k} {v['median']} ({v['min']} to {v['max']})" if v else f"{k} -" for k, v in by_key.items())
            console.print(f"  {contestant} : {rival}   {'   '.join(told)}", markup=False)


if __name__ == "__main__":
    app()
