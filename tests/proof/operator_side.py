"""The operator in the explored world: its coordinator is the real one; each turn is computed once and remembered."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from balanced_source.api import AsyncCall, CallFailure, SplitId
from balanced_source.connectors.discovery import Alarm, Discover, Discovered, Initialize
from balanced_source.connectors.kafka import LATEST, InitializeKafka, KafkaPartitionSplit, KafkaSource
from balanced_source.coordinator import (
    CallCompleted,
    Checkpoint,
    Effect,
    Event,
    HostLost,
    ParallelismChanged,
    PersistState,
    PublishAssignment,
    ReportReceived,
    SourceCoordinator,
    state_codec,
)
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.errors import BalancedSourceError, TransientDiscoveryError
from balanced_source.lifecycles import HostPhase
from proof import rules
from proof.canonical import CallKey, call_keys, coordinator_key
from proof.values import Operator, PartId, Setting, Table, Violation

NOW = 0.0
UID = "uid-1"


class Write(NamedTuple):
    """A document that a turn writes: `stored` or `published`, and the part that it holds then."""

    document: str
    part: PartId


class TurnResult(NamedTuple):
    """What a turn leads to: the operator after it, and what it writes, in this order. Or the rule that it breaks."""

    operator: PartId
    writes: tuple[Write, ...]
    problem: str | None = None


class Question(NamedTuple):
    """A call under way."""

    name: CallKey
    number: int
    call: AsyncCall


class OperatorSide:
    """Turns of operators, as functions of parts."""

    def __init__(self, setting: Setting, source: KafkaSource) -> None:
        self.setting = setting
        self.source = source
        self.operators: Table[Operator] = Table()
        self.checkpoints: Table[Checkpoint[Any, Any]] = Table()
        self.assignments: Table[Assignment] = Table()
        self.reports: Table[HostReport] = Table()
        self._turns: dict[tuple[Any, ...], TurnResult] = {}
        self._questions: dict[PartId, tuple[Question, ...]] = {}
        self._order_problems: dict[tuple[PartId, ...], str | None] = {}

    # --- turns --------------------------------------------------------------------------------------------------

    def start(self, stored: PartId, lineage: int, parallelism: int) -> TurnResult:
        """A new operator process reads what is stored, or begins anew."""
        name = ("start", stored, lineage, parallelism)
        return self._remembered(name, lambda: self._start(stored, lineage, parallelism))

    def see_report(self, operator: PartId, report: PartId) -> TurnResult:
        """The operator sees a report document, new or old."""
        return self._remembered(
            ("report", operator, report), lambda: self._handle(operator, ReportReceived(self.reports[report]))
        )

    def rescale(self, operator: PartId, parallelism: int) -> TurnResult:
        """The operator sees what the user wants."""
        return self._remembered(
            ("rescale", operator, parallelism), lambda: self._handle(operator, ParallelismChanged(parallelism))
        )

    def lose(self, operator: PartId, host: str, incarnation: int) -> TurnResult:
        """The operator sees that a driver's pods are gone."""
        return self._remembered(
            ("lose", operator, host, incarnation), lambda: self._handle(operator, HostLost(host, incarnation))
        )

    def answer(self, operator: PartId, question: Question, listed: frozenset[SplitId] | None) -> TurnResult:
        """A call ends: with what exists (or is said to), or with a failure (None)."""
        return self._remembered(
            ("answer", operator, question.name, listed), lambda: self._answer(operator, question, listed)
        )

    def questions(self, operator: PartId) -> tuple[Question, ...]:
        """Calls that somebody executes now; alarms are not: no time passes."""
        found = self._questions.get(operator)
        if found is None:
            coordinator = self.operators[operator].coordinator
            calls = coordinator._context.calls
            found = tuple(
                Question(name, number, calls[number].call)
                for name, number in sorted(call_keys(coordinator).items(), key=lambda item: item[1])
                if not isinstance(calls[number].call, Alarm)
            )
            self._questions[operator] = found
        return found

    def order_problem(self, stored: PartId, before: PartId, published: PartId) -> str | None:
        """Whether publishing breaks write-ahead, or tells nothing new; see `rules.publishing`."""
        name = (stored, before, published)
        if name not in self._order_problems:
            checkpoint = self.checkpoints[stored] if stored else None
            previous = self.assignments[before] if before else None
            self._order_problems[name] = rules.publishing(
                checkpoint, previous, self.assignments[published], self.source
            )
        return self._order_problems[name]

    def is_active(self, operator: PartId, host: str, incarnation: int) -> bool:
        """Whether the operator counts on this driver process."""
        known = self.operators[operator].coordinator.state.hosts[host]
        return known.incarnation == incarnation and known.phase is HostPhase.ACTIVE

    @property
    def computed(self) -> int:
        """Number of different turns so far."""
        return len(self._turns)

    # --- computing them -----------------------------------------------------------------------------------------

    def _remembered(self, name: tuple[Any, ...], compute: Callable[[], TurnResult]) -> TurnResult:
        result = self._turns.get(name)
        if result is None:
            try:
                result = compute()
            except (Violation, BalancedSourceError, LookupError, ValueError, TypeError, AttributeError) as error:
                result = TurnResult(0, (), f"{type(error).__name__}: {error}")
            self._turns[name] = result
        return result

    def _start(self, stored: PartId, lineage: int, parallelism: int) -> TurnResult:
        restored = self.checkpoints[stored] if stored else None
        if restored is not None:
            rules.restored(restored)
        coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(
            self.source, parallelism=parallelism, hosts=self.setting.hosts, lineage=lineage, restored=restored
        )
        effects = coordinator.start(now=NOW)
        return self._result(Operator(coordinator), effects)

    def _answer(self, operator: PartId, question: Question, listed: frozenset[SplitId] | None) -> TurnResult:
        call = question.call
        assert isinstance(call, (Discover, Initialize))
        result = _result_of(call, listed, self.setting.records)
        asked = self.operators[operator].asked | {call.scope}
        return self._handle(operator, CallCompleted(question.number, result), asked=asked)

    def _handle(self, operator: PartId, event: Event, *, asked: frozenset[str] | None = None) -> TurnResult:
        before = self.operators[operator]
        coordinator = before.coordinator.fork()
        effects = coordinator.handle(event, now=NOW)
        after = Operator(coordinator, before.asked if asked is None else asked)
        rules.turn(before, event, after)
        rules.order_independence(before, event, after)
        return self._result(after, effects)

    def _result(self, operator: Operator, effects: list[Effect]) -> TurnResult:
        number = self.operators.add(operator, (coordinator_key(operator.coordinator), operator.asked))
        return TurnResult(number, tuple(self._writes(effects)))

    def _writes(self, effects: list[Effect]) -> Iterator[Write]:
        for effect in effects:
            if isinstance(effect, PersistState):
                text = state_codec.encode(effect.checkpoint, self.source, uid=UID)
                yield Write("stored", self.checkpoints.of(text, lambda t: state_codec.decode(t, self.source, uid=UID)))
            elif isinstance(effect, PublishAssignment):
                text = assignment_document.encode(effect.assignment, source=UID)
                yield Write("published", self.assignments.of(text, lambda t: assignment_document.decode(t, source=UID)))


def _result_of(call: Discover | Initialize, listed: frozenset[SplitId] | None, records: int) -> Any:
    """What an adapter with a client would answer."""
    if listed is None:
        return CallFailure(TransientDiscoveryError("the world says no", scope=call.scope))
    if isinstance(call, Discover):
        return Discovered(split_ids=listed)
    assert isinstance(call, InitializeKafka)
    begin = records if call.starting_offsets == LATEST else 0
    return [
        KafkaPartitionSplit(cluster=str(c), topic=str(t), partition=int(p), offset=begin)
        for c, t, p in call.split_ids
        if (c, t, p) in listed
    ]
