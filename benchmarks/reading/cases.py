"""What `make bench-read` measures."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.reading.contestants import (
    OURS,
    OURS_CUT,
    OURS_VALUE,
    PYTHON,
    SPARK,
    SPARK_10_MS,
    SPARK_TUNED,
    SPARK_TUNED_VALUE,
    Contestant,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """A topic that is read from its first record to its last."""

    records: int
    size: int
    partitions: int = 16
    readers: int = 2
    zipf: float = 0.0
    contestants: tuple[Contestant, ...] = (OURS, PYTHON, SPARK, SPARK_10_MS, SPARK_TUNED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drip:
    """A steady flow of new records, read as they arrive."""

    partitions: int
    seconds: float
    rate: int = 2000
    readers: int = 2
    contestants: tuple[Contestant, ...] = (OURS, PYTHON, SPARK, SPARK_10_MS, SPARK_TUNED)


CASES: Final[Mapping[str, Backlog | Drip]] = {
    "backlog-100B": Backlog(records=4_000_000, size=100),
    "backlog-100B-value": Backlog(
        records=4_000_000, size=100, contestants=(OURS_VALUE, SPARK_TUNED_VALUE)
    ),
    "backlog-1KB": Backlog(records=800_000, size=1024),
    "backlog-10KB": Backlog(records=80_000, size=10_240),
    "backlog-100B-1-reader": Backlog(
        records=2_000_000, size=100, readers=1, contestants=(OURS, SPARK_TUNED)
    ),
    "backlog-100B-4-readers": Backlog(
        records=2_000_000, size=100, readers=4, contestants=(OURS, SPARK_TUNED)
    ),
    "backlog-100B-zipf": Backlog(
        records=4_000_000,
        size=100,
        zipf=1.2,
        contestants=(OURS, OURS_CUT, SPARK_10_MS, SPARK_TUNED),
    ),
    "drip-16": Drip(partitions=16, seconds=30),
    "drip-1000": Drip(partitions=1000, seconds=75),
}

QUICK: Final = ("backlog-100B", "drip-16")

CORE: Final = (
    "backlog-100B",
    "backlog-100B-value",
    "backlog-1KB",
    "backlog-10KB",
    "backlog-100B-zipf",
    "drip-16",
)
"""What `make bench-read` measures unless cases are named: at most an hour."""


def with_only(case: Backlog | Drip, names: Collection[str]) -> Backlog | Drip:
    """Return a case for the contestants of these names alone; for all of them if there is no name.

    Raises:
        ValueError: a name is not that of a contestant of this case.
    """
    known = [contestant.name for contestant in case.contestants]
    if wrong := set(names) - set(known):
        raise ValueError(f"unknown here: {sorted(wrong)}; there are {known}")
    chosen = tuple(contestant for contestant in case.contestants if contestant.name in names)
    return replace(case, contestants=chosen or case.contestants)
