"""Learns what one reader can process, and whether more readers help at all."""

from dataclasses import replace
from typing import Final

from balanced_source.documents.storage import FIRST_HOST
from balanced_source_operator.controller.autoscaling.host_samples import RECENT, WINDOW
from balanced_source_operator.controller.autoscaling.memory import (
    EXPIRES,
    HOUR,
    AutoscalerMemory,
    Capacity,
    Ceiling,
    Claim,
    Increase,
    Performance,
)
from balanced_source_operator.controller.autoscaling.policy import Policy
from balanced_source_operator.controller.autoscaling.samples import CHANGE, Interval, Sample

EXPECTED_GAIN: Final = 0.3
"""Share of the ideal gain in throughput that more readers must bring, or they are not the
bottleneck."""

EVEN: Final = 1.5
"""Skew up to which readers count as evenly loaded."""

BLOCKED: Final = 600.0
"""Seconds after an increase that did not help until one more is tried."""

RISE: Final = 1.2
"""Throughput, as a multiple of one that could not be raised, that shows that it now can."""

GROWTH: Final = 1.5
"""The same of readers that kept up: more of what arrives is read by them, too."""

FALL: Final = 0.5
"""Throughput, as a multiple of what readers kept up with, below which nothing is known any more."""

NORMAL: Final = 2.5
"""Micro-batches whose load may be unread although readers keep up: two, as none is as long as the
one before."""

RELIEF: Final = 0.4
"""Share of the unread records, or of the time of a micro-batch, that is left after an increase that
has helped."""

BUSY: Final = 0.35
"""Share of the time that micro-batches take which do not wait for the trigger, from which readers
count as busy."""

FULL: Final = 0.9
"""The same, from which they had work all the time."""

SHORTER: Final = 2.0
"""Time of a micro-batch, as a multiple of the mean of later ones, from which its commit was a small
part of it."""

SHORTER_IN_TIME: Final = 1.5
"""The same if the later ones wait for the trigger, so that their commits are even shorter."""

SEVERAL: Final = 5
"""Micro-batches from which their mean time is more than chance."""

SETTLED: Final = 90.0
"""Seconds after which splits that an increase has moved stay where they are."""

IN_TIME: Final = 0.1
"""Share of the time in late micro-batches, below which readers wait for the trigger."""

LONGEST_WAIT: Final = 1.1
"""Mean time of micro-batches that wait for the trigger, as a multiple of its interval."""

COUNTED: Final = 30
"""Records from which a rate is more than chance."""

BEHIND: Final = 2.0
"""Time for which records are unread, as a multiple of that of readers that kept up, that shows that
they no longer do."""


def observe(
    policy: Policy, memory: AutoscalerMemory, sample: Sample, *, now: float, host: str = FIRST_HOST
) -> AutoscalerMemory:
    """Return the memory with a further sample of a host and what it teaches."""
    window = max(WINDOW, policy.trigger)
    after = memory.observed(sample, now=now, host=host, window=window)
    if after is memory:
        return memory
    steady = after.steady
    after = _risen(_judged(policy, _awaited(after, now), steady, now), steady)
    after = _claimed(after, steady, now)
    saturated = _saturated(policy, after, steady)
    # While a fixed cost is the limit, much is unread whatever readers can do.
    is_usual = after.ceiling is not None and after.ceiling.keeps_up
    if saturated is not None and (saturated.is_changing or not is_usual):
        return _confirmed(policy, after, saturated, now)
    if steady is None:
        return after
    known = after.capacity or Capacity(rate=0.0, at=now, is_measured=False)
    return replace(after, capacity=known.at_least(per_reader(policy, steady), now))


def _saturated(
    policy: Policy, memory: AutoscalerMemory, steady: Interval | None
) -> Interval | None:
    """Return the longest time up to now that shows what readers can do."""
    found = (steady, memory.recent_reading, _of_average(memory, steady))
    return next((i for i in found if i is not None and _is_telling(policy, memory, i)), None)


def _of_average(memory: AutoscalerMemory, steady: Interval | None) -> Interval | None:
    """Return what the average reader did, where splits move too often to say it of the busiest one.

    A reader can do at least that much. Only while nothing better is known.
    """
    others, known = memory.of_as_many, memory.capacity
    if others is None or steady is not None or (known is not None and known.is_measured):
        return None
    return replace(others, is_steady=True, busiest=others.rate / others.readers)


