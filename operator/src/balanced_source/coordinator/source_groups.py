"""Sources that are aligned together (FLIP-182's groups, over several applications).

Who is told what, and when.

Pure and without a clock. Each source says how far it is; each is told how far the others are, no
more often than people and API servers like. Members may fall silent, and have a drift each.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from balanced_source.api import MAX_WATERMARK
from balanced_source.documents.alignment import SourceWatermark

KeyT = TypeVar("KeyT", bound=Hashable)

TELL_INTERVAL: Final = 1.0
"""Seconds between two things that a source is told, at least."""

STEPS: Final = 4
"""A source is told again when the others have moved by 1/4 of its drift."""

SIGNS_OF_LIFE: Final = 3
"""Within the idle timeout, while others hold a source back without moving, or it would take the
operator for gone."""


@dataclass(slots=True)
class _Member:
    report: SourceWatermark
    stamp: Hashable
    heard_at: float
    sent: int | None = None
    sent_at: float = 0.0


@dataclass(slots=True)
class SourceGroups(Generic[KeyT]):
    """The members of all groups, by key.

    Sources with the same group name are aligned with each other.
    """

    _members: dict[KeyT, _Member] = field(default_factory=dict)

    def hear(self, key: KeyT, report: SourceWatermark, *, stamp: Hashable, now: float) -> bool:
        """A source says how far it is. The same `stamp` again is not a sign of life, and False."""
        known = self._members.get(key)
        # What it was told before is of the other group.
        if known is None or known.report.group != report.group:
            self._members[key] = _Member(report, stamp, now)
            return True
        # The same document seen again, after a restart of a watch: its driver may be dead.
        if known.stamp == stamp:
            return False
        known.report, known.stamp, known.heard_at = report, stamp, now
        return True

    def forget(self, key: KeyT) -> str | None:
        """Remove a source, so that no other source waits for it. Returns its group."""
        known = self._members.pop(key, None)
        return None if known is None else known.report.group

    def watermark(self, key: KeyT, *, now: float) -> int:
        """Return the lowest watermark of the other sources of the group.

        Sources that were silent for longer than this source's idle timeout do not count.
        """
        patience = self._members[key].report.idle_timeout
        return min(
            (
                other.report.watermark
                for _, other in self._others(key)
                # A source that is gone or hangs must not hold the others forever.
                if now - other.heard_at < patience
            ),
            default=MAX_WATERMARK,
        )

    def due_in(self, key: KeyT, *, now: float) -> float | None:
        """Return the seconds until a source should be notified.

        0 is now; None is not before another source reports.
        """
        member, wanted = self._members[key], self.watermark(key, now=now)
        if member.sent is None:
            return 0.0
        since = now - member.sent_at
        # No more often than once in a while: each word is a write to the API server.
        if self._is_news(member, wanted):
            return max(0.0, TELL_INTERVAL - since)
        # No one holds it back, so it need not know whether the operator is still there.
        if wanted == MAX_WATERMARK:
            return None
        return max(0.0, TELL_INTERVAL - since, member.report.idle_timeout / SIGNS_OF_LIFE - since)

    def tell(self, key: KeyT, *, now: float) -> int:
        """Return what to tell a source now."""
        member = self._members[key]
        member.sent, member.sent_at = self.watermark(key, now=now), now
        return member.sent

    def members(self, group: str) -> list[KeyT]:
        """Return the members of a group."""
        return [key for key, member in self._members.items() if member.report.group == group]

    def __contains__(self, key: object) -> bool:
        return key in self._members

    def _others(self, key: KeyT) -> Iterator[tuple[KeyT, _Member]]:
        group = self._members[key].report.group
        return ((k, m) for k, m in self._members.items() if k != key and m.report.group == group)

    @staticmethod
    def _is_news(member: _Member, wanted: int) -> bool:
        """Whether the step is large enough.

        To be held and to be released always are: no time is near to the limits.
        """
        if member.sent is None:
            return True
        return abs(wanted - member.sent) * STEPS >= member.report.max_drift
