"""``commitGroup``: tells a consumer group how far the query is, so that lag tools see it.

Never read back by us.

Runs in the planning process, after Spark has committed: what is told here has been delivered. In a
thread of its own, every few seconds at most; a cluster that does not answer costs nothing but a
line in the log.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaSplitId
from balanced_source.errors import DiscoveryError
from balanced_source_adapters.lazy_log import get_logger

INTERVAL: Final = 5.0
"""Seconds between two commits."""

log = get_logger(__name__)

CommitTo = Callable[[str, Mapping[SplitId, int]], None]
"""Commits offsets of one cluster, by its name. Blocking. Raises DiscoveryError."""


class GroupCommits:
    """The newest positions win; what is already committed is not committed again."""

    def __init__(self, commit_to: CommitTo, *, interval: float = INTERVAL) -> None:
        self._commit_to = commit_to
        self._interval = interval
        self._wanted: Mapping[SplitId, int] = {}
        self._done: dict[SplitId, int] = {}
        self._wake = threading.Condition()
        self._is_closed = False
        threading.Thread(target=self._run, name="bsrc-group-commits", daemon=True).start()

    def note(self, positions: Mapping[SplitId, int]) -> None:
        """Everything before these offsets is delivered, durably."""
        with self._wake:
            self._wanted = dict(positions)
            self._wake.notify_all()

    def close(self) -> None:
        """Commit what is left, then stop."""
        with self._wake:
            self._is_closed = True
            self._wake.notify_all()

    def _run(self) -> None:
        while not self._is_closed:
            with self._wake:
                self._wake.wait_for(lambda: self._is_closed or bool(self._left()))
                left = self._left()
            self._commit(left)
            with self._wake:
                self._wake.wait_for(lambda: self._is_closed, self._interval)
        # Lag tools would show the last seconds of a query that has ended as lag forever.
        self._commit(self._left())

    def _left(self) -> dict[SplitId, int]:
        return {s: offset for s, offset in self._wanted.items() if self._done.get(s) != offset}

    def _commit(self, offsets: Mapping[SplitId, int]) -> None:
        for name in sorted({KafkaSplitId.of(s).cluster for s in offsets}):
            in_cluster = {
                s: offset for s, offset in offsets.items() if KafkaSplitId.of(s).cluster == name
            }
            started = time.monotonic()
            try:
                self._commit_to(name, in_cluster)
            except DiscoveryError as error:
                log.warning("cannot commit to the group now", cluster=name, error=str(error))
            else:
                # Partitions of former topics are forgotten: the query does not hold them any more.
                done = self._done | in_cluster
                self._done = {s: offset for s, offset in done.items() if s in self._wanted}
                log.debug(
                    "committed",
                    cluster=name,
                    splits=len(in_cluster),
                    seconds=time.monotonic() - started,
                )
