"""What a part's enumerator sees of the coordinator: its own splits, under its own ids."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from balanced_source.api import (
    AsyncCall,
    CompletionHandler,
    Json,
    Position,
    ReaderInfo,
    SourceEvent,
    SourceSplit,
    SplitEnumeratorContext,
    SplitId,
    SplitsAssignment,
)
from balanced_source.connectors.hybrid.values import HybridPart, HybridSplit, PartCall

V = TypeVar("V")


class Owner(Protocol):
    """The hybrid enumerator, as its part's context needs it."""

    def handle_part_call(self, call: PartCall, result: Any) -> None:
        """Take the result of a call of the part."""
        ...

    def note_given(self, owners: Collection[int]) -> None:
        """Take note of readers that were given splits, one for each split."""
        ...

    def finish(self, split_ids: Iterable[SplitId]) -> None:
        """Take splits of the part that were read out of the assignment."""
        ...


class PartContext(SplitEnumeratorContext[SourceSplit]):
    """See the module.

    Args:
        context: of the hybrid enumerator.
        owner: the hybrid enumerator.
        part: whose enumerator it is.
        is_last: whether no part follows.
    """

    def __init__(
        self,
        context: SplitEnumeratorContext[HybridSplit],
        owner: Owner,
        part: HybridPart,
        *,
        is_last: bool,
    ) -> None:
        self._context = context
        self._owner = owner
        self._part = part
        self._is_last = is_last
        self._own: tuple[Mapping[SplitId, int], Mapping[SplitId, int]] | None = None

    def now(self) -> float:
        return self._context.now()

    def current_parallelism(self) -> int:
        return self._context.current_parallelism()

    def registered_readers(self) -> Mapping[int, ReaderInfo[SourceSplit]]:
        return {
            subtask: self._reader(info)
            for subtask, info in self._context.registered_readers().items()
        }

    def zone_of(self, subtask_id: int) -> str:
        return self._context.zone_of(subtask_id)

    def has_reports(self) -> bool:
        return self._context.has_reports()

    def current_assignments(self) -> Mapping[SplitId, int]:
        everything = self._context.current_assignments()
        # Asked several times in a turn: the coordinator's table is replaced when it changes, so the
        # same object has the same splits.
        if self._own is None or self._own[0] is not everything:
            self._own = everything, self._of_part(everything)
        return self._own[1]

    def split_loads(self) -> Mapping[SplitId, float]:
        return self._of_part(self._context.split_loads())

    def split_positions(self) -> Mapping[SplitId, Position]:
        return self._of_part(self._context.split_positions())

    def assigned_split(self, split_id: SplitId) -> SourceSplit:
        return self._context.assigned_split(self._outer(split_id)).split

    def assigned_attributes(self, split_id: SplitId) -> Mapping[str, Json]:
        return self._context.assigned_attributes(self._outer(split_id))

    def assign_splits(self, new_assignments: SplitsAssignment[SourceSplit]) -> None:
        name, given = self._part.name, new_assignments.assignment
        wrapped = {
            s: [HybridSplit(part=name, split=split) for split in splits]
            for s, splits in given.items()
        }
        self._context.assign_splits(SplitsAssignment(assignment=wrapped))
        self._owner.note_given([subtask for subtask, splits in given.items() for _ in splits])

    def move_splits(self, owners: Mapping[SplitId, int]) -> None:
        self._context.move_splits({self._outer(s): subtask for s, subtask in owners.items()})

    def revoke_splits(self, split_ids: Iterable[SplitId], *, retain: bool = False) -> None:
        self._context.revoke_splits(map(self._outer, split_ids), retain=retain)

    def is_revoking(self, split_id: SplitId) -> bool:
        return self._context.is_revoking(self._outer(split_id))

    @property
    def keeps_finished(self) -> bool:
        return self._context.keeps_finished

    def finish_splits(self, split_ids: Iterable[SplitId]) -> None:
        self._owner.finish(map(self._outer, split_ids))

    def forget_splits(self, split_ids: Iterable[SplitId]) -> None:
        self._context.forget_splits(map(self._outer, split_ids))

    def signal_no_more_splits(self, subtask_id: int) -> None:
        """Only the last part knows that nothing follows."""
        if self._is_last:
            self._context.signal_no_more_splits(subtask_id)

    def send_event_to_reader(self, subtask_id: int, event: SourceEvent) -> None:
        payload = {"part": self._part.name, "payload": event.payload}
        self._context.send_event_to_reader(
            subtask_id, SourceEvent(name=event.name, payload=payload)
        )

    def call_async(
        self,
        call: AsyncCall,
        handler: CompletionHandler,
        *,
        initial_delay: float = 0.0,
        period: float | None = None,
    ) -> None:
        wrapped = PartCall(self._part.name, self._part.source.kind, handler.__name__, call)
        # By way of the hybrid enumerator, because the part may be over when the answer comes.
        answer: Callable[[Any, Any], None] = self._owner.handle_part_call
        self._context.call_async(wrapped, answer, initial_delay=initial_delay, period=period)

    def report(self, reason: str, message: str, *, warning: bool = False) -> None:
        self._context.report(reason, message, warning=warning)

    def _outer(self, split_id: SplitId) -> SplitId:
        return (self._part.name, *split_id)

    def _of_part(self, values: Mapping[SplitId, V]) -> dict[SplitId, V]:
        name = self._part.name
        return {split_id[1:]: value for split_id, value in values.items() if split_id[0] == name}

    def _reader(self, info: ReaderInfo[HybridSplit]) -> ReaderInfo[SourceSplit]:
        return ReaderInfo(
            subtask_id=info.subtask_id,
            location=info.location,
            reported_splits=own_splits(info.reported_splits, self._part.name),
            retained_splits=own_splits(info.retained_splits, self._part.name),
            is_first_report=info.is_first_report,
        )


def own_splits(splits: Iterable[HybridSplit], part: str) -> tuple[SourceSplit, ...]:
    """Return the splits of one part, as the part knows them."""
    return tuple(split.split for split in splits if split.part == part)
