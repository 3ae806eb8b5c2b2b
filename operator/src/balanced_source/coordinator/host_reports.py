"""The coordinator's part for reader hosts: registration, gate, progress, loss, membership."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Generic

from balanced_source.api import (
    SPLIT_REQUEST,
    ReaderInfo,
    RebalanceCause,
    Source,
    SourceEvent,
    SplitEnumerator,
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
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.coordinator.events import (
    HostGivenUp,
    HostLost,
    HostSilent,
)
from balanced_source.coordinator.phase import complete_epoch
from balanced_source.coordinator.revocations import has_read, let_go
from balanced_source.coordinator.state import (
    CoordinatorState,
    HostState,
    SplitT,
    StateT,
)
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HOST, HostEvent, HostPhase
from balanced_source.names import counted
from balanced_source.reasons import Reason


class HostReports(Generic[SplitT, StateT]):
    """Takes in what reader hosts report.

    The base of `SourceCoordinator`, which makes the attributes.
    """

    source: Source[SplitT, StateT]
    enumerator: SplitEnumerator[SplitT, StateT]
    _context: CoordinatorContext[SplitT]
    _must_persist: bool

    @property
    def state(self) -> CoordinatorState[SplitT]:
        """What is decided now."""
        return self._context.state

    def _on_report(self, report: HostReport) -> None:
        if report.former is not None:
            # As if it had been seen in time: it may tell more than the checkpoint of the new
            # driver, and more than the stored state. Mostly it is known and changes nothing.
            self._on_report(report.former)
        # The new lineage is beyond that of this report too, so it is refused below: the host must
        # register again with what it holds.
        if registration.is_ahead(self.state, report):
            self._start_over(report)
        host = self.state.hosts.get(report.host)
        if (
            # The host left, or the report is of a former lineage or of an attempt that was
            # replaced: what these say is no longer true of what is read.
            host is None
            or report.lineage < self.state.lineage
            or report.incarnation < max(1, host.incarnation)
        ):
            return
        if report.incarnation > host.incarnation:
            self._register(report)
        # Documents may come late or twice. An older one would take positions back.
        elif host.report is None or report.sequence > host.report.sequence:
            self._progress(host, replace(report, former=None))

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

        No one of the old one is served any more, and the report waits behind the gate.
        """
        before, context = self.state.hosts[report.host], self._context
        if registration.is_too_late(self.state, report):
            text = (
                f"host {report.host} has started late and holds"
                f" {counted(len(report.positions), 'split')} of an earlier life of this source:"
                " records that other hosts have read of this meanwhile are delivered twice"
            )
            context.report(Reason.HOST_CAME_LATE, text, warning=True)
        # The new incarnation may have lost its Spark checkpoint. Then these positions are all there
        # is.
        context.state = registration.absorbed(self.state, report.host)
        if before.report_at_gate is not None:
            # That report never passed the gate: the enumerator keeps the positions of what no one
            # owns.
            for subtask, splits in registration.unclaimed(
                self.state, self.source, before.report_at_gate
            ).items():
                self._take_back(splits, subtask)
        context.state = registration.registered(self.state, report)
        self._set_hosts(membership.with_former(self.state, report))
        context.silent -= {report.host}
        # A new incarnation reads nothing until it is addressed, so its readers get nothing either.
        self._drop_readers(report.host)
        if recovery.waiting_for(self.state):
            # nor does a host get anything that is yet to come: it may hold other splits
            context.set_readers({})
        # A report that waits behind the gate is part of the state. A snapshot without it lost
        # partitions in Flink (FLINK-40469).
        self._must_persist = True
        self._open_gate()

    def _open_gate(self) -> None:
        done = recovery.recover(self.state, self.source)
        if done is None:
            return
        # A host may have read everything before it registered, and report nothing more.
        reports = [
            report
            for host in self.state.hosts.values()
            if (report := host.report_at_gate) is not None
        ]
        context = self._context
        context.state = done.state
        context.turn.is_changed = True
        # Final positions come before anything is given out: the next owner starts there.
        if done.released:
            self.enumerator.handle_revoked(done.released)
        for subtask, splits in done.back.items():
            self._take_back(splits, subtask)
        context.set_readers({**context.readers, **done.readers})
        context.state = registration.with_reported(self.state, done.readers, self.source)
        if done.guessed is not None:
            # Guesses go before the reports are taken in, because they would compete with them.
            self.enumerator.handle_history(done.guessed)
        elif done.is_older:
            self.enumerator.handle_older_checkpoint()
        for report in reports:
            again = finished.reopened(self.state, report, context.handled_finished)
            context.handled_finished -= again
        # All at once: with one reader after the other, the first one would get everything.
        self.enumerator.add_readers(tuple(done.readers))
        # After a partial recovery other hosts read on, and nothing of theirs may move (FLIP-537).
        if done.is_full and isinstance(self.source, SupportsSplitReassignmentOnRecovery):
            self.enumerator.rebalance(RebalanceCause.RECOVERY)
        for report in reports:
            self._find_finished(report)

    def _progress(self, host: HostState, report: HostReport) -> None:
        phase = HOST.after(host.phase, HostEvent.REPORTED)
        self._set_host(report.host, replace(host, report=report, phase=phase))
        # Behind the gate a report is part of the stored state, and acknowledges nothing.
        if phase is not HostPhase.ACTIVE:
            self._must_persist = True
            return
        # It was thought lost, and its readers were dropped then.
        if phase is not host.phase or report.host in self._context.silent:
            self._context.silent -= {report.host}
            self._add_readers(self.state.subtasks_of(report.host))
        self._acknowledge(report.host, before=host.acknowledged_epoch)
        self._release(report)
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
        # Most reports are heartbeats of an epoch that was acknowledged before.
        if epoch <= before:
            return
        complete = complete_epoch(self.state, name, before)
        # By holder, not by reader: inside its host a split may have moved since it was recorded.
        tracker = state.tracker.on_checkpoint_complete(epoch, of=state.is_held_by(name))
        self._context.state = replace(state, tracker=tracker)
        if (now_complete := complete_epoch(self.state, name, epoch)) > complete:
            self.enumerator.notify_checkpoint_complete(now_complete)

    def _release(self, report: HostReport) -> None:
        """Take note of what the host cannot read any more.

        It holds an epoch without these splits, or has read them to their end. Others may have them
        now, at their final positions.
        """
        # Each report asks, and seldom is anything on its way.
        if self.state.revoking:
            self._let_go(report, self.state.hosts[report.host].acknowledged_epoch)

    def _let_go(self, report: HostReport, epoch: int) -> None:
        before, may_end = self.state, self.source.has_ending_splits
        self._context.state, released = let_go(
            before,
            {report.host: report},
            is_done=lambda r: r.epoch <= epoch or (may_end and has_read(before, report, r)),
        )
        self._must_persist |= self.state is not before
        # Those that are not in `released` have an owner, who learns by a new epoch that it may
        # begin.
        self._context.turn.is_changed |= len(before.revoking) - len(self.state.revoking) > len(
            released
        )
        if released:
            self.enumerator.handle_revoked(released)

    def _take_events(self, report: HostReport) -> None:
        context = self._context
        for numbered in mailbox.fresh_events(self.state, report):
            context.state = mailbox.with_events_seen(self.state, report.host, numbered.number)
            # The host repeats an event in each report until an assignment has its number.
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
        # A report may be older than the word that there are no more splits.
        counts = {s: n for s, n in lacking.items() if s in context.readers and s not in ended}
        if counts:
            # Noted first: the enumerator may answer at once, and each answer is subtracted from
            # this.
            context.asked = {
                **context.asked,
                **{s: context.asked.get(s, 0) + n for s, n in counts.items()},
            }
            self.enumerator.handle_split_requests(counts, report.location or None)

    def _find_finished(self, report: HostReport) -> None:
        handled = self._context.handled_finished
        # Many reports show the same end, and the enumerator hears of it once.
        if found := finished.newly_finished(self.state, self.source, report, handled):
            self._context.handled_finished = handled.union(found)
            self.enumerator.handle_finished(sorted(found))

    def _take_back(self, splits: list[SplitT], subtask: int) -> None:
        # The enumerator forgets the end with the split. When a reader has it again, the end is
        # news.
        self._context.handled_finished = self._context.handled_finished.difference(
            split.split_id for split in splits
        )
        self.enumerator.add_splits_back(splits, subtask)

    def _on_absent(self, event: HostLost | HostSilent) -> None:
        host, context = self.state.hosts.get(event.host), self._context
        # The event may be about a former attempt, while the next one has registered already.
        if host is None or host.incarnation != event.incarnation:
            return
        if isinstance(event, HostLost):
            self._set_lost(event.host)
        elif host.phase is HostPhase.ACTIVE and event.host not in context.silent:
            context.silent |= {event.host}
            self._drop_readers(event.host)

    def _set_lost(self, name: str) -> None:
        host = self.state.hosts[name]
        if not HOST.allows(host.phase, HostEvent.GONE):
            return
        self._set_host(name, replace(host, phase=HOST.after(host.phase, HostEvent.GONE)))
        self._drop_readers(name)
        # Stored, or after a restart the last document of the dead driver would be a sign of life.
        self._must_persist = True

    def _on_given_up(self, event: HostGivenUp) -> None:
        hosts = membership.without_lost(self.state, event)
        if hosts == self.state.hosts:
            return
        host = self.state.hosts[event.host]
        # After a restart of the operator no report may have been seen: the stored positions count.
        report = host.report or HostReport(
            host=event.host, incarnation=event.incarnation, lineage=self.state.lineage
        )
        self._set_hosts(hosts)
        # No one waits for the next attempt: its splits continue at the newest reported positions.
        # Those of a member were revoked in this turn, so with the next epoch.
        # Of a host that was not heard since the state was lost, no one knows any.
        if event.accepts_duplicates and host.phase is not HostPhase.EXPECTED:
            self._let_go(report, self.state.epoch + 1)

    def _set_hosts(self, hosts: membership.Hosts) -> None:
        members = self.state.members
        if hosts == self.state.hosts:
            return
        orphans, numbers = membership.change(self._context, hosts)
        self._must_persist = True
        # Sorted, so that the outcome does not depend on the order of a mapping.
        for subtask in sorted(orphans):
            self._take_back(orphans[subtask], subtask)
        # A host without readers comes and goes unnoticed by the others, so nothing moves for it.
        if self.state.members != members:
            # Before readers are added: the enumerator still knows the readers by their former
            # numbers.
            self.enumerator.handle_renumbered(numbers)
            self._add_readers(
                [s for s in range(self.state.parallelism) if s not in self._context.readers]
            )
            self.enumerator.rebalance(RebalanceCause.RESCALE)

    def _set_host(self, name: str, host: HostState) -> None:
        self._context.state = replace(self.state, hosts={**self.state.hosts, name: host})

    def _drop_readers(self, name: str) -> None:
        gone = frozenset(self.state.subtasks_of(name))
        self._context.set_readers({s: r for s, r in self._context.readers.items() if s not in gone})

    def _assignable(self, subtasks: Iterable[int]) -> list[int]:
        """Readers that may be given splits now: none before the gate has opened."""
        state = self.state
        if recovery.is_at_gate(state):
            return []
        return [s for s in subtasks if self._is_assignable(state.host_of(s))]

    def _is_assignable(self, host: str) -> bool:
        return self.state.hosts[host].is_assignable and host not in self._context.silent

    def _add_readers(self, subtasks: Iterable[int]) -> None:
        # Readers of a lost host, or of one behind the gate, are added when it has come through.
        fresh = self._assignable(subtasks)
        added: dict[int, ReaderInfo[SplitT]] = {
            subtask: ReaderInfo(subtask_id=subtask) for subtask in fresh
        }
        self._context.set_readers({**self._context.readers, **added})
        self.enumerator.add_readers(fresh)
