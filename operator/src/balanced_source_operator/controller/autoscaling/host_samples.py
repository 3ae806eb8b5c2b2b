"""The newest samples of one host, and over which time they are compared.

Each host has its own micro-batches and its own clock. So rates are those between two samples of one
host, and only then added up.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Final

from balanced_source_operator.controller.autoscaling.samples import Interval, Sample, between

WINDOW: Final = 30.0
"""Seconds over which capacity and skew are measured."""

RECENT: Final = 10.0
"""Seconds over which readers are measured, at least: a few micro-batches."""

ARRIVAL: Final = 5.0
"""Seconds over which the arrival rate is measured, at least.

Ends of splits do not depend on micro-batches.
"""

JUMP: Final = 20.0
"""Seconds by which a driver's clock may move against the operator's: a report is up to ten seconds
old when it is seen, and so is what it says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSamples:
    """Samples of one host.

    Attributes:
        samples: the newest and some of the last `WINDOW` seconds, oldest first.
        ends: those of `samples`, and some before them, that came first after the end of a
            micro-batch, oldest first; of the time of that end if the driver tells it.
        arrivals: time → records up to the ends of all splits, oldest first, of the time over which
            it is measured what arrives: a trigger interval may be long, and samples are large.
        ahead: seconds by which the driver's clock was ahead of the operator's at the first of them.
    """

    samples: tuple[Sample, ...] = ()
    ends: tuple[Sample, ...] = ()
    arrivals: tuple[tuple[float, int], ...] = ()
    ahead: float = 0.0

    def observed(self, sample: Sample, *, now: float, window: float = WINDOW) -> "HostSamples":
        """Return the samples with a further sample. One that says nothing new changes nothing.

        Args:
            sample: the newest one.
            now: seconds, by the operator's clock.
            window: seconds over which `arrival` is measured, at most.
        """
        newest, ahead = self.samples[-1] if self.samples else None, sample.at - now
        if newest is not None and sample.at == newest.at:
            return self
        # Another attempt: rates across that would compare different things. So would those over a
        # time that a clock has left out, or has passed twice.
        is_jump = abs(ahead - self.ahead) > JUMP
        if newest is None or is_jump or not sample.continues(newest):
            return HostSamples(samples=(sample,), arrivals=(_arrived(sample),), ahead=ahead)
        if sample.is_repeated(newest):
            return self
        has_ended = sample.is_of_another_micro_batch(newest)
        sample = replace(sample, ended=newest.ended + has_ended)
        # Unread records are counted over all splits: what arrives is not known across a change of
        # these, but what is read is.
        is_same = sample.has_splits_of(newest)
        samples = tuple(_thinned((*(self.samples if is_same else ()), sample)))
        arrivals = (*(self.arrivals if is_same else ()), _arrived(sample))
        after = replace(self, samples=samples, arrivals=tuple(_sparse(arrivals, window)))
        if not has_ended:
            return after
        end = sample.at_end(newest)
        return replace(after, ends=tuple(_thinned((*self.ends, end))))

    @property
    def reading(self) -> Interval | None:
        """The longest time for which it is known what was read; None while it is too short."""
        return self._longest(lambda sample, newest: sample.is_comparable(newest))

    @property
    def steady(self) -> Interval | None:
        """The longest of these times in which owners were the same; None while it is too short.

        Without splits that have come or gone, if that is long enough.
        """
        found = self._longest(lambda sample, newest: sample.is_of_same_readers(newest))
        if found is not None:
            return found
        return self._longest(lambda s, newest: s.is_comparable(newest) and s.is_like(newest))

    @property
    def of_as_many(self) -> Interval | None:
        """The longest of these times with as many readers as now, whatever they own.

        None while it is too short.
        """
        return self._longest(lambda s, newest: s.is_comparable(newest) and _are_as_many(s, newest))

    def _longest(self, is_alike: Callable[[Sample, Sample], bool]) -> Interval | None:
        """Return the longest time up to the newest end of which all ends are like that."""
        if not self.ends:
            return None
        newest = self.ends[-1]
        *_, first = takewhile(lambda sample: is_alike(sample, newest), reversed(self.ends))
        return _between(first, newest, RECENT)

    @property
    def recent_reading(self) -> Interval | None:
        """The newest time for which it is known what was read; None while it is too short."""
        newest = self.ends[-1:]
        return _newest(tuple(s for s in self.ends if s.is_comparable(*newest)), RECENT)

    @property
    def since_end(self) -> Interval | None:
        """The time since the end of the newest micro-batch; None while it is too short."""
        return _between(self.ends[-1], self.samples[-1], ARRIVAL) if self.ends else None

    def batch(self, seconds: float) -> float:
        """Return how long a micro-batch lasted in the last so many seconds up to an end."""
        newest = self.ends[-1]
        ended = [newest.ended - s.ended for s in self.ends if newest.at - s.at <= seconds]
        return seconds / max(1, *ended)

    def recent(self, least: float) -> Interval | None:
        """Return the shortest time up to now that has at least so many seconds.

        It tells what has arrived. What was read in it is unknown: it may begin and end within a
        micro-batch, and positions move when one ends. None if there is none.
        """
        return _newest(self.samples, least)

    def arrival(self, least: float) -> float | None:
        """Return what arrives, in records per second, over at least so many seconds.

        Over less if no more is known; None while it is too short.
        """
        at, total = self.arrivals[-1]
        ages = [(at - since, total - before) for since, before in self.arrivals]
        found = [age for age in ages if age[0] >= least][-1:] or ages
        seconds, arrived = found[0]
        # Retention takes unread records away, which must not look as if fewer than none had come.
        return max(0, arrived) / seconds if seconds >= ARRIVAL else None

    @property
    def is_idle(self) -> bool:
        """Whether readers have had nothing to read for so long that their rates are old."""
        newest, since = self.samples[-1], self.ends[-1] if self.ends else self.samples[0]
        return newest.at - since.at >= WINDOW and not newest.available


