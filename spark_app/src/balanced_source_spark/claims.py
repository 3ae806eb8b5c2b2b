"""When a driver may take a source over: only after the one that reads it has ended.

A driver that was killed is known to be gone at once: by its process id on the same machine, or by
its pod. If neither tells, its heartbeats do: a driver that is silent for `SILENCE` is taken for
dead. One that continues reporting is left alone, and the query that wanted its source ends with an
error after `PATIENCE`.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from balanced_source.documents.report import HostReport
from balanced_source.errors import SourceInUseError
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.channels.channel import AssignmentChannel
from balanced_source_spark.instance import Instance

HEARTBEAT_INTERVAL: Final = 10.0
"""Seconds between reports when nothing changed at all."""

SILENCE: Final = 3 * HEARTBEAT_INTERVAL
"""Seconds without a report after which a driver is taken for dead, if nothing else tells."""

PATIENCE: Final = 60.0
"""Seconds that a claim waits for a driver that still reports; one that was told to stop has ended
by then."""

LOOK_EVERY: Final = 1.0
"""Seconds between two looks at the report of the former driver."""

log = get_logger(__name__)


class ClaimWatch:
    """Watches the former driver of a host, on behalf of the one that wants to follow it.

    Args:
        channel: where its reports are.
        host: name within the source.
        instance: who wants to follow.
        clock: monotonic seconds.

    Attributes:
        former: its newest report that was seen; None if there is none.
    """

    def __init__(
        self,
        channel: AssignmentChannel,
        *,
        host: str,
        instance: Instance,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._channel = channel
        self._host = host
        self._instance = instance
        self._clock = clock
        self.former: HostReport | None = None
        self._begun: float | None = None
        self._seen: tuple[str, int, int] | None = None
        self._seen_at = 0.0
        self._is_alive = False

    def may_claim(self) -> bool:
        """Look at the former driver, and return whether it has ended.

        Raises:
            SourceInUseError: it continues reading.
            ChannelError: its report cannot be read now; try again.
        """
        # Read at each look: only whether the report changes tells whether its writer lives.
        self.former = report = self._channel.former(self._host)
        if report is None or not report.instance or self._is_gone(_former(report)):
            return True
        self._note(report)
        now = self._clock()
        if now - self._seen_at >= SILENCE:
            log.warning(
                "the former driver has fallen silent: taking over",
                former=report.instance,
                silent=SILENCE,
            )
            return True
        if self._is_alive and now - (self._begun or now) >= PATIENCE:
            raise SourceInUseError(self._message(report))
        return False

    def _is_gone(self, former: Instance) -> bool:
        # Our own report: the answer to an earlier attempt to register was lost.
        same = former.id == self._instance.id
        return same or former.is_gone(seen_from=self._instance) or self._channel.is_gone(former)

    def _note(self, report: HostReport) -> None:
        """Compare with the last look.

        The clocks of two machines are never compared: only what changes counts.
        """
        seen, now = (report.instance, report.incarnation, report.sequence), self._clock()
        if self._begun is None:
            self._begun = now
            log.info("waiting for the former driver to end", former=report.instance)
        if seen != self._seen:
            # The first look shows a report, but not whether its writer still lives.
            self._is_alive = self._seen is not None
            self._seen, self._seen_at = seen, now

    def _message(self, report: HostReport) -> str:
        where = _former(report).where
        return (
            f"the source is being read by another query ({where}, incarnation {report.incarnation}"
            f" of host {report.host}), which still reports: one query at a time can read a source."
            " Stop the other query, then start this one again, or create a BalancedSource of its"
            " own for it"
        )


def _former(report: HostReport) -> Instance:
    """Who wrote the report.

    Release 0.1.0 told only its host name, which is the name of the pod in a cluster.
    """
    former = Instance.parse(report.instance)
    return replace(former, pod=report.location) if former == Instance(id=former.id) else former
