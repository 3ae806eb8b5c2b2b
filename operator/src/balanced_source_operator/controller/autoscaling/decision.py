"""The decision: more readers at once, fewer after a delay, no change while the need is unknown."""

from dataclasses import dataclass, replace
from typing import Final

from balanced_source.reasons import Reason
from balanced_source_operator.controller.autoscaling import words
from balanced_source_operator.controller.autoscaling.host_samples import ARRIVAL
from balanced_source_operator.controller.autoscaling.learning import (
    COUNTED,
    is_limited,
    shown_by_backlog,
)
from balanced_source_operator.controller.autoscaling.memory import (
    EXPIRES,
    AutoscalerMemory,
    Ceiling,
    Increase,
    Performance,
)
from balanced_source_operator.controller.autoscaling.needs import (
    Load,
    beside_hot_split,
    carrying,
    load_of,
    most_useful,
    needed,
    next_step,
)
from balanced_source_operator.controller.autoscaling.policy import Policy
from balanced_source_operator.controller.autoscaling.verdict import Verdict

TOLERANCE: Final = 0.1
"""Share by which the target may be exceeded before there are more readers."""

PROBE: Final = 4
"""One reader in so many is taken away, or added, to find out what that changes."""

GROWN: Final = 1.5
"""Arrival rate, as a multiple of that at an increase, at which there are more readers although it
is not known yet whether that one has helped."""

PENDING: Final = 300.0
"""Seconds after which an increase is not judged any more, if its readers read."""

LASTING: Final = 20.0
"""Seconds for which a backlog must stay as it is to be called the usual one."""

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
    wanted: int
    adopted: int
    now: float

    @property
    def capacity(self) -> float:
        """What one reader can process, as far as it is known."""
        known = self.memory.capacity
        return known.rate if known is not None else 0.0

    @property
    def is_measured(self) -> bool:
        """Whether `capacity` is more than a lower bound."""
        return self.memory.capacity is not None and self.memory.capacity.is_measured

    @property
    def is_keeping_up(self) -> bool:
        """Whether readers read what arrives, although much is unread all the time."""
        steady = self.memory.steady
        is_long = steady is not None and steady.seconds >= LASTING
        if steady is None or not is_long or self.load.behind > self.policy.max_lag:
            return False
        return not steady.is_changing and self.adopted == self.wanted

    @property
    def usual(self) -> Ceiling | None:
        """The limit that readers keep up below, if they still do."""
        ceiling, steady = self.memory.ceiling, self.memory.steady
        is_usual = ceiling is not None and ceiling.keeps_up
        return ceiling if is_usual and not (steady is not None and steady.is_changing) else None

    @property
    def is_doubtful(self) -> bool:
        """Whether the capacity may be more than it seems: no backlog has shown it for long."""
        known = self.memory.capacity
        is_old = known is None or self.now - known.proven_at >= EXPIRES
        return is_old and not (self.load.has_backlog or self.load.is_uneven)

    @property
    def is_pending(self) -> bool:
        """Whether it is not known yet if the last increase has helped."""
        attempt = self.memory.attempt
        if attempt is None or not self.memory.is_awaiting(self.wanted):
            return False
        # Where none can be added, nothing is awaited of which it will never be known.
        if attempt.rate is None and self.wanted >= self.policy.max_readers:
            return False
        # Where owners change all the time, it is never known.
        age = self.now - attempt.at
        is_open = self.adopted < self.wanted or age < PENDING
        return is_open and self.load.arrival <= GROWN * max(attempt.arrival, COUNTED / ARRIVAL)

    @property
    def utilization(self) -> float | None:
        """Share of its capacity that the busiest reader uses.

        None while capacity is only a lower bound.
        """
        if not self.is_measured or not self.capacity:
            return None
        return self.load.without_backlog.of_busiest(self.adopted) / self.capacity

    @property
    def shown_capacity(self) -> float | None:
        """What one reader can process; None while capacity is only a lower bound."""
        return self.capacity if self.is_measured else None

    def is_short(self) -> bool:
        """Whether there are clearly too few readers."""
        limit = self.capacity * self.policy.target_utilization * (1 + TOLERANCE)
        return self.is_measured and self.load.of_busiest(self.wanted) > limit

    def with_newest_share(self) -> "_Situation":
        """Return the situation with a share of the hottest split that a change has not hidden."""
        recent = self.memory.recent_reading
        if recent is None or not recent.rate:
            return self
        share = max(self.load.hottest, recent.hottest / recent.rate)
        return replace(self, load=replace(self.load, hottest=share))

    def attempt(self) -> Increase:
        """Return what an increase that begins now is judged by."""
        recent = self.memory.recent_reading
        # None before the first micro-batch of a driver ends, also if there are others: what is
        # unread becomes older all the time, and more readers help only when they read.
        readers = self.adopted if recent is None else recent.readers
        return Increase(
            readers=min(readers, self.wanted),
            rate=None if recent is None else recent.rate,
            arrival=self.load.arrival,
            unread=self.load.unread,
            pause=None if recent is None else recent.pause,
            at=self.now,
            shown=self.shown,
        )

    @property
    def shown(self) -> Performance | None:
        """What readers did that cannot catch up; None if what arrives is more than the target."""
        recent, before = self.memory.recent_reading, self.memory.attempt
        if not self.load.is_late:
            return None
        found = None if recent is None else shown_by_backlog(self.policy, recent)
        # Where micro-batches are long, each may have other readers than the one before.
        return before.shown if found is None and before is not None else found


