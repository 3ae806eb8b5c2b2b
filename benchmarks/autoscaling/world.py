"""A source in steps of five seconds.

Splits, readers that need time to start, and an autoscaler that watches them.

A fluid model: a reader takes from its splits what is there, up to its capacity, in proportion to
their backlogs. Micro-batches are not modelled. A larger number of readers takes effect when its
executors have started, a smaller one at once; readers are paid for from the moment they are asked
for.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol

from benchmarks.autoscaling.shapes import HOUR, SPLITS, TICK

CAPACITY: Final = 1000.0
"""Records per second of one reader."""

START: Final = 30.0
"""Seconds until an executor that was asked for has registered."""

MAX_READERS: Final = SPLITS


class Autoscaler(Protocol):
    """Chooses the number of readers at each tick."""

    def readers(self, world: "World") -> int:
        """Return how many there should be."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run has cost.

    Attributes:
        lag: unread records × seconds, in millions.
        readers: reader-hours, with those that were still starting.
        reversals: most changes of direction in any hour.
        worst: most unread records.
    """

    lag: float
    readers: float
    reversals: int
    worst: float


class World:
    """See the module.

    Attributes:
        now: seconds.
        wanted: readers that were asked for.
        adopted: readers that read.
        backlog: unread records of each split.
        read: records that were read of each split.
    """

    def __init__(self, readers: int, capacity: float = CAPACITY) -> None:
        self.now = 0.0
        self.wanted = self.adopted = readers
        self.backlog = [0.0] * SPLITS
        self.read = [0.0] * SPLITS
        self._capacity = capacity
        self._ready_at = 0.0
        self._moves: list[tuple[float, int]] = []
        self._lag = self._paid = self._worst = 0.0

    @property
    def unread(self) -> float:
        """Unread records of all splits."""
        return sum(self.backlog)

    def owner(self, split: int) -> int:
        """Return the reader of a split: every reader has as many splits, give or take one."""
        return split % self.adopted

    def run(self, load: Iterable[list[float]], autoscaler: Autoscaler) -> Outcome:
        """Let a load pass."""
        for rates in load:
            self._tick(rates)
            self._ask(autoscaler.readers(self))
        return Outcome(
            lag=self._lag / 1e6,
            readers=self._paid / HOUR,
            reversals=self._reversals(),
            worst=self._worst,
        )

    def _tick(self, rates: list[float]) -> None:
        if self.now >= self._ready_at:
            self.adopted = self.wanted
        for split, rate in enumerate(rates):
            self.backlog[split] += rate * TICK
        for reader in range(self.adopted):
            self._read(range(reader, SPLITS, self.adopted))
        self.now += TICK
        self._lag += self.unread * TICK
        self._paid += max(self.wanted, self.adopted) * TICK
        self._worst = max(self._worst, self.unread)

    def _read(self, splits: Iterable[int]) -> None:
        total = sum(self.backlog[s] for s in splits)
        share = min(1.0, self._capacity * TICK / total) if total else 0.0
        for split in splits:
            self.read[split] += self.backlog[split] * share
            self.backlog[split] *= 1 - share

    def _ask(self, readers: int) -> None:
        if readers == self.wanted:
            return
        self._moves.append((self.now, 1 if readers > self.wanted else -1))
        self._ready_at = self.now + START if readers > self.adopted else self.now
        self.wanted = readers

    def _reversals(self) -> int:
        turns = [after[0] for before, after in pairwise(self._moves) if before[1] != after[1]]
        return max((sum(at <= turn < at + HOUR for turn in turns) for at in turns), default=0)
