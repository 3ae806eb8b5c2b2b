"""``onDataLoss: Continue`` in the planning process: how much is skipped. Tasks skip it, see `skipping`."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import structlog

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaCluster, SkipCounter
from balanced_source.errors import DiscoveryError
from balanced_source.host import ReaderPlan
from balanced_source_spark.kafka.clusters import cluster_of
from balanced_source_spark.kafka.skipping import may_skip

log = structlog.get_logger(__name__)

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

    def note(self, plans: Iterable[ReaderPlan], settings: Mapping[str, Any]) -> None:
        """A micro-batch is planned."""
        if not may_skip(settings):
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
