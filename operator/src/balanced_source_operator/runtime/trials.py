"""Gives up new settings that an application is unhealthy with, for the last healthy ones."""

import time
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import structlog

from balanced_source import durations
from balanced_source.api import Problem, ProblemBoard
from balanced_source.coordinator import CoordinatorState, SourceCoordinator
from balanced_source.reasons import Reason
from balanced_source_operator.controller.application_facts import is_made_from
from balanced_source_operator.controller.rollback import (
    ApplicationSettings,
    NewestSettings,
    TrialMemory,
    TriedApplication,
    memory_of,
    on_trial,
    text_of,
)
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.made_from import NOT_COMPARED, changes, settings_of
from balanced_source_operator.runtime.environment import Desired, Environment
from balanced_source_operator.runtime.fleet import Decisions
from balanced_source_operator.runtime.host_health import HostHealth
from balanced_source_operator.runtime.observed import Observed
from balanced_source_operator.spec.hosts import host_names
from balanced_source_operator.spec.restarts import RestartPolicy

log = structlog.get_logger(__name__)


class Trials:
    """Of one source."""

    def __init__(
        self, environment: Environment, source: Identity, observed: Observed, problems: ProblemBoard
    ) -> None:
        self._env = environment
        self._source = source
        self._observed = observed
        self._problems = problems
        self._memory: TrialMemory | None = None
        self._since: dict[str, tuple[str, float]] = {}
        self._settings = NewestSettings()
        self._text: tuple[TrialMemory, str] | None = None
        self._health = HostHealth(environment.settings.gate_deadline, source, observed, problems)

    @property
    def text(self) -> str | None:
        """What the next operator needs; None before `recall`."""
        if self._memory is None:
            return None
        if self._text is None or self._text[0] is not self._memory:
            self._text = self._memory, text_of(self._memory)
        return self._text[1]

    def recall(self, text: Any) -> None:
        """Take over what an operator before this one has left, once."""
        if self._memory is None:
            self._memory = memory_of(text)

    def rest(self) -> None:
        """Give all hosts the whole time again when they run again: the source is stopped."""
        self._since.clear()
        self._health.begin()

    def effective(self, desired: Desired) -> Desired:
        """Return what is desired with the settings that are in effect."""
        memory, wanted, now = self._known, self._wanted(desired), time.time()
        found = memory.effective(wanted, self._source, now=now)
        desired = self._with_hosts(desired, found)
        if found is wanted:
            return desired
        newest = desired.spec.application
        # What restarts no application is not on trial: it is always that of the newest spec.
        application = found.application.model_copy(
            update={name: getattr(newest, name) for name in NOT_COMPARED}
        )
        spec = desired.spec.model_copy(update={"application": application})
        given_up = memory.refused.hash if memory.refused is not None else ""
        return replace(desired, spec=spec, conf=found.conf, given_up=given_up)

    def _with_hosts(self, desired: Desired, settings: ApplicationSettings) -> Desired:
        """Return what is desired, with the hosts that do not run under these settings."""
        before = self._known.hosts
        after = before.asked(settings.hash(self._source), desired.spec.application.restart.nonce)
        if after is not before:
            self._memory = replace(self._known, hosts=after)
            self._health.begin()
        if not after.broken and not self._health.skipped:
            return desired
        return replace(desired, broken_hosts=after.broken, skipped_hosts=self._health.skipped)

    def judge(
        self,
        desired: Desired,
        effective: Desired,
        decisions: Decisions,
        coordinator: SourceCoordinator[Any, Any] | None,
    ) -> bool:
        """Look at the applications; return whether other settings are in effect from now on.

        Args:
            desired: by the spec.
            effective: what the applications were made to be.
            decisions: about the applications.
            coordinator: of the source.
        """
        now, refused = time.time(), self._known.refused
        patience = durations.seconds(desired.spec.application.restart.rollback_after)
        settings = self._wanted(effective)
        seen = dict(self._seen(decisions, coordinator, now=now))
        wanted = settings.hash(self._source)
        self._forget_others(wanted)
        names, working = host_names(effective.spec), self._working(seen, wanted)
        # While the last healthy settings are in effect nothing is on trial: there is nothing to go
        # back to.
        before, is_trial = self._known, bool(patience) and not effective.given_up
        if coordinator is not None:
            self._look(
                coordinator.state, names, seen, patience=patience if is_trial else 0.0, of=settings
            )
            # Settings count as healthy when they are on all hosts: one host may be lucky.
            shown = working | self._health.skipped
            if working and shown >= {*seen, *names, *coordinator.state.members}:
                self._memory = self._known.with_healthy(settings, self._source)
        for name, each in seen.items():
            if (
                is_trial
                and on_trial(each, before, self._source)
                and self._counts(name, names, working=working)
            ):
                self._give_up(each, settings, patience=patience, now=now)
        self.tell(desired)
        return self._known.refused != refused

    @property
    def _known(self) -> TrialMemory:
        return self._memory or TrialMemory()

    def _wanted(self, desired: Desired) -> ApplicationSettings:
        conf = desired.conf_or(self._env.settings.spark_conf)
        return self._settings.of(desired.spec.application, conf)

    def _look(
        self,
        state: CoordinatorState[Any],
        names: Collection[str],
        seen: Mapping[str, TriedApplication],
        *,
        patience: float,
        of: ApplicationSettings,
    ) -> None:
        """Note which hosts do not run."""
        healthy, found = self._known.healthy, of.hash(self._source)
        is_known = healthy is None or is_made_from(healthy.hash(self._source), found)
        hosts = self._health.look(
            self._known.hosts, names, seen, state, trial=0.0 if is_known else patience
        )
        if hosts is not self._known.hosts:
            self._memory = replace(self._known, hosts=hosts)

    def _working(self, seen: Mapping[str, TriedApplication], wanted: str) -> frozenset[str]:
        """The hosts whose applications are healthy with the settings of this hash."""
        return frozenset(
            name
            for name, each in seen.items()
            if each.is_healthy and is_made_from(each.hash, wanted)
        )

    def _counts(self, name: str, names: Collection[str], *, working: AbstractSet[str]) -> bool:
        """Whether the failure of a host is one of the settings in effect.

        A host that did not run with the former ones either tells nothing, unless it is all there
        is. A host that is there for the restart only is there to try them.
        """
        hosts, is_witness = self._known.hosts, self._health.is_witness
        if name not in names or is_witness(hosts, name):
            return True
        return not working and not any(is_witness(hosts, other) for other in names)

    def _seen(
        self, decisions: Decisions, coordinator: SourceCoordinator[Any, Any] | None, *, now: float
    ) -> Iterator[tuple[str, TriedApplication]]:
        """The newest application of each host that has one and is not about to leave."""
        there = {a["metadata"]["name"]: a for a in self._observed.applications}
        for name, decision in decisions.items():
            manifest = there.get(decision.name)
            host = coordinator.state.hosts.get(name) if coordinator is not None else None
            # A host that leaves lets go of its splits, and no longer shows how its settings do.
            if manifest is None or host is None or host.is_on_its_way_out:
                continue
            seen = TriedApplication(
                manifest=manifest,
                decision=decision,
                incarnation=host.incarnation,
                has_adopted=host.acknowledged_epoch > 0,
                since=0.0,
            )
            yield name, replace(seen, since=self._first_seen(name, seen, now))

    def _first_seen(self, host: str, seen: TriedApplication, now: float) -> float:
        """When the first application of a host with these settings was made.

        Failures make it again again and again.
        """
        known = self._since.get(host)
        if known is None or known[0] != seen.hash:
            # One that is on its way out may be from before the source was stopped.
            if seen.manifest["metadata"].get("deletionTimestamp"):
                return now
            known = self._since[host] = (seen.hash, _created(seen.manifest, now))
        return known[1]

    def _forget_others(self, wanted: str) -> None:
        """Forget since when hosts have tried settings of another hash: these may come again."""
        self._since = {
            host: known for host, known in self._since.items() if is_made_from(known[0], wanted)
        }

    def _give_up(
        self, seen: TriedApplication, settings: ApplicationSettings, *, patience: float, now: float
    ) -> None:
        why = seen.failure(patience=patience, now=now)
        healthy = self._known.healthy
        if not why or healthy is None or not is_made_from(seen.hash, settings.hash(self._source)):
            return
        changed = changes(self._plain(healthy), self._plain(settings))
        what = (
            f"{seen.decision.name} was not healthy after {patience:.0f} s with its new settings"
            f" ({changed}): {why}"
        )
        nonce = settings.application.restart.nonce
        self._memory = self._known.with_refused(seen.hash, nonce=nonce, why=what, now=now)
        # The next try of these settings gets the whole time again.
        self._since.clear()
        log.warning(
            "settings given up",
            source=self._source.name,
            namespace=self._source.namespace,
            why=what,
        )

    def _plain(self, settings: ApplicationSettings) -> Any:
        return settings_of(settings.application, conf=settings.conf, uid=self._source.uid)

    def tell(self, desired: Desired) -> None:
        """Report that the settings of the spec were given up, or clear that.

        Args:
            desired: by the spec.
        """
        refused, now = self._known.refused, time.time()
        if refused is None or not self._known.is_refused(
            self._wanted(desired), self._source, now=now
        ):
            self._problems.clear(Reason.ROLLED_BACK)
            return
        again = f"{datetime.fromtimestamp(refused.again_at, UTC):%Y-%m-%dT%H:%MZ}"
        is_on_nonce = desired.spec.application.restart.policy is RestartPolicy.ON_NONCE
        when = "" if is_on_nonce else f"; the new ones are tried again from {again} on"
        message = (
            f"{refused.why.rstrip('.')}. The last healthy settings are in effect again{when}."
            " Correct the spec, or change spec.application.restart.nonce to try again now"
        )
        self._problems.set(Reason.ROLLED_BACK, Problem(reason=Reason.ROLLED_BACK, message=message))


def _created(manifest: Manifest, now: float) -> float:
    try:
        return datetime.fromisoformat(
            str(manifest["metadata"].get("creationTimestamp"))
        ).timestamp()
    except ValueError:
        return now
