"""Alignment of watermarks (FLIP-182, FLIP-217): splits of a group that are too far ahead wait for the others.

Pure and without a clock: members report, somebody asks now and then what to pause and what to go on with.
"""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK, SplitId
from balanced_source.errors import ContractViolationError

MemberT = TypeVar("MemberT", bound=Hashable)


@dataclass(slots=True)
class AlignmentGroup(Generic[MemberT]):
    """Members (readers, or sources) that shall not drift apart in event time.

    Attributes:
        name: of the group.
        max_drift: milliseconds that anybody may be ahead of the slowest member; at least 0.
    """

    name: str
    max_drift: int
    _members: dict[MemberT, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.max_drift < 0:
            raise ContractViolationError(f"alignment group {self.name}: max_drift {self.max_drift} is below 0")

    def report(self, member: MemberT, watermark: int, *, is_idle: bool = False) -> None:
        """A member says how far it is. An idle one is not waited for."""
        self._members[member] = MAX_WATERMARK if is_idle else watermark

    def leave(self, member: MemberT) -> None:
        """A member is gone: nobody waits for it any more."""
        self._members.pop(member, None)

    @property
    def max_allowed(self) -> int:
        """Watermark beyond which splits are paused; no limit while nobody, or only idle members, take part.

        A member without a watermark does not pause the others: it may have no event time at all yet.
        """
        known = [w for w in self._members.values() if w != MIN_WATERMARK]
        slowest = min(known, default=MAX_WATERMARK)
        return MAX_WATERMARK if slowest == MAX_WATERMARK else min(MAX_WATERMARK, slowest + self.max_drift)


@dataclass(frozen=True, slots=True)
class PauseOrResume:
    """Arguments for `SourceReader.pause_or_resume_splits`."""

    to_pause: tuple[SplitId, ...] = ()
    to_resume: tuple[SplitId, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.to_pause or self.to_resume)


@dataclass(slots=True)
class SplitAlignment:
    """Which splits of one reader are paused."""

    _paused: set[SplitId] = field(default_factory=set)

    @property
    def paused(self) -> frozenset[SplitId]:
        """Splits that wait."""
        return frozenset(self._paused)

    def check(self, watermarks: Mapping[SplitId, int], max_allowed: int) -> PauseOrResume:
        """What changes, given each split's watermark. Splits that are not in there are forgotten."""
        ahead = {split_id for split_id, watermark in watermarks.items() if watermark > max_allowed}
        before = self._paused & watermarks.keys()
        self._paused = ahead
        return PauseOrResume(_sorted(ahead - before), _sorted(before - ahead))


def _sorted(split_ids: Collection[SplitId]) -> tuple[SplitId, ...]:
    return tuple(sorted(split_ids))
