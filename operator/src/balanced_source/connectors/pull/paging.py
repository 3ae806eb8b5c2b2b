"""An enumerator for sources whose splits are listed page by page, once or forever.

See the package.

A page is listed when few splits are left to give out, so the state stays small however many splits
there are. Each call gets the connector's cursor, which is all that is remembered of the splits that
were read.

    cursor ──► ListSplits ──► Page: new splits, next cursor ──► pending ──► as in `enumerator`
       ▲                           │
       └──── few pending splits ◄──┘ at once while there is more, else after the interval
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, Self

from balanced_source.api import (
    AsyncCall,
    Boundedness,
    CallFailure,
    Json,
    SplitEnumeratorContext,
    SplitId,
)
from balanced_source.api.split_checks import WrongAnswer
from balanced_source.connectors.answers import checked_splits, in_words, refused
from balanced_source.connectors.pull.contract import SplitListing
from balanced_source.connectors.pull.enumerator import PullingSplitEnumerator
from balanced_source.connectors.pull.source import PullSource
from balanced_source.connectors.pull.values import Conflict, ListSplits, Page, PullState, SplitT
from balanced_source.errors import RefusedDiscoveryError
from balanced_source.reasons import Reason

FEW: Final = 256
"""Pending splits below which the next page is listed."""

LOST: Final = "lost"
"""Scope of the problem with splits that are not read."""


class PagingSplitEnumerator(PullingSplitEnumerator[SplitT], Generic[SplitT]):
    """See the module."""

    source: "PagedPullSource[SplitT]"

    def __init__(
        self,
        context: SplitEnumeratorContext[SplitT],
        source: SplitListing[SplitT],
        state: PullState[SplitT],
    ) -> None:
        super().__init__(context, source, state)
        self.is_listing = False
        self.has_more = False
        self.is_complete = False
        self.is_postponed = False
        self.losses: tuple[str, ...] = ()

    def fork(self, context: SplitEnumeratorContext[SplitT]) -> Self:
        copy = super().fork(context)
        copy.is_listing, copy.has_more, copy.losses = self.is_listing, self.has_more, self.losses
        copy.is_complete, copy.is_postponed = self.is_complete, self.is_postponed
        return copy

    @property
    def has_memory(self) -> bool:
        return self.state.cursor is not None

    @property
    def is_exhausted(self) -> bool:
        return self.is_complete

    def problems(self) -> Mapping[str, Exception]:
        return {**super().problems(), **({LOST: self._lost()} if self.losses else {})}

    def handle_listing(
        self, call: ListSplits, result: "Iterable[SplitT] | Page[SplitT] | CallFailure"
    ) -> None:
        """Completion of a `ListSplits`."""
        # An older question may be answered after a newer one, or after the listing is complete.
        if call.round != self.waiting.round or self.state.is_listed:
            return
        self.is_listing = False
        result = checked_page(call, result)
        if isinstance(result, CallFailure):
            self._failed(result.error)
            return
        if result.refusal:
            self._refused(result.refusal)
            return
        self._replace(result)
        conflict = self._conflict({split.split_id: split for split in result.splits})
        if conflict is not None and conflict.refusal:
            self._refused(conflict.refusal)
            return
        self.waiting = replace(self.waiting, failures=0, problem=None)
        self._take(result if conflict is None else _without(result, conflict))
        # Given out first: how few are left then decides whether the next page is wanted at once.
        self._give()
        self._go_on(delay=self.source.discovery_interval)

    def add_readers(self, subtask_ids: Sequence[int]) -> None:
        # Without a stored state, readers say what was read, perhaps after the listing was answered.
        if self.context.keeps_finished and self._conflict(self.state.pending) is not None:
            self.state = replace(self.state, pending={}, cursor=None, is_listed=False)
            self._list(delay=0.0)
        super().add_readers(subtask_ids)

    def _conflict(self, listed: Mapping[SplitId, SplitT]) -> Conflict | None:
        """Return which listed splits are of what changed since it was read; None if none is."""
        owned, pending = self.context.current_assignments(), self.state.pending
        held = {s: self.context.assigned_attributes(s) for s in listed if s in owned}
        held |= {s: pending[s].attributes() for s in listed if s in pending and s not in held}
        return self.source.conflict(listed, held) if held else None

    def _take(self, page: Page[SplitT]) -> None:
        owned, pending = self.context.current_assignments(), self.state.pending
        new = {
            s.split_id: s
            for s in page.splits
            if s.split_id not in owned and s.split_id not in pending
        }
        # Only a source with an end is ever listed completely.
        is_over = not page.has_more and self.source.boundedness is Boundedness.BOUNDED
        for loss in page.losses:
            # Each page repeats what is lost so far, and users are told once.
            if loss not in self.losses:
                self.context.report(Reason.SPLITS_SKIPPED, loss, warning=True)
        self.has_more, self.losses = page.has_more, page.losses
        # Of this process: a state that is read back does not say whether there is more.
        self.is_complete = not page.has_more
        # An unchanged state is not stored again, so an idle source writes nothing.
        if new or is_over or page.cursor != self.state.cursor:
            ordered = in_order({**pending, **new}, self.source) if new else pending
            self.state = replace(self.state, pending=ordered, cursor=page.cursor, is_listed=is_over)

    def _replace(self, page: Page[SplitT]) -> None:
        """Drop the pending splits of what was changed before any of it was read.

        It is read as it is now. Splits of both versions beside each other would be read in part.
        """
        pending = self.state.pending
        again = {s.split_id: s.attributes() for s in page.splits if s.split_id in pending}
        if again and (gone := self.source.replaced(pending, again)):
            kept = {s: split for s, split in pending.items() if s not in gone}
            self.state = replace(self.state, pending=kept)

    def _refused(self, why: str) -> None:
        error = RefusedDiscoveryError(why, scope=self.scope, reason=Reason.SPLITS_LOST)
        self.waiting = replace(self.waiting, failures=self.source.failure_threshold, problem=error)
        # Asked again, because the user may mend it without touching the source.
        self._list(delay=self.source.discovery_interval or self.source.retry_interval)

    def _go_on(self, *, delay: float | None) -> None:
        """List the next page.

        At once while there is more and few splits are left, else when it is time, and not before
        few are left.
        """
        # Two listings from one cursor would name the same splits twice.
        if self.is_listing or self.state.is_listed:
            return
        # Few splits are kept at hand, so the state stays small however many there are, and however
        # slowly they are read.
        if len(self.state.pending) >= FEW:
            self.is_postponed |= delay is not None
        elif self.has_more or self.is_postponed:
            self.is_postponed = False
            self._list(delay=0.0)
        elif delay is not None:
            self._list(delay=delay)

    def _list(self, *, delay: float) -> None:
        self.is_listing = True
        self.waiting = replace(self.waiting, round=self.waiting.round + 1)
        call = self.source.list_page(self.waiting.round, self.state.cursor)
        self.context.call_async(call, self.handle_listing, initial_delay=delay)

    def _give(self) -> None:
        super()._give()
        self._go_on(delay=None)

    def _lost(self) -> RefusedDiscoveryError:
        return RefusedDiscoveryError(
            "; ".join(self.losses), scope=LOST, reason=Reason.SPLITS_SKIPPED
        )


class PagedPullSource(PullSource[SplitT], Generic[SplitT]):
    """A source that is listed in pages, and ends or not.

    A connector adds `list_page` and `create_split`.

    Attributes:
        discovery_interval: seconds between two listings that found everything; None for a source
            that ends.
        retry_interval: seconds until a refused listing is repeated by a source that ends.
    """

    discovery_interval: float | None = None
    retry_interval: float = 30.0

    @abstractmethod
    def list_page(self, round_number: int, cursor: Any) -> ListSplits:
        """Return the call that lists the splits after a cursor; its result is a `Page`."""

    def list_splits(self, round_number: int) -> ListSplits:
        return self.list_page(round_number, None)

    def conflict(
        self, listed: Mapping[SplitId, SplitT], held: Mapping[SplitId, Mapping[str, Json]]
    ) -> Conflict | None:
        """Return which listed splits are of what changed since it was read; None if none is.

        Args:
            listed: all splits of a page.
            held: attributes of those whose ids are assigned, or pending, already.
        """
        return None

    def replaced(
        self, pending: Mapping[SplitId, SplitT], again: Mapping[SplitId, Mapping[str, Json]]
    ) -> frozenset[SplitId]:
        """Return the pending splits of what was changed before any of it was read.

        They are dropped, and the splits of a page take their place.

        Args:
            pending: all splits that no reader has yet.
            again: attributes of those of a page whose ids are pending.
        """
        return frozenset()

    @property
    def boundedness(self) -> Boundedness:
        return (
            Boundedness.BOUNDED
            if self.discovery_interval is None
            else Boundedness.CONTINUOUS_UNBOUNDED
        )

    def encode_state(self, state: PullState[SplitT]) -> Any:
        return {**super().encode_state(state), "cursor": state.cursor}

    def decode_state(self, version: int, data: Any) -> PullState[SplitT]:
        state = super().decode_state(version, data)
        return replace(state, pending=in_order(state.pending, self), cursor=data["cursor"])

    def create_enumerator(
        self, context: SplitEnumeratorContext[SplitT]
    ) -> PagingSplitEnumerator[SplitT]:
        return PagingSplitEnumerator(context, self, PullState())

    def restore_enumerator(
        self, context: SplitEnumeratorContext[SplitT], state: PullState[SplitT]
    ) -> PagingSplitEnumerator[SplitT]:
        return PagingSplitEnumerator(context, self, state)


def _without(page: Page[SplitT], conflict: Conflict) -> Page[SplitT]:
    """Return a page without the splits of a conflict."""
    rest = tuple(split for split in page.splits if split.split_id not in conflict.split_ids)
    return replace(page, splits=rest, losses=(*page.losses, conflict.loss))


def in_order(
    splits: Mapping[SplitId, SplitT], source: SplitListing[SplitT]
) -> Mapping[SplitId, SplitT]:
    """Return the splits in the order in which they are given out."""
    return dict(sorted(splits.items(), key=lambda item: (-source.priority(item[1]), item[0])))


def checked_page(call: AsyncCall, answer: Any) -> Page[Any] | CallFailure:
    """Return the answer to a call that lists a page, or what is wrong with it."""
    if isinstance(answer, CallFailure):
        return in_words(call, answer)
    if not isinstance(answer, Page):
        return refused(call, WrongAnswer(f"a {type(answer).__name__}", "a Page"))
    found = checked_splits(call, answer.splits)
    return found if isinstance(found, CallFailure) else answer
