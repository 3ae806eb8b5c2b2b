"""Figures of a case: medians with their spread, ratios within a round, and the table for people."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.reading.contestants import SPARK, SPARK_10_MS, SPARK_TUNED, SPARK_TUNED_VALUE
from benchmarks.reading.flink import FLINK, FLINK_TUNED
from benchmarks.reading.session import Backlog
from benchmarks.statistics_of import spread

Rounds = dict[str, list[dict[str, float]]]
"""Figures of each contestant, one entry per round."""

RIVALS: Final = (
    SPARK.name,
    SPARK_10_MS.name,
    SPARK_TUNED.name,
    SPARK_TUNED_VALUE.name,
    FLINK,
    FLINK_TUNED,
)


def summary(figures: Rounds, compared: tuple[str, ...], *, higher: bool) -> dict[str, Any]:
    """Return the raw rounds, the spread of each figure, and ratios to each rival.

    Args:
        figures: of all contestants.
        compared: keys of the figures that get ratios.
        higher: whether a higher figure is better. A ratio above 1 always means that the contestant
            beats the rival.
    """
    ratios = {
        rival: {
            name: {
                key: _ratio(figures[name], figures[rival], key, higher=higher) for key in compared
            }
            for name in figures
            if name != rival
        }
        for rival in RIVALS
        if rival in figures
    }
    return {
        "rounds": figures,
        "contestants": {n: _spreads(r) for n, r in figures.items()},
        "ratios": ratios,
    }


def _spreads(rounds: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    keys = sorted({key for each in rounds for key in each})
    return {key: spread([each[key] for each in rounds if key in each], digits=2) for key in keys}


def _ratio(
    ours: Sequence[Mapping[str, float]],
    theirs: Sequence[Mapping[str, float]],
    key: str,
    *,
    higher: bool,
) -> dict[str, float] | None:
    pairs = [
        (a[key], b[key]) for a, b in zip(ours, theirs, strict=True) if a.get(key) and b.get(key)
    ]
    return spread([a / b if higher else b / a for a, b in pairs], digits=2) if pairs else None


def per_row(rows: int, whole: float, running: float, cpu: float) -> dict[str, float]:
    """Return rows per second (whole run, micro-batches) and CPU seconds per million rows."""
    return {
        "rows_per_s": round(rows / whole),
        "rows_per_s_running": round(rows / running) if running else 0,
        "cpu_s_per_million": round(cpu / rows * 1e6, 3) if rows else 0,
    }


def of_backlog(read: Backlog) -> dict[str, float]:
    """Return the figures of one reading of a backlog."""
    entry = per_row(read.rows, read.whole, read.running, read.cpu)
    if read.rows:
        entry["jvm_cpu_s_per_million"] = round(read.jvm_cpu / read.rows * 1e6, 3)
    return {**entry, "python_mb": round(read.python_mb), "jvm_mb": round(read.jvm_mb)}


def of_stream(seen: Mapping[str, Any], seconds: float) -> dict[str, float]:
    """Return the figures of a stream; a source that finished no micro-batch has no times."""
    entry = {
        "warm_up_s": round(seen["warm_up"], 1),
        "batches": float(seen["batches"]),
        "cpu_s_per_s": round(seen["cpu"] / seconds, 2),
        "python_mb": round(seen["python_mb"]),
        "jvm_mb": round(seen["jvm_mb"]),
    }
    for key in ("trigger", "addBatch", "planning", "logs", "latency"):
        if values := seen[key]:
            entry[f"{key}_p50"] = round(statistics.median(values))
            entry[f"{key}_p95"] = round(
                statistics.quantiles(values, n=20)[18] if len(values) > 1 else values[0]
            )
    return entry


def show(console: Console, name: str, result: Mapping[str, Any]) -> None:
    """Print the medians, and the ratios with their spread."""
    keys = sorted({key for each in result["contestants"].values() for key in each})
    table = Table("", *result["contestants"], title=name)
    for key in keys:
        figures = (each.get(key) for each in result["contestants"].values())
        table.add_row(key, *(str(each["median"]) if each else "-" for each in figures))
    console.print(table)
    for rival, ratios in result["ratios"].items():
        for contestant, by_key in ratios.items():
            texts = (
                f"{k} {v['median']} ({v['min']} to {v['max']})" if v else f"{k} -"
                for k, v in by_key.items()
            )
            console.print(f"  {contestant} : {rival}   {'   '.join(texts)}", markup=False)
