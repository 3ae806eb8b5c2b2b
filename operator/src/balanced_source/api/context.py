"""What a coordinator offers to its enumerator, and the values between them (FLIP-27, FLIP-537)."""

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from balanced_source.api.events import SourceEvent
from balanced_source.api.splits import Json, Position, SourceSplit, SplitId

SplitT = TypeVar("SplitT", bound=SourceSplit)
StateT = TypeVar("StateT")


class Boundedness(enum.Enum):
    """Whether the source ends (FLIP-27)."""

    BOUNDED = "Bounded"
    CONTINUOUS_UNBOUNDED = "ContinuousUnbounded"


# Without slots: Python 3.11 cannot make a frozen class with slots as `ReaderInfo[…](…)`.
@dataclass(frozen=True, kw_only=True)
class ReaderInfo(Generic[SplitT]):
    """A registered reader.

    Attributes:
        subtask_id: 0 … parallelism − 1.
        location: host name, for locality; empty when unknown.
        reported_splits: splits that the reader reads according to its Spark checkpoint, with their
            positions, as reported on registration (FLIP-537). Empty for a fresh reader.
        retained_splits: splits that were taken from it, with the positions that it keeps for a
            return; someone else may have read on since.
        is_first_report: whether the state knows nothing of the reader's past: its host registers
            for the first time, or the state was lost or is an older copy.
        has_adopted: whether its host has adopted an assignment before. It may hold no split any
            more.
    """

    subtask_id: int
    location: str = ""
    reported_splits: tuple[SplitT, ...] = ()
    retained_splits: tuple[SplitT, ...] = ()
    is_first_report: bool = False
    has_adopted: bool = False


# Without slots: Python 3.11 cannot make a frozen class with slots as `SplitsAssignment[…](…)`.
@dataclass(frozen=True, kw_only=True)
class SplitsAssignment(Generic[SplitT]):
    """Incremental assignment: subtask → splits that it gets in addition."""

    assignment: Mapping[int, Sequence[SplitT]] = field(default_factory=dict)


class AsyncCall:
    """Base of the values that describe work outside (a discovery, a look-up of offsets).

    Subclasses are frozen dataclasses; the runtime knows how to execute each class. A call must not
    depend on anything but its fields, changes nothing inside the coordinator, and may be executed
    twice.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CallFailure:
    """Passed to a completion handler instead of a result."""

    error: Exception


CompletionHandler = Callable[[Any, Any], None]
"""A method of the enumerator.

