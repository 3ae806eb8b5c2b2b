"""The decision: more readers at once, fewer after a delay, no change while the need is unknown."""

from dataclasses import dataclass, replace
from typing import Final

from balanced_source.reasons import Reason
from balanced_source_operator.controller.autoscaling import words
from balanced_source_operator.controller.autoscaling.memory import (
    AutoscalerMemory,
    Increase,
)
from balanced_source_operator.controller.autoscaling.needs import (
    Load,
    beside_hot_split,
    load_of,
    most_useful,
    needed,
)
from balanced_source_operator.controller.autoscaling.policy import Policy
from balanced_source_operator.controller.autoscaling.verdict import Verdict

TOLERANCE: Final = 0.1
"""Share by which the target may be exceeded before there are more readers."""

PROBE: Final = 4
"""One reader in so many is taken away to find out whether fewer suffice."""

_LIMITS: Final = (Reason.AT_MAXIMUM, Reason.DOWNSTREAM_LIMIT, Reason.HOT_SPLIT)
"""Reasons of decisions that cannot do what a load asks for."""

_NEAR: Final = (Reason.CATCHING_UP, Reason.WITHIN_TARGET)
"""Reasons of decisions that a load near a limit leads to in between."""

KEEP_MESSAGE: Final = 60.0
"""Seconds for which a sentence stays while the decision is the same: its numbers change all the
time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Situation:
    """Everything that a decision is taken from."""

    policy: Policy
    memory: AutoscalerMemory
    load: Load
    capacity: float
    is_measured: bool
    wanted: int
    adopted: int
    now: float

    @property
    def utilization(self) -> float | None:
        """Share of its capacity that the busiest reader uses.

        None while capacity is only a lower bound.
        """
        if not self.is_measured or not self.capacity:
            return None
        arriving = replace(self.load, demand=self.load.arrival)
        return arriving.of_busiest(self.adopted) / self.capacity

    @property
    def shown_capacity(self) -> float | None:
        """What one reader can process; None while capacity is only a lower bound."""
        return self.capacity if self.is_measured else None

    def is_short(self) -> bool:
        """Whether there are clearly too few readers."""
        limit = self.capacity * self.policy.target_utilization * (1 + TOLERANCE)
        return self.is_measured and self.load.of_busiest(self.wanted) > limit


def decide(
    policy: Policy, memory: AutoscalerMemory, *, wanted: int, now: float
) -> AutoscalerMemory:
    """Return the memory with the newest verdict.

    `verdict.readers` is the number of readers that there should be.

    Args:
        policy: what the user asks for.
        memory: with the newest sample, see `learning.observe`.
        wanted: number of readers that is desired now.
        now: seconds.
    """
    # First: bounds are the user's word, and hold also while nothing is measured.
    if (bounded := policy.bounded(wanted)) != wanted:
        verdict = Verdict(
            readers=bounded, reason=Reason.WITHIN_BOUNDS, message=words.bounds(policy, wanted)
        )
        return _decided(memory, verdict, wanted, now)
    # Someone else has changed the number: whether fewer suffice is seen from now on.
    if memory.verdict is not None and memory.verdict.readers != wanted:
        memory = memory.disturbed(now)
    load = load_of(policy, memory)
    if load is None:
        verdict = Verdict(readers=wanted, reason=Reason.MEASURING, message=words.measuring())
        return _decided(memory, verdict, wanted, now)
    known = memory.capacity
    situation = _Situation(
        policy=policy,
        memory=memory,
        load=load,
        capacity=known.rate if known is not None else 0.0,
        is_measured=known is not None and known.is_measured,
        wanted=wanted,
        adopted=memory.samples[-1].readers,
        now=now,
    )
    return _weighed(situation)


def _weighed(it: _Situation) -> AutoscalerMemory:
    need = needed(it.policy, it.load, it.capacity)
    if it.is_short() and (need is None or need > it.wanted):
        return _more(it, need)
    if it.load.has_backlog:
        # Without a measured capacity no one knows whether fewer would do while there is a backlog.
        memory = it.memory if it.is_measured else it.memory.disturbed(it.now)
        memory = memory.noting(it.now, it.wanted, delay=it.policy.patience)
        return _verdict(
            it,
            memory,
            it.wanted,
            Reason.CATCHING_UP,
            words.catching_up(it.load, it.wanted, it.adopted),
        )
    fewest = it.wanted if need is None else min(need, it.wanted)
    memory = it.memory.noting(it.now, fewest, delay=it.policy.patience)
    memory = replace(memory, attempt=None)
    if it.load.is_held_back and (fewest >= it.wanted or not it.is_measured):
        return _held_back(it, memory)
    return _fewer(it, memory)


def _held_back(it: _Situation, memory: AutoscalerMemory) -> AutoscalerMemory:
    """Records wait for slower splits or sources, so readers that have little to do say nothing."""
    if not it.is_measured:
        memory = memory.disturbed(it.now)
    return _verdict(it, memory, it.wanted, Reason.HELD_BACK, words.held_back(it.load, it.wanted))


def _more(it: _Situation, need: int | None) -> AutoscalerMemory:
    """There are too few readers: add some, unless that is known not to help."""
    memory = it.memory.noting(it.now, it.wanted, delay=it.policy.patience)
    # The last increase brought nothing, so the readers are not what limits the source.
    if it.now < it.memory.blocked_until:
        recent = it.memory.recent_reading
        message = words.downstream(it.wanted, None if recent is None else recent.in_source)
        return _verdict(it, memory, it.wanted, Reason.DOWNSTREAM_LIMIT, message, is_able=False)
    if need is None:
        return _limited(it, memory)
    recent = it.memory.recent_reading
    attempt = (
        Increase(readers=it.wanted, rate=recent.rate)
        if recent is not None and it.load.has_backlog
        else None
    )
    balanced = it.load.demand / (it.capacity * it.policy.target_utilization)
    if it.load.is_uneven and balanced <= it.wanted:
        return _verdict(
            it, memory, need, Reason.SPLITS_UNEVEN, words.uneven(it.load, it.wanted, need)
        )
    message = words.more(it.load, it.capacity, it.wanted, need)
    return _verdict(it, replace(memory, attempt=attempt), need, Reason.SCALED_UP, message)


def _limited(it: _Situation, memory: AutoscalerMemory) -> AutoscalerMemory:
    """Not even the most readers would do.

    A split that only one reader can read needs no further readers.
    """
    if it.load.is_uneven:
        readers = max(it.wanted, beside_hot_split(it.policy, it.load, it.capacity))
        if it.load.hottest * it.load.arrival <= it.capacity:
            return _verdict(
                it, memory, readers, Reason.CATCHING_UP, words.one_is_catching_up(it.load)
            )
        return _verdict(
            it,
            memory,
            readers,
            Reason.HOT_SPLIT,
            words.hot_split(it.load, it.capacity),
            is_able=False,
        )
    most = max(it.wanted, most_useful(it.policy, it.load))
    return _verdict(
        it,
        memory,
        most,
        Reason.AT_MAXIMUM,
        words.at_maximum(it.load, it.capacity, most, it.policy.max_readers),
        is_able=False,
    )


def _fewer(it: _Situation, memory: AutoscalerMemory) -> AutoscalerMemory:
    """The readers suffice. Do fewer, for long enough?"""
    fewest = memory.needs[0][1]
    # Readers that never have a backlog never show their capacity: one fewer finds out.
    is_probe = fewest >= it.wanted and not it.is_measured and it.memory.capacity is not None
    if is_probe:
        fewest = it.policy.bounded(it.wanted - max(1, it.wanted // PROBE))
    if (now := min(fewest, memory.needs[-1][1])) >= it.wanted:
        return _verdict(
            it,
            memory,
            it.wanted,
            Reason.WITHIN_TARGET,
            words.within(it.load, it.shown_capacity, it.wanted),
        )
    waited = it.now - (memory.calm_since or it.now)
    is_due = fewest < it.wanted and waited >= it.policy.patience and it.adopted == it.wanted
    # A load that swings must not make the source swing: changes of direction are limited.
    if not is_due or not memory.may_reverse(it.now):
        message = (
            words.probe_delayed(it.load, it.wanted)
            if is_probe
            else words.delayed(it.load, it.wanted, now)
        )
        return _verdict(it, memory, it.wanted, Reason.SCALE_DOWN_DELAYED, message)
    if is_probe:
        return _verdict(it, memory, fewest, Reason.PROBING, words.probing(it.wanted, fewest))
    return _verdict(
        it,
        memory,
        fewest,
        Reason.SCALED_DOWN,
        words.fewer(it.load, it.shown_capacity, it.wanted, fewest),
    )


def _verdict(
    it: _Situation,
    memory: AutoscalerMemory,
    readers: int,
    reason: Reason,
    message: str,
    *,
    is_able: bool = True,
) -> AutoscalerMemory:
    verdict = Verdict(
        readers=readers,
        reason=reason,
        message=message,
        is_able=is_able,
        utilization=it.utilization,
        capacity=it.shown_capacity,
        arrival=it.load.arrival,
    )
    if not is_able:
        memory = replace(memory, limited=(it.now, it.policy))
    elif (before := memory.verdict) is not None and _is_still_limited(it, before, verdict):
        verdict = replace(verdict, reason=before.reason, message=before.message, is_able=False)
    return _decided(memory, verdict, it.wanted, it.now)


def _is_still_limited(it: _Situation, before: Verdict, verdict: Verdict) -> bool:
    """Whether a limit was met a short time ago, by the same number of readers.

    A load near the limit exceeds it now and then, and long micro-batches are behind and catch up in
    turn: a condition that changes each time would be a flood of warnings, and no alert would last.
    """
    if before.reason not in _LIMITS or it.memory.limited is None:
        return False
    at, policy = it.memory.limited
    is_near = verdict.reason in _NEAR
    is_recent = it.now - at < max(it.policy.patience, KEEP_MESSAGE) and policy == it.policy
    return is_near and is_recent and before.readers == verdict.readers


def _decided(
    memory: AutoscalerMemory, verdict: Verdict, wanted: int, now: float
) -> AutoscalerMemory:
    """Keep the sentence of an unchanged decision for a while, and remember a change."""
    before = memory.verdict
    # The numbers in a sentence change with each report, and each change would be a write.
    if before is not None and _is_kept(before, verdict, now):
        verdict = replace(
            verdict,
            reason=before.reason,
            message=before.message,
            decided_at=before.decided_at,
        )
    else:
        verdict = replace(verdict, decided_at=now)
    if verdict.readers == wanted:
        return replace(memory, verdict=verdict)
    return replace(memory.moved(now, is_increase=verdict.readers > wanted), verdict=verdict)


def _is_kept(before: Verdict, verdict: Verdict, now: float) -> bool:
    """Whether the former sentence says what is decided now."""
    if before.readers != verdict.readers or now - before.decided_at >= KEEP_MESSAGE:
        return False
    # Two limits may alternate with each report, and each change would be a warning.
    return before.reason == verdict.reason or not (before.is_able or verdict.is_able)
