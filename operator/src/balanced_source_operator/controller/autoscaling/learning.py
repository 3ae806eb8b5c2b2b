"""Learns what one reader can process, and whether more readers help at all."""

from dataclasses import replace
from typing import Final

from balanced_source_operator.controller.autoscaling.memory import (
    EXPIRES,
    RECENT,
    AutoscalerMemory,
    Capacity,
    Ceiling,
    Increase,
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

NORMAL: Final = 2.5
"""Micro-batches whose load may be unread although readers keep up: two, as none is as long as the
one before."""

RELIEF: Final = 0.4
"""Share of the unread records, or of the time of a micro-batch, that is left after an increase that
has helped."""

BUSY: Final = 1.1
"""Time of a micro-batch, as a multiple of the trigger interval, from which none waits for it."""

BEHIND: Final = 2.0
"""Unread records, as a multiple of what readers kept up with, that show that they no longer do."""


def observe(
    policy: Policy, memory: AutoscalerMemory, sample: Sample, *, now: float
) -> AutoscalerMemory:
    """Return the memory with a further sample and what it teaches."""
    after = memory.observed(sample, now=now)
    if after is memory:
        return memory
    steady = after.steady
    after = _risen(_judged(policy, after, steady, now), steady)
    saturated = _saturated(policy, after, steady)
    # While a fixed cost is the limit, much is unread whatever readers can do.
    if saturated is not None and not (after.ceiling is not None and after.ceiling.keeps_up):
        return _confirmed(policy, after, saturated, now)
    if steady is None:
        return after
    known = after.capacity or Capacity(rate=0.0, at=now, is_measured=False)
    return replace(after, capacity=known.at_least(_per_reader(policy, steady), now))


def _saturated(
    policy: Policy, memory: AutoscalerMemory, steady: Interval | None
) -> Interval | None:
    """Return the longest time up to now that shows what readers can do."""
    found = (steady, memory.recent_reading)
    return next((i for i in found if i is not None and _is_telling(policy, memory, i)), None)


def _is_telling(policy: Policy, memory: AutoscalerMemory, interval: Interval) -> bool:
    """Whether readers never waited for records, and did what they could.

    They did if each micro-batch took longer than the trigger interval, so that the next one began
    at once: the share of the time that is spent in micro-batches is 1.

    With a fixed cost of micro-batches, such as that of a commit, the load of one is unread at the
    end of each, and that of two while one runs, whatever readers can do.
    """
    wait = policy.normal_wait
    if policy.has_interval and interval.is_steady and _is_busy(policy, interval):
        return interval.rate > 0
    if not interval.is_saturated(wait):
        return False
    deep = max(wait, NORMAL * memory.batch(interval.seconds))
    return interval.is_changing or interval.is_saturated(min(deep, max(wait, policy.max_lag)))


def _is_busy(policy: Policy, interval: Interval) -> bool:
    return interval.pause is not None and interval.pause > BUSY * policy.trigger


def _confirmed(
    policy: Policy, memory: AutoscalerMemory, interval: Interval, now: float
) -> AutoscalerMemory:
    rate = _per_reader(policy, interval)
    known = memory.capacity or Capacity(rate=rate, at=now, is_measured=False)
    # What a rescale costs passes, and would look as if more readers were needed.
    if memory.is_awaiting(interval.readers) and known.is_measured and rate < known.rate:
        return memory
    return replace(memory, capacity=known.confirmed(rate, now))


def _per_reader(policy: Policy, interval: Interval) -> float:
    """Return what a reader that has work processes.

    The busiest one, unless all of them share the hot splits.
    """
    return interval.rate / interval.readers if policy.shares_splits else interval.busiest


def _judged(
    policy: Policy, memory: AutoscalerMemory, steady: Interval | None, now: float
) -> AutoscalerMemory:
    """Say whether the newest increase has helped, once there is enough to say it."""
    attempt = memory.attempt
    if attempt is None or steady is None or steady.readers <= attempt.readers:
        return memory
    # Judged only over a longer time: the first micro-batches after a rescale start workers.
    if steady.seconds < 2 * RECENT:
        return memory
    memory = replace(memory, attempt=None)
    if not _is_telling(policy, memory, steady) and not steady.is_saturated(policy.normal_wait):
        return replace(memory, ceiling=None)
    if _has_helped(policy, attempt, steady):
        return replace(memory, ceiling=None)
    # With uneven readers the busiest limits all: that more readers did not help proves nothing.
    if not policy.shares_splits and steady.skew > EVEN:
        return memory
    seconds = memory.ends[-1].at - attempt.at
    if steady.available - attempt.unread > CHANGE * steady.rate * seconds:
        pause = BLOCKED if memory.ceiling is None else EXPIRES
        found = Ceiling(readers=steady.readers, rate=steady.rate, retry_at=now + pause)
        return replace(memory, ceiling=found)
    # What arrives is read, before as well as after: what seemed to be the capacity is less.
    unread = max(steady.available, attempt.unread)
    found = Ceiling(readers=attempt.readers, rate=steady.rate, unread=unread)
    known = memory.capacity
    return replace(memory, ceiling=found, capacity=known.refuted() if known is not None else None)


def _has_helped(policy: Policy, attempt: Increase, steady: Interval) -> bool:
    if steady.rate >= attempt.rate * _least_gain(attempt, steady.readers):
        return True
    # Little is unread now and then, whatever readers can do.
    if attempt.unread > policy.normal_wait * attempt.rate:
        return steady.available < RELIEF * attempt.unread
    if attempt.pause is None or steady.pause is None:
        return False
    return steady.pause < RELIEF * attempt.pause


def _least_gain(attempt: Increase, readers: int) -> float:
    return 1 + EXPECTED_GAIN * (readers / attempt.readers - 1)


def _risen(memory: AutoscalerMemory, steady: Interval | None) -> AutoscalerMemory:
    """Forget a limit that a larger throughput, or a larger backlog, disproves."""
    ceiling = memory.ceiling
    if ceiling is None or steady is None:
        return memory
    is_faster = steady.rate > RISE * ceiling.rate
    is_behind = ceiling.unread is not None and steady.available > BEHIND * ceiling.unread
    return replace(memory, ceiling=None) if is_faster or is_behind else memory
