"""Sources that are aligned together (FLIP-182's groups, over several applications).

Who is told what, and when.

Pure and without a clock. Each source says how far it is; each is told how far the others are, no
more often than people and API servers like. Members may fall silent, and have a drift each.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

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


class _Lowest(NamedTuple):
    """The lowest watermarks of a group, for members with the same patience.

    Attributes:
        key: of the source that is furthest behind; None if no source counts.
        watermark: of that source.
        second: lowest watermark of the others.
    """

    key: object
    watermark: int
    second: int

    def of_others(self, key: object) -> int:
        """Return the lowest watermark but that of one source."""
        return self.second if key == self.key else self.watermark


@dataclass(slots=True)
class SourceGroups(Generic[KeyT]):
    """The members of all groups, by key.

    Sources with the same group name are aligned with each other. What a report costs depends on the
    size of its group, and not on the number of groups.
    """

    _group_of: dict[KeyT, str] = field(default_factory=dict)
    _groups: dict[str, dict[KeyT, _Member]] = field(default_factory=dict)

    def hear(self, key: KeyT, report: SourceWatermark, *, stamp: Hashable, now: float) -> bool:
        """A source says how far it is. The same `stamp` again is not a sign of life, and False."""
        known = self._find(key)
        # What it was told before is of the other group.
        if known is None or known.report.group != report.group:
            self.forget(key)
            self._group_of[key] = report.group
            self._groups.setdefault(report.group, {})[key] = _Member(report, stamp, now)
            return True
        # The same document seen again, after a restart of a watch: its driver may be dead.
        if known.stamp == stamp:
            return False
        known.report, known.stamp, known.heard_at = report, stamp, now
        return True

    def forget(self, key: KeyT) -> str | None:
        """Remove a source, so that no other source waits for it. Returns its group."""
        if (group := self._group_of.pop(key, None)) is None:
            return None
        members = self._groups[group]
        del members[key]
        if not members:
            del self._groups[group]
        return group

    def group(self, key: KeyT) -> str | None:
        """Return the group of a source; None if it has none."""
        return self._group_of.get(key)

    def watermark(self, key: KeyT, *, now: float) -> int:
        """Return the lowest watermark of the other sources of the group.

        Sources that were silent for longer than this source's idle timeout do not count.
        """
        members = self._groups[self._group_of[key]]
        return _lowest(members, members[key].report.idle_timeout, now).of_others(key)

    def due_in(self, key: KeyT, *, now: float) -> float | None:
        """Return the seconds until a source should be notified.

        0 is now; None is not before another source reports.
        """
        members = self._groups[self._group_of[key]]
        return _due_in(members[key], self.watermark(key, now=now), now)

    def due_soon(self, group: str, *, now: float, within: float) -> list[KeyT]:
        """Return the members of a group that should be notified within so many seconds."""
        members, found = self._groups.get(group, {}), dict[float, _Lowest]()
        keys = []
        for key, member in members.items():
            patience = member.report.idle_timeout
            # Once for all members with the same patience: a group may be large.
            if patience not in found:
                found[patience] = _lowest(members, patience, now)
            due = _due_in(member, found[patience].of_others(key), now)
            if due is not None and due <= within:
                keys.append(key)
        return keys

    def tell(self, key: KeyT, *, now: float) -> int:
        """Return what to tell a source now."""
        member = self._groups[self._group_of[key]][key]
        member.sent, member.sent_at = self.watermark(key, now=now), now
        return member.sent

    def members(self, group: str) -> list[KeyT]:
        """Return the members of a group."""
        return list(self._groups.get(group, ()))

    def __contains__(self, key: object) -> bool:
        return key in self._group_of

    def _find(self, key: KeyT) -> _Member | None:
        group = self._group_of.get(key)
        return None if group is None else self._groups[group][key]


def _lowest(members: Mapping[KeyT, _Member], patience: float, now: float) -> _Lowest:
    """Return the lowest watermarks of the sources that have reported within `patience` seconds."""
    least: object = None
    first = second = MAX_WATERMARK
    for key, member in members.items():
        # A source that is gone or hangs must not hold the others forever.
        if now - member.heard_at >= patience:
            continue
        mark = member.report.watermark
        if mark < first:
            least, first, second = key, mark, first
        elif mark < second:
            second = mark
    return _Lowest(least, first, second)


def _due_in(member: _Member, wanted: int, now: float) -> float | None:
    """Return the seconds until a source should be told what the others' watermark is."""
    if member.sent is None:
        return 0.0
    since = now - member.sent_at
    # No more often than once in a while: each word is a write to the API server.
    if _is_news(member.sent, wanted, member.report.max_drift):
        return max(0.0, TELL_INTERVAL - since)
    # No one holds it back, so it need not know whether the operator is still there.
    if wanted == MAX_WATERMARK:
        return None
    return max(0.0, TELL_INTERVAL - since, member.report.idle_timeout / SIGNS_OF_LIFE - since)


def _is_news(sent: int, wanted: int, drift: int) -> bool:
    """Whether the step from what was sent to what is wanted is large enough.

    To be held and to be released always are: no time is near to the limits.
    """
    # A drift of 0 makes each step large enough, but none is no step.
    return wanted != sent and abs(wanted - sent) * STEPS >= drift
