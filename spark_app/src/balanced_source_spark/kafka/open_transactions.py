"""Notices open transactions that hold reading up.

A reader of committed records stops at the first record of an open transaction. If the producer is
gone and the coordinator has forgotten the transaction, as an unclean election may leave it, no one
ends it: a hanging transaction (KIP-664). The broker then says that the partition ends there, so no
lag shows that records wait behind it.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from balanced_source.api import Problem, ProblemKey, SplitId
from balanced_source.connectors.kafka import KafkaCluster, KafkaSplitId
from balanced_source.connectors.kafka.reasons import KafkaReason
from balanced_source.errors import DiscoveryError
from balanced_source.host.ends import Mark, SplitEnd, at_end
from balanced_source_adapters.lazy_log import get_logger

log = get_logger(__name__)

PATIENCE: Final = 60.0
"""Seconds for which a partition must stand still before a transaction is looked for, and for which
one must be open before it is reported: by default producers have a minute for each."""

INTERVAL: Final = 30.0
"""Seconds between two looks at a cluster, at least."""

_SHOWN: Final = 3
"""Partitions that a message names."""


SetProblem = Callable[[ProblemKey, Problem | None], None]
"""See `PlannerContext.set_problem`."""

HighWatermarks = Callable[[KafkaCluster, Collection[SplitId]], Mapping[SplitId, int]]
"""Where each partition ends with the records of open transactions. Raises DiscoveryError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Still:
    """A partition that is read to its end, and whose end does not move.

    Attributes:
        end: of the committed records.
        since: when the end was seen first.
        open_since: when records were seen behind it first; None: none were.
    """

    end: int
    since: float
    open_since: float | None = None


class OpenTransactions:
    """Says which partitions an open transaction holds up.

    The thread that asks a cluster for ends calls it, so each cluster is seen by one thread at a
    time. Another request is made only for partitions that stand still, and seldom.

    Args:
        set_problem: gets one problem per cluster.
        high_watermarks: asks a cluster.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        set_problem: SetProblem,
        high_watermarks: HighWatermarks,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._set_problem = set_problem
        self._high_watermarks = high_watermarks
        self._clock = clock
        self._still: dict[str, dict[SplitId, _Still]] = {}
        self._asked: dict[str, float] = {}
        self._reported: set[str] = set()
        self._has_new = False

    def note(
        self,
        cluster: KafkaCluster,
        ends: Mapping[SplitId, SplitEnd],
        marks: Mapping[SplitId, Mark],
    ) -> None:
        """Take note of where partitions end, and of where they are read to.

        Args:
            cluster: that was asked.
            ends: its answers.
            marks: see `PlannerHooks.ends`.
        """
        if not cluster.is_read_committed:
            self._still.pop(cluster.name, None)
            self._report(cluster.name, {})
            return
        self._has_new |= cluster.name not in self._still
        now, before = self._clock(), self._still.get(cluster.name, {})
        known = {s: _still(before.get(s), ends[s].end, now) for s in at_end(marks, ends)}
        self._still[cluster.name] = known = self._looked(cluster, known, now)
        held = {s: it for s, it in known.items() if _lasts(it, now)}
        self._report(cluster.name, held, cluster.title)

    def keep(self, clusters: Iterable[str]) -> None:
        """Forget all clusters but these, which are read, and their problems.

        Args:
            clusters: names; may be repeated. Looked at only if there is a problem, or after a new
                cluster has come.
        """
        if self._reported or self._has_new:
            self._has_new = False
            for name in (self._still.keys() | self._reported).difference(clusters):
                self._still.pop(name, None)
                self._asked.pop(name, None)
                self._report(name, {})

    def _looked(
        self, cluster: KafkaCluster, known: dict[SplitId, _Still], now: float
    ) -> dict[SplitId, _Still]:
        """Ask what is behind the ends of partitions that have stood still for long."""
        asked = [s for s, it in known.items() if now - it.since >= PATIENCE]
        if not asked or now - self._asked.get(cluster.name, float("-inf")) < INTERVAL:
            return known
        self._asked[cluster.name] = now
        try:
            marks = self._high_watermarks(cluster, asked)
        except DiscoveryError as error:
            # What a cluster does not say is unknown: what was known before stays.
            log.info("cannot look for transactions", cluster=cluster.name, error=str(error))
            marks = error.answers
        return {
            **known,
            **{s: _seen(known[s], marks[s], now) for s in asked if marks.get(s) is not None},
        }

    def _report(self, cluster: str, held: Mapping[SplitId, _Still], title: str = "") -> None:
        if held:
            self._set_problem(("transactions", cluster), _problem(cluster, held, title))
            self._reported.add(cluster)
        elif cluster in self._reported:
            self._set_problem(("transactions", cluster), None)
            self._reported.discard(cluster)


def _still(before: _Still | None, end: int, now: float) -> _Still:
    return before if before is not None and before.end == end else _Still(end=end, since=now)


def _seen(it: _Still, high_watermark: int, now: float) -> _Still:
    """Return what is known of a partition after another look."""
    if high_watermark <= it.end:
        return replace(it, open_since=None)
    # Markers move the end: what lies behind the same end all the time is one transaction's fault.
    began = now if it.open_since is None else it.open_since
    return replace(it, open_since=began)


def _lasts(it: _Still, now: float) -> bool:
    return it.open_since is not None and now - it.open_since >= PATIENCE


def _problem(cluster: str, held: Mapping[SplitId, _Still], title: str) -> Problem:
    """Return the problem of a cluster.

    Its words do not change while the same partitions wait at the same offsets: each change would be
    another event.
    """
    first = [_named(KafkaSplitId.of(s), it.end) for s, it in sorted(held.items())[:_SHOWN]]
    more = f" and {len(held) - _SHOWN} more" if len(held) > _SHOWN else ""
    topic = KafkaSplitId.of(min(held)).topic
    return Problem(
        reason=KafkaReason.OPEN_TRANSACTION,
        scope=cluster,
        message=(
            f"{title}: an open transaction has held up reading for more than"
            f" {PATIENCE:.0f} seconds at {', '.join(first)}{more}. Records behind these offsets are"
            " not counted as lag. If no producer is still at work on a long transaction, it hangs:"
            " find it with kafka-transactions.sh find-hanging --topic"
            f" {topic}, and end it with kafka-transactions.sh abort. Reading then continues by"
            " itself"
        ),
    )


def _named(split: KafkaSplitId, end: int) -> str:
    return f"{split.topic}/{split.partition} offset {end}"