Called with the call and its result, or with the call and a `CallFailure`.
"""


class SplitEnumeratorContext(ABC, Generic[SplitT]):
    """The coordinator's interface for its enumerator (FLIP-27 ``SplitEnumeratorContext``)."""

    @abstractmethod
    def now(self) -> float:
        """Time of the event being handled, in seconds since the epoch.

        It does not move within one method.
        """

    @abstractmethod
    def current_parallelism(self) -> int:
        """Number of readers wanted now. Ask each time: it changes without a restart."""

    @abstractmethod
    def registered_readers(self) -> Mapping[int, ReaderInfo[SplitT]]:
        """Readers that may be given splits now, by subtask id.

        Readers behind the recovery gate are not in it.
        """

    def zone_of(self, subtask_id: int) -> str:
        """Return the availability zone of a reader's host, for locality.

        Empty while it is unknown.
        """
        del subtask_id
        return ""

    def has_reports(self) -> bool:
        """Whether a reader has reported splits since the state was created or found outdated.

        Until then every position is a start that was looked up, or outdated.
        """
        return True

    @abstractmethod
    def current_assignments(self) -> Mapping[SplitId, int]:
        """Owner of every assigned split.

        The whole picture, where `SplitsAssignment` is an increment.
        """

    def split_loads(self) -> Mapping[SplitId, float]:
        """What splits cost to read, in records per second over the last minutes, as far as known.

        Empty unless `Source.wants_loads`.
        """
        return {}

    def split_positions(self) -> Mapping[SplitId, Position]:
        """Return the positions of splits as the reader hosts last reported them, if known."""
        return {}

    @abstractmethod
    def assigned_split(self, split_id: SplitId) -> SplitT:
        """An assigned split at its newest known position.

        Raises:
            KeyError: it has no owner.
        """

    def assigned_attributes(self, split_id: SplitId) -> Mapping[str, Json]:
        """Attributes of an assigned split.

        Cheaper than the split, because no position is looked up.

        Raises:
            KeyError: it has no owner.
        """
        return self.assigned_split(split_id).attributes()

    @abstractmethod
    def assign_splits(self, new_assignments: SplitsAssignment[SplitT]) -> None:
        """Give splits to registered readers. A split that has another owner moves.

        Several calls within one method of the enumerator make one epoch.

        Raises:
            ContractViolationError: a reader is not registered, or a split is given to two readers.
        """

    def move_splits(self, owners: Mapping[SplitId, int]) -> None:
        """Move assigned splits to other registered readers.

        They continue at their current positions.

        The same as `assign_splits` of each `assigned_split`, and much cheaper for many.

        Raises:
            ContractViolationError: a reader is not registered.
            KeyError: a split has no owner.
        """
        given: dict[int, list[SplitT]] = {}
        for split_id, subtask_id in owners.items():
            given.setdefault(subtask_id, []).append(self.assigned_split(split_id))
        self.assign_splits(SplitsAssignment(assignment=given))

    @abstractmethod
    def revoke_splits(self, split_ids: Iterable[SplitId], *, retain: bool = False) -> None:
        """Take splits away from their owners.

        `SplitEnumerator.handle_revoked` tells when that is done.

        With `retain` the reader host keeps their positions until they are assigned again or
        `forget_splits`, so that a return continues there. Ids without an owner are ignored.
        """

    @abstractmethod
    def is_revoking(self, split_id: SplitId) -> bool:
        """Whether a host may still hold a split that was revoked."""

    @property
    def keeps_finished(self) -> bool:
        """Whether finished splits stay assigned, see `finish_splits`."""
        return False

    def finish_splits(self, split_ids: Iterable[SplitId]) -> None:
        """Remove finished splits from the state, so that it does not grow with completed work.

        `SplitEnumerator.handle_revoked` follows, as for other splits that are taken away. Where
        Spark's checkpoint is the only memory (a query without an operator and without local mode),
        they stay assigned instead: otherwise the next query would read them again.
        """
        self.revoke_splits(split_ids)

    @abstractmethod
    def forget_splits(self, split_ids: Iterable[SplitId]) -> None:
        """End the retention of splits that have no owner: the reader hosts drop their positions.

        The coordinator retains by itself what a reader reported and what came back by
        `add_splits_back`, so an enumerator that decides against such a split says so here.
        """

    @abstractmethod
    def signal_no_more_splits(self, subtask_id: int) -> None:
        """Tell a reader that it gets no further split.

        Once per registration is enough, more is harmless.

        The reader finishes when it has read all of its splits. After a change of parallelism it can
        still get splits of removed readers.

        Raises:
            ContractViolationError: the reader is not registered.
        """

    @abstractmethod
    def send_event_to_reader(self, subtask_id: int, event: SourceEvent) -> None:
        """Queue an event for a registered reader.

        Delivered once, in order, after the splits that it has been given.

        The event belongs to the reader's current incarnation. A reader that registers again does
        not get it; `add_reader` is called instead. Sending makes an epoch, so do not use events for
        values that change every second.

        Raises:
            ContractViolationError: the reader is not registered.
        """

    @abstractmethod
    def call_async(
        self,
        call: AsyncCall,
        handler: CompletionHandler,
        *,
        initial_delay: float = 0.0,
        period: float | None = None,
    ) -> None:
        """Have `call` executed outside, then `handler` called with its result.

        The handler runs in a later turn, never within this method; it may not run at all, because
        calls are not part of the state: a restored enumerator issues them again in `start`. Answers
        may overtake each other.

        Args:
            call: the work, as a value.
            handler: a bound method of this enumerator; gets the call back, so that it needs no
                closure.
            initial_delay: seconds before the first execution.
            period: seconds from one completion to the next execution; None executes once.
        """

    @abstractmethod
    def report(self, reason: str, message: str, *, warning: bool = False) -> None:
        """State a fact for people.

        It becomes a log line and an event on the resource, not a decision.
        """
