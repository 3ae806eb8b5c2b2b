"""What every `SplitEnumerator` must do, under the real coordinator, with documents as text."""

from collections.abc import Mapping
from typing import Any

from balanced_source.api import (
    IDENTITY,
    SPLIT_REQUEST,
    STOP,
    AsyncCall,
    BoundedSplit,
    CallFailure,
    Source,
    SplitId,
)
from balanced_source.connectors.discovery import Discovered
from balanced_source.coordinator import (
    CallCompleted,
    Effect,
    Event,
    ExecuteCall,
    HostLost,
    ParallelismChanged,
    PersistState,
    PublishAssignment,
    ReportFact,
    ReportReceived,
    SourceCoordinator,
    perform,
    state_codec,
)
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents import report as report_document
from balanced_source.errors import TransientDiscoveryError
from balanced_source.host import ReaderHost
from balanced_source.testing.serializer import state_serializer

UID = "uid"
ROUNDS = 12
"""Exchanges of documents after which everything must have come to rest."""


class EnumeratorContract:
    """Derive, implement the hooks, and name the class ``Test…``.

    Attributes:
        is_pull: whether readers ask for work; then each of them does, whenever everything is at
            rest.
    """

    is_pull: bool = False

    def source(self) -> Source[Any, Any]:
        """What is read; an equal one at each call within a test."""
        raise NotImplementedError

    def split_ids(self) -> frozenset[SplitId]:
        """All splits that are there."""
        raise NotImplementedError

    def execute(self, call: AsyncCall) -> Any:
        """What the outside world answers to a call."""
        raise NotImplementedError

    def test_reader_settings_have_the_kind_as_their_key(self) -> None:
        source = self.source()
        settings = source.reader_settings()

        assert not settings or source.kind in settings

    def test_every_split_gets_one_reader(self) -> None:
        world = _World(self, parallelism=3)

        world.settle()

        assert world.owners.keys() == self.split_ids()
        assert set(world.owners.values()) <= set(range(3))
        assert world.coordinator.enumerator.pending_splits() == 0

    def test_the_same_world_leads_to_the_same_owners(self) -> None:
        first, second = _World(self, parallelism=3), _World(self, parallelism=3)
        first.settle()
        second.settle()

        assert first.owners == second.owners

    def test_what_is_stored_is_what_there_is(self) -> None:
        world = _World(self, parallelism=2)
        world.settle()
        source, state = self.source(), world.coordinator.enumerator.snapshot_state()

        written = state_serializer(source).serialize(state)

        assert state_serializer(source).deserialize(source.state_version, written) == state
        assert world.coordinator.enumerator.snapshot_state() is state, (
            "nothing happened: the same value"
        )

    def test_a_restart_moves_nothing(self) -> None:
        world = _World(self, parallelism=3)
        world.settle()
        before = dict(world.owners)

        world.restart_operator()
        world.settle()

        assert world.owners == before

    def test_a_restart_at_any_time_loses_nothing(self) -> None:
        for steps in range(ROUNDS):
            world = _World(self, parallelism=2)
            for _ in range(steps):
                world.step()
            world.restart_operator()
            world.settle()
            assert world.owners.keys() == self.split_ids(), f"after {steps} steps"

    def test_readers_come_and_go(self) -> None:
        world = _World(self, parallelism=2)
        world.settle()
        for parallelism in (5, 1, 3):
            world.handle(ParallelismChanged(parallelism))
            world.settle()
            assert world.owners.keys() == self.split_ids()
            assert set(world.owners.values()) <= set(range(parallelism))

    def test_a_host_that_comes_back_continues(self) -> None:
        world = _World(self, parallelism=3)
        world.settle()
        world.handle(HostLost(host="0", incarnation=world.host.incarnation))
        world.restart_host()
        world.settle()

        assert world.owners.keys() == self.split_ids()

    def test_a_world_that_does_not_answer_at_first(self) -> None:
        world = _World(self, parallelism=2)
        world.is_down = True
        for _ in range(3):
            world.step()
        world.is_down = False
        world.settle()

        assert world.owners.keys() == self.split_ids()
        assert world.coordinator.enumerator.problems() == {}

    def test_it_can_be_closed(self) -> None:
        world = _World(self, parallelism=2)
        world.settle()

        world.coordinator.close()

    def test_a_fork_goes_its_own_way(self) -> None:
        world = _World(self, parallelism=2)
        world.settle()
        owners, state = dict(world.owners), world.coordinator.enumerator.snapshot_state()

        fork = world.coordinator.fork()
        fork.handle(ParallelismChanged(4), now=world.now)

        assert fork.state.parallelism == 4
        assert world.owners == owners
        assert world.coordinator.enumerator.snapshot_state() is state

    def test_listings_name_the_identities_that_splits_have(self) -> None:
        """Discovery compares the two: if one is missing, it finds no split that was replaced."""
        world = _World(self, parallelism=2)
        world.settle()
        splits, listed = world.coordinator.state.splits, world.listed

        for split_id in splits.keys() & listed.keys():
            identity = splits[split_id].attributes().get(IDENTITY)
            assert listed[split_id] == identity, (
                f"split {split_id}: Discovered.identities has {listed[split_id]!r} for it, and its"
                f" attribute IDENTITY is {identity!r}"
            )

    def test_readers_are_only_given_what_they_can_read(self) -> None:
        """Every split that is assigned can be made of what stands in the document."""
        world = _World(self, parallelism=2)
        world.settle()
        offset = world.host.durable

        for split_id in world.owners:
            made = self.source().create_split(
                split_id, offset.positions[split_id], offset.attributes.get(split_id, {})
            )
            assert made == world.coordinator.state.splits[split_id].at(offset.positions[split_id])
            if isinstance(made, BoundedSplit):
                assert made.attributes().get(STOP) == made.stopping_position


