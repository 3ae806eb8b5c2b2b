"""What readers have done between two of their reports."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Self

from balanced_source.api import SplitId
from balanced_source.documents.report import (
    ADMITTED,
    LATE_SECONDS,
    MICRO_BATCH_SECONDS,
    MICRO_BATCHES,
    POSITIONS_AT,
    UNREAD,
    UNREAD_AT,
    HostReport,
    count_of,
)
from balanced_source.host.reader_figures import BusyTime, busy_time

OLDEST_LOOK: Final = 60.0
"""Seconds for which what a driver has seen is reported, at most: it looks every 10 seconds."""

CHANGE: Final = 0.1
"""Share of what was read by which a backlog must change to show what readers can do."""

COMMON: Final = 0.75
"""Share of all splits that two samples must have in common to be compared."""

SWING: Final = 0.5
"""Share by which a backlog swings whatever readers can do: no micro-batch lasts as long as the one
before."""


class BatchTimes(NamedTuple):
    """Micro-batches of a driver.

    Attributes:
        batches: their number.
        seconds: from the begin of each of them until Spark asked for the next one.
        late: those of micro-batches that took longer than the trigger interval; None if that is not
            known.
    """

    batches: int
    seconds: float
    late: float | None = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One report, as far as it matters here.

    Attributes:
        at: seconds, by the driver's clock, when it looked how much is unread.
        incarnation: of the driver attempt.
        readers: number of readers.
        unread: records that are not read yet, counted from `positions`.
        admitted: those of them that may be read now; None if all may. An alignment in event time
            holds the others back, however many readers there are.
        positions: split → committed position.
        owners: split → reader.
        busy: time of all readers up to then; None if the driver does not say.
        lost: records that were gone before they were read, since the driver has started; None:
            it is unknown whether there are any.
        ended: micro-batches that have ended up to then, of those that were seen.
        pace: all micro-batches since the driver has started; None if the driver does not say.
        positions_at: when the micro-batch ended whose end the positions are; None if the driver
            does not say.
    """

    at: float
    incarnation: int = 1
    readers: int
    unread: int
    admitted: int | None = None
    positions: Mapping[SplitId, int]
    owners: Mapping[SplitId, int]
    busy: BusyTime | None = None
    lost: int | None = 0
    ended: int = 0
    pace: BatchTimes | None = None
    positions_at: float | None = None

    @classmethod
    def of(cls, report: HostReport, *, lost: int | None = 0) -> Self | None:
        """Return the sample that a report is.

        None while its driver reads nothing or does not know its lag.

        Args:
            report: of the driver.
            lost: what it has counted as lost; None if that is unknown.
        """
        # An unknown lag is no lag of zero: the source would look idle.
        if (lag := count_of(report.lag)) is None or not report.parallelism:
            return None
        unread = count_of(report.metrics.get(UNREAD))
        return cls(
            at=_looked_at(report),
            incarnation=report.incarnation,
            readers=report.parallelism,
            unread=lag if unread is None else unread,
            admitted=count_of(report.metrics.get(ADMITTED)),
            positions={s: p or 0 for s, p in report.positions.items()},
            owners=report.owners,
            busy=busy_time(report.metrics),
            lost=lost,
            pace=_pace(report.metrics),
            positions_at=_seconds(report.metrics, POSITIONS_AT),
        )

    @property
    def available(self) -> int:
        """Records that are not read yet, and may be."""
        return self.unread if self.admitted is None else min(self.unread, self.admitted)

    def is_repeated(self, before: "Sample") -> bool:
        """Whether a micro-batch was running at both samples, so that only the time differs.

        While all unread records are held back, none runs, and time passes without one.
        """
        return (
            self.available > 0
            and self.unread == before.unread
            and self.positions == before.positions
        )

    def is_of_another_micro_batch(self, before: "Sample") -> bool:
        """Whether a micro-batch has ended since an earlier sample.

        Positions move with the end of a micro-batch, and owners change there.
        """
        if self.has_splits_of(before):
            return self.positions != before.positions or self.owners != before.owners
        common = self.positions.keys() & before.positions.keys()
        return any(self.positions[s] != before.positions[s] for s in common)

    def has_splits_of(self, other: "Sample") -> bool:
        """Whether another sample has the same splits."""
        return self.positions.keys() == other.positions.keys()

    def at_end(self, before: "Sample") -> "Sample":
        """Return the sample as it would have been when its micro-batch ended.

        The driver looks up to ten seconds later, and the operator takes few samples of many splits:
        a rate over a time that begins or ends there would be that of another time.

        Args:
            before: the sample before it, of an earlier micro-batch.
        """
        at = self.positions_at
        if at is None or not before.at < at < self.at:
            return self
        # Of splits that have come, what was unread before has not arrived since.
        is_known = self.has_splits_of(before)
        arrived = max(0, self.total_end - before.total_end) if is_known else 0
        later = round(arrived * (self.at - at) / (self.at - before.at))
        return replace(self, at=at, unread=max(0, self.unread - later))

    @property
    def total_end(self) -> int:
        """Sum of the ends of all splits."""
        return sum(self.positions.values()) + self.unread

    def is_of_same_readers(self, other: "Sample") -> bool:
        """Whether splits had the same owners at another sample, of as many readers."""
        return self.readers == other.readers and self.owners == other.owners

    def is_like(self, other: "Sample") -> bool:
        """Whether the splits of both samples had the same owners, of as many readers."""
        return self.readers == other.readers and all(
            other.owners.get(split_id, owner) == owner for split_id, owner in self.owners.items()
        )

    def is_comparable(self, other: "Sample") -> bool:
        """Whether most splits are those of another sample.

        What the others have read is unknown: where these are many, readers would look too slow.
        """
        if self.has_splits_of(other):
            return True
        common = self.positions.keys() & other.positions.keys()
        return len(common) >= COMMON * max(len(self.positions), len(other.positions))

    def continues(self, before: "Sample") -> bool:
        """Whether the time since an earlier sample can be measured.

        Same driver attempt, most splits the same, no way back, and no jump over records that were
        gone: what takes no time says nothing of how fast readers are.
        """
        return (
            self.incarnation == before.incarnation
            and self.lost is not None
            and self.lost == before.lost
            and self.at > before.at
            and self.is_comparable(before)
            and all(p >= before.positions.get(s, p) for s, p in self.positions.items())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The time between two samples. Rates are records per second.

    Attributes:
        seconds: between the samples.
        readers: at its end.
        splits: number of splits.
        rate: read.
        arrival: arrived.
        available_before: unread records that could be read at its begin.
        available: unread records that can be read at its end.
        unread: records that are unread at its end.
        busiest: rate of the reader that read most.
        hottest: rate of the split that was read most.
        hottest_split: that split.
        is_steady: whether owners were the same all the time.
        in_source: share of their time that readers spent in the source, 0 to 1; the rest is Spark's
            and the sink's. None while unknown.
        pause: seconds from the begin of a micro-batch until Spark asked for the next one, on
            average. None while unknown.
        late: share of the time, 0 to 1, in which micro-batches ran that took longer than the
            trigger interval. None while unknown.
    """

    seconds: float
    readers: int
    splits: int
    rate: float
    arrival: float
    available_before: int
    available: int
    unread: int
    busiest: float
    hottest: float
    hottest_split: SplitId
    is_steady: bool
    in_source: float | None = None
    pause: float | None = None
    late: float | None = None

    def is_saturated(self, wait: float) -> bool:
        """Whether readers had work all the time.

        More unread at both ends than what they read in `wait` seconds.
        """
        return (
            self.is_steady
            and self.rate > 0
            and min(self.available_before, self.available) > wait * self.rate
        )

    @property
    def is_changing(self) -> bool:
        """Whether the backlog clearly grows or is worked off.

        Otherwise readers may keep up: where micro-batches have a fixed cost, such as that of a
        commit, something is always unread.
        """
        before, after = self.available_before, self.available
        least = CHANGE * self.rate * self.seconds + SWING * min(before, after)
        return abs(after - before) > least

    @property
    def skew(self) -> float:
        """Rate of the busiest reader over the mean."""
        return self.busiest * self.readers / self.rate if self.rate else 1.0


def between(before: Sample, after: Sample) -> Interval:
    """Return what happened between two samples of which the second continues the first."""
    seconds = after.at - before.at
    earlier = before.positions
    read = {s: p - earlier[s] for s, p in after.positions.items() if s in earlier}
    per_reader = Counter[int]()
    for split_id, records in read.items():
        per_reader[after.owners.get(split_id, -1)] += records
    hottest = max(read, key=lambda s: (read[s], s), default=())
    total = sum(read.values())
    # Retention takes unread records away, which must not look as if fewer than none had arrived.
    arrived = max(0, total + after.unread - before.unread)
    return Interval(
        seconds=seconds,
        readers=after.readers,
        splits=len(after.positions),
        rate=total / seconds,
        # What splits that have come had unread before has not arrived in this time.
        arrival=(arrived if after.has_splits_of(before) else min(arrived, total)) / seconds,
        available_before=before.available,
        available=after.available,
        unread=after.unread,
        busiest=max(per_reader.values(), default=0) / seconds,
        hottest=read.get(hottest, 0) / seconds,
        hottest_split=hottest,
        is_steady=before.is_like(after),
        in_source=_in_source(before.busy, after.busy),
        pause=_pause(before.pace, after.pace),
        late=_late(before.pace, after.pace, seconds),
    )


def _looked_at(report: HostReport) -> float:
    """Return when the driver looked; if it does not say, it has done so when it reported."""
    at = report.metrics.get(UNREAD_AT)
    if not isinstance(at, int | float) or not 0 <= report.heartbeat - at <= OLDEST_LOOK:
        return report.heartbeat
    return float(at)


def _pace(metrics: Mapping[str, Any]) -> BatchTimes | None:
    """Return what a driver says of its micro-batches; None if it does not, or it is malformed."""
    batches = count_of(metrics.get(MICRO_BATCHES))
    seconds, late = _seconds(metrics, MICRO_BATCH_SECONDS), _seconds(metrics, LATE_SECONDS)
    if batches is None or seconds is None:
        return None
    return BatchTimes(batches, seconds, late)


def _seconds(metrics: Mapping[str, Any], name: str) -> float | None:
    found = metrics.get(name)
    if not isinstance(found, int | float) or isinstance(found, bool):
        return None
    return float(found) if 0 <= found < math.inf else None


def _late(before: BatchTimes | None, after: BatchTimes | None, seconds: float) -> float | None:
    if before is None or after is None or before.late is None or after.late is None:
        return None
    return max(0.0, after.late - before.late) / max(seconds, after.seconds - before.seconds)


def _pause(before: BatchTimes | None, after: BatchTimes | None) -> float | None:
    if before is None or after is None or after.batches <= before.batches:
        return None
    return max(0.0, after.seconds - before.seconds) / (after.batches - before.batches)


def _in_source(before: BusyTime | None, after: BusyTime | None) -> float | None:
    if before is None or after is None:
        return None
    source, downstream = after.source - before.source, after.downstream - before.downstream
    # A reader that is gone takes its time along, and the sums fall.
    if min(source, downstream) < 0 or not source + downstream:
        return None
    return source / (source + downstream)
