"""One task per BalancedSource.

Level-based: whatever wakes the task (a watch, a result, a timer) leads to the same turn: observe →
stop if suspended → validate → coordinate → children → status. A turn may be cut off anywhere; the
next one ends in the same place: effects can be repeated, and state is stored before its effects.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import structlog

from balanced_source.api import Problem, ProblemBoard
from balanced_source.backoff import backoff
from balanced_source.errors import StateConflictError, in_short
from balanced_source.reasons import Reason
from balanced_source_adapters.mistakes import discovery_errors
from balanced_source_operator.controller.application_facts import ApplicationState, name_of
from balanced_source_operator.controller.autoscaling.settings import stored_capacity
from balanced_source_operator.controller.conditions import WAITS_FOR_READERS, status_of
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.facts import Facts
from balanced_source_operator.controller.hosts import (
    combined,
    hosts_done,
    reports_of_readers,
    still_silent,
    without_driver,
)
from balanced_source_operator.controller.last_valid import LIMIT
from balanced_source_operator.controller.liveness import Pulses, ReportNews
from balanced_source_operator.controller.problems import problems_of
from balanced_source_operator.controller.signals import signals_of
from balanced_source_operator.controller.urgent import is_paused, is_suspended
from balanced_source_operator.kube.port import KubernetesError, RefusedError
from balanced_source_operator.resources.kinds import (
    CONFIG_MAP,
    PAUSED_ANNOTATION,
    POD,
    ResourceKind,
)
from balanced_source_operator.resources.reader_pods import reader_selector
from balanced_source_operator.runtime.announcer import Announcer
from balanced_source_operator.runtime.audience import SourceMoment
from balanced_source_operator.runtime.autoscaler import Autoscaler, is_read
from balanced_source_operator.runtime.coordination import Coordination
from balanced_source_operator.runtime.deadline import Deadline
from balanced_source_operator.runtime.effective_spec import EffectiveSpec
from balanced_source_operator.runtime.environment import Desired, Environment
from balanced_source_operator.runtime.events import EventRecorder
from balanced_source_operator.runtime.first_look import FirstLook
from balanced_source_operator.runtime.fleet import Decisions, Fleet
from balanced_source_operator.runtime.heard import Heard
from balanced_source_operator.runtime.leaving import known_left_out
from balanced_source_operator.runtime.losses import known_losses
from balanced_source_operator.runtime.observed import Observed, revision
from balanced_source_operator.runtime.ownership import ForeignObjectError
from balanced_source_operator.runtime.refusals import PATIENCE, ReportingApi
from balanced_source_operator.runtime.rest import is_at_rest, rest, unless_ended, until_check
from balanced_source_operator.runtime.sentences import DEFECT, defect, rival_problem
from balanced_source_operator.runtime.status_writer import StatusWriter
from balanced_source_operator.runtime.trials import Trials
from balanced_source_operator.spec.hosts import host_names, hosts_of

BACKOFF_FIRST: Final = 0.5
BACKOFF_MAX: Final = 30.0

FAREWELL: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 60.0, 60.0, 60.0)
"""Seconds between the tries to stop what a source that was deleted would leave behind."""

log = structlog.get_logger(__name__)


class SourceRuntime:
    """See the module. `note` is called by handlers on the same event loop."""

    def __init__(self, environment: Environment, body: Mapping[str, Any]) -> None:
        self._observed = Observed(body)
        source = self._identity = self._observed.identity
        self._problems = ProblemBoard()
        self._wake, self._changed = asyncio.Event(), asyncio.Event()
        self._api = ReportingApi(environment.api, self._problems)
        environment = replace(environment, api=self._api)
        self._env = environment
        self._events = EventRecorder(
            environment.api, source, reporter=environment.settings.identity
        )
        self._pulses = Pulses()
        self._coordination = Coordination(
            environment,
            source,
            self._observed,
            self._events,
            self._problems,
            pulses=self._pulses,
            wake=self._wake.set,
        )
        self._fleet = Fleet(
            environment, source, self._observed, self._events, self._problems, wake=self._wake.set
        )
        self._trials = Trials(environment, source, self._observed, self._problems)
        self._autoscaler = Autoscaler(
            environment.api, source, self._events, capacity=stored_capacity(self._observed.body)
        )
        self._status = StatusWriter(
            environment.api,
            source,
            self._events,
            instance=environment.settings.instance,
            best_effort=environment.best_effort,
        )
        self._announcer = Announcer(source, self._events)
        self._spec = EffectiveSpec(environment.api, source, self._problems)
        self._first_look = FirstLook()
        self._waiting = Deadline(environment.settings.gate_deadline, clock=time.monotonic)
        self._heard = Heard(self._pulses, self._wake.set)
        self._refreshed_at = -float("inf")
        self._decisions: Decisions = {}
        self._failing_since: float | None = None
        self._in_effect: int | None = None
        self._log = log.bind(source=source.name, namespace=source.namespace)

    @property
    def revision(self) -> int:
        """Revision of the BalancedSource as it was seen last."""
        return revision(self._observed.body)

    def note(self, kind: ResourceKind, event: str | None, manifest: Mapping[str, Any]) -> None:
        """Something of this source was seen.

        What says nothing new wakes no one: it is most of what is seen.
        """
        before = self._observed.generation
        self._observed.note(kind, event, manifest)
        host = (
            self._coordination.host_of_report(manifest["metadata"]["name"])
            if kind == CONFIG_MAP
            else None
        )
        if host is not None and self._may_wait(host):
            return
        if kind == CONFIG_MAP and self._coordination.is_echo(manifest["metadata"]["name"]):
            return
        self._wake.set()
        if self._observed.is_deleted or self._observed.generation != before:
            self._changed.set()

    @property
    def _desired(self) -> Desired | None:
        """The spec in effect."""
        return self._spec.desired

    @property
    def _decision(self) -> Decision:
        """What was decided about the application; with several hosts, about all of them."""
        coordinator = self._coordination.coordinator
        return combined(self._decisions, coordinator.state if coordinator is not None else None)

    def _may_wait(self, host: str) -> bool:
        """Note the newest report of a host.

        Return whether a running source need not be looked at now because of it.
        """
        news = self._heard.note(host, report := self._coordination.reported(host))
        if report is None or news is ReportNews.MORE:
            return False
        coordinator = self._coordination.coordinator
        self._heard.keep(coordinator.state.hosts if coordinator is not None else (host,))
        done = hosts_done(self._decisions)
        heartbeats = self._heard.heartbeats
        known = [at for name, at in heartbeats.items() if name not in done]
        self._env.metrics.heard(self._identity, min(known, default=heartbeats[host]))
        is_well = (
            self._decision.state is ApplicationState.RUNNING and self._decision.problem is None
        )
        if not is_well or self._desired is None:
            return False
        source = self._desired.source
        if self._desired.spec.autoscaling is not None:
            is_heartbeat = news is ReportNews.HEARTBEAT
            return is_heartbeat and self._autoscaler.heard(source, host, report)
        if news is ReportNews.HEARTBEAT:
            return True
        # What follows a split that ends, and a balance by loads, depend on each position.
        if source.has_ending_splits or source.wants_loads or not is_at_rest(self._stored_status):
            return False
        self._heard.wake_soon()
        return True

    async def run(self) -> None:
        """Serve the source until it is deleted."""
        failures = 0
        try:
            while not self._observed.is_deleted:
                self._wake.clear()
                self._changed.clear()
                self._heard.turned()
                silent = self._pulses.silent(now=time.monotonic())
                try:
                    with self._env.metrics.turn(self._identity):
                        pause = await self._turn()
                    failures, awaited = 0, self._wake
                except BaseException as error:  # noqa: BLE001
                    # An error in one source must end neither the operator nor this task.
                    await self._recover(unless_ended(error))
                    failures, awaited = failures + 1, self._changed
                    pause = backoff(failures, first=BACKOFF_FIRST, longest=BACKOFF_MAX)
                    pause *= random.uniform(0.5, 1.0)  # noqa: S311 - jitter
                await rest(pause, awaited, self._pulses, silent=silent)
            await self._leave_nothing()
        finally:
            self._heard.turned()
            self._fleet.leave()
            self._coordination.drop()
            self._env.alignments.forget(self._identity)
            self._env.metrics.forget(self._identity)
            self._env.audience.forget(self._identity)

    async def _leave_nothing(self) -> None:
        """Stop applications that do not go with their source; no later operator knows of them."""
        for pause in FAREWELL:
            try:
                await self._fleet.delete_unbound()
            except KubernetesError as error:
                self._log.warning("cannot stop the application now", error=str(error))
                await asyncio.sleep(pause)
            else:
                return
        names = ", ".join(name_of(application) for application in self._observed.applications)
        self._log.error(
            "this source is gone, and its applications run on: delete them", applications=names
        )

    def look(self) -> SourceMoment:
        """Return what there is of the source now, for people."""
        coordinator = self._coordination.coordinator
        reports = {
            host: report
            for host in (coordinator.state.hosts if coordinator is not None else ())
            if (report := self._coordination.reported(host)) is not None
        }
        return SourceMoment(
            desired=self._desired.spec.parallelism if self._desired is not None else None,
            status=self._stored_status,
            assignment=self._coordination.published,
            reports=reports,
            silent=self._pulses.silent(now=time.monotonic()),
            source=self._desired.source if self._desired is not None else None,
            checkpoint=coordinator.checkpoint if coordinator is not None else None,
            hosts_for=hosts_of(self._desired.spec) if self._desired is not None else None,
        )

    async def _turn(self) -> float:
        """One turn; returns the seconds until the next one is due, even if nothing is heard."""
        await self._observe()
        if self._observed.is_deleted:
            return 0.0
        await self._act()
        self._in_effect = self._spec.generation
        for key in (DEFECT, Reason.STATE_CONFLICT, Reason.FOREIGN_OBJECT):
            self._problems.clear(key)
        self._failing_since = None
        if not self._fleet.has_refused:
            self._api.turn_succeeded()
        held_back = await self._write_status()
        alignment_due = self._env.alignments.pause(self._identity)
        pauses = (
            until_check(self._env.settings.resync, self._stored_status),
            min(
                (d.look_again for d in self._decisions.values() if d.look_again is not None),
                default=None,
            ),
            held_back,
            self._spec.pause,
            alignment_due,
            self._coordination.pause,
            self._first_look.pause(time.monotonic()),
        )
        return min(pause for pause in pauses if pause is not None)

    async def _act(self) -> None:
        """Stop first if that is wanted.

        Nothing that fails afterwards may keep the application running.
        """
        body = self._observed.body
        if is_stopped := is_suspended(body.get("spec")):
            self._decisions = await self._fleet.stop()
            self._trials.recall(self._stored_status.get("settings"))
            self._trials.rest()
        await self._spec.turn(body, self._stored_status)
        if self._desired is not None:
            has_driver = not is_stopped and self._decision.state is ApplicationState.RUNNING
            await self._coordination.turn(
                self._desired, roll=self._fleet.roll, has_driver=has_driver
            )
        if not is_stopped:
            self._decisions = await self._run_applications()
        elif self._desired is not None and not self._desired.is_recalled:
            self._trials.tell(self._desired)
        is_held = is_stopped or is_paused(body) or is_read(self._coordination, self._decision)
        coordinator = self._coordination.coordinator
        state = coordinator.state if coordinator is not None else None
        reports = reports_of_readers(self._decisions, state)
        await self._autoscaler.turn(self._desired, reports, is_held=is_held)

    async def _run_applications(self) -> Decisions:
        if self._desired is None or self._desired.is_recalled:
            is_waiting = is_paused(self._observed.body)
            annotation = f"the annotation {PAUSED_ANNOTATION} is removed"
            return self._fleet.look(until=annotation if is_waiting else "the spec is valid")
        coordinator = self._coordination.coordinator
        self._trials.recall(self._stored_status.get("settings"))
        effective = self._trials.effective(self._desired)
        decisions = await self._fleet.turn(
            effective, coordinator, needs_driver=self._coordination.needs_driver
        )
        if self._trials.judge(self._desired, effective, decisions, coordinator):
            self._wake.set()
        return decisions

    async def _observe(self) -> None:
        if time.monotonic() - self._refreshed_at < self._env.settings.resync:
            return
        try:
            await self._observed.refresh(self._env.api)
        except KubernetesError:
            # What is known of the applications is enough to stop them.
            if is_suspended(self._observed.body.get("spec")):
                self._decisions = await self._fleet.stop()
            raise
        self._refreshed_at = time.monotonic()

    @property
    def _stored_status(self) -> Mapping[str, Any]:
        return self._status.written or self._observed.body.get("status") or {}

    def _settings(self) -> str:
        """Return what the next operator needs of the settings; what is stored if unknown."""
        known = self._trials.text
        return str(self._stored_status.get("settings", ""))[:LIMIT] if known is None else known

    def _reader_selector(self) -> str:
        """Return the selector of the scale subresource."""
        application = self._desired.own_application if self._desired is not None else None
        return reader_selector(self._identity, application, self._env.settings.spark_conf)

    async def _write_status(self) -> float | None:
        """Write the status and announce problems.

        Problems are announced even if the status is refused.
        """
        self._note_rival()
        facts = self._facts()
        status = status_of(facts)
        self._waiting.note(waits=any(c.reason in WAITS_FOR_READERS for c in status.conditions))
        desired_readers = self._desired.spec.parallelism if self._desired is not None else None
        self._env.metrics.observe(
            self._identity, status, signals_of(facts, desired_readers=desired_readers)
        )
        try:
            return await self._status.write(status, seen=self._observed.body)
        finally:
            self._env.audience.turned(self._identity, self.look)
            facts = replace(facts, problems=tuple(self._problems))  # the status may be refused
            await self._announcer.announce(problems_of(facts))

    def _unheard(self, now: float) -> tuple[Mapping[str, str], frozenset[str]]:
        """Return the drivers that have started and not reported, and the hosts with unknown lag."""
        applications, pods = self._observed.by_host, self._observed.all(POD)
        restarts = self._pulses.look_at_drivers(applications, pods, now=now)
        self._env.metrics.restarted(self._identity, restarts)
        if (coordinator := self._coordination.coordinator) is None:
            return {}, frozenset()
        state = coordinator.state
        self._pulses.look_at(state, now=now)
        starting = self._pulses.starting(state)
        unheard = self._pulses.silent(now=now) | starting.keys()
        unheard |= without_driver(self._decisions, state)
        return starting, still_silent(self._decisions, unheard)

    def _facts(self) -> Facts:
        body, coordinator = self._observed.body, self._coordination.coordinator
        now = time.monotonic()
        enumerator = coordinator.enumerator if coordinator is not None else None
        starting, silent = self._unheard(now)
        discovery = discovery_errors(coordinator)
        return Facts(
            generation=int(body["metadata"].get("generation", 0)),
            in_effect=self._in_effect,
            selector=self._reader_selector(),
            now=time.time(),
            state=coordinator.state if coordinator is not None else None,
            undiscovered=tuple(sorted(enumerator.undiscovered())) if enumerator is not None else (),
            is_first_look=self._first_look.lasts(
                coordinator, has_problems=bool(discovery), now=now
            ),
            pending_splits=enumerator.pending_splits() if enumerator is not None else 0,
            is_finished=enumerator.is_finished() if enumerator is not None else False,
            discovery=discovery,
            losses=known_losses(coordinator, self._problems),
            left_out=known_left_out(coordinator, self._problems),
            problems=tuple(self._problems),
            application=self._decision,
            hosts=self._decisions,
            images=self._fleet.images,
            wanted_hosts=host_names(self._desired.spec) if self._desired is not None else (),
            silent_hosts=silent,
            heard=self._heard.heartbeats,
            starting=starting,
            waiting_for=coordinator.waiting_for if coordinator is not None else (),
            is_silent=bool(silent),
            is_overdue=self._waiting.is_over(),
            last_valid=self._spec.last_valid(self._stored_status),
            settings=self._settings(),
            is_paused=is_paused(body),
            verdict=self._autoscaler.verdict,
            previous=self._stored_status,
        )

    async def _recover(self, error: BaseException) -> None:
        """Handle a turn that did not end, whatever fails in that, too: nothing else would serve it.

        An object that no one can make sense of, for example, fails each look at the source.
        """
        try:
            await self._failed(error)
        except BaseException as other:  # noqa: BLE001
            self._log.error("a failed turn could not be reported", exc_info=unless_ended(other))
            self._coordination.drop()

    async def _failed(self, error: BaseException) -> None:
        """Handle a turn that did not end.

        What is known stays, unless it may have been left half-changed.
        """
        self._refreshed_at = -float("inf")
        self._fleet.withdraw()
        if not is_suspended(self._observed.body.get("spec")):
            self._decisions = self._fleet.look_after(self._decisions)
        match error:
            case RefusedError():
                self._log.warning("turn cut off; trying again", error=str(error))
            case ForeignObjectError():
                self._note_foreign(error)
            case KubernetesError():
                self._log.warning("turn cut off; trying again", error=str(error))
                if not self._api.turn_failed(error):
                    return  # an API server that is away stores no status
            case StateConflictError():
                await self._events.post(Reason.STATE_CONFLICT, f"{error}: read again", warning=True)
                self._note_conflict(error)
            case _:
                self._log.error("turn failed; starting over from the stored state", exc_info=error)
                self._problems.raise_(DEFECT, defect(self._desired, error))
        try:
            await self._write_status()
        except KubernetesError:
            pass
        except BaseException as other:  # noqa: BLE001
            # It was looking at the enumerator that failed: without it, the status has the problem.
            self._log.error("no status of the enumerator", error=in_short(unless_ended(other)))
            self._coordination.drop()
            with contextlib.suppress(KubernetesError):
                await self._write_status()
        if not isinstance(error, KubernetesError):
            self._coordination.drop()

    def _note_conflict(self, error: StateConflictError) -> None:
        """Two operators that take turns are a problem; one lost race is not."""
        if self._lasts():
            message = (
                f"{error}. Make sure that only one operator serves this namespace: enable leader"
                " election"
            )
            problem = Problem(reason=Reason.STATE_CONFLICT, message=message)
            self._problems.raise_(Reason.STATE_CONFLICT, problem)

    def _note_rival(self) -> None:
        """Two installations with overlapping namespaces agree on everything and double requests."""
        rival = self._status.rival(self._observed.body)
        problem = rival_problem(self._env.settings.instance, rival) if rival else None
        self._problems.set("rival", problem)

    def _note_foreign(self, error: ForeignObjectError) -> None:
        """Report an object of another owner, unless the garbage collector is about to delete it."""
        if not error.is_passing or self._lasts():
            problem = Problem(reason=Reason.FOREIGN_OBJECT, message=str(error), scope=error.scope)
            self._problems.raise_(Reason.FOREIGN_OBJECT, problem)

    def _lasts(self) -> bool:
        """Whether turns have failed for longer than what passes by itself takes."""
        now = time.monotonic()
        self._failing_since = now if self._failing_since is None else self._failing_since
        return now - self._failing_since >= PATIENCE