def decide(
    policy: Policy, memory: AutoscalerMemory, *, wanted: int, now: float
) -> AutoscalerMemory:
    """Return the memory with the newest verdict, once that is carried out; see `weigh`."""
    return carried_out(weigh(policy, memory, wanted=wanted, now=now), wanted=wanted, now=now)


def carried_out(memory: AutoscalerMemory, *, wanted: int, now: float) -> AutoscalerMemory:
    """Return the memory after the number of readers has become that of the verdict."""
    verdict = memory.verdict
    if verdict is None or verdict.readers == wanted:
        return memory
    return memory.moved(now, is_increase=verdict.readers > wanted)


def weigh(policy: Policy, memory: AutoscalerMemory, *, wanted: int, now: float) -> AutoscalerMemory:
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
        return _decided(memory, verdict, now)
    # Someone else has changed the number: whether fewer suffice is seen from now on.
    if memory.verdict is not None and memory.verdict.readers != wanted:
        memory = replace(memory.disturbed(now), attempt=None, ceiling=None)
    load = load_of(policy, memory)
    if load is None:
        verdict = Verdict(readers=wanted, reason=Reason.MEASURING, message=words.measuring())
        return _decided(memory, verdict, now)
    situation = _Situation(
        policy=policy,
        memory=memory,
        load=load,
        wanted=wanted,
        adopted=memory.adopted,
        now=now,
    )
    after = _weighed(situation)
    return _without_hosts(after, situation) if memory.silent else after


def _without_hosts(after: AutoscalerMemory, it: _Situation) -> AutoscalerMemory:
    """Some hosts do not report: what they have to do is unknown, so no reader is taken away."""
    if after.verdict is not None and after.verdict.readers > it.wanted:
        return after
    before = it.memory.disturbed(it.now)
    message = words.silent(it.memory.silent, it.wanted)
    return _verdict(it, before, it.wanted, Reason.LAG_UNKNOWN, message, is_able=False)


def _weighed(it: _Situation) -> AutoscalerMemory:
    recent = it.memory.recent_reading
    if recent is not None and it.load.has_backlog and is_limited(it.policy, recent):
        return _held_by_limit(it)
    need = needed(it.policy, it.load, it.capacity)
    if it.is_short() and (need is None or need > it.wanted):
        return _more(it, need)
    if it.load.has_backlog and (ceiling := it.usual) is not None:
        return _keeping_up(it, ceiling)
    if it.load.has_backlog:
        # Without a measured capacity no one knows whether fewer would do while there is a backlog.
        memory = it.memory if it.is_measured else it.memory.disturbed(it.now)
        memory = memory.noting(it.now, it.wanted, delay=it.policy.patience)
        reason, message = (
            (Reason.WITHIN_TARGET, words.keeping_up(it.load, it.wanted))
            if it.is_keeping_up
            else (Reason.CATCHING_UP, words.catching_up(it.load, it.wanted, it.adopted))
        )
        return _verdict(it, memory, it.wanted, reason, message)
    fewest = it.wanted if need is None else min(need, it.wanted)
    memory = it.memory.noting(it.now, fewest, delay=it.policy.patience)
    if it.load.is_held_back and (fewest >= it.wanted or not it.is_measured):
        return _held_back(it, memory)
    return _fewer(it, memory)