class _World:
    """Operator and one reader host; all that passes between them is text."""

    def __init__(self, suite: EnumeratorContract, *, parallelism: int) -> None:
        self.suite = suite
        self.parallelism = parallelism
        self.now = 0.0
        self.is_down = False
        self.state: str | None = None
        self.assignment: str | None = None
        self.calls: list[ExecuteCall] = []
        self.listed: dict[SplitId, str | None] = {}
        self.sequence = 0
        self.host = ReaderHost(incarnation=1)
        self.host = self.host.on_committed(self.host.durable)
        self.restart_operator()

    @property
    def owners(self) -> Mapping[SplitId, int]:
        return self.coordinator.state.owners

    def restart_operator(self) -> None:
        source = self.suite.source()
        restored = (
            state_codec.decode(self.state, source, uid=UID) if self.state is not None else None
        )
        self.calls = []
        self.coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(
            source, parallelism=self.parallelism, restored=restored
        )
        self._do(self.coordinator.start(now=self.now))

    def restart_host(self) -> None:
        before = self.host
        self.host = ReaderHost(incarnation=before.incarnation + 1, lineage=before.lineage)
        self.host = self.host.on_committed(before.durable)
        self.sequence = 0

    def settle(self) -> None:
        for _ in range(ROUNDS):
            self.step()

    def step(self) -> None:
        """Calls are answered, documents exchanged, an assignment adopted."""
        todo, self.calls = self.calls, []
        self.now += 1 + max((call.delay for call in todo if call.delay < 100), default=0.0)
        for call in todo:
            self.handle(CallCompleted(call.call_id, self._answer(call.call)))
        if self.suite.is_pull and self.host.durable.readers and not self.host.outbox:
            for subtask in self.host.durable.readers:
                self.host = self.host.send_event(subtask, SPLIT_REQUEST)
        self._report()
        if self.assignment is not None:
            self.host = self.host.on_assignment(
                assignment_document.decode(self.assignment, source=UID)
            )
        self.host, base = self.host.base()
        if base is not None:
            self.host = self.host.on_planned(base).on_committed(base)
        self._report()

    def handle(self, event: Event) -> None:
        self._do(self.coordinator.handle(event, now=self.now))

    def _answer(self, call: AsyncCall) -> Any:
        if self.is_down:
            return CallFailure(
                TransientDiscoveryError("no server answers", scope=getattr(call, "scope", ""))
            )
        answer = self.suite.execute(call)
        if isinstance(answer, Discovered):
            for split_id in answer.split_ids:
                self.listed[split_id] = answer.identities.get(split_id)
        return answer

    def _report(self) -> None:
        self.sequence += 1
        report = self.host.report(sequence=self.sequence)
        if report is not None:
            text = report_document.encode(report, source=UID)
            self.handle(ReportReceived(report_document.decode(text, source=UID)))

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            perform(effect, self)

    def persist_state(self, effect: PersistState) -> None:
        self.state = state_codec.encode(effect.checkpoint, self.suite.source(), uid=UID)

    def publish_assignment(self, effect: PublishAssignment) -> None:
        self.assignment = assignment_document.encode(effect.assignment, source=UID)

    def execute_call(self, effect: ExecuteCall) -> None:
        self.calls.append(effect)

    def report_fact(self, effect: ReportFact) -> None:
        """Facts are for people who watch."""
