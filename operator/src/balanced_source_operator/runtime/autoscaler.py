"""Lets the autoscaler decide after each report, and changes `parallelism` as it says."""

import math
import operator
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from balanced_source.api import Source
from balanced_source.documents.report import HostReport
from balanced_source.errors import ConnectorError
from balanced_source.reasons import Reason
from balanced_source_operator.contract.blame import blamed
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.autoscaling import (
    AutoscalerMemory,
    Policy,
    Rivalry,
    Sample,
    Verdict,
    carried_out,
    observe,
    weigh,
    words,
)
from balanced_source_operator.controller.autoscaling.host_samples import ARRIVAL
from balanced_source_operator.controller.autoscaling.memory import Capacity
from balanced_source_operator.controller.autoscaling.settings import policy_of
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.liveness import ALIVE
from balanced_source_operator.controller.losses import counted_losses
from balanced_source_operator.controller.refusals import is_final
from balanced_source_operator.kube.port import ConflictError, KubernetesApi, RefusedError
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import BALANCED_SOURCE
from balanced_source_operator.runtime.coordination import Coordination
from balanced_source_operator.runtime.environment import Desired
from balanced_source_operator.runtime.events import EventRecorder
from balanced_source_operator.runtime.refusals import PATIENCE

SPLITS_PER_SECOND: Final = 10_000
"""Splits of a sample for each second until the next one.

A sample of 100,000 splits takes 0.4 s of a core.
"""

LONGEST_SPACING: Final = 10.0
"""Seconds between two samples, at most."""


_Decided = tuple[Policy, int, bool, tuple[str, ...], tuple[Sample, ...]]
"""What a decision is taken from: see `Autoscaler.turn`."""


@dataclass(slots=True)
class _Look:
    """What the autoscaler has seen of a host.

    Attributes:
        seen: incarnation and sequence of its newest report.
        sampled_at: when the newest report came that tells the lag.
    """

    seen: tuple[int, int] | None = None
    sampled_at: float = -math.inf