def _held_by_limit(it: _Situation) -> AutoscalerMemory:
    """Each micro-batch reads as much as a limit allows, so another number of readers is no help."""
    memory, is_late = it.memory.disturbed(it.now), it.load.behind > it.policy.max_lag
    reason = Reason.DOWNSTREAM_LIMIT if is_late else Reason.CATCHING_UP
    message = words.limited(it.load, it.wanted)
    return _verdict(it, memory, it.wanted, reason, message, is_able=not is_late)


def _held_back(it: _Situation, memory: AutoscalerMemory) -> AutoscalerMemory:
    """Records wait for slower splits or sources, so readers that have little to do say nothing."""
    if not it.is_measured:
        memory = memory.disturbed(it.now)
    return _verdict(it, memory, it.wanted, Reason.HELD_BACK, words.held_back(it.load, it.wanted))


def _more(it: _Situation, need: int | None) -> AutoscalerMemory:
    """There are too few readers: add some, unless that is known not to help."""
    memory = it.memory.noting(it.now, it.wanted, delay=it.policy.patience)
    if it.usual is not None:
        return _keeping_up(it, it.usual)
    ceiling = memory.ceiling
    if ceiling is not None and not ceiling.keeps_up and it.wanted >= ceiling.readers:
        return _at_ceiling(it, memory, ceiling)
    if need is None:
        return _limited(it, memory)
    if it.is_pending:
        return _awaited(it, memory)
    memory = replace(memory, attempt=it.attempt())
    balanced = it.load.demand / (it.capacity * it.policy.target_utilization)
    if it.load.is_uneven and balanced <= it.wanted:
        return _verdict(
            it, memory, need, Reason.SPLITS_UNEVEN, words.uneven(it.load, it.wanted, need)
        )
    message = words.more(it.load, it.capacity, it.wanted, need)
    return _verdict(it, memory, need, Reason.SCALED_UP, message)


def _awaited(it: _Situation, memory: AutoscalerMemory) -> AutoscalerMemory:
    """More readers were added a short time ago: first it has to show whether that helps."""
    message = (
        words.catching_up(it.load, it.wanted, it.adopted)
        if it.load.has_backlog
        else words.awaited(it.load, it.shown_capacity, it.wanted)
    )
    return _verdict(it, memory, it.wanted, Reason.CATCHING_UP, message)


def _at_ceiling(it: _Situation, memory: AutoscalerMemory, ceiling: Ceiling) -> AutoscalerMemory:
    """The last increase brought nothing, so the readers are not what limits the source.

    Now and then one more increase finds out whether it is still so.
    """
    readers, recent = it.wanted, memory.recent_reading
    if not it.is_pending and it.now >= ceiling.retry_at:
        readers = next_step(it.policy, it.load, it.wanted, PROBE)
    if readers > it.wanted:
        tried = replace(ceiling, retry_at=it.now + EXPIRES)
        memory = replace(memory, attempt=it.attempt(), ceiling=tried)
    message = words.downstream(ceiling.readers, None if recent is None else recent.in_source)
    return _verdict(it, memory, readers, Reason.DOWNSTREAM_LIMIT, message, is_able=False)


def _keeping_up(it: _Situation, ceiling: Ceiling) -> AutoscalerMemory:
    """More readers changed nothing, and what arrives is read: the former number suffices, too."""
    memory = it.memory.disturbed(it.now)
    fewest = it.policy.bounded(min(it.wanted, ceiling.readers))
    readers = fewest if memory.may_reverse(it.now) else it.wanted
    is_late = it.load.behind > it.policy.max_lag
    message = words.keeping_up(it.load, readers, is_tried=True, is_late=is_late)
    if is_late:
        return _verdict(it, memory, readers, Reason.DOWNSTREAM_LIMIT, message, is_able=False)
    reason = Reason.SCALED_DOWN if readers < it.wanted else Reason.WITHIN_TARGET
    return _verdict(it, memory, readers, reason, message)


