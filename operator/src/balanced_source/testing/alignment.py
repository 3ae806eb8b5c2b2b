"""Alignment of watermarks (FLIP-182, FLIP-217).

Splits of a group that are too far ahead wait for the others.

Pure and without a clock: members report, someone asks now and then what to pause and what to
continue with.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK, SplitId
from balanced_source.errors import ContractViolationError
from balanced_source.reader.least import Least

MemberT = TypeVar("MemberT", bound=Hashable)


@dataclass(slots=True)
class AlignmentGroup(Generic[MemberT]):
    """Members (readers, or sources) that must not drift apart in event time.

    Attributes:
        name: of the group.
        max_drift: milliseconds that anybody may be ahead of the slowest member; at least 0.
    """

    name: str
    max_drift: int
    _members: Least[MemberT] = field(default_factory=Least)

    def __post_init__(self) -> None:
        if self.max_drift < 0:
            raise ContractViolationError(
                f"alignment group {self.name}: max_drift {self.max_drift} is below 0"
            )

    def report(self, member: MemberT, watermark: int, *, is_idle: bool = False) -> None:
        """A member says how far it is. An idle one is not waited for.

        Nor is one without a watermark: it may have no split, or no event time at all (FLINK-32414).
        """
        if is_idle or watermark == MIN_WATERMARK:
            self.leave(member)
        else:
            self._members.put(member, watermark)

    def leave(self, member: MemberT) -> None:
        """A member is gone: no one waits for it any more."""
        self._members.discard(member)

    @property
    def max_allowed(self) -> int:
        """Watermark beyond which splits are paused.

        No limit while no one, or only idle members, take part.
        """
        slowest = self._members.value
        return MAX_WATERMARK if slowest is None else min(MAX_WATERMARK, slowest + self.max_drift)


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

    def forget(self, split_ids: Iterable[SplitId]) -> None:
        """Splits are taken away.

        Should they come back, they are read until they are ahead again.
        """
        self._paused.difference_update(split_ids)

    def check(self, watermarks: Mapping[SplitId, int], max_allowed: int) -> PauseOrResume:
        """What changes, given each split's watermark.

        Splits that are not in there are forgotten.
        """
        ahead = {split_id for split_id, watermark in watermarks.items() if watermark > max_allowed}
        before = self._paused & watermarks.keys()
        self._paused = ahead
        return PauseOrResume(_sorted(ahead - before), _sorted(before - ahead))


def _sorted(split_ids: Collection[SplitId]) -> tuple[SplitId, ...]:
    return tuple(sorted(split_ids))
