"""What the autoscaler remembers between two decisions.

Not stored, except for the capacity that the status shows: a restarted operator begins with it.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Self

from balanced_source.documents.storage import FIRST_HOST
from balanced_source_operator.controller.autoscaling.host_samples import (
    WINDOW,
    HostSamples,
    together,
)
from balanced_source_operator.controller.autoscaling.policy import Policy
from balanced_source_operator.controller.autoscaling.samples import BatchTimes, Interval, Sample
from balanced_source_operator.controller.autoscaling.verdict import Verdict

EXPIRES: Final = 6 * 3600.0
"""Seconds after which a measured capacity is only a lower bound: a sink may have become faster
unnoticed."""

MORE: Final = 1.1
"""Rate of a reader, as a multiple of its capacity, that shows that the capacity is larger."""

HOUR: Final = 3600.0
"""Seconds."""

REVERSALS: Final = 4
"""Changes of direction in any hour, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What one reader can process.

    Attributes:
        rate: records per second.
        at: when it was last confirmed.
        is_measured: whether readers had work all the time then; otherwise it is a lower bound.
        most: largest rate at which a reader was seen since it was last known for certain.
        proven_at: when a backlog has shown it, or an increase that has helped; never if only
            micro-batches that followed one another at once have: a commit may have taken the time.
    """

    rate: float
    at: float
    is_measured: bool
    most: float = 0.0
    proven_at: float = -math.inf

    @classmethod
    def stored(cls, rate: float, at: float) -> Self:
        """Return the capacity that an operator before this one has measured and stored."""
        # Also as the most: what readers happen to read now says nothing against it.
        return cls(rate=rate, at=at, is_measured=True, most=rate, proven_at=at)

    def confirmed(
        self, rate: float, at: float, *, is_proof: bool, is_deep: bool = False
    ) -> "Capacity":
        """Return the capacity after a measurement: the newest counts by half.

        Args:
            rate: that was measured.
            at: seconds, now.
            is_proof: whether a backlog has shown it.
            is_deep: whether that was so deep that no commit explains it, however long that takes.
        """
        known = (self.rate + rate) / 2 if self.is_measured else rate
        return Capacity(
            rate=known,
            at=at,
            is_measured=True,
            # Readers may have become slower: what they once did says nothing any more.
            most=max(known if is_deep else self.most, rate),
            proven_at=at if is_proof else self.proven_at,
        )

    def at_least(self, rate: float, at: float) -> "Capacity":
        """Return the capacity after readers have processed `rate` without a backlog."""
        is_measured = self.is_measured and at - self.at < EXPIRES
        most = max(self.most, rate)
        return replace(self, rate=max(self.rate, rate), is_measured=is_measured, most=most)

    def proven(self, at: float) -> "Capacity":
        """Return the capacity after an increase has helped: readers were the limit before it."""
        return replace(self, proven_at=at) if self.is_measured else self

    def lowered(self, rate: float, at: float) -> "Capacity":
        """Return the capacity after it was shown that a reader can do no more than this rate."""
        if not self.is_measured or rate >= self.rate:
            return self
        return replace(self, rate=rate, most=rate, at=at, proven_at=at)

    def refuted(self) -> "Capacity":
        """Return the capacity after more readers have shown that it is more than was measured.

        Then it is what readers once processed, if that was clearly more; else it is unknown.
        """
        is_known = self.most > MORE * self.rate
        rate = max(self.rate, self.most)
        return replace(self, rate=rate, is_measured=is_known, proven_at=-math.inf)


class Performance(NamedTuple):
    """What readers did that had work all the time, while a backlog became older than `maxLag`.

    Attributes:
        rate: of one reader, in records per second.
        pause: see `Interval`.
    """

    rate: float
    pause: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Increase:
    """The newest increase: did it help?

    Attributes:
        readers: before it.
        rate: of all readers before it, in records per second; None if no micro-batch had ended yet:
            then whether it has helped remains unknown.
        arrival: records per second that arrived when it was decided.
        unread: records that could be read then, and were not.
        pause: see `Interval`, before it.
        at: when that was.
        shown: before it, or before an increase that it has replaced; None if it was for another
            cause than an old backlog.
        adopted_at: when some of the readers that were added were seen first; None before.
    """

    readers: int
    rate: float | None
    arrival: float
    unread: int
    pause: float | None
    at: float
    shown: Performance | None = None
    adopted_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What readers did before an increase that has helped against an old backlog.

    It is all that they can do if micro-batches then become so short that no commit can have been
    the limit.

    Attributes:
        shown: before the increase, or more if a reader did more after it.
        since: micro-batches up to then.
        until: seconds, when it is too old.
    """

    shown: Performance
    since: BatchTimes
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """A throughput that an increase did not raise: something else than the readers is the limit.

    Attributes:
        readers: more of them do not help.
        rate: of all readers, in records per second.
        unread: records that were unread while these kept up with the load; None if they did not.
        retry_at: when one more increase may find out whether it is still so.
    """

    readers: int
    rate: float
    unread: int | None = None
    retry_at: float = math.inf

    @property
    def keeps_up(self) -> bool:
        """Whether readers kept up with the load: a fixed cost of micro-batches is the limit."""
        return self.unread is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerMemory:
    """See the module.

    Attributes:
        series: samples of each host that reports.
        silent: hosts that have splits, and do not report.
        share: of all splits that the hosts in `series` have, 0 to 1.
        capacity: of one reader; None while unknown.
        needs: time → number of readers that the load needed, of the scale-down delay; only those
            that no later one exceeds, so that the first is the maximum.
        calm_since: since when there have been as many readers as now, without a backlog that fewer
            could not take.
        moves: time → whether readers were added, for each change of their number in the last hour,
            and the newest one before it.
        attempt: see there; None if there was none, or its effect is known.
        claim: see there; None if there is none, or it was confirmed.
        ceiling: see there; None if more readers may help.
        exceeded: rate that readers seemed to keep up with, and did not in the end; None if none.
        has_helped: whether the increase that was judged last has helped.
        limited: when the autoscaler could not do what the load asked for, and by which policy; the
            newest such time.
        verdict: the newest decision.
    """

    series: Mapping[str, HostSamples] = field(default_factory=dict)
    silent: tuple[str, ...] = ()
    share: float = 1.0
    capacity: Capacity | None = None
    needs: tuple[tuple[float, int], ...] = ()
    calm_since: float | None = None
    moves: tuple[tuple[float, bool], ...] = ()
    attempt: Increase | None = None
    claim: Claim | None = None
    ceiling: Ceiling | None = None
    exceeded: float | None = None
    has_helped: bool = False
    limited: tuple[float, Policy] | None = None
    verdict: Verdict | None = None

    def observed(
        self, sample: Sample, *, now: float, host: str = FIRST_HOST, window: float = WINDOW
    ) -> "AutoscalerMemory":
        """Return the memory with a further sample. One that says nothing new changes nothing.

        Args:
            sample: the newest one.
            now: seconds, by the operator's clock.
            host: whose sample it is.
            window: seconds over which `arrival` is measured, at most.
        """
        before = self.series.get(host, HostSamples())
        after = before.observed(sample, now=now, window=window)
        return self if after is before else replace(self, series={**self.series, host: after})

    def heard_from(self, hosts: Collection[str], *, silent: tuple[str, ...], share: float) -> Self:
        """Return the memory without what other hosts than these have told.

        Args:
            hosts: that report.
            silent: hosts that have splits, and do not report.
            share: of all splits that `hosts` have.
        """
        series = {host: found for host, found in self.series.items() if host in hosts}
        return replace(self, series=series, silent=silent, share=share)

    @property
    def newest(self) -> tuple[Sample, ...]:
        """The newest sample of each host."""
        return tuple(series.samples[-1] for series in self.series.values())

    @property
    def pace(self) -> BatchTimes | None:
        """Micro-batches of all hosts up to now; None if one of them does not say."""
        found = [sample.pace for sample in self.newest]
        known = [pace for pace in found if pace is not None]
        if not known or len(known) < len(found):
            return None
        return BatchTimes(sum(p.batches for p in known), sum(p.seconds for p in known))

    @property
    def adopted(self) -> int:
        """Number of readers that read now: while hosts differ, the fewest that any of them knows.

        Raises:
            ValueError: there is no sample.
        """
        return min(sample.readers for sample in self.newest)

    @property
    def reading(self) -> Interval | None:
        """The longest time for which it is known what was read; None while it is too short."""
        return self._together(series.reading for series in self._active)

    @property
    def steady(self) -> Interval | None:
        """The longest of these times in which owners were the same; None while it is too short."""
        return self._together(series.steady for series in self._active)

    @property
    def of_as_many(self) -> Interval | None:
        """The longest of these times with as many readers as now, see `HostSamples`."""
        return self._together(series.of_as_many for series in self._active)

    @property
    def recent_reading(self) -> Interval | None:
        """The newest time for which it is known what was read; None while it is too short."""
        return self._together(series.recent_reading for series in self._active)

    @property
    def since_end(self) -> Interval | None:
        """The time since the end of the newest micro-batch; None while it is too short."""
        return self._together(series.since_end for series in self._active)

    def batch(self, seconds: float) -> float:
        """Return how long a micro-batch lasted in the last so many seconds up to an end.

        That of the host where they last longest.
        """
        return max(series.batch(seconds) for series in self._active if series.ends)

    @property
    def _active(self) -> list[HostSamples]:
        """The series of hosts that read."""
        found = list(self.series.values())
        return found if len(found) == 1 else [s for s in found if not s.is_idle]

    def _together(self, intervals: Iterable[Interval | None]) -> Interval | None:
        return together(intervals, self.share)

    def is_awaiting(self, readers: int) -> bool:
        """Whether so many readers are more than before an increase that is not judged yet."""
        return self.attempt is not None and readers > self.attempt.readers

    def recent(self, least: float) -> Interval | None:
        """Return what has arrived in the newest time of so many seconds, see `HostSamples`."""
        return self._together(series.recent(least) for series in self.series.values())

    def spans(self, least: float) -> bool:
        """Whether there are samples of at least so many seconds; cheaper than `recent`."""
        samples = [series.samples for series in self.series.values()]
        return all(found[-1].at - found[0].at >= least for found in samples)

    def arrival(self, least: float) -> float | None:
        """Return what arrives over at least so many seconds, see `HostSamples`."""
        found = [series.arrival(least) for series in self.series.values()]
        known = [arrival for arrival in found if arrival is not None]
        return sum(known) / self.share if known and len(known) == len(found) else None

    def noting(self, now: float, needed: int, *, delay: float) -> "AutoscalerMemory":
        """Return the memory with the number of readers that is needed now."""
        kept = tuple((at, n) for at, n in self.needs if at > now - delay and n > needed)
        since = now if self.calm_since is None else self.calm_since
        return replace(self, needs=(*kept, (now, needed)), calm_since=since)

    def disturbed(self, now: float) -> "AutoscalerMemory":
        """Return the memory after something that makes what was needed before meaningless."""
        return replace(self, needs=(), calm_since=now)

    def moved(self, now: float, *, is_increase: bool) -> "AutoscalerMemory":
        """Return the memory after a change of the number of readers."""
        old = [m for m in self.moves if m[0] <= now - HOUR]
        kept = (*old[-1:], *(m for m in self.moves if m[0] > now - HOUR))
        return replace(self.disturbed(now), moves=(*kept, (now, is_increase)))

    def may_reverse(self, now: float) -> bool:
        """Whether there may be fewer readers.

        That and the next increase stay within `REVERSALS` of an hour.
        """
        if not self.moves or not self.moves[-1][1]:
            return True
        pairs = zip(self.moves, self.moves[1:], strict=False)
        reversals = sum(before[1] != after[1] and after[0] > now - HOUR for before, after in pairs)
        # Two: fewer readers now, and the increase that may have to follow.
        return reversals + 2 <= REVERSALS
