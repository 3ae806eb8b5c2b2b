"""``onDataLoss: Continue`` in the planning process: how much is skipped. Tasks skip it, see `skipping`."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

import structlog

from balanced_source.api import Problem, ProblemKey, SplitId
from balanced_source.connectors.kafka import Gap, KafkaCluster, OnDataLoss, SkipCounter, topic_recreated
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import DiscoveryError
from balanced_source.host import ReaderPlan
from balanced_source.host.ends import Look
from balanced_source_spark.kafka.clusters import cluster_of
from balanced_source_spark.kafka.skipping import policy_of

log = structlog.get_logger(__name__)


class Problems(Protocol):
    """Where problems go; see `HostRuntime`."""

    def set_problem(self, key: ProblemKey, problem: Problem | None) -> None: ...  # pragma: no cover

    def check_problems(self) -> None: ...  # pragma: no cover


Begins = Callable[[KafkaCluster, Collection[SplitId]], Mapping[SplitId, int]]
"""First offset of each partition that exists. Raises DiscoveryError."""


class LossCounter:
    """Counts what is skipped, in the planning process. Never in the way of planning: what cannot be asked is 0."""

    def __init__(self, begins: Begins) -> None:
        self._begins = begins
        self._counter = SkipCounter()

    @property
    def total(self) -> int:
        """Offsets skipped since this process started."""
        return self._counter.total

    def add(self, offsets: int) -> None:
        """Count offsets that no micro-batch will ever have."""
        self._counter.total += offsets

    def note(self, plans: Iterable[ReaderPlan], settings: Mapping[str, Any]) -> None:
        """A micro-batch is planned."""
        if policy_of(settings) is OnDataLoss.FAIL:
            return
        ranges = [piece for reader in plans for piece in reader.ranges]
        for name in sorted({str(piece.split_id[0]) for piece in ranges}):
            mine = {r.split_id: (int(r.start or 0), int(r.end or 0)) for r in ranges if r.split_id[0] == name}
            try:
                skipped = self._counter.note(mine, self._begins(cluster_of(settings, name), list(mine)))
            except DiscoveryError as error:
                log.warning("cannot count skipped offsets now", cluster=name, error=str(error))
                continue
            if skipped:
                log.warning("records are gone before they were read; skipped", cluster=name, offsets=skipped)


class LossProblems:
    """Reports records that are gone because a topic was deleted and created again. Used by the planning thread.

    Args:
        problems: gets one problem per topic, and ends the query for it where nobody else can act.
        losses: counts what is skipped.
    """

    def __init__(self, problems: Problems, losses: LossCounter) -> None:
        self._problems = problems
        self._losses = losses
        self._before: Mapping[SplitId, int] = {}
        self._reported: frozenset[tuple[str, str]] = frozenset()

    def note(self, base: StreamOffset, seen: Look, settings: Mapping[str, Any]) -> None:
        """Take note of what the ends say of the splits of `base`.

        Raises:
            FatalProblemError: records are gone, the policy is Fail, and there is no operator to report it.
        """
        topics = frozenset((str(s[0]), str(s[1])) for s in seen.recreated)
        for topic in self._reported - topics:
            self._problems.set_problem(_key(topic), None)
        for topic in topics - self._reported:
            self._report(topic, base, seen, settings)
        self._reported = topics
        if topics:
            self._problems.check_problems()
        else:
            self._before = seen.ends

    def _report(self, topic: tuple[str, str], base: StreamOffset, seen: Look, settings: Mapping[str, Any]) -> None:
        gone = sorted(s for s in seen.recreated if (s[0], s[1]) == topic)
        gaps = [Gap(partition=int(s[2]), start=base.positions[s] or 0, end=self._before.get(s)) for s in gone]
        policy = policy_of(settings)
        self._problems.set_problem(_key(topic), topic_recreated(*topic, gaps, policy))
        if policy is OnDataLoss.CONTINUE:
            self._losses.add(sum(gap.size for gap in gaps))


def _key(topic: tuple[str, str]) -> ProblemKey:
    return ("recreated", *topic)
