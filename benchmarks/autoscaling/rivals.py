"""The two autoscalers.

The product's own code, and the horizontal pod autoscaler's algorithm on lag.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from balanced_source_operator.controller.autoscaling import (
    AutoscalerMemory,
    Policy,
    Sample,
    decide,
    observe,
)
from benchmarks.autoscaling.shapes import TICK
from benchmarks.autoscaling.world import CAPACITY, MAX_READERS, World

REPORT: Final = TICK
"""Seconds between two reports of a driver. While it reads, a real one reports every 2 s."""

SYNC: Final = 15.0
"""Seconds between two looks of the horizontal pod autoscaler; metrics are as old."""

TOLERANCE: Final = 0.1

TARGETS: Final = (1, 2, 5, 10, 30, 60)
"""Grid: lag per reader, in seconds of a reader's capacity."""

WINDOWS: Final = (0, 300, 1200)
"""Grid: `scaleDown.stabilizationWindowSeconds`."""

STEPS: Final = (1.0, 0.25, 0.1)
"""Grid: share of the replicas that `scaleDown.policies` allow to go within a minute, but one at
least."""

FEWEST: Final = (1, 8, 16)
"""Grid: `minReplicas`."""

_PERIOD: Final = 60.0


@dataclass
class Own:
    """`spec.autoscaling`: the code that ships, fed with reports."""

    policy: Policy = field(default_factory=lambda: Policy(min_readers=1, max_readers=MAX_READERS))
    memory: AutoscalerMemory = field(default_factory=AutoscalerMemory)

    def readers(self, world: World) -> int:
        """Decide after each report."""
        if world.now % REPORT:
            return world.wanted
        self.memory = observe(self.policy, self.memory, sample_of(world), now=world.now)
        self.memory = decide(self.policy, self.memory, wanted=world.wanted, now=world.now)
        return self.memory.verdict.readers if self.memory.verdict is not None else world.wanted


def sample_of(world: World) -> Sample:
    """Return what a driver would report."""
    ids = [("c", "t", split) for split in range(len(world.read))]
    return Sample(
        at=world.now,
        readers=world.adopted,
        unread=round(world.unread),
        positions={s: int(world.read[i]) for i, s in enumerate(ids)},
        owners={s: world.owner(i) for i, s in enumerate(ids)},
    )


@dataclass
class PodAutoscaler:
    """HPA v2 with one external metric of type AverageValue and the default policies.

    Attributes:
        target: records of lag per reader.
        window: seconds of `scaleDown.stabilizationWindowSeconds`.
        step: share of the replicas that may go within a minute.
        fewest: `minReplicas`.
    """

    target: float
    window: float
    step: float
    fewest: int
    _lag: float = 0.0
    _seen: list[tuple[float, int]] = field(default_factory=list)
    _gone: list[tuple[float, int]] = field(default_factory=list)

    def readers(self, world: World) -> int:
        """Look every 15 s, at a metric that is 15 s old."""
        if world.now % SYNC >= TICK:
            return world.wanted
        lag, self._lag = self._lag, world.unread
        current = world.adopted
        usage = lag / (self.target * current)
        wanted = current if abs(usage - 1) <= TOLERANCE else math.ceil(lag / self.target)
        wanted = max(self.fewest, min(MAX_READERS, wanted))
        self._seen = [(at, n) for at, n in self._seen if at > world.now - self.window] + [
            (world.now, wanted)
        ]
        if wanted >= current:
            return min(wanted, max(2 * world.wanted, world.wanted + 4))
        return self._fewer(world, min(max(n for _, n in self._seen), current))

    def _fewer(self, world: World, wanted: int) -> int:
        """Apply the policies for scaling down."""
        self._gone = [(at, n) for at, n in self._gone if at > world.now - _PERIOD]
        begin = world.wanted + sum(n for _, n in self._gone)
        allowed = max(wanted, min(begin - 1, int(begin * (1 - self.step))))
        readers = min(world.wanted, allowed)
        if readers < world.wanted:
            self._gone.append((world.now, world.wanted - readers))
        return readers


def grid() -> Iterator[PodAutoscaler]:
    """Yield the horizontal pod autoscaler with all settings."""
    for seconds, window, step, fewest in product(TARGETS, WINDOWS, STEPS, FEWEST):
        yield PodAutoscaler(target=seconds * CAPACITY, window=window, step=step, fewest=fewest)
