"""Runs a source's coordinator.

Loads it, feeds it, executes its effects, keeps its documents as it wrote them.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import structlog

from balanced_source.api import ProblemBoard
from balanced_source.coordinator import (
    CallCompleted,
    Checkpoint,
    Effect,
    Event,
    ExecuteCall,
    HostGivenUp,
    HostOverdue,
    HostsChanged,
    ParallelismChanged,
    PersistState,
    PublishAssignment,
    RebalanceRequested,
    ReportFact,
    ReportReceived,
    SourceChanged,
    SourceCoordinator,
    perform,
    state_codec,
)
from balanced_source.documents.alignment import GroupWatermark
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.calls import WantedCall
from balanced_source.documents.parts import Content
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import FIRST_HOST
from balanced_source.errors import CorruptDocumentError, StateConflictError, StateError
from balanced_source.reasons import Reason
from balanced_source_adapters.connectors import installed
from balanced_source_adapters.mistakes import close_coordinator
from balanced_source_operator.controller.drain import is_drain
from balanced_source_operator.controller.liveness import Pulses
from balanced_source_operator.controller.rollback import is_of_former_times
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import CONFIG_MAP
from balanced_source_operator.runtime.calls import CallRunner
from balanced_source_operator.runtime.documents import DocumentWriter
from balanced_source_operator.runtime.driver_calls import CallsThroughDriver
from balanced_source_operator.runtime.environment import Desired, Environment
from balanced_source_operator.runtime.events import EventRecorder
from balanced_source_operator.runtime.hand_over import STEADY, Roll
from balanced_source_operator.runtime.host_deadlines import HostDeadlines
from balanced_source_operator.runtime.host_losses import HostLosses
from balanced_source_operator.runtime.observed import Observed
from balanced_source_operator.runtime.publisher import Publisher
from balanced_source_operator.runtime.reports import Reports, report_newer
from balanced_source_operator.runtime.saved_progress import SavedProgress
from balanced_source_operator.runtime.state_loss import corrupt, rebuilt
from balanced_source_operator.spec.hosts import host_names

_DRIVER_CALLS: Final = ("driver calls",)
"""Key of the problem that no driver answers."""

log = structlog.get_logger(__name__)


class Coordination:
    """Of one source.

    After any exception but a KubernetesError call `drop`: the next turn loads what is stored.
    """

    def __init__(
        self,
        environment: Environment,
        source: Identity,
        observed: Observed,
        events: EventRecorder,
        problems: ProblemBoard,
        *,
        pulses: Pulses,
        wake: Callable[[], None],
    ) -> None:
        self._env = environment
        self._identity = source
        self._observed = observed
        self._reports: dict[str, Reports] = {}
        self._events = events
        self._problems = problems
        self._wake = wake
        self._deadlines = HostDeadlines(environment.settings.gate_deadline, problems)
        self._losses = HostLosses(pulses, problems, observed)
        self._state = DocumentWriter(environment.api, source, source.documents.state)
        self._publisher = Publisher(environment.api, source)
        self._results: list[CallCompleted] = []
        self._calls: CallRunner | None = None
        self._published: Assignment | None = None
        self._alignment: GroupWatermark | None = None
        self._report_within: float | None = None
        self._asked: tuple[WantedCall, ...] = ()
        self._undone: list[Effect] = []
        self._roll = STEADY
        self._saved = SavedProgress(environment.settings.save_interval)
        self._log = log.bind(source=source.name, namespace=source.namespace)
        self.coordinator: SourceCoordinator[Any, Any] | None = None

    async def turn(self, desired: Desired, *, roll: Roll = STEADY, has_driver: bool = True) -> None:
        """Make the coordinator agree with what is desired and what is seen, and do what it says.

        Args:
            desired: the spec in effect.
            roll: which hosts come and go now because an application restarts.
            has_driver: whether the application ran when it was looked at last.

        Raises:
            StateConflictError: someone else stores state for this source.
            KubernetesError: the API server does not answer; the effects that were not executed come
                first next time.
        """
        coordinator = self.coordinator or await self._load(desired)
        if coordinator is None:
            return
        self._roll = roll
        # What an outage has cut off comes first: a later publish must not overtake its state.
        await self._do_undone()
        await self._feed(coordinator, desired)
        hosts = coordinator.state.hosts if has_driver else ()
        report_newer(self._reports, hosts, self._problems)
        await self._align(desired)
        await self._lease(desired)
        await self._ask_driver(coordinator, has_driver=has_driver)
        await self._repair()
        await self._save_progress(coordinator)

    @property
    def published(self) -> Assignment | None:
        """The assignment as it was published last; None if this operator has none yet."""
        return (
            None if self._published is None else replace(self._published, alignment=self._alignment)
        )

    @property
    def needs_driver(self) -> bool:
        """Whether the source waits for something published that only a driver can do."""
        return self._published is not None and bool(self._wanted)

    @property
    def _driver_calls(self) -> CallsThroughDriver | None:
        return self._calls.driver if self._calls is not None else None

    @property
    def _wanted(self) -> tuple[WantedCall, ...]:
        driver = self._driver_calls
        return driver.wanted if driver is not None else ()

    def reported(self, host: str = FIRST_HOST) -> HostReport | None:
        """The newest report of a host as it was seen, accepted or not; None if there is none."""
        report = self._reports_of(host).newest()
        return report if report is not None and report.host == host else None

    def host_of_report(self, name: str) -> str | None:
        """Return the host whose reports a ConfigMap of that name holds; None: something else."""
        hosts = self.coordinator.state.hosts if self.coordinator is not None else (FIRST_HOST,)
        return next((host for host in hosts if self._reports_of(host).name == name), None)

    def _reports_of(self, host: str) -> Reports:
        if host not in self._reports:
            self._reports[host] = Reports(self._identity.on_host(host), self._observed)
        return self._reports[host]

    def is_echo(self, name: str) -> bool:
        """Return whether a ConfigMap, as last seen, is just what this operator has written."""
        document = next((d for d in self._documents if d.name == name), None)
        if (
            document is None
            or document.content is None
            or self._observed.get(CONFIG_MAP, name) is None
        ):
            return False
        return not (document.is_foreign(self._seen) or document.is_unmarked(self._seen))

    @property
    def _documents(self) -> list[DocumentWriter]:
        return [self._state, *self._publisher.documents]

    def drop(self) -> None:
        """Forget the coordinator."""
        if self._calls is not None:
            self._calls.close()
        if self.coordinator is not None:
            close_coordinator(self.coordinator)
        self.coordinator, self._calls, self._results, self._undone = None, None, [], []
        self._published, self._asked = None, ()

    # --- loading ----------------------------------------------------------------------------------

    async def _load(self, desired: Desired) -> SourceCoordinator[Any, Any] | None:
        """Continue from the stored state, or begin; None while what is stored cannot be trusted."""
        try:
            stored = await self._state.read()
            restored = await self._restored(stored, desired) if stored else None
        except StateError as error:
            self._problems.raise_(Reason.STATE_CORRUPT, corrupt(self._state.name, error))
            return None
        self._problems.clear(Reason.STATE_CORRUPT)
        # One that is not wanted any more may still hold splits, and only its application tells if
        # documents are lost.
        hosts = tuple(dict.fromkeys((*host_names(desired.spec), *self._observed.by_host)))
        known = restored.coordinator.hosts if restored is not None else ()
        former = await self._publisher.read(dict.fromkeys((*known, *hosts)))
        self._alignment = former.alignment if former is not None else None
        self._report_within = former.report_within if former is not None else None
        lineage = self._lineage(former, hosts)
        if restored is None and lineage > 1:
            await self._events.post(
                Reason.STATE_REBUILT, rebuilt(self._state.name, lineage), warning=True
            )
        coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(
            desired.source,
            parallelism=desired.spec.parallelism,
            hosts=hosts,
            lineage=lineage,
            restored=restored,
            published=former,
        )
        self.coordinator = coordinator
        self._calls = CallRunner(
            self._env.api,
            self._identity.namespace,
            self._env.pool,
            self._deliver,
            source=self._identity.name,
            connector=installed().of(desired.source),
            changed=self._wake,
        )
        effects = coordinator.start(now=time.time())
        await self._do([effect for effect in effects if not self._is_published(effect, former)])
        return coordinator

    def _is_published(self, effect: Effect, former: Assignment | None) -> bool:
        """Return whether an effect would publish what is published already.

        Start positions do not count: readers have their own, and no document is published when
        those move.
        """
        if (
            former is None
            or not isinstance(effect, PublishAssignment)
            or not self._publisher.is_the_same
        ):
            return False
        kept = {
            name: getattr(former, name)
            for name in ("starts", "since", "alignment", "report_within")
        }
        wanted = replace(effect.assignment, **kept)
        self._published = former if wanted == former else self._published
        return wanted == former

    async def _restored(self, stored: str, desired: Desired) -> Checkpoint[Any, Any]:
        """The stored state.

        That of the source before it was restored from a backup is stored under the new uid.
        """
        if former := self._identity.former:
            with contextlib.suppress(CorruptDocumentError):
                state = state_codec.decode(stored, desired.source, uid=former).taken_over()
                await self._state.swap(
                    state_codec.encode(state, desired.source, uid=self._identity.uid)
                )
                return state
        return state_codec.decode(stored, desired.source, uid=self._identity.uid)

    def _lineage(self, former: Assignment | None, hosts: tuple[str, ...]) -> int:
        """For a coordinator without stored state.

        1, or more than any seen if the source is not new.
        """
        # An application is made after the state is stored, so one without any is not new. An
        # assignment before the first epoch only asks a driver for something: nothing was decided.
        seen = [former.lineage] if former is not None and former.epoch else []
        seen += [report.lineage for host in hosts if (report := self.reported(host)) is not None]
        return max(seen, default=int(bool(self._observed.by_host))) + 1

    def _deliver(self, result: CallCompleted) -> None:
        self._results.append(result)
        self._wake()

    # --- feeding ----------------------------------------------------------------------------------

    async def _feed(self, coordinator: SourceCoordinator[Any, Any], desired: Desired) -> None:
        """Tell the coordinator what has changed since it was told last."""
        if desired.source != coordinator.source:
            await self._handle(coordinator, SourceChanged(desired.source))
        if desired.spec.parallelism != coordinator.state.parallelism:
            await self._handle(coordinator, ParallelismChanged(desired.spec.parallelism))
        await self._feed_hosts(coordinator, desired)
        if (nonce := desired.spec.rebalance_nonce) != coordinator.state.rebalance_nonce:
            await self._handle(coordinator, RebalanceRequested(nonce=nonce))
        while self._results:
            await self._handle(coordinator, self._results.pop(0))

    async def _feed_hosts(self, coordinator: SourceCoordinator[Any, Any], desired: Desired) -> None:
        """Tell which hosts there are to be, what they report, and which ones do not come.

        A spec that was recalled does not say how many hosts there are, nor what happens to lost
        ones.
        """
        await self._want_hosts(coordinator, desired)
        for host in tuple(coordinator.state.hosts):
            report, known = self.reported(host), coordinator.state.hosts.get(host)
            # The report of another host may have been what a leaving one was kept for.
            if (
                report is not None
                and known is not None
                and not is_of_former_times(known, report, self._observed.staying(report.host))
            ):
                await self._handle(coordinator, ReportReceived(report))
        if (report := self.reported()) is not None:
            self._hear_driver(report)
        is_suspended = desired.spec.suspend
        for host in self._deadlines.overdue(coordinator.state, is_suspended=is_suspended):
            await self._handle(coordinator, HostOverdue(host))
        if not desired.is_recalled:
            for event in self._losses.events(coordinator, desired.spec):
                if isinstance(event, HostGivenUp):
                    self._log.warning("host given up", host=event.host)
                await self._handle(coordinator, event)
        await self._want_hosts(coordinator, desired)  # one that has drained may join again

    async def _want_hosts(self, coordinator: SourceCoordinator[Any, Any], desired: Desired) -> None:
        """Tell which hosts there are to be.

        One that has drained waits until its drain attempt is stopped.
        """
        known = coordinator.state.hosts
        drained = {
            h
            for h, found in self._observed.by_host.items()
            if h not in known and any(map(is_drain, found))
        }
        asked = tuple(name for name in host_names(desired.spec) if name not in drained)
        wanted = self._roll.hosts(asked, known, coordinator.silent_hosts)
        here = {n for n, host in known.items() if not host.is_going(is_wanted=n in wanted)}
        if not desired.is_recalled and wanted and here != set(wanted):
            await self._handle(coordinator, HostsChanged(wanted))

    @property
    def pause(self) -> float | None:
        """Seconds until a silent host counts as lost or positions are stored; None for neither."""
        coordinator = self.coordinator
        unsaved = self._saved.pause(coordinator.state) if coordinator is not None else None
        unanswered = driver.pause() if (driver := self._driver_calls) is not None else None
        pauses = (self._losses.pause(), unsaved, unanswered)
        return min((pause for pause in pauses if pause is not None), default=None)

    async def _lease(self, desired: Desired) -> None:
        """Tell the hosts of a source that reassigns splits when they must stop without a report."""
        policy, hosts = desired.spec.application.host_loss_policy, host_names(desired.spec)
        wanted = policy.report_within if len(hosts) > 1 else None
        if not desired.is_recalled and wanted != self._report_within:
            self._report_within = wanted
            if self._published is not None:
                await self._do([PublishAssignment(self._published)])

    async def _align(self, desired: Desired) -> None:
        """Hear how far the source is in event time, and tell it how far its group is."""
        self._env.alignments.hear(self._identity, desired.spec, self.reported(), self._wake)
        if (news := self._env.alignments.news(self._identity)) is not None:
            self._alignment = news
            if self._published is not None:
                await self._do([PublishAssignment(self._published)])

    def _hear_driver(self, report: HostReport) -> None:
        if (driver := self._driver_calls) is not None:
            driver.take(report)

    async def _ask_driver(
        self, coordinator: SourceCoordinator[Any, Any], *, has_driver: bool
    ) -> None:
        """Publish what only a driver can call, also before the first epoch.

        No driver would ever list anything.
        """
        driver = self._driver_calls
        problem = driver.problem_of(has_driver=has_driver) if driver is not None else None
        self._problems.set(_DRIVER_CALLS, problem)
        if self._wanted != self._asked:
            await self._do([PublishAssignment(self._published or coordinator.assignment)])

    async def _handle(self, coordinator: SourceCoordinator[Any, Any], event: Event) -> None:
        await self._do(coordinator.handle(event, now=time.time()))

    async def _do(self, effects: list[Effect]) -> None:
        """Execute effects in their order; one that fails keeps those behind it from happening."""
        self._undone += effects
        await self._do_undone()

    async def _do_undone(self) -> None:
        while self._undone:
            await perform(self._undone[0], self)
            # Only now: an effect that an error cuts off is executed again, which does no harm.
            self._undone.pop(0)

    # --- ports of effects, see EffectPorts --------------------------------------------------------

    async def persist_state(self, effect: PersistState) -> None:
        """Swap the state in its ConfigMap."""
        assert self.coordinator is not None  # noqa: S101 - effects come from it
        text = state_codec.encode(
            effect.checkpoint, self.coordinator.source, uid=self._identity.uid
        )
        await self._store(text)
        self._saved.note(effect.checkpoint.coordinator)

    async def execute_call(self, effect: ExecuteCall) -> None:
        """Hand a call to the threads that make them."""
        if self._calls is not None:
            self._calls.submit(effect)

    async def report_fact(self, effect: ReportFact) -> None:
        """Post an event."""
        await self._events.post(effect.reason, effect.message, warning=effect.warning)

    async def publish_assignment(self, effect: PublishAssignment) -> None:
        """Write the documents that drivers follow."""
        assignment, wanted = effect.assignment, self._wanted
        document = replace(
            assignment, alignment=self._alignment, report_within=self._report_within, calls=wanted
        )
        hosts = assignment.incarnations or (FIRST_HOST,)
        if await self._publisher.publish(document, hosts) and assignment is not self._published:
            self._log.info("assignment published", epoch=assignment.epoch)
            self._env.metrics.published(self._identity)
        self._published, self._asked = assignment, wanted

    # --- keeping ----------------------------------------------------------------------------------

    async def _repair(self) -> None:
        """Restore what someone else changed or deleted."""
        for document in self._documents:
            if document.is_unmarked(self._seen) and await document.mark():
                message = f"ConfigMap {document.name} had lost its owner reference: restored"
                await self._events.post(Reason.OWNER_REFERENCE_RESTORED, message, warning=True)
        if self._state.is_foreign(self._seen):
            await self._restore_state()
        for document in self._publisher.documents:
            if document.is_foreign(self._seen):
                await self._restore_assignment(document)

    def _seen(self, name: str) -> Manifest | None:
        return self._observed.get(CONFIG_MAP, name)

    async def _restore_assignment(self, document: DocumentWriter) -> None:
        name, content = document.name, document.content
        if content is not None and await document.is_still_foreign():
            await document.put(content)
            message = f"ConfigMap {name} was changed or deleted by hand: restored"
            await self._events.post(Reason.ASSIGNMENT_RESTORED, message, warning=True)

    async def _restore_state(self) -> None:
        if (text := self._state.text) is not None and await self._state.is_still_foreign():
            await self._overwrite(text, self._state.conflict())

    async def _store(self, text: str) -> None:
        try:
            await self._state.swap(text)
        except StateConflictError as conflict:
            await self._overwrite(text, conflict)

    async def _overwrite(self, text: str, conflict: StateConflictError) -> None:
        """Another operator's state is a conflict; anything else gives way to what we know."""
        # A state that can be read is what another operator has decided, and must not be undone.
        if await self._state.is_readable(self._decoded):
            raise conflict
        await self._state.put(Content(text))
        message = f"ConfigMap {self._state.name} was changed or deleted by hand: restored"
        await self._events.post(Reason.STATE_RESTORED, message, warning=True)

    def _decoded(self, stored: str) -> Checkpoint[Any, Any]:
        assert self.coordinator is not None  # noqa: S101 - what is written was loaded before
        return state_codec.decode(stored, self.coordinator.source, uid=self._identity.uid)

    async def _save_progress(self, coordinator: SourceCoordinator[Any, Any]) -> None:
        """Store positions now and then, although nothing was decided."""
        best_effort = self._env.best_effort
        if self._saved.left() or not best_effort.is_free or self._state.text is None:
            return
        text = state_codec.encode(
            coordinator.checkpoint(), coordinator.source, uid=self._identity.uid
        )
        if text != self._state.text:
            with best_effort.write():
                await self._store(text)
        self._saved.note(coordinator.state)