def _is_telling(policy: Policy, memory: AutoscalerMemory, interval: Interval) -> bool:
    """Whether readers never waited for records, and did what they could.

    They did if a large share of the time is that of micro-batches which took longer than the
    trigger interval, so that the next one began at once; or if a backlog grew or was worked off.
    """
    if is_limited(policy, interval):
        return False
    if interval.is_steady and _is_busy(interval):
        return True
    is_backlog = interval.is_saturated(policy.normal_wait) and interval.is_changing
    return is_backlog or _is_proof(policy, memory, interval)


def is_limited(policy: Policy, interval: Interval) -> bool:
    """Whether readers wait for the trigger although more is unread than they normally leave.

    Then a limit of each micro-batch is why it is unread, and not what readers can do.
    """
    if interval.late is None or interval.pause is None:
        return False
    is_waiting = interval.late < IN_TIME and interval.pause <= LONGEST_WAIT * policy.trigger
    return is_waiting and interval.is_saturated(policy.normal_wait)


def _is_proof(policy: Policy, memory: AutoscalerMemory, interval: Interval) -> bool:
    """Whether more is unread than any commit explains.

    While the commit of a micro-batch lasts, the load of one is unread at its end, and that of two
    while one runs, whatever readers can do.
    """
    deep = _deep(policy, memory, interval)
    return interval.is_saturated(min(deep, max(policy.normal_wait, policy.max_lag)))


def _deep(policy: Policy, memory: AutoscalerMemory, interval: Interval) -> float:
    """Return the seconds of load that are unread at most because commits take long."""
    return max(policy.normal_wait, NORMAL * memory.batch(interval.seconds))


def _is_busy(interval: Interval) -> bool:
    return (interval.late or 0) >= BUSY and interval.rate * interval.seconds >= COUNTED


def _confirmed(
    policy: Policy, memory: AutoscalerMemory, interval: Interval, now: float
) -> AutoscalerMemory:
    rate = per_reader(policy, interval)
    known = memory.capacity or Capacity(rate=rate, at=now, is_measured=False)
    # What a rescale costs passes, and would look as if more readers were needed.
    if memory.is_awaiting(interval.readers) and known.is_measured and rate < known.rate:
        return memory
    is_proof = _is_proof(policy, memory, interval)
    if not is_proof:
        # A commit takes its time however fast readers are, so they are as fast as they were.
        rate = max(rate, known.most)
    is_deep = is_proof and interval.is_saturated(_deep(policy, memory, interval))
    after = known.confirmed(rate, now, is_proof=is_proof, is_deep=is_deep)
    return replace(memory, capacity=after)


def per_reader(policy: Policy, interval: Interval) -> float:
    """Return what a reader that has work processes.

    The busiest one, unless all of them share the hot splits.
    """
    return interval.rate / interval.readers if policy.shares_splits else interval.busiest


def shown_by_backlog(policy: Policy, interval: Interval) -> Performance | None:
    """Return what readers did if they had work all the time; None if they may have waited."""
    is_full = (interval.late or 0) >= FULL or interval.is_saturated(policy.normal_wait)
    if not interval.is_steady or not is_full or interval.pause is None:
        return None
    return Performance(per_reader(policy, interval), interval.pause)


def _awaited(memory: AutoscalerMemory, now: float) -> AutoscalerMemory:
    """Note when an increase takes effect, and forget one of which nothing was seen for long."""
    attempt = memory.attempt
    if attempt is None or memory.adopted <= attempt.readers:
        return memory
    since = now if attempt.adopted_at is None else attempt.adopted_at
    is_old = now - since >= HOUR
    return replace(memory, attempt=None if is_old else replace(attempt, adopted_at=since))


