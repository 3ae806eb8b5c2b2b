"""How many readers a load needs, and what limits them if no number suffices."""

import math
from dataclasses import dataclass, replace

from balanced_source.names import split_name
from balanced_source_operator.controller.autoscaling.host_samples import ARRIVAL, WINDOW
from balanced_source_operator.controller.autoscaling.learning import COUNTED, EVEN
from balanced_source_operator.controller.autoscaling.memory import AutoscalerMemory
from balanced_source_operator.controller.autoscaling.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What readers have to process, in records per second.

    Attributes:
        arrival: what arrives.
        demand: what must be processed: what arrives, and a backlog that has become too old.
        behind: seconds by which readers are behind: in which what is unread has arrived. Infinite
            if nothing arrives.
        unread: records that are not read yet, and may be.
        held_back: records that an alignment in event time does not let be read yet.
        is_held_back: whether these are more than what normally waits for a micro-batch.
        has_backlog: whether more is unread than what normally waits for a micro-batch.
        splits: number of splits.
        hottest: share of the split that is read most, 0 to 1.
        hottest_split: that split, in words.
        is_countable: whether the assigner gives every reader as many splits, whatever they cost.
        is_shared: whether several readers may read ranges of one split.
    """

    arrival: float
    demand: float
    behind: float
    unread: int
    held_back: int = 0
    is_held_back: bool = False
    has_backlog: bool
    splits: int
    hottest: float
    hottest_split: str
    is_countable: bool
    is_shared: bool

    def of_busiest(self, readers: int) -> float:
        """Return what the busiest of so many readers processes, as the assigner would spread."""
        mean = self.demand / readers
        if self.is_shared or not self.splits:
            return mean
        hottest = self.hottest * self.demand
        if not self.is_countable:
            return max(mean, hottest)
        others = (self.demand - hottest) / max(1, self.splits - 1)
        return max(mean, hottest + (math.ceil(self.splits / readers) - 1) * others)

    @property
    def without_backlog(self) -> "Load":
        """What arrives alone."""
        return replace(self, demand=self.arrival)

    @property
    def is_late(self) -> bool:
        """Whether a backlog has become older than `maxLag`, so that more readers must catch up."""
        return self.demand > self.arrival

    @property
    def is_uneven(self) -> bool:
        """Whether the split that is read most stands out."""
        return not self.is_shared and self.hottest * self.splits > EVEN


def load_of(policy: Policy, memory: AutoscalerMemory) -> Load | None:
    """Return the present load; None while it has not been observed for long enough."""
    recent = memory.recent(ARRIVAL)
    if recent is None:
        return None
    # Few records come by chance: a longer time tells more.
    if recent.arrival * recent.seconds < COUNTED:
        recent = memory.recent(WINDOW) or recent
    arrival = recent.arrival
    # A burst that is shorter than a micro-batch is read with what comes before and after it.
    if policy.trigger > recent.seconds and (found := memory.arrival(policy.trigger)) is not None:
        arrival = found
    # Nothing was read yet, or nothing arrives: then no split stands out. Of several hosts, the end
    # of one's micro-batch comes before those of the others.
    reading = memory.reading or recent
    is_share_known = reading is not recent or len(memory.series) == 1
    # While a load falls, what is unread came faster than what arrives now.
    since = memory.since_end or recent
    arrived = max(arrival, recent.arrival, reading.arrival, since.arrival)
    behind = _seconds(recent.available, arrived)
    normal = policy.normal_wait * arrived
    excess = max(0.0, recent.available - normal)
    return Load(
        arrival=arrival,
        demand=arrival + (excess / policy.max_lag if behind > policy.max_lag else 0.0),
        behind=behind,
        unread=recent.available,
        held_back=recent.unread - recent.available,
        is_held_back=recent.unread - recent.available > normal,
        has_backlog=excess > 0,
        splits=recent.splits,
        hottest=reading.hottest / reading.rate if reading.rate and is_share_known else 0.0,
        hottest_split=split_name(reading.hottest_split),
        is_countable=not policy.follows_load,
        is_shared=policy.shares_splits,
    )


def _seconds(records: int, rate: float) -> float:
    if not rate:
        return math.inf if records else 0.0
    return records / rate


def needed(policy: Policy, load: Load, capacity: float) -> int | None:
    """Return the fewest readers that carry a load at the target; None if not even the most do."""
    if load.demand <= 0:
        return policy.min_readers
    return _fewest(policy, load, capacity * policy.target_utilization)


def carrying(policy: Policy, load: Load, capacity: float) -> int | None:
    """Return the fewest readers that carry what arrives, at whatever utilization; None if none."""
    return _fewest(policy, load.without_backlog, capacity)


def _fewest(policy: Policy, load: Load, most: float) -> int | None:
    """Return the fewest readers whose busiest one has at most so much to do; None if none do."""
    allowed = range(policy.min_readers, policy.max_readers + 1)
    return next((n for n in allowed if load.of_busiest(n) <= most), None)


def most_useful(policy: Policy, load: Load) -> int:
    """Return the fewest readers whose busiest one has no more to do than with the most readers.

    With 35 splits, 18 readers have two splits at most, and so have 30.
    """
    # Splits are never exactly alike: a hundredth less is no reason for more readers.
    enough = 1.01 * load.of_busiest(policy.max_readers)
    allowed = range(policy.min_readers, policy.max_readers + 1)
    return next(n for n in allowed if load.of_busiest(n) <= enough)


def beside_hot_split(policy: Policy, load: Load, capacity: float) -> int:
    """Return the fewest readers if one reads the hottest split and the others carry the rest."""
    rest = (1 - load.hottest) * load.arrival
    return policy.bounded(1 + math.ceil(rest / (capacity * policy.target_utilization)))


def next_step(policy: Policy, load: Load, wanted: int, share: int) -> int:
    """Return the fewest readers whose busiest one has less to do than with `wanted`.

    One more reader of each `share`, at least; `wanted` if there is no such number.
    """
    first, busiest = wanted + max(1, wanted // share), load.of_busiest(wanted)
    allowed = range(first, policy.max_readers + 1)
    return next((n for n in allowed if 1.01 * load.of_busiest(n) <= busiest), wanted)
