"""What reading costs each reader: figures of its tasks, added up, and how fast it is.

A task measures how long it waited for its source and how long whatever follows took, which Spark
does not tell per source. The names follow Flink's metrics of sources (FLIP-33): records, bytes and
busy time of each reader.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from balanced_source.api import Json

MOST_READERS: Final = 1_000
"""Readers whose figures a report lists; with more of them it lists none, so that it stays small."""

FIGURES: Final = "readerFigures"
"""Name in the `metrics` of a report: rows of reader, records, bytes, milliseconds spent in the
source and behind it, and milliseconds until the first records of its newest task."""

_WEIGHT: Final = 0.5
"""Of the newest task in the speed of a reader: a reader that changes is known after a few tasks."""

_SHORTEST: Final = 0.005
"""Seconds of a task that says anything of speed: what a shorter one measures is its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSample:
    """What one task has measured.

    Attributes:
        reader: whose share it read.
        extent: by how much positions advance with its ranges: offsets, or bytes of files; 0 for
            sources whose ends are not known in advance.
        records: that it delivered.
        size: of them in memory, in bytes.
        source: seconds that it spent in the source: waiting, fetching, decoding.
        downstream: seconds between its batches: Spark took the records and processed them.
        first: seconds until the first records; None without any.
    """

    reader: int
    extent: int = 0
    records: int = 0
    size: int = 0
    source: float = 0.0
    downstream: float = 0.0
    first: float | None = None

    @property
    def busy(self) -> float:
        """Seconds from the start of reading to its end."""
        return self.source + self.downstream


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderFigures:
    """What the tasks of one reader have measured since its query started.

    Attributes:
        records: delivered.
        size: of them in memory, in bytes.
        source: seconds in the source, see `TaskSample`.
        downstream: seconds behind the source.
        first: seconds until the first records of the newest task that had any.
        speed: advance of positions per second while it reads, newer tasks weighing more; None while
            unknown.
    """

    records: int = 0
    size: int = 0
    source: float = 0.0
    downstream: float = 0.0
    first: float | None = None
    speed: float | None = None

    def with_task(self, sample: TaskSample) -> Self:
        """Return the figures with one more task."""
        # Written out: `replace` would cost more than all the sums.
        return type(self)(
            records=self.records + sample.records,
            size=self.size + sample.size,
            source=self.source + sample.source,
            downstream=self.downstream + sample.downstream,
            first=self.first if sample.first is None else sample.first,
            speed=_smoothed(self.speed, sample),
        )

    def to_json(self) -> dict[str, Json]:
        """For the progress of the query."""
        return {
            "recordsRead": self.records,
            "bytesRead": self.size,
            # To the microsecond: small files take less than a millisecond, which is not nothing.
            "sourceSeconds": round(self.source, 6),
            "downstreamSeconds": round(self.downstream, 6),
            "firstRecordsSeconds": None if self.first is None else round(self.first, 6),
        }


def for_report(figures: Mapping[int, ReaderFigures]) -> dict[str, Json]:
    """Return the part of a report's `metrics`; nothing without figures, or with too many readers.

    Totals and not rates: a program that reads two reports knows what was between them, and nothing
    is lost with a report that no one saw.
    """
    if not figures or len(figures) > MOST_READERS:
        return {}
    rows: list[Json] = [
        [
            reader,
            one.records,
            one.size,
            round(one.source * 1000),
            round(one.downstream * 1000),
            None if one.first is None else round(one.first * 1000),
        ]
        for reader, one in sorted(figures.items())
    ]
    return {FIGURES: rows}


class BusyTime(NamedTuple):
    """Time of all readers since their queries started, in milliseconds.

    Attributes:
        source: in the source.
        downstream: behind it.
    """

    source: int
    downstream: int


def busy_time(metrics: Mapping[str, Any]) -> BusyTime | None:
    """Return the time of all readers from a report's `metrics`; None if it does not say.

    Whatever is malformed is unknown: nothing depends on it but what people read.
    """
    times = _pairs(metrics, 3, 4)
    return BusyTime(*map(sum, zip(*times, strict=True))) if times else None


def records_read(metrics: Mapping[str, Any]) -> dict[int, int]:
    """Return the records of each reader since its query started, from a report's `metrics`.

    Empty if it does not say, or is malformed.
    """
    return dict(_pairs(metrics, 0, 1))


def joined(reports: Iterable[Mapping[str, Any]]) -> dict[str, Json]:
    """Return the figures in the `metrics` of several hosts; nothing if that of any is missing."""
    tables = [metrics.get(FIGURES) for metrics in reports]
    if not tables or not all(isinstance(table, list) for table in tables):
        return {}
    return {FIGURES: [row for table in tables for row in table or ()]}


def _pairs(metrics: Mapping[str, Any], first: int, second: int) -> list[tuple[int, int]]:
    """Return two numbers of each row of a report's `metrics`; none if any of them is malformed."""
    try:
        found = [(row[first], row[second]) for row in metrics[FIGURES]]
    except (KeyError, TypeError, IndexError):
        return []
    is_valid = all(type(one) is int and one >= 0 for pair in found for one in pair)
    return found if is_valid else []


def _smoothed(speed: float | None, sample: TaskSample) -> float | None:
    if sample.extent <= 0 or sample.busy < _SHORTEST:
        return speed
    newest = sample.extent / sample.busy
    return newest if speed is None else speed + _WEIGHT * (newest - speed)