class Autoscaler:
    """Of one source.

    The decision is written to `spec.parallelism` through the scale subresource, as every autoscaler
    does it: users see it, `kubectl scale` still works, and a restarted operator finds it.

    Args:
        api: the API server.
        source: whose number of readers it is.
        events: where events are posted.
        capacity: records per second of one reader, as an operator before this one has measured it;
            None if it is unknown.
    """

    def __init__(
        self,
        api: KubernetesApi,
        source: Identity,
        events: EventRecorder,
        *,
        capacity: float | None = None,
    ) -> None:
        self._api = api
        self._source = source
        self._events = events
        self._memory = AutoscalerMemory()
        self._former_capacity = capacity
        self._decided_from: _Decided | None = None
        self._looks: dict[str, _Look] = {}
        self._space = 0.0
        self._is_measurable = True
        self._refused: Verdict | None = None
        self._failing_since: float | None = None
        self._rivalry = Rivalry()
        self._is_fight = False
        self._quiet_since: float | None = None
        self._is_settled = False

    @property
    def verdict(self) -> Verdict | None:
        """The newest decision; None while the source has no autoscaling, is paused or finished."""
        verdict = self._refused or self._memory.verdict
        if verdict is None or verdict is self._refused or not self._is_fight:
            return verdict
        message = words.fight(self._rivalry.found, verdict.readers)
        return replace(verdict, reason=Reason.TWO_AUTOSCALERS, message=message, is_able=False)

    async def turn(
        self, desired: Desired | None, reports: Mapping[str, HostReport | None], *, is_held: bool
    ) -> None:
        """Decide if there is something new, and do it.

        Args:
            desired: the spec in effect.
            reports: the newest one of each host that reads, see `reports_of_readers`.
            is_held: whether nothing may change, or nothing is left to read.

        Raises:
            KubernetesError: the API server does not answer.
        """
        self._is_settled = False
        await self._turn(desired, reports, is_held=is_held)
        now = time.monotonic()
        self._quiet_since = (self._quiet_since or now) if self._is_quiet else None
        since, verdict = self._quiet_since, self.verdict
        # A sentence that was made before may have numbers of a load that is gone.
        self._is_settled = since is not None and verdict is not None and verdict.decided_at >= since

    def heard(self, source: Source[Any, Any], host: str, report: HostReport) -> bool:
        """Take over a report without news, and return whether it needs no turn.

        That is so once there has been nothing to read for a while, and no reader may be taken away.
        Otherwise also the time that passes without news decides something.

        Args:
            source: what is read.
            host: whose report it is.
            report: which says nothing but that its writer lives.
        """
        if not self._is_settled or self._decided_from is None or host not in self._looks:
            return False
        policy, now, before = self._decided_from[0], time.monotonic(), self._memory
        try:
            # What arrives later has arrived since this report, not since the last turn.
            memory = self._looked(policy, source, self._memory, host, report, now=now)
        except ConnectorError:
            return False  # the turn says so
        # That nothing was needed counts, should fewer readers be allowed.
        self._memory = memory.noting(now, policy.min_readers, delay=policy.patience)
        # Also a lag that stays unknown has to be said, and news that no sample has had yet.
        has_all = all(now - look.sampled_at < ALIVE for look in self._looks.values())
        return has_all and _is_as_idle(before, memory)

    @property
    def _is_quiet(self) -> bool:
        """Whether nothing arrives or is unread, and there are as few readers as there may be."""
        if self._decided_from is None or (verdict := self.verdict) is None:
            return False
        policy, wanted, *_, newest = self._decided_from
        return (
            verdict.reason == Reason.WITHIN_TARGET
            and verdict.readers == wanted == policy.min_readers
            and verdict.arrival == 0
            and not any(sample.unread for sample in newest)
        )

    async def _turn(
        self, desired: Desired | None, reports: Mapping[str, HostReport | None], *, is_held: bool
    ) -> None:
        policy = policy_of(desired.spec) if desired is not None else None
        if policy is None or desired is None or is_held:
            self._forget(keeps_capacity=policy is not None)
            return
        wanted, now = desired.spec.parallelism, time.monotonic()
        self._begin(now)
        was_fight = self._is_fight
        self._is_fight = self._rivalry.is_fight(policy, now)
        memory = self._observed(policy, desired.source, reports, now)
        newest = memory.newest
        decided_from = (policy, wanted, self._is_measurable, memory.silent, newest)
        if self._is_decided(decided_from):
            self._memory = replace(memory, verdict=self._memory.verdict)
            return
        before, after = self._memory.verdict, weigh(policy, memory, wanted=wanted, now=now)
        # "Measuring" would promise an end: while no lag is reported, there is nothing to measure.
        if policy.is_manual:
            verdict = _undecided(wanted, Reason.REBALANCE_MANUAL, words.manual(wanted))
            after = replace(after, verdict=verdict)
        elif not newest and after.verdict is not None and after.verdict.readers == wanted:
            unknown = (
                (Reason.LAG_UNKNOWN, words.unknown(wanted))
                if self._is_measurable
                else (Reason.NOT_MEASURABLE, words.not_measurable(wanted, desired.source.kind))
            )
            after = replace(after, verdict=_undecided(wanted, *unknown))
        # Measured is measured, also if the decision cannot be carried out.
        self._memory = replace(
            after, verdict=before, attempt=memory.attempt, ceiling=memory.ceiling
        )
        await self._carry_out(after, wanted)
        # A refusal passes when someone grants the right, so it is tried again without a new
        # report.
        is_refused = self._refused is not None or self._failing_since is not None
        self._decided_from = None if is_refused else decided_from
        self._is_fight = self._rivalry.is_fight(policy, now)
        if self._refused is not None or not self._is_fight:
            await self._announce(before, self.verdict)
        elif not was_fight and (fight := self.verdict) is not None:
            await self._events.post(fight.reason, fight.message, warning=True)

    def _forget(self, *, keeps_capacity: bool) -> None:
        """Forget the load, and all that follows from it.

        A pause changes the load and the backlog, but not what one reader can process. A resumed
        source has a backlog, and needs the right number of readers at once.
        """
        capacity = self._memory.capacity if keeps_capacity else None
        self._memory, self._rivalry = AutoscalerMemory(capacity=capacity), Rivalry()
        self._decided_from, self._refused, self._failing_since = None, None, None
        self._looks = {}

    def _begin(self, now: float) -> None:
        """Begin with the capacity that the operator before this one has measured, once."""
        rate, self._former_capacity = self._former_capacity, None
        if rate is not None:
            self._memory = replace(self._memory, capacity=Capacity.stored(rate, now))

    def _is_decided(self, decided_from: _Decided) -> bool:
        """Whether the newest decision was taken from the same things.

        Samples are large: compared by identity.
        """
        known = self._decided_from
        if known is None or known[:-1] != decided_from[:-1]:
            return False
        before, after = known[-1], decided_from[-1]
        return len(before) == len(after) and all(map(operator.is_, before, after))

    def _observed(
        self,
        policy: Policy,
        source: Source[Any, Any],
        reports: Mapping[str, HostReport | None],
        now: float,
    ) -> AutoscalerMemory:
        """Return the memory with the newest reports.

        Without what was measured before of hosts whose lag is unknown for longer than a driver may
        be silent. A shorter gap is bridged: a broker that answers late now and then must not make
        the operator forget all that it has measured.
        """
        memory, self._space = self._memory, _spacing(reports)
        self._looks = {name: self._looks.get(name, _Look()) for name in reports}
        for name, report in reports.items():
            if report is not None:
                memory = self._looked(policy, source, memory, name, report, now=now)
        # A lag that was measured long ago must not add readers now.
        heard = {n for n, look in self._looks.items() if now - look.sampled_at < ALIVE}
        if not self._is_measurable or not heard:
            return _without_samples(memory)
        silent = tuple(name for name in reports if name not in heard)
        return memory.heard_from(heard, silent=silent, share=_share(reports, heard))

    def _looked(
        self,
        policy: Policy,
        source: Source[Any, Any],
        memory: AutoscalerMemory,
        host: str,
        report: HostReport,
        *,
        now: float,
    ) -> AutoscalerMemory:
        """Return the memory with the newest report of a host."""
        look, key = self._looks[host], (report.incarnation, report.sequence)
        # A turn has the reports of its begin, and a newer one may have been heard since.
        if look.seen is not None and key[0] == look.seen[0] and key <= look.seen:
            return memory
        if now - look.sampled_at < self._space:
            look.seen = key
            return memory
        self._is_measurable = _counts_unread(source, report)
        look.seen = key
        lost = _lost_records(source, report)
        sample = Sample.of(report, lost=lost) if self._is_measurable else None
        if sample is None:
            return memory
        look.sampled_at = now
        return observe(policy, memory, sample, now=now, host=host)

    async def _carry_out(self, memory: AutoscalerMemory, wanted: int) -> None:
        """Change the number of readers.

        A conflict means that someone else has: the next turn decides again.
        """
        verdict, failing_since, now = memory.verdict, self._failing_since, time.monotonic()
        self._failing_since = None
        assert verdict is not None  # noqa: S101 - `decide` always sets one
        if verdict.readers != wanted:
            source = self._source
            try:
                await self._api.scale(
                    BALANCED_SOURCE,
                    source.namespace,
                    source.name,
                    before=wanted,
                    after=verdict.readers,
                )
            except ConflictError:
                return
            except RefusedError as error:
                self._failing_since = now if failing_since is None else failing_since
                # A busy API server answers again without anybody's help.
                if not is_final(error) and now - self._failing_since < PATIENCE:
                    return
                message = words.refused(verdict.readers, str(error))
                self._refused = replace(
                    verdict, reason=Reason.SCALING_REFUSED, message=message, is_able=False
                )
                return
            self._rivalry = self._rivalry.wrote(
                time.monotonic(), before=wanted, after=verdict.readers
            )
        self._memory = carried_out(memory, wanted=wanted, now=now)
        self._refused = None

    async def _announce(self, before: Verdict | None, after: Verdict | None) -> None:
        """Post events for changes of the number of readers, and warn if autoscaling cannot help."""
        if after is None:
            return
        is_change = before is None or after.readers != before.readers
        # Of a source that was just created, or resumed, no driver can have reported yet.
        is_first_look = before is None and after.reason == Reason.LAG_UNKNOWN
        is_other = before is None or before.reason != after.reason
        is_warning = not after.is_able and is_other and not is_first_look
        if is_warning or (is_change and after.reason in _CHANGES):
            await self._events.post(after.reason, after.message, warning=not after.is_able)