def together(intervals: Iterable[Interval | None], share: float) -> Interval | None:
    """Return what several hosts have done at the same time; None if it is unknown of any.

    Args:
        intervals: of each host, over times of its own.
        share: of all splits, 0 to 1, that these hosts have: others do not report, and are taken to
            have as much to do.
    """
    found = list(intervals)
    known = [interval for interval in found if interval is not None]
    if not known or len(known) < len(found):
        return None
    if len(known) == 1 and share >= 1:
        return known[0]
    rate = sum(i.rate for i in known)
    read = sum(i.rate * i.seconds for i in known)
    hottest = max(known, key=lambda i: i.hottest)
    pauses = [i.pause for i in known if i.pause is not None]
    lates = [i.late for i in known if i.late is not None]
    in_source = [i.in_source for i in known if i.in_source is not None]
    return Interval(
        # Times differ from host to host: what was read is still the rate times the seconds.
        seconds=read / rate if rate else max(i.seconds for i in known),
        readers=max(i.readers for i in known),
        splits=round(sum(i.splits for i in known) / share),
        rate=rate / share,
        arrival=sum(i.arrival for i in known) / share,
        available_before=round(sum(i.available_before for i in known) / share),
        available=round(sum(i.available for i in known) / share),
        unread=round(sum(i.unread for i in known) / share),
        busiest=max(i.busiest for i in known),
        hottest=hottest.hottest,
        hottest_split=hottest.hottest_split,
        is_steady=all(i.is_steady for i in known),
        in_source=sum(in_source) / len(in_source) if in_source else None,
        pause=max(pauses, default=None),
        late=max(lates) if len(lates) == len(known) else None,
    )


def _are_as_many(one: Sample, other: Sample) -> bool:
    return one.readers == other.readers


def _newest(samples: tuple[Sample, ...], least: float) -> Interval | None:
    """Return the shortest time up to the last sample that has at least so many seconds."""
    found = (i for s in reversed(samples) if (i := _between(s, samples[-1], least)) is not None)
    return next(found, None)


def _between(before: Sample, after: Sample, least: float) -> Interval | None:
    return between(before, after) if after.at - before.at >= least else None


def _arrived(sample: Sample) -> tuple[float, int]:
    return sample.at, sample.total_end


def _sparse(arrivals: tuple[tuple[float, int], ...], window: float) -> Iterator[tuple[float, int]]:
    """Drop what the window does not need: about twenty of them suffice, however long it is."""
    newest, last = arrivals[-1], -math.inf
    for each, follower in pairwise(arrivals):
        if newest[0] - follower[0] < window and each[0] - last >= window / 20:
            last = each[0]
            yield each
    yield newest


def _thinned(samples: tuple[Sample, ...]) -> Iterator[Sample]:
    """Drop samples that the window does not need: a report of many splits is large."""
    newest = samples[-1]
    for number, sample in enumerate(samples[:-1]):
        follower = samples[number + 1]
        is_before_window = newest.at - follower.at >= WINDOW
        is_dense = (
            number > 0
            and follower.at - samples[number - 1].at < RECENT / 2
            and follower is not newest
        )
        if not (is_before_window or is_dense):
            yield sample
    yield newest
