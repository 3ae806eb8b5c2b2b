"""A query of which the autoscaler learns at the ends of micro-batches, and nothing in between."""

import math
import random
from dataclasses import dataclass, field
from typing import Any

from balanced_source_operator.controller.autoscaling import (
    AutoscalerMemory,
    BatchTimes,
    Policy,
    Sample,
    Verdict,
    decide,
    observe,
)

SPLITS = [("c", "t", number) for number in range(12)]


@dataclass
class Query:
    """A query without limits: a micro-batch reads everything that there is when it begins.

    Attributes:
        load: records per second that arrive.
        capacity: records per second of one reader.
        policy: with the trigger interval of the query.
        readers: number of readers that is wanted.
        adopted: number of readers in the running micro-batch.
        cost: seconds of a micro-batch that do not depend on its records.
        noise: by which share that differs from one micro-batch to the next.
        tick: seconds that pass at a time.
        spacing: seconds between two reports, at least.
        limit: records of a micro-batch, at most.
        is_timed: whether the driver tells when the positions of a report became so.
        incarnation: of the driver attempt.
    """

    load: float
    capacity: float
    policy: Policy
    readers: int
    adopted: int = 0
    cost: float = 0.0
    noise: float = 0.0
    tick: float = 1.0
    spacing: float = 0.0
    limit: float = math.inf
    is_timed: bool = False
    incarnation: int = 1
    now: float = 0.0
    arrived: float = 0.0
    read: float = 0.0
    upto: float = 0.0
    end: float = 0.0
    due: float = 0.0
    begun: float = 0.0
    ended: float | None = None
    pace: BatchTimes = field(default_factory=lambda: BatchTimes(0, 0.0))
    reported: float = -10.0
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    memory: AutoscalerMemory = field(default_factory=AutoscalerMemory)
    verdicts: list[Verdict] = field(default_factory=list)

    def run(self, seconds: int) -> "Query":
        """Let time pass.

        The driver reports every 10 s, and when a micro-batch begins or ends.
        """
        until = self.now + seconds
        self.adopted = self.adopted or self.readers
        while self.now < until:
            before = self.adopted
            if is_end := self.now >= self.end and self.read < self.upto:
                self.read, self.ended = self.upto, self.now
            if is_begin := self.now >= max(self.end, self.due) and self.arrived > self.read:
                self._begin()
            # A new assignment is acknowledged at once.
            is_urgent = is_begin and self.adopted != before
            if is_urgent or self.now - self.reported >= (
                self.spacing if is_end or is_begin else 10
            ):
                self._report()
            self.now = round(self.now + self.tick, 6)
            self.arrived += self.load * self.tick
        return self

    def restart(self, seconds: int) -> "Query":
        """Let the driver be away for so long; another one reads from the last commit on."""
        self.now += seconds
        self.arrived += self.load * seconds
        self.incarnation += 1
        self.adopted, self.upto, self.ended = self.readers, self.read, None
        self.begun = self.end = self.due = self.now
        self.pace = BatchTimes(0, 0.0)
        return self

    def _begin(self) -> None:
        if self.upto:
            took = max(self.end, self.due) - self.begun
            is_late = 0 < 1.1 * self.policy.trigger < took
            self.pace = BatchTimes(
                self.pace.batches + 1,
                self.pace.seconds + took,
                (self.pace.late or 0.0) + is_late * took,
            )
        self.adopted, self.begun = self.readers, self.now
        self.upto = min(self.arrived, self.read + self.limit)
        work = (self.upto - self.read) / (self.adopted * self.capacity)
        cost = self.cost * self.chance.uniform(1 - self.noise, 1 + self.noise)
        self.end = self.now + cost + work
        self.due = self.now + self.policy.trigger

    def _report(self) -> None:
        self.reported = self.now
        self.memory = observe(self.policy, self.memory, self.sample(), now=self.now)
        self.memory = decide(self.policy, self.memory, wanted=self.readers, now=self.now)
        assert self.memory.verdict is not None
        self.verdicts.append(self.memory.verdict)
        self.readers = self.memory.verdict.readers

    def sample(self) -> Sample:
        """Return what the driver would report now."""
        return Sample(
            at=self.now,
            incarnation=self.incarnation,
            readers=self.adopted,
            unread=round(self.arrived - self.read),
            positions=dict.fromkeys(SPLITS, int(self.read / len(SPLITS))),
            owners={split: number % self.adopted for number, split in enumerate(SPLITS)},
            pace=self.pace,
            positions_at=self.ended if self.is_timed else None,
        )


def policy(trigger: float = 0.0, *, most: int = 12) -> Policy:
    """Readers share splits, so that all of them have as much to do."""
    return Policy(
        min_readers=1,
        max_readers=most,
        trigger=trigger,
        shares_splits=True,
    )


@dataclass
class HostQuery(Query):
    """One of several queries that read a source together.

    Attributes:
        group: all of them; the first one has the memory.
        name: of the host.
    """

    group: "list[HostQuery]" = field(default_factory=list)
    name: str = ""

    def _report(self) -> None:
        self.reported = self.now
        first = self.group[0]
        first.memory = observe(
            self.policy, first.memory, self.sample(), now=self.now, host=self.name
        )
        first.memory = decide(self.policy, first.memory, wanted=self.readers, now=self.now)
        assert first.memory.verdict is not None
        first.verdicts.append(first.memory.verdict)
        for each in self.group:
            each.readers = first.memory.verdict.readers


def hosts(number: int, *, load: float, capacity: float, **values: Any) -> list[HostQuery]:
    """Return so many queries that share the load and the readers; the first one has the memory."""
    group: list[HostQuery] = []
    for host in range(number):
        one = HostQuery(
            load=load / number,
            capacity=capacity / number,
            group=group,
            name=str(host),
            chance=random.Random(host),
            now=0.3 * host,
            is_timed=True,
            **values,
        )
        group.append(one)
    return group


def run_all(group: list[HostQuery], seconds: int) -> HostQuery:
    """Let time pass for all hosts; return the one with the memory."""
    for _ in range(seconds):
        for one in group:
            one.run(1)
    return group[0]
