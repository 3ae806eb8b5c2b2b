"""Everything that a source owns besides its documents.

The driver's access, and the SparkApplication.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from balanced_source.api import Boundedness, Problem, ProblemBoard, ProblemKey
from balanced_source.coordinator import HostPhase, HostState, SourceCoordinator
from balanced_source.documents.storage import FIRST_HOST
from balanced_source.reasons import Reason
from balanced_source_operator.controller.application import decide, driver_pods, look, stop
from balanced_source_operator.controller.application_facts import ApplicationState, state_of
from balanced_source_operator.controller.decisions import Deadlines, Decision, Sightings, Wanted
from balanced_source_operator.controller.drain import DRAIN_READERS, drains, replaced
from balanced_source_operator.controller.ended_hosts import unread
from balanced_source_operator.controller.failure_row import FailureRow
from balanced_source_operator.controller.holding import Holding
from balanced_source_operator.controller.lasting import Lasting
from balanced_source_operator.controller.restarts import Hold, hold_by_policy
from balanced_source_operator.controller.rollback import NewestSettings, has_registered
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import (
    CONFIG_MAP,
    DRAIN_ANNOTATION,
    INCARNATION_ANNOTATION,
    POD,
    SERVICE_ACCOUNT,
    application_name,
    host_of_pod,
)
from balanced_source_operator.resources.made_from import settings_of
from balanced_source_operator.resources.providers import (
    SPARK_OPERATORS,
    SparkOperator,
    kind_of,
    service_account_of,
)
from balanced_source_operator.runtime.driver_access import DriverAccess
from balanced_source_operator.runtime.environment import Desired, Environment
from balanced_source_operator.runtime.events import EventRecorder
from balanced_source_operator.runtime.former_application import (
    FormerApplication,
    with_former_settings,
)
from balanced_source_operator.runtime.observed import Observed
from balanced_source_operator.runtime.ownership import binding, create_or_adopt, unbound_problem
from balanced_source_operator.runtime.reports import Reports
from balanced_source_operator.spec.hosts import readers_per_host

_OF_HOSTS = (Reason.OWNER_REFERENCE_MISSING,)
"""Problems that each host has for itself."""

_EARLY_ENDS = 3
"""Applications in a row that may end without a micro-batch before only the user can help."""

_SOON = 5.0
"""Seconds until something that no one tells us about is looked for again."""


class Children:
    """Of one host of a source."""

    def __init__(
        self,
        environment: Environment,
        source: Identity,
        observed: Observed,
        events: EventRecorder,
        problems: ProblemBoard,
    ) -> None:
        self._env = environment
        self._identity = source
        self._observed = observed
        self._events = events
        self._problems = problems
        self._seen = Sightings()
        self._settings = NewestSettings()
        self._row = FailureRow()
        self._early_ends: frozenset[str] = frozenset()
        self._holding = Holding()
        self._lasting = Lasting()
        self._former = FormerApplication()
        self._access = DriverAccess(environment.api, source, observed)
        self._bound_accounts = frozenset[str]()

    @property
    def _applications(self) -> Sequence[Manifest]:
        """Applications of this host."""
        return self._observed.by_host.get(self._identity.host, [])

    @property
    def _pods(self) -> list[Manifest]:
        """Pods of this host; those that name no application belong to the first one.

        The same hosts of a former source of this name used the same Spark checkpoints. The first
        host waits for all of their pods.
        """
        source = self._identity
        return [
            pod
            for pod in self._observed.all(POD)
            if source.host in (source.host_of(application_name(pod)), host_of_pod(pod))
        ]

    def _key(self, reason: Reason) -> ProblemKey:
        """Return the key of a problem that each host may have."""
        return reason if self._identity.host == FIRST_HOST else (reason, self._identity.host)

    async def turn(
        self,
        desired: Desired,
        coordinator: SourceCoordinator[Any, Any] | None,
        *,
        needs_driver: bool = False,
        turn: Hold | None = None,
        may_restart: Callable[[], bool] = lambda: True,
        hand_over: Callable[[], Hold | None] = lambda: None,
    ) -> Decision:
        """Make the children what they should be; returns what was decided about the application.

        Args:
            desired: the spec in effect.
            coordinator: of the source.
            needs_driver: whether a driver must run although nothing is assigned.
            turn: see `Wanted`.
            may_restart: asked before a running application is stopped because its settings changed.
            hand_over: asked after that, which hand-over of the host's splits comes first.

        Raises:
            KubernetesError: the API server does not answer, or refused.
        """
        # Before the application exists: a driver that starts without its rights cannot register.
        await self._access.give(self._accounts(desired, self._host(coordinator)))
        await self._bind()
        operator = SPARK_OPERATORS[desired.spec.application.provider]
        # Most clusters have one of the two Spark operators, and it may be installed after the
        # source.
        if operator.kind in self._observed.unknown:
            return self._without_spark_operator(operator)
        self._problems.clear(Reason.SPARK_OPERATOR_MISSING)
        host = self._host(coordinator)
        self._former.note(self._applications, host)
        wanted = replace(self._wanted(desired, coordinator, needs_driver=needs_driver), turn=turn)
        # A drain attempt and an ordinary application must not stand in for each other.
        decision = replaced(host, self._applications, self._pods) or self._decide(wanted)
        # Asking takes a place in the queue of all sources, so only a restart that is due asks.
        if decision.is_restart and not may_restart():
            decision = self._decide(replace(wanted, is_crowded=True))
        elif decision.is_restart and (hold := hand_over()) is not None:
            decision = self._decide(replace(wanted, hand_over=hold))
        # Last: whatever was decided, an application that another query would fence is not started.
        decision = self._lasted(self._held(decision, coordinator))
        has_ended = decision.state is ApplicationState.FINISHED
        decision = replace(
            decision,
            is_done=has_ended and _ends(desired) and not wanted.is_unread,
            is_over=has_ended and decision.problem is None and _is_available_now(desired),
        )
        decision = self._in_row(decision, settings=f"{wanted.spec_hash} {wanted.nonce}")
        self._note_end(decision, coordinator)
        await self._carry_out_deletions(decision)
        if decision.create and await self._has_service_account(desired):
            await self._create(desired, decision.create, host)
        return decision

    def _in_row(self, decision: Decision, *, settings: str) -> Decision:
        """Count failures in a row, and return the decision with what they say."""
        decision = self._row.explained(decision, self._applications)
        self._row = self._row.looked(
            decision, self._applications, settings=settings, now=time.time()
        )
        return replace(decision, failures=self._row.count, relapse=self._row.relapse(decision))

    async def stop(self) -> Decision:
        """Stop the application. Needs no valid spec and no document: this is the emergency stop.

        Raises:
            KubernetesError: the API server does not answer, or refused.
        """
        decision = self._lasted(stop(self._applications, self._pods))
        # Nothing is started, so what was missing for that is no problem now.
        for reason in (Reason.SERVICE_ACCOUNT_MISSING, Reason.SPARK_OPERATOR_MISSING):
            self._problems.clear(reason)
        self._note_unbound()
        await self._carry_out_deletions(decision)
        return decision

    async def retire(self) -> Decision:
        """Stop the application of a host that has handed over its splits.

        Raises:
            KubernetesError: the API server does not answer, or refused.
        """
        message = f"Host {self._identity.host} has no splits any more: its application is stopped"
        decision = self._lasted(stop(self._applications, self._pods))
        decision = replace(decision, reason=Reason.APPLICATION_STOPPING, message=message)
        await self._carry_out_deletions(decision)
        return decision

    def forget(self) -> None:
        """Clear what was wrong with a host that is gone."""
        for reason in _OF_HOSTS:
            self._problems.clear(self._key(reason))

    def look(self, *, until: str) -> Decision:
        """Return what the application does, while nothing can be decided about it; see `look`."""
        found = look(self._applications, self._pods, until=until, now=time.time())
        return self._of_host(found)

    def _accounts(self, desired: Desired, host: HostState | None) -> frozenset[str]:
        """Return the service accounts of all drivers of the host.

        Settings of a running application may wait long for a restart, also another account. A drain
        attempt may have the account of an application that is gone.
        """
        present = frozenset(map(service_account_of, self._applications)) - {""}
        is_over = not (present or driver_pods(self._pods) or drains(host))
        self._bound_accounts = frozenset() if is_over else self._bound_accounts | present
        return self._bound_accounts | {desired.spec.application.service_account}

    async def _carry_out_deletions(self, decision: Decision) -> None:
        self._former.forget(decision.delete)
        # The problem is announced only if its words are new, so this event must be its Warning.
        is_problem = decision.problem is not None and decision.problem.message == decision.message
        for application in decision.delete:
            await self._delete(application)
            await self._events.post(decision.reason, decision.message, warning=is_problem)

    async def _bind(self) -> None:
        """Restore the owner reference of the report: without one, an object outlives its source.

        A SparkApplication is never written to, so a reference that it has lost is a problem that a
        person solves.
        """
        report = self._observed.get(CONFIG_MAP, self._identity.documents.readers)
        if report is not None and not self._identity.is_marked(report):
            name = report["metadata"]["name"]
            made = await self._env.api.apply(CONFIG_MAP, binding(self._identity, CONFIG_MAP, name))
            self._observed.note(CONFIG_MAP, "MODIFIED", made)
            if not self._identity.is_bound(report):
                message = f"ConfigMap {name} had lost its owner reference: restored"
                await self._events.post(Reason.OWNER_REFERENCE_RESTORED, message, warning=True)
        self._note_unbound()

    def _note_unbound(self) -> None:
        unbound = [a for a in self._applications if not self._identity.is_bound(a)]
        self._problems.set(
            self._key(Reason.OWNER_REFERENCE_MISSING),
            unbound_problem(unbound[0]) if unbound else None,
        )

    async def delete_unbound(self) -> None:
        """Stop what Kubernetes does not delete with the source, as its owner reference is gone.

        Raises:
            KubernetesError: the API server does not answer, or refused.
        """
        for application in self._applications:
            if not self._identity.is_bound(application):
                await self._delete(application)

    def _without_spark_operator(self, operator: SparkOperator) -> Decision:
        name = f"{operator.kind.plural}.{operator.kind.group}"
        message = (
            f"the API server does not serve {operator.kind.api_version} of {name}: install"
            f" {operator.name}, in a release that has this version (the page on compatibility names"
            " one); the operator then continues"
        )
        reason = Reason.SPARK_OPERATOR_MISSING
        self._problems.raise_(reason, Problem(reason=reason, message=message))
        # One of the other Spark operator may run meanwhile: `provider` was changed.
        seen = self.look(until=f"{operator.name} is installed")
        return replace(seen, reason=reason, message=message, look_again=_SOON)

    def _wanted(
        self,
        desired: Desired,
        coordinator: SourceCoordinator[Any, Any] | None,
        *,
        needs_driver: bool,
    ) -> Wanted:
        application, conf = desired.spec.application, self._conf(desired)
        is_unread, may_read_more = self._left(desired, coordinator)
        return Wanted(
            base=self._identity.base,
            spec_hash=self._settings.of(application, conf).hash(self._identity),
            settings=settings_of(application, conf=conf, uid=self._identity.uid),
            nonce=application.restart.nonce,
            given_up=desired.given_up,
            hold=hold_by_policy(application.restart, now=time.time()),
            secrets=desired.needed_secrets,
            may_end=_may_end(desired) or self._leaves(coordinator),
            is_unread=is_unread,
            may_read_more=may_read_more,
            # Only a drain attempt releases the splits of a lost host, so no limit of restarts holds
            # it up.
            max_failures=None
            if drains(self._host(coordinator))
            else desired.spec.restart.max_failures,
            # At the first start a driver may have to list the splits before anything can be
            # assigned.
            may_start=needs_driver or (coordinator is not None and _has_work(coordinator)),
        )

    def _left(
        self, desired: Desired, coordinator: SourceCoordinator[Any, Any] | None
    ) -> tuple[bool, bool]:
        """Return whether an ended host has splits to read, and whether another start may read them.

        Only a source that ends has hosts that may end. Where no host reads any more, what is left
        of the source is left to each of them.
        """
        has_ended = any(state_of(a) is ApplicationState.FINISHED for a in self._applications)
        # Looking at every split pays only when it matters.
        if coordinator is None or not has_ended or not _ends(desired):
            return False, False
        if coordinator.enumerator.is_finished():
            return False, False
        state, host = coordinator.state, self._identity.host
        left = unread(state, coordinator.source, host)
        may_help = len(self._early_ends) < _EARLY_ENDS
        # Since the state was lost, only its Spark checkpoint tells what the host has read.
        if left is None:
            return True, may_help and not state.is_first_life
        others = (other.phase for name, other in state.hosts.items() if name != host)
        is_alone = HostPhase.ACTIVE not in others
        return bool(left) or is_alone, may_help and not left.isdisjoint(state.tracker.epochs())

    def _note_end(
        self, decision: Decision, coordinator: SourceCoordinator[Any, Any] | None
    ) -> None:
        """Remember applications that ended in order and are replaced, until one gets somewhere."""
        if self._applications and coordinator is not None and self.has_adopted(coordinator):
            self._early_ends = frozenset()
            return
        ended = (a for a in decision.delete if state_of(a) is ApplicationState.FINISHED)
        # By uid: it takes more than one turn until an application is gone.
        self._early_ends |= {a["metadata"]["uid"] for a in ended}

    def _conf(self, desired: Desired) -> Mapping[str, str]:
        return desired.conf_or(self._env.settings.spark_conf)

    def has_adopted(self, coordinator: SourceCoordinator[Any, Any]) -> bool:
        """Whether a driver of the host's present application has completed a micro-batch."""
        host = self._host(coordinator)
        if host is None or not host.acknowledged_epoch:
            return False
        return all(
            has_registered(application, host.incarnation) for application in self._applications
        )

    def _leaves(self, coordinator: SourceCoordinator[Any, Any] | None) -> bool:
        """Whether the host hands its splits over.

        The query of an image before this one then ends by itself.
        """
        host = self._host(coordinator)
        return host is not None and host.is_on_its_way_out

    def _host(self, coordinator: SourceCoordinator[Any, Any] | None) -> HostState | None:
        """The host as the coordinator knows it."""
        return coordinator.state.hosts.get(self._identity.host) if coordinator is not None else None

    def _decide(self, wanted: Wanted) -> Decision:
        settings = self._env.settings
        wanted = with_former_settings(wanted, self._applications)
        now, applications = time.time(), self._applications
        self._seen = self._seen.looked(applications, now=now)
        return decide(
            wanted,
            applications,
            self._pods,
            seen=self._seen,
            deadlines=Deadlines(
                stuck_after=settings.stuck_after, retry_failed_after=settings.retry_failed_after
            ),
            now=now,
        )

    def _held(
        self, decision: Decision, coordinator: SourceCoordinator[Any, Any] | None
    ) -> Decision:
        """The decision, unless another query reads the source."""
        host = self._host(coordinator)
        report = host.report if host is not None else None
        has_driver = bool(driver_pods(self._pods))
        self._holding = self._holding.looked(report, has_driver=has_driver, now=time.monotonic())
        self._holding, decision = self._holding.apply(decision, self._applications, report)
        return decision

    def _lasted(self, decision: Decision) -> Decision:
        """The decision, with what is wrong because it lasts."""
        now, patience = time.monotonic(), self._env.settings.stuck_after
        has_driver = bool(driver_pods(self._pods))
        self._lasting = self._lasting.looked(decision, has_driver=has_driver, now=now)
        return self._of_host(self._lasting.apply(decision, patience=patience, now=now))

    def _of_host(self, decision: Decision) -> Decision:
        """The decision; what fails on several hosts is announced for each of them."""
        if decision.problem is None or self._identity.host == FIRST_HOST:
            return decision
        return replace(decision, problem=replace(decision.problem, scope=self._identity.host))

    async def _delete(self, application: Manifest) -> None:
        metadata = application["metadata"]
        kind = kind_of(application)
        # With the uid: an application of that name that was created since must stay.
        await self._env.api.delete(
            kind, metadata["namespace"], metadata["name"], uid=metadata["uid"]
        )
        self._observed.stopping.add(metadata["uid"])

    async def _has_service_account(self, desired: Desired) -> bool:
        name = desired.spec.application.service_account
        if await self._env.api.get(SERVICE_ACCOUNT, self._identity.namespace, name) is not None:
            self._problems.clear(Reason.SERVICE_ACCOUNT_MISSING)
            return True
        message = (
            f"service account {name} does not exist: create it, with what Spark needs to run"
            " executors"
        )
        reason = Reason.SERVICE_ACCOUNT_MISSING
        self._problems.raise_(reason, Problem(reason=reason, message=message))
        return False

    async def _create(self, desired: Desired, name: str, host: HostState | None) -> None:
        operator = SPARK_OPERATORS[desired.spec.application.provider]
        manifest = operator.build(
            self._identity,
            desired.spec.application,
            name=name,
            # A drain attempt gets no splits: it replays one micro-batch.
            parallelism=DRAIN_READERS if drains(host) else readers_per_host(desired.spec),
            secrets=desired.secrets,
            conf=self._conf(desired),
            max_failures=None if drains(host) else desired.spec.restart.max_failures,
            failures=self._row.count,
            connector=desired.source.kind,
            options=desired.reader_options,
            is_bounded=desired.source.boundedness is Boundedness.BOUNDED,
            metrics_port=self._env.settings.driver_metrics_port,
            documentation_url=self._env.settings.documentation_url,
        )
        # Tells drivers of this very application from those of former ones, whose reports are still
        # stored.
        manifest["metadata"]["annotations"][INCARNATION_ANNOTATION] = str(
            self._newest_incarnation(host)
        )
        if drains(host):
            manifest["metadata"]["annotations"][DRAIN_ANNOTATION] = "true"
            former = self._former.drain_attempt(manifest["metadata"])
            operator, manifest = former or (operator, manifest)
        # One that exists was made by the operator before this one, and has not been seen yet.
        if await create_or_adopt(self._env.api, self._observed, operator.kind, manifest):
            self._env.metrics.created(self._identity)
            await self._events.post(
                Reason.APPLICATION_CREATED, f"SparkApplication {name} was created"
            )

    def _newest_incarnation(self, host: HostState | None) -> int:
        """Return that of the host's last driver, even from before its host was removed."""
        report = Reports(self._identity, self._observed).newest()
        known = host.incarnation if host is not None else 0
        return max(known, report.incarnation) if report is not None else known


def _has_work(coordinator: SourceCoordinator[Any, Any]) -> bool:
    """Whether an assignment with splits, or with splits that readers ask for, is published."""
    asks = coordinator.source.look_ahead > 0 and not coordinator.enumerator.undiscovered()
    return coordinator.state.epoch > 0 and (asks or bool(coordinator.state.owners))


def _may_end(desired: Desired) -> bool:
    """Whether the application is expected to complete."""
    return desired.source.boundedness is Boundedness.BOUNDED or _is_available_now(desired)


def _ends(desired: Desired) -> bool:
    """Whether the application is expected to complete when all has been read, and not before."""
    return desired.source.boundedness is Boundedness.BOUNDED and not _is_available_now(desired)


def _is_available_now(desired: Desired) -> bool:
    pipeline = desired.spec.application.pipeline
    return pipeline is not None and bool(pipeline.trigger.available_now)