def _limited(it: _Situation, memory: AutoscalerMemory) -> AutoscalerMemory:
    """Not even the most readers would do at the target."""
    if it.load.is_uneven and (found := _beside_hot(it, memory)) is not None:
        return found
    most = max(it.wanted, most_useful(it.policy, it.load))
    if it.is_pending:
        return _awaited(it, memory)
    if most > it.wanted:
        memory = replace(memory, attempt=it.attempt())
    elif it.is_doubtful:
        return _tried(it)
    if carrying(it.policy, it.load, it.capacity) is None:
        message = words.at_maximum(
            it.load,
            it.capacity,
            most,
            it.policy.max_readers,
            is_certain=most == it.wanted and it.memory.has_helped,
        )
        return _verdict(it, memory, most, Reason.AT_MAXIMUM, message, is_able=False)
    if most > it.wanted:
        message = words.more(it.load, it.capacity, it.wanted, most)
        return _verdict(it, memory, most, Reason.SCALED_UP, message)
    message = words.catching_up(it.load, it.wanted, it.adopted)
    return _verdict(it, memory, most, Reason.CATCHING_UP, message)


def _tried(it: _Situation) -> AutoscalerMemory:
    """There cannot be more readers, but fewer may do: long commits look like busy readers."""
    known = it.memory.capacity
    unsure = replace(known, is_measured=False) if known is not None else None
    memory = replace(it.memory, capacity=unsure).noting(it.now, it.wanted, delay=it.policy.patience)
    return _fewer(replace(it, memory=memory), memory)


def _beside_hot(it: _Situation, memory: AutoscalerMemory) -> AutoscalerMemory | None:
    """One split stands out, which needs a reader that has little else to do.

    Returns None if the most readers are too few for that.
    """
    it = it.with_newest_share()
    readers = max(it.wanted, beside_hot_split(it.policy, it.load, it.capacity))
    if it.load.hottest * it.load.arrival > it.capacity:
        message = words.hot_split(it.load, it.capacity)
        return _verdict(it, memory, readers, Reason.HOT_SPLIT, message, is_able=False)
    enough = carrying(it.policy, it.load, it.capacity)
    if enough is None:
        return None
    readers = it.wanted if it.is_pending else max(readers, enough)
    if readers > it.wanted:
        memory = replace(memory, attempt=it.attempt())
    reason, message = _of_hot(it, readers)
    return _verdict(it, memory, readers, reason, message)


def _of_hot(it: _Situation, readers: int) -> tuple[Reason, str]:
    """Return what is so while one reader can carry the split that stands out."""
    is_behind = it.load.without_backlog.of_busiest(it.adopted) > it.capacity
    if it.load.is_countable and (readers > it.wanted or is_behind):
        return Reason.SPLITS_UNEVEN, words.uneven(it.load, it.adopted, readers)
    if readers > it.wanted:
        return Reason.SCALED_UP, words.more(it.load, it.capacity, it.wanted, readers)
    if it.load.has_backlog:
        return Reason.CATCHING_UP, words.one_is_catching_up(it.load)
    return Reason.WITHIN_TARGET, words.one_suffices(it.load, it.capacity)


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
    return _decided(memory, verdict, it.now)


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


def _decided(memory: AutoscalerMemory, verdict: Verdict, now: float) -> AutoscalerMemory:
    """Keep the sentence of an unchanged decision for a while."""
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
    return replace(memory, verdict=verdict)


def _is_kept(before: Verdict, verdict: Verdict, now: float) -> bool:
    """Whether the former sentence says what is decided now."""
    if before.readers != verdict.readers or now - before.decided_at >= KEEP_MESSAGE:
        return False
    # Two limits may alternate with each report, and each change would be a warning.
    return before.reason == verdict.reason or not (before.is_able or verdict.is_able)
