"""The source coordinator: events in, effects out. No I/O, no clock, no threads (sans-IO, like h11).

One turn is the handling of one event. It ends with at most one new epoch, however many splits were
touched, and with effects in write-ahead order: the state first, then the assignment that it
implies, then everything else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Generic, Literal, Self, assert_never

from balanced_source.api import (
    SPLIT_REQUEST,
    CallFailure,
    ReaderInfo,
    RebalanceCause,
    Source,
    SourceEvent,
    SplitEnumerator,
    SplitId,
    SupportsSplitReassignmentOnRecovery,
)
from balanced_source.coordinator import (
    finished,
    mailbox,
    membership,
    recovery,
    registration,
    requests,
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
    ParallelismChanged,
    RebalanceRequested,
    ReportReceived,
    SourceChanged,
)
from balanced_source.coordinator.phase import complete_epoch
from balanced_source.coordinator.revocations import let_go
from balanced_source.coordinator.state import (
    Checkpoint,
    CoordinatorState,
    HostState,
    SplitT,
    StateT,
    with_next_epoch,
)
from balanced_source.coordinator.view import AttributeTable, assignment_of
from balanced_source.documents import envelope
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import in_host_order
from balanced_source.errors import ContractViolationError
from balanced_source.lifecycles import HOST, HostEvent, HostPhase
from balanced_source.reasons import Reason


class SourceCoordinator(Generic[SplitT, StateT]):
    """Drives one enumerator and tracks the reader hosts of one source.

    After an exception from `start` or `handle` a coordinator must not be used any more: build a new
    one from the stored checkpoint.
    """

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
        """A coordinator for `source`.

        Fresh, or going on from `restored` (then `parallelism` and `hosts` are there).

        Args:
            source: what is read.
            parallelism: number of readers.
            hosts: names of the reader hosts.
            lineage: 1 for a new source; higher than any before for one whose state was lost or is
                an older copy. Hosts report anew when they see it, so that nothing is decided on
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
        if isinstance(published, Assignment):
            # some may be on their way out
            hosts = tuple(dict.fromkeys((*hosts, *published.incarnations)))
        if restored is None:
            membership.check_positive(parallelism, hosts)
            state: CoordinatorState[SplitT] = CoordinatorState(
                lineage=lineage,
                parallelism=parallelism,
                hosts=in_host_order(dict.fromkeys(hosts, HostState())),
            )
        else:
            state = restored.coordinator
        self.source = source
        self._is_restored = restored is not None
        self._is_outdated = False
        if (
            restored is not None
            and published != "unknown"
            and registration.is_outdated(state, published, lineage)
        ):
            state = registration.started_over(state, published, least=lineage)
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
    def state(self) -> CoordinatorState[SplitT]:
        """What is decided now."""
        return self._context.state

    @property
    def is_restored(self) -> bool:
        """Whether it goes on from a stored checkpoint."""
        return self._is_restored

    @property
    def assignment(self) -> Assignment:
        """The document of the current epoch."""
        document = assignment_of(self.state, self.source.reader_settings(), self._attributes)
        return replace(
            document, undiscovered=self.enumerator.undiscovered(), look_ahead=self.source.look_ahead
        )

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """Hosts that a recovery waits for."""
        return recovery.waiting_for(self.state)

    def checkpoint(self) -> Checkpoint[SplitT, StateT]:
        """The state to store."""
        return Checkpoint(coordinator=self.state, enumerator=self.enumerator.snapshot_state())

    def rebuilt(
        self, source: Source[SplitT, StateT], stored: Checkpoint[SplitT, StateT] | None
    ) -> Self:
        """A coordinator in place of this one, which raised.

        From what is stored, or from the beginning.
        """
        keeps = self._context.keeps_finished
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
        """A copy that goes its own way: for dry runs and for exhaustive exploration."""
        copy = object.__new__(type(self))
        copy.source, copy._is_restored, copy._is_outdated = (
            self.source,
            self._is_restored,
            self._is_outdated,
        )
        copy._must_persist, copy._is_started = self._must_persist, self._is_started
        copy._context, copy._attributes = self._context.fork(), self._attributes.fork()
        copy.enumerator = self.enumerator.fork(copy._context)
        return copy

    def start(self, *, now: float) -> list[Effect]:
        """Begin: called once, before `handle`.

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
            {s: ReaderInfo(subtask_id=s) for s in self._assignable(range(state.parallelism))}
        )
        self.enumerator.start()
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
        if self._is_restored and state.epoch and self.state.epoch == state.epoch:
            effects.insert(0, PublishAssignment(self.assignment))
        return effects

    def close(self) -> None:
        """The process lets go of the source.

        Neither `start` nor `handle` may be called any more.
        """
        self.enumerator.close()

    def handle(self, event: Event, *, now: float) -> list[Effect]:
        """Take one event.

        Raises:
            ContractViolationError: the enumerator, an assigner or a host broke its contract, or
                `start` was not called.
        """
        if not self._is_started:
            raise ContractViolationError("the coordinator is not started: call start first")
        self._context.turn = Turn(now=now)
        before, undiscovered = self.enumerator.snapshot_state(), self.enumerator.undiscovered()
        match event:
            case ReportReceived():
                self._on_report(event.report)
            case HostLost():
                self._on_host_lost(event)
            case ParallelismChanged():
                self._on_parallelism(event.parallelism)
            case HostsChanged() | HostOverdue():
                self._set_hosts(membership.after(self.state, event))
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

    # --- reader hosts -----------------------------------------------------------------------------

    def _on_report(self, report: HostReport) -> None:
        if registration.is_ahead(self.state, report):
            self._start_over(report)
        host = self.state.hosts.get(report.host)
        if (
            host is None
            or report.lineage < self.state.lineage
            or report.incarnation < max(1, host.incarnation)
        ):
            return
        if report.incarnation > host.incarnation:
            self._register(report)
        elif host.report is None or report.sequence > host.report.sequence:
            self._progress(host, report)

    def _start_over(self, report: HostReport) -> None:
        self._context.state = registration.started_over(self.state, report)
        self._context.turn.is_changed = True
        self._report_outdated()

    def _report_outdated(self) -> None:
        text = (
            "the stored enumerator state is an older copy: readers report again what they hold, and"
            " reading continues"
        )
        self._context.report(Reason.STATE_OUTDATED, text, warning=True)

    def _register(self, report: HostReport) -> None:
        """A new incarnation.

        Nobody of the old one is served any more, and the report waits behind the gate.
        """
        before, context = self.state.hosts[report.host], self._context
        context.state = registration.absorbed(self.state, report.host)
        if before.phase is HostPhase.RECOVERING and before.report is not None:
            # That report never passed the gate: the enumerator keeps the positions of what nobody
            # owns.
            for subtask, splits in registration.unclaimed(
                self.state, self.source, before.report
            ).items():
                self._take_back(splits, subtask)
        context.state = registration.registered(self.state, report)
        self._drop_readers(report.host)
        if recovery.waiting_for(self.state):
            # nor does a host get anything that is yet to come: it may hold other splits
            context.set_readers({})
        self._must_persist = True
        self._open_gate()

    def _open_gate(self) -> None:
        done = recovery.recover(self.state, self.source)
        if done is None:
            return
        # A host may have read everything before it registered, and report nothing more.
        reports = [
            h.report
            for h in self.state.hosts.values()
            if h.phase is HostPhase.RECOVERING and h.report
        ]
        context = self._context
        context.state = done.state
        context.turn.is_changed = True
        if done.released:
            self.enumerator.handle_revoked(done.released)
        for subtask, splits in done.back.items():
            self._take_back(splits, subtask)
        context.set_readers({**context.readers, **done.readers})
        context.state = registration.with_reported(self.state, done.readers, self.source)
        if done.guessed is not None:
            self.enumerator.handle_history(done.guessed)
        self.enumerator.add_readers(tuple(done.readers))
        if done.is_full and isinstance(self.source, SupportsSplitReassignmentOnRecovery):
            self.enumerator.rebalance(RebalanceCause.RECOVERY)
        for report in reports:
            self._find_finished(report)

    def _progress(self, host: HostState, report: HostReport) -> None:
        phase = HOST.after(host.phase, HostEvent.REPORTED)
        self._set_host(report.host, replace(host, report=report, phase=phase))
        if phase is not HostPhase.ACTIVE:
            self._must_persist = True
            return
        if phase is not host.phase:
            self._add_readers(self.state.subtasks_of(report.host))
        self._acknowledge(report.host, before=host.acknowledged_epoch)
        self._take_events(report)
        self._find_finished(report)
        self._take_requests(report)
        self._observe_loads(report)
        # it was thought lost: hosts that waited for it continue beside it, if it stays
        if phase is not host.phase:
            self._set_hosts(membership.followed(self.state))
            self._open_gate()

    def _observe_loads(self, report: HostReport) -> None:
        if self.source.wants_loads:
            loads = self.state.loads.observe(report, self.state.owners)
            self._context.state = replace(self.state, loads=loads)
            self.enumerator.handle_loads()

    def _acknowledge(self, name: str, *, before: int) -> None:
        state = self.state
        epoch = state.hosts[name].acknowledged_epoch
        if epoch <= before:
            return
        complete = complete_epoch(self.state, name, before)
        tracker = state.tracker.on_checkpoint_complete(epoch, of=state.is_held_by(name))
        self._context.state = replace(state, tracker=tracker)
        self._release(name, epoch)
        if (now_complete := complete_epoch(self.state, name, epoch)) > complete:
            self.enumerator.notify_checkpoint_complete(now_complete)

    def _release(self, name: str, epoch: int) -> None:
        """The host holds an epoch without these splits.

        Others may have them now, at their final positions.
        """
        before, report = self.state, self.state.hosts[name].report
        if report is None:
            return
        self._context.state, released = let_go(
            before, {name: report}, is_done=lambda r: r.epoch <= epoch
        )
        self._must_persist |= self.state is not before
        self._context.turn.is_changed |= len(before.revoking) - len(self.state.revoking) > len(
            released
        )
        if released:
            self.enumerator.handle_revoked(released)

    def _take_events(self, report: HostReport) -> None:
        context = self._context
        for numbered in mailbox.fresh_events(self.state, report):
            context.state = mailbox.with_events_seen(self.state, report.host, numbered.number)
            context.turn.is_changed = True
            self._deliver(numbered.subtask_id, numbered.event, report.location or None)
        context.state = mailbox.acknowledged(self.state, report)

    def _deliver(self, subtask_id: int, event: SourceEvent, location: str | None) -> None:
        if subtask_id not in self._context.readers:
            return  # of a reader that a change of parallelism took away meanwhile
        if event == SPLIT_REQUEST:
            self.enumerator.handle_split_request(subtask_id, location)
        else:
            self.enumerator.handle_source_event(subtask_id, event)

    def _take_requests(self, report: HostReport) -> None:
        """Pass on what readers lack, except what they were given or is asked since the report."""
        context, ended = self._context, self.state.no_more_splits
        lacking = requests.unanswered(self.state, report, context.asked)
        counts = {s: n for s, n in lacking.items() if s in context.readers and s not in ended}
        if counts:
            context.asked = {
                **context.asked,
                **{s: context.asked.get(s, 0) + n for s, n in counts.items()},
            }
            self.enumerator.handle_split_requests(counts, report.location or None)

    def _find_finished(self, report: HostReport) -> None:
        handled = self._context.handled_finished
        if found := finished.newly_finished(self.state, self.source, report, handled):
            self._context.handled_finished = handled.union(found)
            self.enumerator.handle_finished(sorted(found))

    def _take_back(self, splits: list[SplitT], subtask: int) -> None:
        self._context.handled_finished = self._context.handled_finished.difference(
            split.split_id for split in splits
        )
        self.enumerator.add_splits_back(splits, subtask)

    def _on_host_lost(self, event: HostLost) -> None:
        host = self.state.hosts.get(event.host)
        if (
            host is None
            or host.incarnation != event.incarnation
            or not HOST.allows(host.phase, HostEvent.GONE)
        ):
            return
        self._set_host(event.host, replace(host, phase=HOST.after(host.phase, HostEvent.GONE)))
        self._drop_readers(event.host)
        self._must_persist = True

    def _on_given_up(self, event: HostGivenUp) -> None:
        hosts = membership.without_lost(self.state, event)
        if hosts != self.state.hosts:
            self._on_host_lost(HostLost(event.host, event.incarnation))
            self._set_hosts(hosts)
            if event.accepts_duplicates:
                self._release(event.host, self.state.epoch + 1)

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
        orphans: dict[int, list[SplitT]] = {}
        for split_id, split in self.state.splits_now(homeless).items():
            orphans.setdefault(self.state.owners[split_id], []).append(split)
        context.revoke_splits(homeless, retain=True)
        still_ended = frozenset(s for s in self.state.no_more_splits if s < parallelism)
        context.state = replace(self.state, parallelism=parallelism, no_more_splits=still_ended)
        context.state = mailbox.dropped(self.state, range(parallelism, before))
        context.set_readers({s: reader for s, reader in context.readers.items() if s < parallelism})
        for subtask in sorted(orphans):
            self._take_back(orphans[subtask], subtask)
        self._add_readers(range(before, parallelism))
        self.enumerator.rebalance(RebalanceCause.RESCALE)

    def _set_hosts(self, hosts: membership.Hosts) -> None:
        members = self.state.members
        if hosts == self.state.hosts:
            return
        orphans, numbers = membership.change(self._context, hosts)
        self._must_persist = True
        for subtask in sorted(orphans):
            self._take_back(orphans[subtask], subtask)
        if self.state.members != members:
            self.enumerator.handle_renumbered(numbers)
            self._add_readers(
                [s for s in range(self.state.parallelism) if s not in self._context.readers]
            )
            self.enumerator.rebalance(RebalanceCause.RESCALE)

    def _on_rebalance(self, event: RebalanceRequested) -> None:
        if event.nonce is not None:
            if event.nonce == self.state.rebalance_nonce:
                return
            self._context.state = replace(self.state, rebalance_nonce=event.nonce)
            self._must_persist = True
        self.enumerator.rebalance(event.cause)

    def _on_source(self, source: Source[SplitT, StateT]) -> None:
        context = self._context
        # What was said to be the end is not the end of what is asked for now; the enumerator says
        # it again if it is.
        context.turn.is_changed |= bool(self.state.no_more_splits)
        context.state = replace(self.state, no_more_splits=frozenset())
        self.source = source
        context.handled_finished = frozenset()
        self.enumerator.handle_source_change(source)
        self._publish_new_settings()
        self._must_persist = True

    def _publish_new_settings(self) -> None:
        """Readers learn of new settings by a new epoch, also if the process was down."""
        if (
            self.state.epoch
            and envelope.digest(self.source.reader_settings()) != self.state.settings
        ):
            self._context.turn.is_changed = True

    # --- outside ----------------------------------------------------------------------------------

    def _on_call(self, event: CallCompleted) -> None:
        context = self._context
        pending = context.calls.get(event.call_id)
        if pending is None:
            return
        context.calls = {n: call for n, call in context.calls.items() if n != event.call_id}
        getattr(self.enumerator, pending.handler)(pending.call, event.result)
        if pending.period is not None:
            context.issue(
                PendingCall(pending.call, pending.handler, pending.period), pending.period
            )

    # --- bookkeeping ------------------------------------------------------------------------------

    def _settle(self, undiscovered: frozenset[str] = frozenset()) -> list[Effect]:
        """End a turn, at whose beginning these scopes were undiscovered."""
        self._set_hosts(membership.followed(self.state))
        context, turn = self._context, self._context.turn
        effects: list[Effect]
        if turn.is_changed:
            context.state = with_next_epoch(
                self.state, settings=envelope.digest(self.source.reader_settings())
            )
            effects = [PersistState(self.checkpoint()), PublishAssignment(self.assignment)]
        else:
            effects = [PersistState(self.checkpoint())] if self._must_persist else []
            if self.state.epoch and self.enumerator.undiscovered() != undiscovered:
                effects.append(PublishAssignment(self.assignment))
        self._must_persist = False
        effects += turn.effects
        context.turn = Turn(now=turn.now)
        return effects

    def _set_host(self, name: str, host: HostState) -> None:
        self._context.state = replace(self.state, hosts={**self.state.hosts, name: host})

    def _drop_readers(self, name: str) -> None:
        gone = frozenset(self.state.subtasks_of(name))
        self._context.set_readers({s: r for s, r in self._context.readers.items() if s not in gone})

    def _assignable(self, subtasks: Iterable[int]) -> list[int]:
        """Readers that may be given splits now: none while the gate is closed."""
        state = self.state
        is_closed = bool(recovery.waiting_for(state))
        return [
            s for s in subtasks if state.hosts[state.host_of(s)].is_assignable and not is_closed
        ]

    def _add_readers(self, subtasks: Iterable[int]) -> None:
        fresh = self._assignable(subtasks)
        added: dict[int, ReaderInfo[SplitT]] = {
            subtask: ReaderInfo(subtask_id=subtask) for subtask in fresh
        }
        self._context.set_readers({**self._context.readers, **added})
        self.enumerator.add_readers(fresh)


__all__ = ["CallFailure", "SourceCoordinator", "SplitId"]
