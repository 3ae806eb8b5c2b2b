"""Aligns sources of a namespace in event time.

Hears their reports, and says when one should be told of the others.

Nothing of it is stored: what sources said comes again with their next reports. An operator that has
just begun to serve a namespace says nothing there before it has heard all of its sources, and not
for `SETTLE` seconds; drivers keep to what they were told before.
"""

import time
from collections.abc import Callable
from typing import Final

from balanced_source.api import MIN_WATERMARK
from balanced_source.coordinator.source_groups import TELL_INTERVAL, SourceGroups
from balanced_source.documents.alignment import GroupWatermark, SourceWatermark
from balanced_source.documents.report import HostReport
from balanced_source.durations import seconds
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.spec import BalancedSourceSpec
from balanced_source_operator.spec.application import Alignment

SETTLE: Final = 5.0
"""Seconds in which an operator hears of all sources of a namespace and their reports."""

LONGEST_SETTLE: Final = 30.0
"""Seconds after which those are not waited for that could not be heard: their specs are invalid, or
their turns fail. With a thousand sources, the first turns take a while."""

_Key = tuple[str, str]
"""Namespace and name of a source."""


class Alignments:
    """Of all sources of the process. Used on one event loop."""

    def __init__(self) -> None:
        self._groups: SourceGroups[_Key] = SourceGroups()
        self._wakes: dict[_Key, Callable[[], None]] = {}
        self._settled_at: dict[str, float] = {}
        self._served: dict[str, set[str]] = {}
        self._unheard: dict[str, set[str]] = {}

    def expect(self, source: Identity) -> None:
        """A source is about to be served. No other one is told anything before it is heard."""
        now = time.monotonic()
        # One that is made later holds the others as soon as it is heard, and not before.
        if now < self._settled_at.setdefault(source.namespace, now + SETTLE):
            self._unheard.setdefault(source.namespace, set()).add(source.name)

    def hear(
        self,
        source: Identity,
        spec: BalancedSourceSpec,
        report: HostReport | None,
        wake: Callable[[], None],
    ) -> None:
        """What a source wants and what it said last. Those whom it concerns are woken."""
        now = time.monotonic()
        self._settled_at.setdefault(source.namespace, now + SETTLE)
        self._served.setdefault(source.namespace, set()).add(source.name)
        key = (source.namespace, source.name)
        watermark = _reported_watermark(source, report)
        # A source that has not reported yet holds the others, or they would run ahead of it at its
        # start.
        if watermark is None and key not in self._groups:
            watermark = _declared(source, spec)
        if _is_unaligned(spec, report):
            self._leave(key, now)
        if watermark is not None:
            self._wakes[key] = wake
            stamp = (report.incarnation, report.sequence) if report is not None else None
            former = self._groups.group(key)
            # Woken only by news: each turn of a source costs the event loop time.
            if self._groups.hear(key, watermark, stamp=stamp, now=now):
                self._wake_others(key, watermark.group, now)
            if former not in (None, watermark.group):
                self._wake_others(key, former, now)
        self._note_heard(source)

    def forget(self, source: Identity) -> None:
        """A source is served no more."""
        key = (source.namespace, source.name)
        self._served.get(source.namespace, set()).discard(source.name)
        self._note_heard(source)
        if not (self._served.get(source.namespace) or self._unheard.get(source.namespace)):
            for table in (self._served, self._unheard, self._settled_at):
                table.pop(source.namespace, None)
        self._leave(key, time.monotonic())

    def news(self, source: Identity) -> GroupWatermark | None:
        """What a source should be told now, if anything."""
        key = (source.namespace, source.name)
        if self.pause(source) != 0.0:
            return None
        return GroupWatermark(
            watermark=self._groups.tell(key, now=time.monotonic()), heartbeat=round(time.time(), 3)
        )

    def pause(self, source: Identity) -> float | None:
        """Seconds until there may be news although no one says anything."""
        key = (source.namespace, source.name)
        if key not in self._groups:
            return None
        now = time.monotonic()
        due = self._groups.due_in(key, now=now)
        # Told before it has heard everybody, a new operator would let sources run ahead.
        settled_at = self._settled_at[source.namespace]
        if self._unheard.get(source.namespace):
            settled_at += LONGEST_SETTLE - SETTLE
        return None if due is None else max(due, settled_at - now, 0.0)

    def _note_heard(self, source: Identity) -> None:
        """Do not wait for a source any more. Those that have waited for the last one are woken."""
        unheard = self._unheard.get(source.namespace, set())
        if source.name in unheard:
            unheard.discard(source.name)
            for key, wake in self._wakes.items() if not unheard else ():
                if key[0] == source.namespace:
                    wake()

    def _leave(self, key: _Key, now: float) -> None:
        """A source is in no group any more."""
        group = self._groups.forget(key)
        self._wakes.pop(key, None)
        self._wake_others(key, group, now)

    def _wake_others(self, speaker: _Key, group: str | None, now: float) -> None:
        # One that is due later has a timer of its own.
        for key in self._groups.due_soon(group or "", now=now, within=TELL_INTERVAL):
            if key != speaker:
                self._wakes[key]()


def _reported_watermark(source: Identity, report: HostReport | None) -> SourceWatermark | None:
    """Groups of different namespaces have nothing to do with each other."""
    if report is None or (alignment := report.alignment) is None:
        return None
    return SourceWatermark(
        group=f"{source.namespace}/{alignment.group}",
        watermark=alignment.watermark,
        max_drift=alignment.max_drift,
        idle_timeout=alignment.idle_timeout,
    )


def _is_unaligned(spec: BalancedSourceSpec, report: HostReport | None) -> bool:
    """Whether the driver has begun to read, and neither it nor the spec names a group any more."""
    if report is None or _asked(spec) is not None:
        return False
    # The first report of a driver says nothing but that it is there.
    return bool(report.metrics) and not report.alignment


def _asked(spec: BalancedSourceSpec) -> Alignment | None:
    """Return the alignment that a spec asks for, if it is one with a group."""
    pipeline = spec.application.pipeline
    asked = pipeline.alignment if pipeline is not None else None
    return asked if asked is not None and asked.group is not None else None


def _declared(source: Identity, spec: BalancedSourceSpec) -> SourceWatermark | None:
    """A source that will be in a group holds the others from the start, while it is young."""
    if (asked := _asked(spec)) is None:
        return None
    return SourceWatermark(
        group=f"{source.namespace}/{asked.group}",
        watermark=MIN_WATERMARK,
        max_drift=round(seconds(asked.max_drift) * 1000),
        idle_timeout=seconds(asked.idle_timeout),
    )
