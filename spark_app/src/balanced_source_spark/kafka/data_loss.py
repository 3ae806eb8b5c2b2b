"""``onDataLoss: Continue`` in the planning process: how much is skipped.

Tasks skip it, see `skipping`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from balanced_source.api import Problem, ProblemKey, SplitId
from balanced_source.connectors.kafka import (
    LISTED,
    Gap,
    KafkaCluster,
    KafkaReaderSettings,
    KafkaSplitId,
    OnDataLoss,
    SkipCounter,
    listed,
    log_truncated,
    real_gaps,
    topic_deleted,
    topic_recreated,
    topic_vanished,
)
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import DiscoveryError
from balanced_source.host import ReaderPlan, SplitRange
from balanced_source.host.ends import Look, Mark, mark_of
from balanced_source_adapters.lazy_log import get_logger

log = get_logger(__name__)


class Problems(Protocol):
    """Where problems go; see `HostRuntime`."""

    def set_problem(self, key: ProblemKey, problem: Problem | None) -> None: ...  # pragma: no cover

    def check_problems(self) -> None: ...  # pragma: no cover


Begins = Callable[[KafkaCluster, Collection[SplitId]], Mapping[SplitId, int]]
"""First offset of each partition that exists. Raises DiscoveryError."""


_Ranges = dict[SplitId, tuple[int, int]]

_Incident = tuple[str | None, int | None, int | None]
"""Identity of a split that has lost records. Of one whose log was cut also leadership and position
of what was read: that may happen to the same split more than once."""


class LossCounter:
    """Counts what is skipped, in the planning process. Never in the way of planning.

    Ranges of partitions that do not answer are kept, and counted as soon as the partitions answer.
    The count is then an upper bound: records that were deleted after they had been read count as
    skipped. What is deleted between planning and reading, tasks tell.
    """

    def __init__(self, begins: Begins) -> None:
        self._begins = begins
        self._counter = SkipCounter()
        self._uncounted: _Ranges = {}
        self._uncountable = 0

    @property
    def total(self) -> int:
        """Offsets skipped since this process started, as far as that is known."""
        return self._counter.total

    @property
    def uncounted(self) -> int:
        """Offsets that were planned and of which no one knows whether they were skipped."""
        return self._uncountable + sum(end - start for start, end in self._uncounted.values())

    def keep(self, split_ids: Collection[SplitId]) -> None:
        """Forget what only matters for splits that are held, which these are."""
        self._counter.keep(split_ids)
        if not self._uncounted:  # as a rule
            return
        held = {split_id[0] for split_id in split_ids}
        # A cluster that was taken out is not asked again, so this stays unknown.
        for split_id in [s for s in self._uncounted if s[0] not in held]:
            start, end = self._uncounted.pop(split_id)
            self._uncountable += end - start

    def note_gone(self, cluster: str, topic: str, gaps: Iterable[Gap], *, is_other: bool) -> None:
        """Count offsets of a topic that is gone.

        Args:
            cluster: its name.
            topic: its name.
            gaps: what is gone. Tasks may tell of the same, if it was planned.
            is_other: whether another topic has the name now, whose offsets begin again.
        """
        for gap in gaps:
            split_id, end = (
                (cluster, topic, gap.partition),
                gap.start if gap.end is None else gap.end,
            )
            self._counter.note({split_id: (gap.start, end)}, {split_id: end})
            if is_other:
                self._counter.forget(split_id)

    def note_skipped(self, ranges: Iterable[SplitRange]) -> None:
        """Tasks have passed over what was deleted after it was planned."""
        by_cluster: dict[str, list[Gap]] = {}
        for piece in sorted(ranges, key=lambda piece: int(piece.start or 0)):
            span, cluster = (int(piece.start or 0), int(piece.end or 0)), str(piece.split_id[0])
            found = self._counter.note({piece.split_id: span}, {piece.split_id: span[1]})
            by_cluster.setdefault(cluster, []).extend(found)
        for cluster, skipped in by_cluster.items():
            _tell_skipped(cluster, skipped)

    def note(self, plans: Iterable[ReaderPlan], settings: KafkaReaderSettings) -> None:
        """A micro-batch is planned."""
        if settings.on_data_loss is OnDataLoss.FAIL:
            return
        ranges: _Ranges = {}
        for piece in (piece for reader in plans for piece in reader.ranges):
            _add(ranges, piece.split_id, int(piece.start or 0), int(piece.end or 0))
        for name in sorted({KafkaSplitId.of(split_id).cluster for split_id in ranges}):
            in_cluster = {s: r for s, r in ranges.items() if KafkaSplitId.of(s).cluster == name}
            self._count(settings.cluster(name), in_cluster)

    def _count(self, cluster: KafkaCluster, planned: _Ranges) -> None:
        """Count what is skipped of one cluster, with what could not be counted before."""
        for split_id, (start, end) in self._uncounted.items():
            if KafkaSplitId.of(split_id).cluster == cluster.name:
                _add(planned, split_id, start, end)
        try:
            begins, silent = self._begins(cluster, list(planned)), frozenset[SplitId]()
        except DiscoveryError as error:
            log.warning("cannot count skipped offsets now", cluster=cluster.name, error=str(error))
            begins = error.answers
            silent = frozenset(planned.keys() - begins.keys())
        self._uncounted = {
            **{s: r for s, r in self._uncounted.items() if s not in planned},
            **{s: planned[s] for s in silent},
        }
        _tell_skipped(cluster.name, self._counter.note(planned, begins))


def _tell_skipped(cluster: str, gaps: list[Gap]) -> None:
    if gaps:
        log.warning(
            "records were deleted before they were read, and are skipped",
            cluster=cluster,
            offsets=sum(gap.size for gap in gaps),
            gaps=listed(gaps),
        )


_MAKERS: Final = {
    "recreated": topic_recreated,
    "truncated": log_truncated,
    "deleted": topic_deleted,
    "vanished": topic_vanished,
}


MOST_TOPICS: Final = 100
"""Topics whose losses are reported at the same time."""

_Key = tuple[str, str, str]
"""Kind of the loss, cluster and topic."""


@dataclass(slots=True)
class _Reported:
    """What was reported of one kind of loss of a topic.

    Attributes:
        policy: under which.
        incidents: the newest one of each split.
        gaps: what is gone, the newest first, as many as a message names.
        further: number of the others.
    """

    policy: OnDataLoss
    incidents: dict[SplitId, _Incident] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    further: int = 0

    def add(self, kind: str, base: StreamOffset, split_ids: list[SplitId]) -> list[SplitId]:
        """Return the splits of which this loss was not reported, and take note of them.

        A topic may be recreated, and its log cut, more than once while a query runs; and its
        partitions may be found at different moments.
        """
        found = {s: _incident(kind, mark_of(base, s)) for s in split_ids}
        fresh = [s for s in split_ids if self.incidents.get(s) != found[s]]
        self.incidents.update(found)
        return fresh

    def note(self, gaps: list[Gap]) -> None:
        """Take note of what is gone, too: a topic may lose records again and again."""
        real = real_gaps([*gaps, *self.gaps])
        self.gaps, others = real[:LISTED], real[LISTED:]
        self.further += len(others)


class LossProblems:
    """Reports records that are gone: of recreated topics, and of logs that were truncated.

    Used by the planning thread.

    Args:
        problems: gets one problem per kind and topic, and ends the query for it where no one else
            can act.
        losses: counts what is skipped.
    """

    def __init__(self, problems: Problems, losses: LossCounter) -> None:
        self._problems = problems
        self._losses = losses
        self._before: Mapping[SplitId, int] = {}
        self._reported: dict[_Key, _Reported] = {}

    def note(self, base: StreamOffset, seen: Look, settings: KafkaReaderSettings) -> None:
        """Take note of what the ends say of the splits of `base`.

        Raises:
            FatalProblemError: records are gone, the policy is Fail, and there is no operator to
                report it.
        """
        ending = {s for s in seen.deleted if base.stop_of(s) is not None}
        gone = {
            **_by_topic("recreated", seen.recreated),
            **_by_topic("truncated", seen.cuts),
            **_by_topic("deleted", ending),
            **_by_topic("vanished", seen.deleted.keys() - ending),
        }
        policy = settings.on_data_loss
        for key in [
            k
            for k, reported in self._reported.items()
            if reported.policy is OnDataLoss.FAIL and k not in gone
        ]:
            # with consent, it stays as the record of what is missing
            self._problems.set_problem(key, None)
            del self._reported[key]
        for key, split_ids in gone.items():
            known = self._reported.get(key)
            if known is None or known.policy is not policy:
                known = self._reported[key] = _Reported(policy)
            if fresh := known.add(key[0], base, split_ids):
                gaps = self._gaps(base, seen, fresh)
                self._report(key, known, gaps, title=settings.title(key[1]))
        # Ends the query where no one else can act.
        if gone:
            self._problems.check_problems()
            self._forget_oldest(gone)
        # The last ends of a topic that is gone say how much of it was not read. It has none now.
        former = {s: end for s, end in self._before.items() if s in base.positions} if gone else {}
        self._before = {**former, **seen.ends} if former else seen.ends

    def _forget_oldest(self, gone: Collection[_Key]) -> None:
        """Clear the oldest problems when there are many: topics may be created and lost each day.

        What was lost stays in the count, and in the log.
        """
        more = len(self._reported) - MOST_TOPICS
        oldest = [key for key in self._reported if key not in gone]
        for key in oldest[: max(0, more)]:
            self._problems.set_problem(key, None)
            del self._reported[key]

    def _gaps(self, base: StreamOffset, seen: Look, split_ids: list[SplitId]) -> list[Gap]:
        held = {s: base.positions[s] or 0 for s in split_ids}
        return [
            Gap(partition=KafkaSplitId.of(s).partition, start=seen.cuts[s], end=held[s])
            if s in seen.cuts
            else Gap(
                partition=KafkaSplitId.of(s).partition,
                start=held[s],
                end=seen.deleted.get(s, self._before.get(s)),
            )
            for s in split_ids
        ]

    def _report(self, key: _Key, known: _Reported, gaps: list[Gap], *, title: str) -> None:
        """Report a topic's loss, with what it lost before: the newest first."""
        kind, cluster, topic = key
        known.note(gaps)
        problem = _MAKERS[kind](
            cluster, topic, known.gaps, known.policy, title=title, further=known.further
        )
        self._problems.set_problem(key, problem)
        # Where a log was cut the records that are there now are read: nothing is skipped.
        if known.policy is OnDataLoss.CONTINUE and kind != "truncated":
            self._losses.note_gone(cluster, topic, gaps, is_other=kind == "recreated")


def _add(ranges: _Ranges, split_id: SplitId, start: int, end: int) -> None:
    """Widen the range of a split so that it contains another one."""
    first, last = ranges.get(split_id, (start, end))
    ranges[split_id] = min(first, start), max(last, end)


def _incident(kind: str, mark: Mark) -> _Incident:
    if kind == "truncated":
        return mark.identity, mark.term, mark.position
    # A topic is deleted once. What is left of it may be passed over in several micro-batches.
    return mark.identity, None, None


def _by_topic(kind: str, split_ids: Iterable[SplitId]) -> dict[_Key, list[SplitId]]:
    found: dict[_Key, list[SplitId]] = {}
    for split_id in sorted(split_ids):
        cluster, topic, _ = KafkaSplitId.of(split_id)
        found.setdefault((kind, cluster, topic), []).append(split_id)
    return found
