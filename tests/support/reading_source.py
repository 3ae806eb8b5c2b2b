"""A source for the autoscaler: readers that read what they can, without a driver."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest

from balanced_source.host.reader_figures import BusyTime
from balanced_source.reasons import Reason
from balanced_source_operator.controller.autoscaling import (
    AutoscalerMemory,
    Policy,
    Sample,
    Verdict,
    decide,
    observe,
)

POLICY: Final = Policy(min_readers=1, max_readers=12)

CAPACITY: Final = 100
"""Records per second of one reader."""


@dataclass
class ReadingSource:
    """Readers that read what they can, 10 seconds at a time.

    Loads are records per second of each split.

    Attributes:
        limit: records per second that the sink takes.
        in_source: share of their time that readers spend in the source; None if they do not tell.
    """

    policy: Policy = POLICY
    readers: int = 2
    splits: int = 12
    limit: float = float("inf")
    in_source: float | None = None
    now: float = 1000.0
    memory: AutoscalerMemory = field(default_factory=AutoscalerMemory)
    verdicts: list[Verdict] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.backlog = dict.fromkeys(range(self.splits), 0.0)
        self.read = dict.fromkeys(range(self.splits), 0.0)

    def run(self, seconds: float, load: float, **hot: float) -> "ReadingSource":
        """Let time pass under a load; `hot` is what the first split gets on top."""
        until = self.now + seconds
        while self.now < until:
            self._tick(load, **hot)
        return self

    def _tick(self, load: float, hot: float = 0.0) -> None:
        for split in self.backlog:
            self.backlog[split] += 10 * (load / self.splits + (hot if split == 0 else 0))
        for reader in range(self.readers):
            mine = range(reader, self.splits, self.readers)
            rate = min(CAPACITY, self.limit / self.readers)
            share = min(1.0, 10 * rate / (sum(self.backlog[s] for s in mine) or 1))
            for split in mine:
                self.read[split] += share * self.backlog[split]
                self.backlog[split] *= 1 - share
        self.now += 10
        self.decide(self.sample())

    def decide(self, sample: Sample) -> None:
        """Let the autoscaler see a sample, and do what it says."""
        self.memory = observe(self.policy, self.memory, sample, now=self.now)
        self.memory = decide(self.policy, self.memory, wanted=self.readers, now=self.now)
        assert self.memory.verdict is not None
        self.verdicts.append(self.memory.verdict)
        self.readers = self.memory.verdict.readers

    def sample(self, **changes: Any) -> Sample:
        """Return what the driver would report now."""
        values: dict[str, Any] = {
            "at": self.now,
            "readers": self.readers,
            "unread": round(sum(self.backlog.values())),
            "positions": {("c", "t", s): int(read) for s, read in self.read.items()},
            "owners": {("c", "t", s): s % self.readers for s in self.read},
            "busy": self._busy_time,
            **changes,
        }
        return Sample(**values)

    @property
    def _busy_time(self) -> BusyTime | None:
        if self.in_source is None:
            return None
        busy = 1000 * self.now
        return BusyTime(round(busy * self.in_source), round(busy * (1 - self.in_source)))

    @property
    def reason(self) -> Reason:
        """Why the newest decision was taken."""
        return self.verdicts[-1].reason

    @property
    def message(self) -> str:
        """The sentence of the newest decision."""
        return self.verdicts[-1].message

    @property
    def reasons(self) -> list[Reason]:
        """Reasons in turn, without repetitions."""
        found = [verdict.reason for verdict in self.verdicts]
        return [reason for i, reason in enumerate(found) if i == 0 or reason != found[i - 1]]


def measured(readers: int = 6, **changes: Any) -> ReadingSource:
    """Return a source whose capacity is known, with a load that its readers carry well."""
    source = ReadingSource(readers=2, **changes)
    source.run(60, 350)
    assert source.memory.capacity is not None
    assert source.memory.capacity.rate == pytest.approx(CAPACITY, rel=0.05)
    source.readers = readers
    return source.run(120, 0.7 * CAPACITY * readers)


def with_most(readers: int) -> Policy:
    """Return the policy with another maximum."""
    return replace(POLICY, max_readers=readers)
