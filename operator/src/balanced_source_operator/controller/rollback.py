"""Decides when new settings are given up for the last healthy ones, and when they are tried again.

An application is on trial while it runs with settings that no application of its source has been
healthy with. Healthy means: its driver runs and has completed a micro-batch. What is remembered is
text in the status, for the reasons that `last_valid` gives: only the operator may write it, and
everybody who may read it may read the spec as well.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import ValidationError

from balanced_source.backoff import backoff
from balanced_source.coordinator import HostPhase, HostRole, HostState
from balanced_source.documents.report import HostReport
from balanced_source.redaction import redacted
from balanced_source_operator.controller.application_facts import ApplicationState, is_made_from
from balanced_source_operator.controller.broken_hosts import BrokenHosts, dump, load
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.last_valid import LIMIT
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import HASH_ANNOTATION, INCARNATION_ANNOTATION
from balanced_source_operator.resources.made_from import NOT_COMPARED
from balanced_source_operator.resources.spark_application import application_hash
from balanced_source_operator.spec import Application
from balanced_source_operator.spec.restarts import RestartPolicy

FIRST_PAUSE: Final = 1800.0
MAX_PAUSE: Final = 86_400.0
"""Seconds until settings that failed are tried again: after the first time, and at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSettings:
    """All that an application is made from.

    Attributes:
        application: without what is `NOT_COMPARED`, which is always that of the newest spec.
        conf: Spark configuration of the operator.
    """

    application: Application
    conf: Mapping[str, str]
    _hashes: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def hash(self, source: Identity) -> str:
        """Return the hash, in all versions."""
        # A source is looked at far more often than its settings change.
        found = self._hashes.get(source.uid)
        if found is None:
            found = application_hash(source, self.application, conf=self.conf)
            self._hashes[source.uid] = found
        return found


