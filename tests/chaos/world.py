"""What a schedule is: a world to begin with, and faults in an order.

Both follow from a seed alone.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

CLUSTERS: Final = ("main", "east", "west")
"""Names; `main` has three brokers, the others one each."""

_RARE: Final = 0.2

STRATEGIES: Final = ("RoundRobin", "Hash", "LoadAware")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A source and what it reads.

    Attributes:
        seed: of the schedule.
        topics: cluster → topic → number of partitions at the start.
        is_embedded: whether the driver enumerates by itself instead of local mode.
        is_bounded: whether the source ends at the offsets of its start.
        is_latest: whether it starts there.
        limits: of a micro-batch, as in the spec.
        max_records_per_reader: option of the query; None: readers share nothing.
        reader: `native` or `python`.
        on_data_loss: `Fail` or `Continue`.
        strategy: at the start.
        parallelism: at the start.
        workers: processes that run tasks.
        drop_share: share of tasks whose generator is dropped at their first attempt.
        prefill: records per cluster before the start.
        rate: records per second and cluster during the faults.
    """

    seed: int
    topics: Mapping[str, Mapping[str, int]]
    is_embedded: bool = False
    is_bounded: bool = False
    is_latest: bool = False
    limits: Mapping[str, int] = field(default_factory=dict)
    max_records_per_reader: int | None = None
    reader: str = "python"
    on_data_loss: str = "Fail"
    strategy: str = "RoundRobin"
    parallelism: int = 2
    workers: int = 2
    drop_share: float = 0.05
    prefill: int = 500
    rate: int = 100

    @property
    def clusters(self) -> tuple[str, ...]:
        """Names of the clusters that it needs."""
        return tuple(self.topics)

    def name_of(self, cluster: str) -> str:
        """Return the name of a cluster in the splits and rows of the source."""
        return "kafka" if self.is_embedded else cluster

    @property
    def pattern(self) -> str:
        """Regular expression of the topics."""
        return f"chaos{self.seed}-.*"

    def __str__(self) -> str:
        """The properties that matter, in a line."""
        words = [
            f"{len(self.topics)} cluster{'s' if len(self.topics) > 1 else ''}",
            "embedded" if self.is_embedded else "local",
            "bounded" if self.is_bounded else "unbounded",
            "latest" if self.is_latest else "earliest",
            f"limits {dict(self.limits)}" if self.limits else "no limits",
            self.reader,
            self.on_data_loss,
            self.strategy,
            f"{self.parallelism} readers",
        ]
        return ", ".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One disturbance.

    Attributes:
        kind: see `chaos.light.faults`.
        number: decides between what there is to choose from when it happens.
        after: seconds since the fault before it.
        lasts: seconds until it is undone, where it can be.
    """

    kind: str
    number: int
    after: float
    lasts: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A world and its faults."""

    world: World
    faults: tuple[Fault, ...]


def draw(
    seed: int, *, natives: bool, kinds: tuple[str, ...], count: int = 18, rare: str | None = None
) -> Schedule:
    """Draw a schedule.

    Args:
        seed: decides everything.
        natives: whether the native reader is installed.
        kinds: of faults, repeated by weight.
        count: how many faults.
        rare: kind of fault that one of five schedules has once.
    """
    dice = random.Random(f"world-{seed}")
    world = _world(seed, dice, natives=natives)
    drawn = [dice.choice(kinds) for _ in range(count)]
    if rare is not None and dice.random() < _RARE:
        drawn[dice.randrange(count)] = rare
    return Schedule(world=world, faults=tuple(_fault(kind, dice) for kind in drawn))


def _fault(kind: str, dice: random.Random) -> Fault:
    return Fault(
        kind=kind,
        number=dice.randrange(2**30),
        after=round(dice.uniform(0.1, 1.5), 2),
        lasts=round(dice.uniform(0.3, 5), 2),
    )


def _world(seed: int, dice: random.Random, *, natives: bool) -> World:
    names = CLUSTERS if dice.random() < 0.3 else CLUSTERS[:1]
    is_embedded = len(names) == 1 and dice.random() < 0.2
    is_bounded = not is_embedded and dice.random() < 0.3
    reader = dice.choice(("native", "python")) if natives else "python"
    return World(
        seed=seed,
        topics={name: _topics(seed, dice) for name in names},
        is_embedded=is_embedded,
        is_bounded=is_bounded,
        is_latest=not is_bounded and dice.random() < 0.3,
        limits=_limits(dice),
        max_records_per_reader=dice.choice((None, None, 20, 200)),
        reader=reader,
        on_data_loss=dice.choice(("Fail", "Continue")),
        strategy=dice.choice(STRATEGIES),
        parallelism=dice.randint(1, 5),
        workers=2,
        drop_share=dice.choice((0.0, 0.05, 0.2)),
        prefill=6000 if is_bounded else 500,
    )


def _topics(seed: int, dice: random.Random) -> dict[str, int]:
    return {f"chaos{seed}-{letter}": dice.randint(1, 4) for letter in "abc"[: dice.randint(1, 3)]}


def _limits(dice: random.Random) -> dict[str, int]:
    return dice.choice(
        (
            {},
            {},
            {"maxOffsetsPerTrigger": dice.choice((50, 100, 1000))},
            {"maxOffsetsPerSplit": dice.choice((20, 100))},
            {"maxOffsetsPerTrigger": 300, "maxOffsetsPerSplit": 50},
        )
    )