def _judged(
    policy: Policy, memory: AutoscalerMemory, steady: Interval | None, now: float
) -> AutoscalerMemory:
    """Say whether the newest increase has helped, once there is enough to say it."""
    attempt = memory.attempt
    if attempt is None:
        return memory
    # Judged only over a longer time: the first micro-batches after a rescale start workers. Where
    # splits move all the time, it is that of as many readers, whatever they own.
    if steady is None or steady.seconds < 2 * RECENT:
        others = memory.of_as_many
        is_open = others is None or others.seconds < 2 * RECENT or _may_settle(attempt, now)
        steady = None if others is None or is_open else replace(others, is_steady=True)
    if steady is None or steady.readers <= attempt.readers:
        return memory
    memory, known = replace(memory, attempt=None), memory.capacity
    if attempt.rate is not None and _has_helped(policy, attempt, attempt.rate, steady):
        proven = known.proven(now) if known is not None else None
        memory = replace(memory, claim=_claim_of(policy, memory, attempt, steady, now))
        return replace(memory, ceiling=None, capacity=proven, exceeded=None, has_helped=True)
    if attempt.rate is None or is_limited(policy, steady):
        return memory
    if not _is_telling(policy, memory, steady) and not steady.is_saturated(policy.normal_wait):
        return replace(memory, ceiling=None)
    # With uneven readers the busiest limits all: that more readers did not help proves nothing.
    if not policy.shares_splits and steady.skew > EVEN:
        return memory
    memory = replace(memory, has_helped=False)
    seconds = now - attempt.at
    is_growing = steady.available - attempt.unread > CHANGE * steady.rate * seconds
    # What grows slowly looks as if readers kept up, until more is unread at the same rate.
    is_exceeded = memory.exceeded is not None and steady.rate <= RISE * memory.exceeded
    if is_growing or is_exceeded:
        pause = BLOCKED if memory.ceiling is None else EXPIRES
        found = Ceiling(readers=steady.readers, rate=steady.rate, retry_at=now + pause)
        return replace(memory, ceiling=found)
    # What arrives is read, before as well as after: what seemed to be the capacity is less.
    unread = max(steady.available, attempt.unread)
    found = Ceiling(readers=attempt.readers, rate=steady.rate, unread=unread)
    return replace(memory, ceiling=found, capacity=known.refuted() if known is not None else None)


def _claim_of(
    policy: Policy, memory: AutoscalerMemory, attempt: Increase, steady: Interval, now: float
) -> Claim | None:
    shown, pace = attempt.shown, memory.pace
    if shown is None or pace is None:
        return None
    rate = max(shown.rate, per_reader(policy, steady))
    return Claim(shown=shown._replace(rate=rate), since=pace, until=now + HOUR)


def _claimed(memory: AutoscalerMemory, steady: Interval | None, now: float) -> AutoscalerMemory:
    """Lower the capacity to what readers did, once no commit can have been the limit then."""
    claim, known, pace = memory.claim, memory.capacity, memory.pace
    if claim is None or known is None:
        return memory
    if pace is None or now >= claim.until or pace.batches < claim.since.batches:
        return replace(memory, claim=None)
    batches = pace.batches - claim.since.batches
    if batches < SEVERAL * len(memory.series):
        return memory
    pause = (pace.seconds - claim.since.seconds) / batches
    # Those that wait for the trigger are shorter than it seems.
    is_waiting = steady is not None and steady.late is not None and steady.late < IN_TIME
    if (SHORTER_IN_TIME if is_waiting else SHORTER) * pause > claim.shown.pause:
        return memory
    return replace(memory, claim=None, capacity=known.lowered(claim.shown.rate, now))


def _may_settle(attempt: Increase, now: float) -> bool:
    """Whether it is too early to say that splits continue to move."""
    return attempt.adopted_at is None or now - attempt.adopted_at < SETTLED


def _has_helped(policy: Policy, attempt: Increase, before: float, steady: Interval) -> bool:
    """Whether readers read more than `before`, or leave less unread, or need less time."""
    if steady.rate >= before * _least_gain(attempt, steady.readers):
        return True
    # Little is unread now and then, whatever readers can do.
    if attempt.unread > policy.normal_wait * before:
        return steady.available < RELIEF * attempt.unread
    if attempt.pause is None or steady.pause is None:
        return False
    return steady.pause < RELIEF * attempt.pause


def _least_gain(attempt: Increase, readers: int) -> float:
    return 1 + EXPECTED_GAIN * (readers / attempt.readers - 1)


def _risen(memory: AutoscalerMemory, steady: Interval | None) -> AutoscalerMemory:
    """Forget a limit that a larger throughput or backlog disproves, or that is of other times."""
    ceiling = memory.ceiling
    if ceiling is None or steady is None:
        return memory
    is_over = steady.rate > (GROWTH if ceiling.keeps_up else RISE) * ceiling.rate
    exceeded = None if is_over else memory.exceeded
    if ceiling.unread is not None:
        # In seconds: what is a second's load by day is a backlog of minutes by night.
        is_behind = steady.available * ceiling.rate > BEHIND * ceiling.unread * steady.rate
        if is_behind and FALL * ceiling.rate <= steady.rate <= RISE * ceiling.rate:
            exceeded = ceiling.rate
        is_over |= is_behind or steady.rate < FALL * ceiling.rate
        is_over |= steady.readers < ceiling.readers
    return replace(memory, ceiling=None, exceeded=exceeded) if is_over else memory
