"""Learns what one reader can process, and whether more readers help at all."""

from dataclasses import replace
from typing import Final

from balanced_source_operator.controller.autoscaling.memory import (
    RECENT,
    AutoscalerMemory,
    Capacity,
    Increase,
)
from balanced_source_operator.controller.autoscaling.policy import Policy
from balanced_source_operator.controller.autoscaling.samples import Interval, Sample

EXPECTED_GAIN: Final = 0.3
"""Share of the ideal gain in throughput that more readers must bring, or they are not the
bottleneck."""

EVEN: Final = 1.5
"""Skew up to which readers count as evenly loaded."""

BLOCKED: Final = 600.0
"""Seconds for which no readers are added after an increase that did not help."""


def observe(
    policy: Policy, memory: AutoscalerMemory, sample: Sample, *, now: float
) -> AutoscalerMemory:
    """Return the memory with a further sample and what it teaches."""
    after = memory.observed(sample, now=now)
    if after is memory:
        return memory
    saturated = _saturated(policy, after)
    if saturated is not None:
        return _judged(policy, _confirmed(policy, after, saturated, now), saturated, now)
    steady = after.steady
    if steady is None:
        return after
    known = after.capacity or Capacity(rate=0.0, at=now, is_measured=False)
    return replace(after, capacity=known.at_least(_per_reader(policy, steady), now))


def _saturated(policy: Policy, memory: AutoscalerMemory) -> Interval | None:
    """Return the longest time up to now in which readers never waited for records."""
    found = (memory.steady, memory.recent_reading)
    return next((i for i in found if i is not None and i.is_saturated(policy.normal_wait)), None)


def _confirmed(
    policy: Policy, memory: AutoscalerMemory, interval: Interval, now: float
) -> AutoscalerMemory:
    rate = _per_reader(policy, interval)
    known = memory.capacity or Capacity(rate=rate, at=now, is_measured=False)
    return replace(memory, capacity=known.confirmed(rate, now))


def _per_reader(policy: Policy, interval: Interval) -> float:
    """Return what a reader that has work processes.

    The busiest one, unless all of them share the hot splits.
    """
    return interval.rate / interval.readers if policy.shares_splits else interval.busiest


def _judged(
    policy: Policy, memory: AutoscalerMemory, interval: Interval, now: float
) -> AutoscalerMemory:
    """Say whether the newest increase has helped, once there is enough to say it."""
    attempt = memory.attempt
    # Judged only over a longer time: the first micro-batches after a rescale start workers.
    if attempt is None or interval.readers <= attempt.readers or interval.seconds < 2 * RECENT:
        return memory
    # With uneven readers the busiest limits all: that more readers did not help proves nothing.
    is_even = policy.shares_splits or interval.skew <= EVEN
    is_useless = is_even and interval.rate < attempt.rate * _least_gain(attempt, interval.readers)
    return replace(
        memory, attempt=None, blocked_until=now + BLOCKED if is_useless else memory.blocked_until
    )


def _least_gain(attempt: Increase, readers: int) -> float:
    return 1 + EXPECTED_GAIN * (readers / attempt.readers - 1)
