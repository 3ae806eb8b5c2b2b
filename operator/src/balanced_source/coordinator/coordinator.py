"""The source coordinator: events in, effects out. No I/O, no clock, no threads (sans-IO, like h11).

One turn is the handling of one event. It ends with at most one new epoch, however many splits were
touched, and with effects in write-ahead order: the state first, then the assignment that it
implies, then everything else.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Self, assert_never

from balanced_source.api import (
    CallFailure,
    ReaderInfo,
    RebalanceCause,
    Source,
    SplitEnumerator,
    SplitId,
)
from balanced_source.coordinator import (
    mailbox,
    membership,
    recovery,
    registration,
)
from balanced_source.coordinator.context import CoordinatorContext, PendingCall, Turn
from balanced_source.coordinator.effects import Effect, PersistState, PublishAssignment
from balanced_source.coordinator.events import (
    CallCompleted,
    Event,
    HostGivenUp,
    HostLost,
    HostOverdue,
    HostsChanged,
    HostSilent,
    ParallelismChanged,
    RebalanceRequested,
    ReportReceived,
    SourceChanged,
)
from balanced_source.coordinator.host_reports import HostReports
from balanced_source.coordinator.state import (
    Checkpoint,
    SplitT,
    StateT,
    with_next_epoch,
)
from balanced_source.coordinator.view import AttributeTable, assignment_of, digest_of_settings
from balanced_source.documents.assignment import Assignment
from balanced_source.errors import ContractViolationError, containing


class SourceCoordinator(HostReports[SplitT, StateT]):
    """Drives one enumerator and tracks the reader hosts of one source.

    After an exception from `start` or `handle` a coordinator must not be used any more: build a new
    one from the stored checkpoint.
    """

    @containing()
    def __init__(
        self,
        source: Source[SplitT, StateT],
        *,
        parallelism: int = 1,
        hosts: Sequence[str] = ("0",),
        lineage: int = 1,
        restored: Checkpoint[SplitT, StateT] | None = None,
        published: Assignment | Literal["unknown"] | None = "unknown",
        keeps_finished: bool = False,
    ) -> None:
        """A coordinator that begins, or continues from `restored`, which has the hosts and so on.

        Args:
            source: what is read.
            parallelism: number of readers.
            hosts: names of the reader hosts.
            lineage: 1 for a new source; higher than any before for one whose state was lost or is
                an older copy. Hosts report again when they see it, so that nothing is decided on
                what an older report says.
            restored: the stored checkpoint, if there is one.
            published: the newest published assignment; None if there is none that can be read. If
                `restored` does not imply it, it is an older copy: then a new lineage begins, in
                which all hosts register again. "unknown" trusts `restored`.
            keeps_finished: whether splits that have been read stay assigned, see
                `SplitEnumeratorContext.finish_splits`: where nothing but Spark's checkpoint is
                stored.

        Raises:
            ContractViolationError: parallelism or the number of hosts is below 1.
        """
        if isinstance(published, Assignment):  # some of its hosts may be on their way out
            hosts = tuple(dict.fromkeys((*hosts, *published.incarnations)))
        self.source = source
        state = (
            membership.first_state(parallelism, hosts, lineage=lineage)
            if restored is None
            else restored.coordinator
        )
        self._is_restored, self._is_outdated = restored is not None, False
        if (
            restored is not None
            and published != "unknown"
            # The state is stored before an assignment is published, so an assignment that does not
            # follow from the state proves that the state is an older copy.
            and registration.is_outdated(state, published, lineage)
        ):
            state = registration.started_over(state, published, least=lineage)
            # The copy may be older than a host that was added since, and that may hold splits.
            state, self._is_outdated = membership.with_all(state, hosts), True
        self._context: CoordinatorContext[SplitT] = CoordinatorContext(
            state, keeps_finished=keeps_finished
        )
        self.enumerator: SplitEnumerator[SplitT, StateT] = (
            source.create_enumerator(self._context)
            if restored is None
            else source.restore_enumerator(self._context, restored.enumerator)
        )
        self._attributes = AttributeTable()
        self._must_persist = self._is_started = False

    @property
    def is_restored(self) -> bool:
        """Whether the coordinator continues from a stored checkpoint."""
        return self._is_restored

    @property
    def assignment(self) -> Assignment:
        """The document of the current epoch."""
        # The table keeps what it returned before, so that most attributes are not made again.
        document = assignment_of(self.state, self.source.reader_settings(), self._attributes)
        return replace(
            document,
            undiscovered=self.enumerator.undiscovered(),
            look_ahead=self.source.look_ahead,
            has_ending_splits=self.source.has_ending_splits,
        )

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """Hosts that a recovery waits for."""
        return recovery.waiting_for(self.state)

    @property
    def silent_hosts(self) -> frozenset[str]:
        """Hosts that have not reported for long; see `HostSilent`."""
        return self._context.silent

    def checkpoint(self) -> Checkpoint[SplitT, StateT]:
        """The state to store."""
        return Checkpoint(coordinator=self.state, enumerator=self.enumerator.snapshot_state())

    def rebuilt(
        self, source: Source[SplitT, StateT], stored: Checkpoint[SplitT, StateT] | None
    ) -> Self:
        """Return a coordinator that replaces this one after an exception.

        It starts from the stored checkpoint, or from the beginning.
        """
        keeps = self._context.keeps_finished
        # What was decided since the last write was not published either, so no one has heard of it.
        if stored is not None:
            return type(self)(source, restored=stored, keeps_finished=keeps)
        state, hosts = self.state, tuple(self.state.hosts)
        return type(self)(
            source,
            parallelism=state.parallelism,
            hosts=hosts,
            lineage=state.lineage,
            keeps_finished=keeps,
        )

    def fork(self) -> Self:
        """Return an independent copy, for dry runs and exhaustive exploration."""
        # `__init__` would create an enumerator, and the copy gets a fork of this one.
        copy = object.__new__(type(self))
        copy.source, copy._is_restored, copy._is_outdated = (
            self.source,
            self._is_restored,
            self._is_outdated,
        )
        copy._must_persist, copy._is_started = self._must_persist, self._is_started
        # The enumerator needs its own context: it decides through it, into the copy's state.
        copy._context, copy._attributes = self._context.fork(), self._attributes.fork()
        copy.enumerator = self.enumerator.fork(copy._context)
        return copy

    @containing()
    def start(self, *, now: float) -> list[Effect]:
        """Start the coordinator. Call it once, before `handle`.

        A restored coordinator publishes its epoch again, because its predecessor may have died
        between storing the state and publishing.

        Raises:
            ContractViolationError: it was called before.
        """
        if self._is_started:
            raise ContractViolationError(
                "the coordinator was started already: build a new one from the checkpoint"
            )
        self._is_started = True
        self._context.turn = Turn(now=now)
        state = self.state
        self._context.set_readers(
            # While a recovery waits at the gate, no reader may be given anything, also not by
            # discovery.
            {s: ReaderInfo(subtask_id=s) for s in self._assignable(range(state.parallelism))}
        )
        self.enumerator.start()
        # A fresh coordinator deals before hosts register. After a loss of the state that is a
        # guess, and what hosts hold beats it.
        if not self._is_restored:
            self.enumerator.add_readers(range(state.parallelism))
        # Hosts register again because they see the lineage, so it goes out before anything is
        # known.
        self._context.turn.is_changed |= self._is_outdated or (
            not self._is_restored and state.lineage > 1
        )
        # Nor does a host ask for splits before it has seen that it must.
        self._context.turn.is_changed |= self.source.look_ahead > 0 and not state.epoch
        if self._is_outdated:
            self._report_outdated()
        self._publish_new_settings()
        self._open_gate()
        effects = self._settle()
        # A turn with a new epoch publishes that one. Epoch 0 says nothing, so it is not repeated.
        if self._is_restored and state.epoch and self.state.epoch == state.epoch:
            # The epoch is stored already, so this does not wait for the effects of the turn.
            effects.insert(0, PublishAssignment(self.assignment))
        return effects

    def close(self) -> None:
        """Close the coordinator: neither `start` nor `handle` may be called afterwards."""
        self.enumerator.close()

    @containing()
    def handle(self, event: Event, *, now: float) -> list[Effect]:
        """Handle one event.

        Raises:
            ContractViolationError: the enumerator, an assigner or a host broke its contract, or
                `start` was not called.
        """
        if not self._is_started:
            raise ContractViolationError("the coordinator is not started: call start first")
        self._context.turn = Turn(now=now)
        # States are immutable, so identity tells cheaply whether the enumerator changed anything.
        before, undiscovered = self.enumerator.snapshot_state(), self.enumerator.undiscovered()
        match event:
            case ReportReceived():
                self._on_report(event.report)
            case HostLost() | HostSilent():
                self._on_absent(event)
            case ParallelismChanged():
                self._on_parallelism(event.parallelism)
            case HostsChanged() | HostOverdue():
                self._set_hosts(membership.after(self.state, event))
                # It may have waited for a host that is overdue or removed.
                self._open_gate()
            case HostGivenUp():
                self._on_given_up(event)
            case SourceChanged():
                self._on_source(event.source)
            case RebalanceRequested():
                self._on_rebalance(event)
            case CallCompleted():
                self._on_call(event)
            case _:
                assert_never(event)
        self._must_persist |= self.enumerator.snapshot_state() is not before
        return self._settle(undiscovered)

    # --- what the user wants ----------------------------------------------------------------------

    def _on_parallelism(self, parallelism: int) -> None:
        membership.check_positive(parallelism, tuple(self.state.hosts))
        before = self.state.parallelism
        if parallelism == before:
            return
        context = self._context
        context.turn.is_changed = True
        homeless = (
            [s for s, o in self.state.owners.items() if o >= parallelism]
            if parallelism < before
            else []
        )
        # Positions are read before the revocation, which forgets owners and splits.
        orphans: dict[int, list[SplitT]] = {}
        for split_id, split in self.state.splits_now(homeless).items():
            orphans.setdefault(self.state.owners[split_id], []).append(split)
        # Until the splits have owners again, the hosts keep the positions: the state may be lost.
        context.revoke_splits(homeless, retain=True)
        still_ended = frozenset(s for s in self.state.no_more_splits if s < parallelism)
        context.state = replace(self.state, parallelism=parallelism, no_more_splits=still_ended)
        # A reader that is gone never acknowledges, so its events would stay forever.
        context.state = mailbox.dropped(self.state, range(parallelism, before))
        # The readers go before their splits come back, so that none of these is given to them.
        context.set_readers({s: reader for s, reader in context.readers.items() if s < parallelism})
        for subtask in sorted(orphans):
            self._take_back(orphans[subtask], subtask)
        self._add_readers(range(before, parallelism))
        # Last, with all orphans and all new readers known: one rebalance moves the fewest splits.
        self.enumerator.rebalance(RebalanceCause.RESCALE)

    def _on_rebalance(self, event: RebalanceRequested) -> None:
        if event.nonce is not None:
            # The nonce stays in the spec. It is stored, so that a restart does not rebalance again.
            if event.nonce == self.state.rebalance_nonce:
                return
            self._context.state = replace(self.state, rebalance_nonce=event.nonce)
            self._must_persist = True
        self.enumerator.rebalance(event.cause)

    def _on_source(self, source: Source[SplitT, StateT]) -> None:
        context = self._context
        # What was said to be the end is not the end of what is asked for now; the enumerator says
        # it again if it is.
        context.turn.withdrawn = self.state.no_more_splits
        context.state = replace(self.state, no_more_splits=frozenset())
        self.source = source
        context.handled_finished = frozenset()
        self.enumerator.handle_source_change(source)
        context.turn.is_changed |= not context.turn.withdrawn <= self.state.no_more_splits
        self._publish_new_settings()
        self._must_persist = True

    def _publish_new_settings(self) -> None:
        """Readers learn of new settings by a new epoch, also if the process was down."""
        if self.state.epoch and digest_of_settings(self.source) != self.state.settings:
            self._context.turn.is_changed = True

    # --- outside ----------------------------------------------------------------------------------

    def _on_call(self, event: CallCompleted) -> None:
        context = self._context
        pending = context.calls.get(event.call_id)
        # It was answered already, or asked by a coordinator that this one replaces.
        if pending is None:
            return
        context.calls = {n: call for n, call in context.calls.items() if n != event.call_id}
        # The handler is known by name, because a fork must call its own enumerator.
        getattr(self.enumerator, pending.handler)(pending.call, event.result)
        if pending.period is not None:
            context.issue(
                PendingCall(pending.call, pending.handler, pending.period), pending.period
            )

    # --- bookkeeping ------------------------------------------------------------------------------

    def _settle(self, undiscovered: frozenset[str] = frozenset()) -> list[Effect]:
        """End a turn, at whose beginning these scopes were undiscovered."""
        # First: a host that joins or is forgotten belongs to the epoch of this turn.
        self._set_hosts(membership.followed(self.state))
        context, turn = self._context, self._context.turn
        effects: list[Effect]
        if turn.is_changed:
            context.state = with_next_epoch(self.state, settings=digest_of_settings(self.source))
            # Write ahead: should the operator die in between, its successor publishes what is
            # stored.
            effects = [PersistState(self.checkpoint()), PublishAssignment(self.assignment)]
        else:
            effects = [PersistState(self.checkpoint())] if self._must_persist else []
            # Undiscovered scopes travel without an epoch. A query that ends by itself waits for
            # this.
            if self.state.epoch and self.enumerator.undiscovered() != undiscovered:
                effects.append(PublishAssignment(self.assignment))
        self._must_persist = False
        # Calls and facts come last: what they follow from is stored by then.
        effects += turn.effects
        context.turn = Turn(now=turn.now)
        return effects


__all__ = ["CallFailure", "SourceCoordinator", "SplitId"]
