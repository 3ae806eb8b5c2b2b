"""The enumerator; see the package."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Generic, Self

from balanced_source.api import (
    CallFailure,
    ReaderInfo,
    RebalanceCause,
    Source,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitId,
    SplitsAssignment,
    is_other,
)
from balanced_source.backoff import backoff
from balanced_source.connectors.answers import checked_splits
from balanced_source.connectors.pull.contract import SplitListing
from balanced_source.connectors.pull.dealing import dealt, least_loaded
from balanced_source.connectors.pull.values import ListSplits, PullState, SplitT, Waiting
from balanced_source.errors import RefusedDiscoveryError
from balanced_source.maps import changed
from balanced_source.names import counted
from balanced_source.reasons import Reason

MAX_BACKOFF: Final = 60.0
"""Seconds between two attempts to list the splits, at most."""

SPLITS: Final = "splits"
"""Scope of the problem with a lost state."""


class PullingSplitEnumerator(SplitEnumerator[SplitT, PullState[SplitT]], Generic[SplitT]):
    """See the package."""

    def __init__(
        self,
        context: SplitEnumeratorContext[SplitT],
        source: SplitListing[SplitT],
        state: PullState[SplitT],
    ) -> None:
        super().__init__(context)
        self.source = source
        self.state = state
        self.waiting = Waiting()

    # --- life cycle -------------------------------------------------------------------------------

    def start(self) -> None:
        # A second listing would name splits that were read and forgotten.
        if not self.state.is_listed:
            self._list(delay=0.0)

    def snapshot_state(self) -> PullState[SplitT]:
        return self.state

    def fork(self, context: SplitEnumeratorContext[SplitT]) -> Self:
        copy = type(self)(context, self.source, self.state)
        copy.waiting = self.waiting
        return copy

    def problems(self) -> Mapping[str, Exception]:
        found = {SPLITS: self._doubt()} if self.is_held_back else {}
        failing = self.waiting.problem
        return found if failing is None else {**found, self.scope: failing}

    def blocked(self) -> Mapping[str, Exception]:
        return {} if self.has_memory else self.problems()

    def undiscovered(self) -> frozenset[str]:
        return frozenset() if self.has_memory else frozenset({self.scope})

    def pending_splits(self) -> int:
        return len(self.state.pending)

    def is_finished(self) -> bool:
        is_over = self.state.is_listed and not self.state.pending
        return is_over and self.state.finished.issuperset(self.context.current_assignments())

    @property
    def has_memory(self) -> bool:
        """Whether the state knows which splits were listed: what it does not name was read."""
        return self.state.is_listed

    @property
    def is_held_back(self) -> bool:
        """Whether no pending split is given out, because it may have been read already."""
        return self.state.is_doubtful and not self.source.may_repeat

    @property
    def is_exhausted(self) -> bool:
        """Whether everything has been listed that may have been read before the state was lost."""
        return self.state.is_listed

    @property
    def scope(self) -> str:
        """What is listed, for messages."""
        return self.source.list_splits(0).scope

    # --- listing ----------------------------------------------------------------------------------

    def handle_listing(self, call: ListSplits, result: Iterable[SplitT] | CallFailure) -> None:
        """Completion of a `ListSplits`."""
        # An older question may be answered after a newer one, or after the listing is complete.
        if call.round != self.waiting.round or self.state.is_listed:
            return
        result = checked_splits(call, result)
        if isinstance(result, CallFailure):
            self._failed(result.error)
            return
        owned, pending = self.context.current_assignments(), self.state.pending
        new = {
            s.split_id: s for s in result if s.split_id not in owned and s.split_id not in pending
        }
        self.waiting = replace(self.waiting, failures=0, problem=None)
        # Sorted, so that a listing in another order gives out the same splits.
        self.state = replace(
            self.state, pending=changed(pending, added=dict(sorted(new.items()))), is_listed=True
        )
        self._give()

    def _list(self, *, delay: float) -> None:
        self.waiting = replace(self.waiting, round=self.waiting.round + 1)
        self.context.call_async(
            self.source.list_splits(self.waiting.round), self.handle_listing, initial_delay=delay
        )

    def _failed(self, error: Exception) -> None:
        failures = self.waiting.failures + 1
        is_lasting = failures >= self.source.failure_threshold
        self.waiting = replace(
            self.waiting, failures=failures, problem=error if is_lasting else self.waiting.problem
        )
        self._list(delay=backoff(failures, first=1.0, longest=MAX_BACKOFF))

    def handle_source_change(self, source: Source[SplitT, PullState[SplitT]]) -> None:
        """What is listed stays as it is: splits that were read would be listed again."""
        if not isinstance(source, SplitListing):
            super().handle_source_change(source)
            return
        self.source = source
        if not self.state.is_listed:
            self._list(delay=0.0)
        self._give()

    # --- readers ----------------------------------------------------------------------------------

    def handle_split_request(self, subtask_id: int, requester_hostname: str | None) -> None:
        self.handle_split_requests({subtask_id: 1}, requester_hostname)

    def handle_split_requests(
        self, counts: Mapping[int, int], requester_hostname: str | None
    ) -> None:
        known = self.waiting.counts
        self.waiting = replace(
            self.waiting,
            counts={**known, **{s: known.get(s, 0) + count for s, count in counts.items()}},
            # A host may be replaced by one elsewhere, so the newest request tells where it is.
            hosts={**self.waiting.hosts, **dict.fromkeys(counts, requester_hostname)},
        )
        self._give()

    def add_reader(self, subtask_id: int) -> None:
        self.add_readers((subtask_id,))

    def add_readers(self, subtask_ids: Sequence[int]) -> None:
        """A new incarnation asks again. What readers hold is assigned to them already."""
        self.waiting = replace(
            self.waiting,
            counts={s: n for s, n in self.waiting.counts.items() if s not in subtask_ids},
        )
        registered = self.context.registered_readers()
        for subtask_id in subtask_ids:
            self._take_retained(registered[subtask_id])
        # What is assigned must not be given to another reader as well.
        self._drop_pending(s for s in self.context.current_assignments() if s in self.state.pending)
        # At the end: all reports must be taken in before anything is given out.
        self._give()

    def handle_renumbered(self, numbers: Mapping[int, int]) -> None:
        counts = {numbers[s]: n for s, n in self.waiting.counts.items() if s in numbers}
        hosts = {numbers[s]: host for s, host in self.waiting.hosts.items() if s in numbers}
        self.waiting = replace(self.waiting, counts=counts, hosts=hosts)

    def _take_retained(self, reader: ReaderInfo[SplitT]) -> None:
        """Splits that the reader let go of.

        Those that no one reads continue where it stopped, if it was the last.
        """
        owned, pending = self.context.current_assignments(), self.state.pending
        kept = {s.split_id: s for s in reader.retained_splits if s.split_id not in owned}
        newer = {
            s: split for s, split in kept.items() if s in pending and _is_newer(split, pending[s])
        }
        # Without a state no one else remembers them; with one, what it does not know was read.
        unknown = {
            s: split for s, split in kept.items() if s not in pending and not self.has_memory
        }
        added = {**newer, **unknown}
        self.state = replace(
            self.state,
            pending=changed(pending, added=added) if added else pending,
            returned=self.state.returned.union(unknown),
        )
        self._drop_read(added)
        self.context.forget_splits(s for s in kept if s not in self.state.pending)

    def handle_history(self, guessed: Iterable[SplitId]) -> None:
        """Readers hold more than the state knows.

        Where they hold all that was ever read, nothing is lost.
        """
        # Where read splits stay assigned, the reports name them all, and there is no doubt.
        if not self.context.keeps_finished:
            self.state = replace(self.state, is_doubtful=True)

    def add_splits_back(self, splits: Sequence[SplitT], subtask_id: int) -> None:
        back = {split.split_id: split for split in splits}
        self.state = replace(
            self.state,
            # They come first: others may have been read after them long ago.
            pending={**back, **{s: x for s, x in self.state.pending.items() if s not in back}},
            returned=self.state.returned.union(back),
            # It may have to be read on from an older position.
            finished=self.state.finished.difference(back),
        )
        self._drop_read(back)

    def handle_revoked(self, splits: Sequence[SplitT]) -> None:
        known = {split.split_id: split for split in splits if split.split_id in self.state.pending}
        if known:
            self.state = replace(self.state, pending=changed(self.state.pending, added=known))
            self._drop_read(known)

    def handle_finished(self, split_ids: Sequence[SplitId]) -> None:
        self.context.finish_splits(split_ids)
        # The context may keep finished splits assigned, and then they must be known as finished.
        owned = self.context.current_assignments()
        if kept := [s for s in split_ids if s in owned and s not in self.state.finished]:
            self.state = replace(self.state, finished=self.state.finished.union(kept))

    def rebalance(self, cause: RebalanceCause) -> None:
        """Splits of readers that no longer exist get another one.

        The others stay: each reader asks when it has none.
        """
        self._give()

    # --- assignment -------------------------------------------------------------------------------

    def _give(self) -> None:
        """Give out what came back, then answer requests."""
        readers = self.context.registered_readers()
        self.waiting = replace(
            self.waiting, counts={s: n for s, n in self.waiting.counts.items() if s in readers}
        )
        if not self.is_held_back and readers:
            # First what came back: no one asks for it, so no request would fetch it.
            self._give_returned(readers)
            self._answer()
        self._end_doubt()

    def _end_doubt(self) -> None:
        """Once all of it was given out again, nothing that is listed later was read before."""
        may_end = self.state.is_doubtful and self.source.may_repeat
        if may_end and self.is_exhausted and not self.state.pending:
            self.state = replace(self.state, is_doubtful=False)

    def _give_returned(self, readers: Mapping[int, ReaderInfo[SplitT]]) -> None:
        back = [split for s, split in self.state.pending.items() if s in self.state.returned]
        if back:
            unread = (
                o
                for s, o in self.context.current_assignments().items()
                if s not in self.state.finished
            )
            self._assign(least_loaded(back, readers, unread))

    def _answer(self) -> None:
        near = (self._is_near, self._is_in_zone) if self.source.has_locations else ()
        given = dealt(self.state.pending, self.waiting.counts, near)
        left = {s: n - len(given.get(s, ())) for s, n in self.waiting.counts.items()}
        self._assign(given)
        # Only an exhausted listing is an end; else the reader's request waits for splits to come.
        is_over = self.state.is_listed and not self.state.pending
        for subtask_id in left if is_over else ():
            if left[subtask_id]:
                # Only who asked in vain is told; a reader that has enough asks later.
                self.context.signal_no_more_splits(subtask_id)
        self.waiting = replace(
            self.waiting, counts={s: n for s, n in left.items() if n and not is_over}
        )

    def _is_near(self, split: SplitT, subtask_id: int) -> bool:
        host = self.waiting.hosts.get(subtask_id)
        return host is not None and self.source.is_near(split, host)

    def _is_in_zone(self, split: SplitT, subtask_id: int) -> bool:
        zone = self.context.zone_of(subtask_id)
        return bool(zone) and self.source.is_in_zone(split, zone)

    def _assign(self, given: Mapping[int, Sequence[SplitT]]) -> None:
        if given:
            self.context.assign_splits(SplitsAssignment(assignment=given))
            self._drop_pending(split.split_id for splits in given.values() for split in splits)

    def _drop_pending(self, split_ids: Iterable[SplitId]) -> None:
        gone = frozenset(split_ids)
        if gone:
            pending = changed(self.state.pending, dropped=gone)
            self.state = replace(self.state, pending=pending, returned=self.state.returned - gone)

    def _drop_read(self, splits: Mapping[SplitId, SplitT]) -> None:
        """Splits that come back read have nothing more for anybody."""
        read = [split_id for split_id, split in splits.items() if split.is_finished]
        # Where nothing but Spark's checkpoint is stored, they get another reader all the same: what
        # the checkpoint does not hold would be listed and read again.
        if self.context.keeps_finished:
            self.state = replace(self.state, finished=self.state.finished.union(read))
            return
        self._drop_pending(read)
        # No one will continue it, so no host needs to keep its position.
        self.context.forget_splits(read)

    def _doubt(self) -> RefusedDiscoveryError:
        # Nothing may be listed yet, or nothing be left.
        count = len(self.state.pending)
        return RefusedDiscoveryError(
            "the stored state was lost or is an older copy, so it is unknown what was read already"
            f" of {counted(count, 'split') if count else 'the splits'}. Nothing of that is read."
            f" Restore the newest state, or {self.source.repeat_advice()} to read all of it, some"
            " perhaps twice",
            scope=SPLITS,
            reason=Reason.READ_SPLITS_UNKNOWN,
        )


def _is_newer(split: SplitT, known: SplitT) -> bool:
    # A file that was written again has other records at the same positions.
    is_same = not is_other(split.attributes(), known.attributes())
    return is_same and (split.position or 0) > (known.position or 0)
