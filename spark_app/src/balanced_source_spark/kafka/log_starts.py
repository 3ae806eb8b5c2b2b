"""Where logs begin whose next records were deleted before they were read.

With ``onDataLoss: Continue`` tasks pass over these offsets in no time. If they counted, a source
that was suspended for longer than its topics keep records would show a lag that no reader can read,
and limits would let it pass over a few of them with each micro-batch.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaCluster
from balanced_source.errors import DiscoveryError
from balanced_source.host.ends import Mark, SplitEnd
from balanced_source_spark.kafka.data_loss import Begins

FRESH: Final = 10.0
"""Seconds for which an answer is good. Too small a start only makes the lag too large."""


class LogStarts:
    """Remembers the starts of logs, per cluster; each cluster has a thread of its own.

    Args:
        begins: see `Begins`.
        clock: monotonic seconds.
    """

    def __init__(self, begins: Begins, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._begins = begins
        self._clock = clock
        self._asked: dict[str, float] = {}
        self._known: dict[str, Mapping[SplitId, tuple[str | None, int]]] = {}
        self._has_new = False

    def joined(
        self,
        cluster: KafkaCluster,
        ends: Mapping[SplitId, SplitEnd],
        marks: Mapping[SplitId, Mark],
    ) -> Mapping[SplitId, SplitEnd]:
        """Return the ends, with the starts of logs whose next records were deleted.

        Asks the cluster now and then, and only for partitions with something to read.
        """
        now = self._clock()
        if now - self._asked.get(cluster.name, -FRESH) >= FRESH:
            self._ask(cluster, ends, marks, now)
        known = self._known.get(cluster.name, {})
        deleted = {
            s: replace(answer, first=first)
            for s, (identity, first) in known.items()
            # Another topic has the name now: its log has another start.
            if (answer := ends.get(s)) is not None and answer.identity == identity
        }
        return {**ends, **deleted} if deleted else ends

    def keep(self, clusters: Iterable[str]) -> None:
        """Forget all clusters but these, which are read.

        Args:
            clusters: names; may be repeated. Looked at only after a new cluster has come.
        """
        if self._has_new:
            self._has_new = False
            for name in self._asked.keys() - set(clusters):
                self._asked.pop(name, None)
                self._known.pop(name, None)

    def _ask(
        self,
        cluster: KafkaCluster,
        ends: Mapping[SplitId, SplitEnd],
        marks: Mapping[SplitId, Mark],
        now: float,
    ) -> None:
        self._has_new |= cluster.name not in self._asked
        # Also if there is nothing to ask: an idle query looks many times a second.
        self._asked[cluster.name] = now
        behind = [s for s, a in ends.items() if s in marks and marks[s].position < a.end]
        if not behind:
            return
        try:
            begins: Mapping[SplitId, int] = self._begins(cluster, behind)
        except DiscoveryError as error:
            begins = error.answers  # partitions that do not answer have no end either
        self._known[cluster.name] = {
            s: (ends[s].identity, first) for s, first in begins.items() if first > marks[s].position
        }
