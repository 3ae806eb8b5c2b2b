"""The operator in the explored world: its coordinator is the real one.

Each turn is computed once and remembered.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from balanced_source.api import AsyncCall, CallFailure, SplitId
from balanced_source.connectors.discovery import Discover, Initialize
from balanced_source.connectors.kafka import DiscoverKafka, InitializeKafka, KafkaSource
from balanced_source.coordinator import (
    CallCompleted,
    Checkpoint,
    Effect,
    Event,
    HostGivenUp,
    HostLost,
    HostOverdue,
    HostRole,
    HostsChanged,
    HostSilent,
    ParallelismChanged,
    PersistState,
    PublishAssignment,
    ReportReceived,
    SourceChanged,
    SourceCoordinator,
    state_codec,
)
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.errors import BalancedSourceError, TransientDiscoveryError
from balanced_source.lifecycles import HostPhase
from proof import rules
from proof.brokers import Admin, Lives
from proof.canonical import CallKey, call_keys, coordinator_key
from proof.values import Operator, PartId, Setting, Table, Violation, Wanted

NOW = 0.0
UID = "uid-1"


class Write(NamedTuple):
    """A document that a turn writes: `stored` or `published`, and the part that it holds then."""

    document: str
    part: PartId


class TurnResult(NamedTuple):
    """What a turn leads to: the operator after it, and what it writes, in this order.

    If it breaks a rule, it leads to that rule.
    """

    operator: PartId
    writes: tuple[Write, ...]
    problem: str | None = None


class Question(NamedTuple):
    """A call under way."""

    name: CallKey
    number: int
    call: Discover | Initialize

    @property
    def scope(self) -> str:
        """The part of the source that it asks."""
        return self.call.scope


class OperatorSide:
    """Turns of operators, as functions of parts."""

    def __init__(
        self, setting: Setting, brokers: Table[Lives], sources: Sequence[KafkaSource]
    ) -> None:
        self.setting = setting
        self.sources = sources
        self._brokers = brokers
        self._admin = Admin()
        self.operators: Table[Operator] = Table()
        self.checkpoints: Table[Checkpoint[Any, Any]] = Table()
        self.assignments: Table[Assignment] = Table()
        self.reports: Table[HostReport] = Table()
        self._turns: dict[tuple[Any, ...], TurnResult] = {}
        self._questions: dict[PartId, tuple[Question, ...]] = {}
        self._order_problems: dict[tuple[PartId, ...], str | None] = {}

    # --- turns ------------------------------------------------------------------------------------

    def start(self, stored: PartId, published: PartId, lineage: int, wanted: Wanted) -> TurnResult:
        """A new operator process reads what is stored and published, or begins again."""
        name = ("start", stored, published, lineage, wanted)
        return self._remembered(name, lambda: self._start(stored, published, lineage, wanted))

    def see_report(self, operator: PartId, report: PartId) -> TurnResult:
        """The operator sees a report document, new or old."""
        return self._remembered(
            ("report", operator, report),
            lambda: self._handle(operator, ReportReceived(self.reports[report])),
        )

    def rescale(self, operator: PartId, parallelism: int) -> TurnResult:
        """The operator sees what the user wants."""
        return self._remembered(
            ("rescale", operator, parallelism),
            lambda: self._handle(operator, ParallelismChanged(parallelism)),
        )

    def edit(self, operator: PartId, spec: int) -> TurnResult:
        """The operator sees another variant of the source."""
        event = SourceChanged(self.sources[spec])
        return self._remembered(
            ("edit", operator, spec), lambda: self._handle(operator, event, spec=spec)
        )

    def rehost(self, operator: PartId, hosts: tuple[str, ...]) -> TurnResult:
        """The operator sees which hosts the user wants."""
        return self._remembered(
            ("hosts", operator, hosts), lambda: self._handle(operator, HostsChanged(hosts))
        )

    def give_up(self, operator: PartId, host: str) -> TurnResult:
        """The operator has waited long enough for a host."""
        return self._remembered(
            ("overdue", operator, host), lambda: self._handle(operator, HostOverdue(host))
        )

    def lose_for_good(self, operator: PartId, host: str) -> TurnResult:
        """The operator has waited long enough for a host to report again."""
        hosts = self.operators[operator].coordinator.state.hosts
        repeats = self.setting.may_repeat
        event = HostGivenUp(host, hosts[host].incarnation, accepts_duplicates=repeats)
        return self._remembered(
            ("lose for good", operator, host), lambda: self._handle(operator, event)
        )

    def note_silent(self, operator: PartId, host: str) -> TurnResult:
        """A host has not reported for long."""
        hosts = self.operators[operator].coordinator.state.hosts
        event = HostSilent(host, hosts[host].incarnation)
        return self._remembered(("silent", operator, host), lambda: self._handle(operator, event))

    def heard(self, operator: PartId, *, said: Iterable[HostReport]) -> list[str]:
        """Hosts that run, as far as the operator knows, and whose drivers said something else."""
        coordinator = self.operators[operator].coordinator
        silent = coordinator._context.silent
        words = {(r.host, r.incarnation, r.sequence) for r in said}
        return [
            name
            for name, host in coordinator.state.hosts.items()
            if host.phase is HostPhase.ACTIVE
            and name not in silent
            and host.report is not None
            and (name, host.incarnation, host.report.sequence) not in words
        ]

    def may_lose(self, operator: PartId) -> list[str]:
        """Hosts with readers, or that leave, that may be silent, also since a state was lost."""
        state = self.operators[operator].coordinator.state
        phases = [HostPhase.ACTIVE, HostPhase.LOST]
        phases += [HostPhase.EXPECTED] if state.has_history or state.lineage > 1 else []
        roles = [HostRole.MEMBER, HostRole.LEAVING]
        # Duplicates may be accepted while a drain attempt is waited for.
        roles += [HostRole.DRAINING] if self.setting.may_repeat else []
        return [n for n, h in state.hosts.items() if h.phase in phases and h.role in roles]

    def has_others(self, operator: PartId, hosts: tuple[str, ...]) -> bool:
        """Whether the operator has other hosts than the user wants, except for those that leave."""
        known = self.operators[operator].coordinator.state.hosts
        return {name for name, host in known.items() if host.role is not HostRole.LEAVING} != set(
            hosts
        )

    def knows(self, operator: PartId, host: str) -> bool:
        """Whether the operator counts a host among those of the source."""
        return host in self.operators[operator].coordinator.state.hosts

    def expected(self, operator: PartId) -> list[str]:
        """Hosts with readers that have not come although others have."""
        state = self.operators[operator].coordinator.state
        hosts = state.hosts
        # At a first start all wait for the first host (`host_deadlines`).
        able = (HostPhase.ACTIVE, *((HostPhase.RECOVERING,) if state.is_first_life else ()))
        if all(host.phase not in able for host in hosts.values()):
            return []
        return [
            n
            for n, h in hosts.items()
            if h.phase is HostPhase.EXPECTED and h.role is HostRole.MEMBER
        ]

    def lose(self, operator: PartId, host: str, incarnation: int) -> TurnResult:
        """The operator sees that a driver's pods are gone."""
        return self._remembered(
            ("lose", operator, host, incarnation),
            lambda: self._handle(operator, HostLost(host, incarnation)),
        )

    def answer(
        self,
        operator: PartId,
        question: Question,
        broker: PartId,
        *,
        hidden: frozenset[SplitId] = frozenset(),
    ) -> TurnResult:
        """A call ends: with what exists, except for splits that are not listed.

        Without a broker it ends with a failure.
        """
        return self._remembered(
            ("answer", operator, question.name, broker, hidden),
            lambda: self._answer(operator, question, broker, hidden),
        )

    def questions(self, operator: PartId) -> tuple[Question, ...]:
        """Calls that someone executes now; alarms are not: no time passes."""
        found = self._questions.get(operator)
        if found is None:
            coordinator = self.operators[operator].coordinator
            calls = coordinator._context.calls
            found = tuple(
                Question(name, number, call)
                for name, number in sorted(call_keys(coordinator).items(), key=lambda item: item[1])
                if isinstance(call := calls[number].call, (Discover, Initialize))
            )
            self._questions[operator] = found
        return found

    def taken_over(self, stored: PartId) -> PartId:
        """The stored state, as the operator reads that of another uid."""
        return self._add_checkpoint(self.checkpoints[stored].taken_over())

    def for_no_driver(self, published: PartId) -> PartId:
        """An assignment of another uid: the operator knows it, and drivers take it for none.

        It is meant for no incarnation that there may be, and for none that the next one is for.
        """
        known = self.assignments[published]
        unread = replace(known, incarnations=dict.fromkeys(known.incarnations, -1))
        return self._add_assignment(unread)

    def order_problem(self, stored: PartId, before: PartId, published: PartId) -> str | None:
        """Whether publishing breaks write-ahead, or tells nothing new; see `rules.publishing`."""
        name = (stored, before, published)
        if name not in self._order_problems:
            checkpoint = self.checkpoints[stored] if stored else None
            previous = self.assignments[before] if before else None
            self._order_problems[name] = self._order_problem(
                checkpoint, previous, self.assignments[published]
            )
        return self._order_problems[name]

    def _order_problem(
        self,
        checkpoint: Checkpoint[Any, Any] | None,
        previous: Assignment | None,
        published: Assignment,
    ) -> str | None:
        """Settings come from the source that the operator has seen last, which is not stored."""
        problems = [
            rules.publishing(checkpoint, previous, published, source) for source in self.sources
        ]
        return None if None in problems else problems[0]

    def is_active(self, operator: PartId, host: str, incarnation: int) -> bool:
        """Whether the operator counts on this driver process."""
        known = self.operators[operator].coordinator.state.hosts.get(host)
        return (
            known is not None
            and known.incarnation == incarnation
            and known.phase is HostPhase.ACTIVE
        )

    @property
    def computed(self) -> int:
        """Number of different turns so far."""
        return len(self._turns)

    # --- computing them ---------------------------------------------------------------------------

    def _remembered(self, name: tuple[Any, ...], compute: Callable[[], TurnResult]) -> TurnResult:
        result = self._turns.get(name)
        if result is None:
            try:
                result = compute()
            except (
                Violation,
                BalancedSourceError,
                LookupError,
                ValueError,
                TypeError,
                AttributeError,
                StopIteration,
            ) as error:
                result = TurnResult(0, (), f"{type(error).__name__}: {error}")
            self._turns[name] = result
        return result

    def _start(self, stored: PartId, published: PartId, lineage: int, wanted: Wanted) -> TurnResult:
        restored = self.checkpoints[stored] if stored else None
        if restored is not None:
            rules.restored(restored)
        coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(
            self.sources[wanted.spec],
            parallelism=wanted.parallelism,
            hosts=wanted.hosts,
            lineage=lineage,
            restored=restored,
            published=self.assignments[published] if published else None,
        )
        effects = coordinator.start(now=NOW)
        return self._result(Operator(coordinator, wanted.spec), effects)

    def _answer(
        self, operator: PartId, question: Question, broker: PartId, hidden: frozenset[SplitId]
    ) -> TurnResult:
        call, before = question.call, self.operators[operator]
        if not broker:
            result: Any = CallFailure(
                TransientDiscoveryError("the world says no", scope=call.scope)
            )
        else:
            lives = self._brokers[broker]
            self._admin.set(
                {s: life for s, life in lives.items() if s not in hidden}, self.setting.records
            )
            result = self._ask(call)
        return self._handle(
            operator, CallCompleted(question.number, result), asked=before.asked | {call.scope}
        )

    def _ask(self, call: AsyncCall) -> Any:
        """What the shipped adapter answers."""
        if isinstance(call, DiscoverKafka):
            return self._admin.discover(call)
        assert isinstance(call, InitializeKafka)
        return self._admin.initialize(call)

    def _handle(
        self,
        operator: PartId,
        event: Event,
        *,
        asked: frozenset[str] | None = None,
        spec: int | None = None,
    ) -> TurnResult:
        before = self.operators[operator]
        coordinator = before.coordinator.fork()
        effects = coordinator.handle(event, now=NOW)
        spec = before.spec if spec is None else spec
        scopes = frozenset(self.sources[spec].scopes())
        after = Operator(
            coordinator, spec, (before.asked if asked is None else asked) & scopes, before.wrote
        )
        rules.turn(before, event, after)
        rules.order_independence(before, event, after)
        return self._result(after, effects)

    def _result(self, operator: Operator, effects: list[Effect]) -> TurnResult:
        writes = tuple(self._writes(effects))
        if self.setting.budget.rivals:
            published = [write.part for write in writes if write.document == "published"]
            operator = replace(operator, wrote=published[-1] if published else operator.wrote)
        name = (
            coordinator_key(operator.coordinator),
            operator.spec,
            operator.asked,
            operator.wrote,
        )
        return TurnResult(self.operators.add(operator, name), writes)

    def _writes(self, effects: list[Effect]) -> Iterator[Write]:
        for effect in effects:
            if isinstance(effect, PersistState):
                yield Write("stored", self._add_checkpoint(effect.checkpoint))
            elif isinstance(effect, PublishAssignment):
                yield Write("published", self._add_assignment(effect.assignment))

    def _add_checkpoint(self, checkpoint: Checkpoint[Any, Any]) -> PartId:
        text = state_codec.encode(checkpoint, self.sources[0], uid=UID)
        return self.checkpoints.of(text, lambda t: state_codec.decode(t, self.sources[0], uid=UID))

    def _add_assignment(self, assignment: Assignment) -> PartId:
        text = assignment_document.encode(assignment, source=UID)
        return self.assignments.of(text, lambda t: assignment_document.decode(t, source=UID))