_CHANGES = (
    Reason.SCALED_UP,
    Reason.SCALED_DOWN,
    Reason.PROBING,
    Reason.DOWNSTREAM_LIMIT,
    Reason.SPLITS_UNEVEN,
    Reason.WITHIN_BOUNDS,
)


def is_read(coordination: Coordination, decision: Decision) -> bool:
    """Return whether nothing is left to read, for good or until the application is started again.

    A driver that has ended reports no lag any more, and none is missing.
    """
    coordinator = coordination.coordinator
    is_finished = coordinator is not None and coordinator.enumerator.is_finished()
    return is_finished or decision.state is ApplicationState.FINISHED


def _is_as_idle(before: AutoscalerMemory, after: AutoscalerMemory) -> bool:
    """Return whether a further sample of an idle source has told nothing."""
    ends = [[sample.total_end for sample in memory.newest] for memory in (before, after)]
    return (
        # What is unread counts, too.
        ends[0] == ends[1]
        and after.capacity == before.capacity
        # Not after a driver's clock has jumped: it is measured again.
        and after.spans(ARRIVAL)
    )


def _without_samples(memory: AutoscalerMemory) -> AutoscalerMemory:
    """Return the memory without what can no longer be compared with a later report."""
    return replace(memory, series={}, silent=(), share=1.0, needs=(), calm_since=None)


