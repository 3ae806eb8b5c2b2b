"""``onDataLoss: Continue``: ranges without what does not exist any more, and how much that was.

What a micro-batch reads is in the offset log and cannot change, so a range whose beginning was deleted in between
would fail at every replay. Hence tasks look at what there is before they read; the planning process counts.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import structlog

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaCluster, OnDataLoss, SkipCounter
from balanced_source.errors import DiscoveryError
from balanced_source.host import ReaderPlan, SplitRange
from balanced_source_adapters.kafka_admin import KafkaAdmin
from balanced_source_adapters.mounted_secrets import MountedSecrets
from balanced_source_spark.kafka.clusters import cluster_of

log = structlog.get_logger(__name__)

Begins = Callable[[KafkaCluster, Collection[SplitId]], Mapping[SplitId, int]]
"""First offset of each partition that exists. Raises DiscoveryError."""


def may_skip(settings: Mapping[str, Any]) -> bool:
    """Whether the user accepts that records are gone."""
    return bool(settings.get("kafka", {}).get("onDataLoss") == OnDataLoss.CONTINUE.value)


def existing(ranges: Sequence[SplitRange], begins: Mapping[SplitId, int]) -> list[SplitRange]:
    """The ranges without what lies before the first offset, or is in partitions that do not exist any more."""
    kept = [replace(r, start=max(int(r.start or 0), begins[r.split_id])) for r in ranges if r.split_id in begins]
    return [r for r in kept if int(r.start or 0) < int(r.end or 0)]


@cache
def task_admin(secrets_dir: Path | None, client_id: str) -> KafkaAdmin:
    """For the tasks of a worker process; workers are reused."""
    return KafkaAdmin(MountedSecrets(secrets_dir), client_id=client_id)


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
