"""A day of a source whose loads are measured as in the product.

Reports, load tracker, drift watch, assigner.
"""

import math
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from balanced_source.api import RebalanceMode, RebalancePolicy, SplitId
from balanced_source.assigners import DriftWatch, LoadAwareAssigner, Placement, imbalance, place
from balanced_source.coordinator.loads import LoadTracker
from balanced_source.documents.report import HostReport
from support.placements import split_ids

POLICY = RebalancePolicy(mode=RebalanceMode.DRIFT, max_imbalance=1.2, min_interval=600.0)
DAY = 86_400.0
STEP = 30.0
"""Seconds between two reports."""

Rate = Callable[[int, float], float]
"""Records per second of a split (by its index) at a time."""


@dataclass
class Day:
    """One source under a noisy load.

    Attributes:
        true: lasting mean rate of each split, by index and time.
        noise: factor around 1 that each split's rate has at a time.
        readers: number of readers.
        splits: number of splits.
    """

    true: Rate
    noise: Rate
    readers: int = 4
    splits: int = 16
    now: float = 0.0
    moves: list[tuple[float, SplitId, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ids = split_ids(self.splits)
        self.owners: dict[SplitId, int] = place(
            LoadAwareAssigner(),
            Placement(parallelism=self.readers, pending=self.ids, weights=self.true_weights()),
        )
        self.tracker = LoadTracker()
        self.watch = DriftWatch(changed_at=0.0)
        self.positions = dict.fromkeys(self.ids, 0)

    def true_weights(self) -> dict[SplitId, float]:
        return {s: self.true(i, self.now) for i, s in enumerate(self.ids)}

    @property
    def true_imbalance(self) -> float:
        return imbalance(self.owners, self.true_weights(), self.readers)

    @property
    def returns(self) -> int:
        """How often a split went back to a reader that it had left."""
        left: dict[SplitId, set[int]] = defaultdict(set)
        count = 0
        for _, split_id, former, owner in self.moves:
            count += owner in left[split_id]
            left[split_id].add(former)
        return count

    def run(self, seconds: float) -> "Day":
        for _ in range(int(seconds / STEP)):
            self.now += STEP
            for i, split_id in enumerate(self.ids):
                self.positions[split_id] += round(
                    self.true(i, self.now) * self.noise(i, self.now) * STEP
                )
            report = HostReport(incarnation=1, heartbeat=self.now, positions=dict(self.positions))
            self.tracker = self.tracker.observe(report, self.owners)
            if self.watch.is_look_due(POLICY, self.now):
                self._look()
        return self

    def _look(self) -> None:
        question = Placement(
            parallelism=self.readers,
            owners=self.owners,
            may_move=True,
            weights=self.tracker.loads(),
        )
        self.watch, drift = self.watch.look(
            POLICY, LoadAwareAssigner(), question, positions=dict(self.positions), now=self.now
        )
        if drift is not None:
            self.moves += [(self.now, s, self.owners[s], o) for s, o in drift.moves.items()]
            self.owners |= drift.moves


def redrawn(seed: int, every: float, draw: Callable[[random.Random], float]) -> Rate:
    """Each split's factor is drawn again every so many seconds, at a time of its own."""
    offsets = [random.Random(f"{seed}/{i}").random() * every for i in range(64)]

    def factor(split: int, now: float) -> float:
        return draw(random.Random(f"{seed}/{split}/{int((now + offsets[split]) // every)}"))

    return factor


def noise_shapes(seed: int) -> dict[str, Rate]:
    """Five kinds of noise with mean 1."""
    phase = [random.Random(f"{seed}:{i}").random() for i in range(64)]
    return {
        "jitter": redrawn(seed, 60.0, lambda rng: rng.uniform(0.2, 1.8)),
        "ten minutes": redrawn(seed, 600.0, lambda rng: rng.uniform(0.2, 1.8)),
        "lumps": redrawn(seed, 300.0, lambda rng: 5.0 if rng.random() < 0.2 else 0.0),
        "heavy tail": redrawn(seed, 600.0, lambda rng: rng.paretovariate(2.5) * 1.5 / 2.5),
        "waves": lambda i, now: 1 + 0.8 * math.sin(2 * math.pi * (now / 2400.0 + phase[i])),
    }


def softened(noise: Rate, share: float) -> Rate:
    """The same noise with a share of its amplitude."""
    return lambda split, now: 1 + share * (noise(split, now) - 1)