def _spacing(reports: Mapping[str, HostReport | None]) -> float:
    """Return the seconds between two samples: comparing those of many splits takes time."""
    splits = sum(len(report.positions) for report in reports.values() if report is not None)
    return min(LONGEST_SPACING, splits / SPLITS_PER_SECOND)


def _share(reports: Mapping[str, HostReport | None], heard: Collection[str]) -> float:
    """Return the share of all splits that the hosts which are heard have.

    A host that has never reported counts as one with as many splits as another.
    """
    known = {name: len(report.owners) for name, report in reports.items() if report is not None}
    if len(known) < len(reports) or not sum(known.values()):
        return len(heard) / len(reports)
    return (sum(known[name] for name in heard) or 1) / sum(known.values())


def _counts_unread(source: Source[Any, Any], report: HostReport) -> bool:
    """Return whether what is unread in the splits of a report says how much there is to do.

    Raises:
        ConnectorError: the connector fails.
    """
    with blamed(source.kind, "spec.source"):
        if not report.positions:
            return source.look_ahead == 0
        return all(map(source.counts_unread, report.positions))


def _lost_records(source: Source[Any, Any], report: HostReport) -> int | None:
    """Return how many records a driver has counted as lost; None if that is unknown."""
    try:
        return counted_losses(source.kind, [report]).records
    except ConnectorError:
        return None  # the status says so


def _undecided(wanted: int, reason: Reason, message: str) -> Verdict:
    return Verdict(
        readers=wanted, reason=reason, message=message, is_able=False, decided_at=-float("inf")
    )