class NewestSettings:
    """Remembers the settings that were asked for last, and with them their hash."""

    def __init__(self) -> None:
        self._newest: ApplicationSettings | None = None

    def of(self, application: Application, conf: Mapping[str, str]) -> ApplicationSettings:
        """Return the settings with these parts."""
        known = self._newest
        # A spec that is unchanged is the same object, and comparing two takes as long as a hash.
        if known is None or known.application is not application or known.conf != conf:
            known = self._newest = ApplicationSettings(application=application, conf=conf)
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Settings that an application was not healthy with.

    Attributes:
        hash: of the settings.
        nonce: of `spec.application.restart` at that time; another one asks for another try.
        times: how often they have failed.
        at: when they failed last; seconds since the epoch.
        why: what failed, as a sentence.
    """

    hash: str
    nonce: int | None
    times: int
    at: float
    why: str

    @property
    def again_at(self) -> float:
        """When they are tried again; seconds since the epoch."""
        return self.at + backoff(self.times, first=FIRST_PAUSE, longest=MAX_PAUSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialMemory:
    """What is known of the settings of a source's applications.

    Attributes:
        healthy: settings of the last application that was healthy; None if there was none, or if
            they cannot be kept.
        refused: those of the last one that was not.
        hosts: those that do not run.
    """

    healthy: ApplicationSettings | None = None
    refused: Refused | None = None
    hosts: BrokenHosts = field(default_factory=BrokenHosts)

    def effective(
        self, wanted: ApplicationSettings, source: Identity, *, now: float
    ) -> ApplicationSettings:
        """Return the settings to run with: those that are wanted, or the last healthy ones."""
        return (
            self.healthy
            if self.healthy is not None and self.is_refused(wanted, source, now=now)
            else wanted
        )

    def is_refused(self, wanted: ApplicationSettings, source: Identity, *, now: float) -> bool:
        """Whether settings have failed, and it is not time to try them again."""
        refused, restart = self.refused, wanted.application.restart
        # Another nonce is the user's wish to try the same settings again now.
        if refused is None or restart.nonce not in (None, refused.nonce):
            return False
        waits = restart.policy is RestartPolicy.ON_NONCE or now < refused.again_at
        return waits and is_made_from(refused.hash, wanted.hash(source))

    def with_healthy(self, settings: ApplicationSettings, source: Identity) -> "TrialMemory":
        """Return what is known when an application was healthy with these settings."""
        found = settings.hash(source)
        is_known = self.healthy is not None and self.healthy.hash(source) == found
        was_refused = self.refused is not None and is_made_from(self.refused.hash, found)
        if is_known and not was_refused:
            return self
        kept = self.healthy if is_known else settings if _may_be_kept(settings) else None
        return replace(self, healthy=kept, refused=None if was_refused else self.refused)

    def with_refused(self, found: str, *, nonce: int | None, why: str, now: float) -> "TrialMemory":
        """Return what is known when an application was not healthy with the settings of a hash."""
        before = self.refused
        times = before.times if before is not None and is_made_from(before.hash, found) else 0
        return replace(
            self, refused=Refused(hash=found, nonce=nonce, times=times + 1, at=now, why=why)
        )


NOTHING: Final = TrialMemory()


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedApplication:
    """An application as it is judged.

    Attributes:
        manifest: the SparkApplication.
        decision: about it.
        incarnation: newest of the host's drivers that has registered.
        has_adopted: whether that driver has completed a micro-batch.
        since: when the first application with its settings was made; seconds since the epoch.
    """

    manifest: Manifest
    decision: Decision
    incarnation: int
    has_adopted: bool
    since: float

    @property
    def hash(self) -> str:
        """Hash of the settings that it was made from."""
        return str((self.manifest["metadata"].get("annotations") or {}).get(HASH_ANNOTATION, ""))

    @property
    def has_registered(self) -> bool:
        """Whether one of its own drivers has registered.

        Of an application of an earlier release, any.
        """
        return has_registered(self.manifest, self.incarnation)

    @property
    def runs(self) -> bool:
        """Whether its driver runs, and nothing is wrong with it."""
        return self.decision.state is ApplicationState.RUNNING and self.decision.problem is None

    @property
    def begins(self) -> bool:
        """Whether its driver runs and has registered."""
        return self.runs and self.has_registered

    @property
    def is_healthy(self) -> bool:
        """Whether it has shown that its settings work."""
        has_ended = (
            self.decision.state is ApplicationState.FINISHED and self.decision.problem is None
        )
        runs = (
            self.decision.state is ApplicationState.RUNNING
            and self.has_registered
            and self.has_adopted
        )
        return has_ended or runs

    def failure(self, *, patience: float, now: float) -> str:
        """Return why it counts as not healthy; empty if it does not (yet).

        A driver that has registered and runs for the first time may work at a large first
        micro-batch. An application that its Spark operator has not looked at yet says nothing about
        its settings.
        """
        status = self.manifest.get("status") or {}
        word = str((status.get("applicationState") or {}).get("state") or "")
        is_first_attempt = int(status.get("executionAttempts") or 1) <= 1
        if self.is_healthy or now - self.since < patience or not word:
            return ""
        if self.begins and is_first_attempt:
            return ""
        if self.decision.problem is not None:
            return self.decision.problem.message
        if self.begins:
            return "its driver was started again and completes no micro-batch"
        return "its driver has not registered" if self.runs else f"it is {word}"


def has_registered(application: Manifest, incarnation: int) -> bool:
    """Return whether the newest incarnation of a host is a driver of this very application."""
    before = str(
        (application["metadata"].get("annotations") or {}).get(INCARNATION_ANNOTATION, "0")
    )
    return incarnation > (int(before) if before.isdigit() else 0)


def is_of_former_times(
    host: HostState, report: HostReport, applications: Iterable[Manifest]
) -> bool:
    """Whether a report is of a driver that is stopped, or ran before its host was added again.

    Taken for a registration it would give the host splits that no one reads until its next
    application runs.

    Args:
        host: that is to join.
        report: of the host.
        applications: of the host, without those that are being stopped.
    """
    if host.role is not HostRole.JOINING or host.phase is not HostPhase.EXPECTED:
        return False
    return not any(has_registered(application, report.incarnation) for application in applications)


def on_trial(seen: TriedApplication, memory: TrialMemory, source: Identity) -> bool:
    """Return whether an application has settings with which its source was never healthy."""
    return memory.healthy is not None and not is_made_from(seen.hash, memory.healthy.hash(source))


def text_of(memory: TrialMemory) -> str:
    """Return what the next operator needs, as text.

    Empty if there is nothing, or if it is too large.
    """
    healthy, refused = memory.healthy, memory.refused
    document: dict[str, Any] = {}
    if healthy is not None:
        document["healthy"] = {
            "application": _dump(healthy.application),
            "conf": dict(healthy.conf),
        }
    if refused is not None:
        names = ("hash", "nonce", "times", "at", "why")
        document["refused"] = {name: getattr(refused, name) for name in names}
    if hosts := dump(memory.hosts):
        document["hosts"] = hosts
    text = json.dumps(document, separators=(",", ":"), sort_keys=True) if document else ""
    # Half a document would be worse than none: then the next operator begins without a memory.
    return text if len(text) <= LIMIT else ""


def memory_of(text: Any) -> TrialMemory:
    """Return what an operator before this one has left; nothing if it cannot be read."""
    try:
        document = json.loads(text)
        healthy, refused = document.get("healthy"), document.get("refused")
        return TrialMemory(
            healthy=None
            if healthy is None
            else ApplicationSettings(
                application=Application.model_validate(healthy["application"]),
                conf=dict(healthy["conf"]),
            ),
            refused=None if refused is None else _refused(refused),
            hosts=load(document.get("hosts")),
        )
    except (ValidationError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # Another release may have written it: trials begin again then.
        return NOTHING


def _refused(found: Mapping[str, Any]) -> Refused:
    nonce = found["nonce"]
    return Refused(
        hash=str(found["hash"]),
        nonce=None if nonce is None else int(nonce),
        times=max(1, int(found["times"])),
        at=float(found["at"]),
        why=str(found["why"]),
    )


def _dump(application: Application) -> dict[str, Any]:
    dump: dict[str, Any] = application.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude=NOT_COMPARED
    )
    return dump


def _may_be_kept(settings: ApplicationSettings) -> bool:
    """Whether nothing in them looks like a secret, and they are not too large."""
    document = {"application": _dump(settings.application), "conf": dict(settings.conf)}
    # The rest of the limit is for the settings that are refused, which are stored beside these.
    return redacted(document) == document and len(json.dumps(document)) <= LIMIT - 4096
