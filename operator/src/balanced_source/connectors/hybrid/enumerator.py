"""The enumerator of a hybrid source; see the package (FLIP-150 ``HybridSourceSplitEnumerator``)."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from balanced_source.api import (
    ReaderInfo,
    RebalanceCause,
    Source,
    SourceEvent,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitId,
    SplitsAssignment,
    SwitchPosition,
)
from balanced_source.connectors.hybrid.context import PartContext, own_splits
from balanced_source.connectors.hybrid.looks import Looks, looks_of
from balanced_source.connectors.hybrid.state import HybridState
from balanced_source.connectors.hybrid.values import HybridSplit, PartCall
from balanced_source.errors import ContractViolationError, text_of
from balanced_source.names import counted
from balanced_source.reasons import Reason

if TYPE_CHECKING:
    from balanced_source.connectors.hybrid.source import HybridSource


class HybridSplitEnumerator(SplitEnumerator[HybridSplit, HybridState]):
    """Runs the enumerator of one part at a time.

    Args:
        context: of the coordinator.
        source: the parts.
        state: to continue from; None for a fresh enumerator.
    """

    def __init__(
        self,
        context: SplitEnumeratorContext[HybridSplit],
        source: "HybridSource",
        state: HybridState | None,
    ) -> None:
        super().__init__(context)
        self.source = source
        self.index = 0 if state is None else source.index_of(state.part)
        self.position = SwitchPosition() if state is None else state.position
        self.leftovers: Mapping[SplitId, HybridSplit] = {} if state is None else state.leftovers
        self.kept: frozenset[SplitId] = frozenset() if state is None else state.kept
        self.looks = Looks() if state is None else state.looks
        self.looking: Sequence[PartCall] = ()
        """Looks whose answer is due. The source does not ask any more for what is missing here."""
        self.asked: Mapping[int, int] = {}
        """Reader → splits that it asks for and did not get: the next part is told of them."""
        self.part = self._created() if state is None else self._restored(state)
        self._snapshot = state

    # --- life cycle -------------------------------------------------------------------------------

    def start(self) -> None:
        self.part.start()
        self._look()
        self._give_leftovers()
        self._switch()

    def _is_still(self, known: HybridState, name: str, state: Any) -> bool:
        # The coordinator takes another object for a change, and would store it at each event.
        return (
            known.part == name
            and known.state is state
            and known.leftovers is self.leftovers
            and known.kept is self.kept
            and known.looks.known is self.looks.known
        )

    def snapshot_state(self) -> HybridState:
        """Return an equal value as the same one: the coordinator stores what is another one."""
        name, state, known = self.name, self.part.snapshot_state(), self._snapshot
        if known is None or not self._is_still(known, name, state):
            known = HybridState(
                part=name,
                state=state,
                position=self.position,
                leftovers=self.leftovers,
                kept=self.kept,
                looks=self.looks,
            )
            self._snapshot = known
        return known

    def fork(self, context: SplitEnumeratorContext[HybridSplit]) -> Self:
        copy = type(self)(context, self.source, self.snapshot_state())
        copy.asked, copy.looks, copy.looking = self.asked, self.looks, self.looking
        copy.part = self.part.fork(copy.part.context)
        return copy

    def close(self) -> None:
        self.part.close()

    @property
    def name(self) -> str:
        """Name of the part that is read."""
        return self.source.parts[self.index].name

    @property
    def stage(self) -> str:
        return self.name

    @property
    def is_last(self) -> bool:
        """Whether no part follows."""
        return self.index == len(self.source.parts) - 1

    def problems(self) -> Mapping[str, Exception]:
        return self.part.problems()

    def blocked(self) -> Mapping[str, Exception]:
        return self.part.blocked()

    def only_awaits(self) -> bool:
        return self.part.only_awaits()

    def undiscovered(self) -> frozenset[str]:
        return self.part.undiscovered()

    def is_settled(self) -> bool:
        return self.part.is_settled()

    def pending_splits(self) -> int:
        return self.part.pending_splits() + len(self.leftovers)

    def is_finished(self) -> bool:
        return self.is_last and self.part.is_finished() and not self._has_leftovers()

    def _has_leftovers(self) -> bool:
        """Whether splits of former parts are still to be read, by whomever."""
        if self.leftovers:
            return True
        # Splits of a part that is read leave the assignment. Where they stay, nothing comes back:
        # Spark's checkpoint is as old as the state.
        former = frozenset(self.source.names[: self.index])
        owned = () if self.context.keeps_finished else self.context.current_assignments()
        return any(split_id[0] in former for split_id in owned)

    # --- the switch -------------------------------------------------------------------------------

    def _switch(self) -> None:
        """Go to the next part when everything of this one is read, and that is committed."""
        while not self.is_last and self.part.is_finished() and not self._has_leftovers():
            # Measured while listing, so it covers the files that were taken. Measured now, it would
            # count files that came later and are not read.
            state = self.part.snapshot_state()
            measured = self.source.measured(self.index, self.position, state)
            following = self.source.parts[self.index + 1]
            position = replace(measured, meanings=self.looks.of_part(following.name))
            self.looks = self.looks.without(following.name)
            # The state is that of one part, so its size does not depend on the parts that were
            # read.
            self.finish([s for s in self.context.current_assignments() if s[0] == self.name])
            self._begin(self.index + 1, position)
            self._say_switched()

    def _begin(self, index: int, position: SwitchPosition) -> None:
        """Start the enumerator of another part."""
        self.part.close()
        self.index, self.position = index, position
        self.part = self._created()
        self.part.start()
        # Readers of the former part are there already, and no one registers for the next one.
        readers = self.context.registered_readers()
        self.part.add_readers(sorted(readers))
        # A request stands until it is answered: the coordinator does not pass it on a second time.
        # One of a reader that is gone stands no more: if it comes back, it asks again.
        self.asked = {s: count for s, count in self.asked.items() if s in readers}
        if self.asked:
            self.part.handle_split_requests(self.asked, None)

    def _look(self) -> None:
        """Ask what names in later parts stand for, unless an answer is due; see `looks`."""
        wanted = [call for part in self.source.parts[self.index + 1 :] for call in looks_of(part)]
        before, self.looking = self.looking, wanted
        for call in wanted:
            if call not in before:
                self.context.call_async(call, self.handle_look)

    def handle_look(self, call: PartCall, result: Any) -> None:
        """Completion of a look; ignored after the switch, and if the source has changed."""
        if (index := self.source.index_of(call.part)) <= self.index or call not in self.looking:
            return
        self.looking = [due for due in self.looking if due != call]
        self.looks, delay = self.looks.answered(self.source.parts[index], call, result)
        if (error := self.looks.news(call, result)) is not None:
            text = f"Part {call.part}, which is read later, cannot be looked at: {text_of(error)}"
            self.context.report(Reason.DISCOVERY_FAILED, text, warning=True)
        if delay is not None:
            self.looking = [*self.looking, call]
            self.context.call_async(call, self.handle_look, initial_delay=delay)

    def _let_go(self, *names: str) -> None:
        """Take the splits of parts that are read out of the assignment, if they are in it."""
        owned = self.context.current_assignments()
        self.context.finish_splits([s for s in owned if s[0] in names])

    def finish(self, split_ids: Iterable[SplitId]) -> None:
        """Take splits of the present part that were read out of the assignment.

        Spark's checkpoint keeps them until others are read or given out. So it always names one of
        the part that was read last: if the state is lost between two parts, nothing else says so.
        """
        owned = self.context.current_assignments()
        gone = [s for s in split_ids if s in owned]
        if gone and not self.context.keeps_finished:
            self._forget_kept()
            self.context.revoke_splits(gone, retain=True)
            self.kept = frozenset(gone)

    def _forget_kept(self) -> None:
        """Let the splits go that only the checkpoint keeps, see `finish`."""
        if self.kept:
            self.context.forget_splits(self.kept)
            self.kept = frozenset()

    def _say_switched(self) -> None:
        former, position = self.source.parts[self.index - 1].name, self.position
        where = "where its own settings say"
        if position.time is not None:
            where = f"behind {position.time} ms since the epoch"
        elif position.offsets:
            where = f"behind the offsets of {counted(len(position.offsets), 'partition')}"
        text = f"Part {former} is read to its end. Reading continues with part {self.name}, {where}"
        self.context.report(Reason.PART_SWITCHED, text)

    def _follow_reports(self, readers: Iterable[ReaderInfo[HybridSplit]]) -> None:
        """Readers hold splits of a later part: the state was lost, or is an older copy."""
        names = self.source.names
        parts = {
            split.part
            for reader in readers
            for split in (*reader.reported_splits, *reader.retained_splits)
        }
        furthest = max((names.index(name) for name in parts if name in names), default=0)
        # What is held of earlier parts are leftovers, see `_take_former`.
        if furthest <= self.index:
            return
        former = names[self.index : furthest]
        self.context.forget_splits([s for s in self._held_back() if s[0] in former])
        self._let_go(*former)
        self._forget_kept()
        self.leftovers = {}
        # The position where the part started was in the state that is lost.
        self._begin(furthest, SwitchPosition())
        # Splits that no reader holds start at their beginning then, and may be delivered twice.
        if self.source.parts[furthest].start is not None:
            self.context.report(Reason.PART_SWITCHED, _position_lost(self.name), warning=True)

    def _held_back(self) -> list[SplitId]:
        """Return the splits of the present part that the readers may still retain."""
        readers = self.context.registered_readers().values()
        return [split.split_id for reader in readers for split in reader.retained_splits]

    # --- calls ------------------------------------------------------------------------------------

    def handle_part_call(self, call: PartCall, result: Any) -> None:
        """Completion of a `PartCall`; answers for a part that is not read any more are ignored."""
        # The call was made before a switch, for an enumerator that is closed.
        if call.part == self.name:
            getattr(self.part, call.handler)(call.call, result)
            self._switch()

    def note_given(self, owners: Collection[int]) -> None:
        """Take note of readers that were given splits, one for each split."""
        if owners:
            self._forget_kept()
        if self.asked:
            given = Counter(owners)
            self.asked = {
                s: left for s, count in self.asked.items() if (left := count - given[s]) > 0
            }

    # --- readers ----------------------------------------------------------------------------------

    def add_reader(self, subtask_id: int) -> None:
        self.add_readers((subtask_id,))

    def add_readers(self, subtask_ids: Sequence[int]) -> None:
        registered = self.context.registered_readers()
        readers = [registered[subtask] for subtask in subtask_ids]
        # A new incarnation asks again with its first report.
        self.asked = {s: count for s, count in self.asked.items() if s not in subtask_ids}
        # First which part it is: after a loss of the state the readers know it better.
        self._follow_reports(readers)
        self._take_former(readers)
        self.part.add_readers(subtask_ids)
        self._give_leftovers()
        self._switch()

    def _take_former(self, readers: Iterable[ReaderInfo[HybridSplit]]) -> None:
        """Former parts are read.

        Only an older Spark checkpoint holds unread splits of theirs, which are read again.
        """
        owned = self.context.current_assignments()
        former = frozenset(self.source.names[: self.index])
        for reader in readers:
            # A split with an owner was decided on already.
            held = {
                s.split_id: s
                for s in reader.reported_splits
                if s.part in former and s.split_id not in owned
            }
            unread = {split_id: split for split_id, split in held.items() if not split.is_finished}
            if unread:
                self.leftovers = {**self.leftovers, **unread}
                self.kept = self.kept.difference(unread)
            kept = [
                s.split_id
                for s in reader.retained_splits
                if s.part in former and s.split_id not in owned
            ]
            left = self.leftovers.keys() | self.kept
            self.context.forget_splits([s for s in (*held, *kept) if s not in left])

    def handle_history(self, guessed: Collection[SplitId]) -> None:
        readers = self.context.registered_readers().values()
        self._follow_reports(readers)
        holds_any = any(reader.reported_splits or reader.retained_splits for reader in readers)
        # A part whose readers ask for splits gives none out while it does not know which were read.
        if not (holds_any or self.is_last or self.source.parts[self.index].source.look_ahead):
            self.context.report(Reason.PART_SWITCHED, _unknown_part(self.name), warning=True)
        self.part.handle_history(frozenset(s[1:] for s in guessed if s[0] == self.name))

    def handle_older_checkpoint(self) -> None:
        """An older copy of a former part tells nothing of the present one, which reads on."""
        readers = self.context.registered_readers().values()
        held = (s.split_id for r in readers for s in (*r.reported_splits, *r.retained_splits))
        if any(split_id[0] == self.name for split_id in held):
            self.part.handle_older_checkpoint()

    def handle_renumbered(self, numbers: Mapping[int, int]) -> None:
        self.asked = {numbers[s]: count for s, count in self.asked.items() if s in numbers}
        self.part.handle_renumbered(numbers)

    def handle_split_request(self, subtask_id: int, requester_hostname: str | None) -> None:
        self.handle_split_requests({subtask_id: 1}, requester_hostname)

    def handle_split_requests(
        self, counts: Mapping[int, int], requester_hostname: str | None
    ) -> None:
        self.asked = {
            **self.asked,
            **{s: self.asked.get(s, 0) + count for s, count in counts.items()},
        }
        self.part.handle_split_requests(counts, requester_hostname)
        self._switch()

    def handle_source_event(self, subtask_id: int, event: SourceEvent) -> None:
        """Events of readers name the part they are for; the planner hooks see to that."""
        payload = event.payload
        if isinstance(payload, Mapping) and payload.get("part") == self.name:
            self.part.handle_source_event(
                subtask_id, SourceEvent(name=event.name, payload=payload.get("payload"))
            )
            # It may have said that the part ends.
            self._switch()

    def handle_loads(self) -> None:
        self.part.handle_loads()
        self._switch()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.part.notify_checkpoint_complete(checkpoint_id)
        self._switch()

    # --- splits -----------------------------------------------------------------------------------

    def add_splits_back(self, splits: Sequence[HybridSplit], subtask_id: int) -> None:
        if own := own_splits(splits, self.name):
            self.part.add_splits_back(own, subtask_id)
        others = {split.split_id: split for split in splits if split.part != self.name}
        unread = {split_id: split for split_id, split in others.items() if not split.is_finished}
        # A split of a former part that was read has nothing more, so no host keeps its position.
        self.context.forget_splits(others.keys() - unread.keys())
        if unread:
            self.leftovers = {**self.leftovers, **unread}

    def handle_revoked(self, splits: Sequence[HybridSplit]) -> None:
        if own := own_splits(splits, self.name):
            self.part.handle_revoked(own)
        known = {split.split_id: split for split in splits if split.split_id in self.leftovers}
        if known:
            self.leftovers = {**self.leftovers, **known}
            self._give_leftovers()
        self._switch()

    def handle_finished(self, split_ids: Sequence[SplitId]) -> None:
        if own := [split_id[1:] for split_id in split_ids if split_id[0] == self.name]:
            self.part.handle_finished(own)
        # No enumerator cares for leftovers of former parts, so they are let go of here.
        self.context.finish_splits([split_id for split_id in split_ids if split_id[0] != self.name])
        self._switch()

    def rebalance(self, cause: RebalanceCause) -> None:
        self.part.rebalance(cause)
        self._give_leftovers()
        self._switch()

    def _give_leftovers(self) -> None:
        """Give splits of former parts to the readers with the fewest splits."""
        readers = sorted(self.context.registered_readers())
        if not self.leftovers or not readers:
            return
        # Leftovers are read beside the present part, whose splits are load as well.
        loads = Counter(self.context.current_assignments().values())
        given: dict[int, list[HybridSplit]] = {}
        for split in self.leftovers.values():
            subtask = min(readers, key=lambda reader: loads[reader])
            loads[subtask] += 1
            given.setdefault(subtask, []).append(split)
        self.leftovers = {}
        self.context.assign_splits(SplitsAssignment(assignment=given))

    # --- changes ----------------------------------------------------------------------------------

    def handle_source_change(self, source: Source[HybridSplit, HybridState]) -> None:
        # The state and the ids of splits name the part, so another order would mean other splits.
        if getattr(source, "names", ()) != self.source.names:
            raise ContractViolationError(
                "the kinds and the order of the parts cannot change while the source runs"
            )
        self.source = source  # type: ignore[assignment] # one of the same kind
        self.part.handle_source_change(self.source.started(self.index, self.position))
        # It may name more topics than before.
        self._look()
        self._switch()

    def _created(self) -> SplitEnumerator[Any, Any]:
        return self._started().create_enumerator(self._context_of())

    def _restored(self, state: HybridState) -> SplitEnumerator[Any, Any]:
        return self._started().restore_enumerator(self._context_of(), state.state)

    def _started(self) -> Source[Any, Any]:
        return self.source.started(self.index, self.position)

    def _context_of(self) -> PartContext:
        return PartContext(self.context, self, self.source.parts[self.index], is_last=self.is_last)


def _unknown_part(name: str) -> str:
    return (
        "The stored state was lost or is an older copy, and no reader holds a split, so it is"
        f" unknown whether part {name} was read to its end. It is read from its start, and its"
        " records may be delivered twice. Restore the newest state to avoid that"
    )


def _position_lost(name: str) -> str:
    return (
        f"The stored state was lost while part {name} was read, and with it the position where that"
        " part starts. Splits that readers hold continue where they stand. Splits that no reader"
        " holds start at their beginning, so that their records may be delivered twice. Restore"
        " the newest state to avoid that"
    )
