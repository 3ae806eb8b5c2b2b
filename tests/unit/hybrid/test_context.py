"""A part of a hybrid source sees its own splits only, under its own ids."""

from collections.abc import Iterable
from typing import Any

import pytest

from balanced_source.api import ReaderInfo, SourceEvent, SplitId, SplitsAssignment
from balanced_source.connectors.hybrid.context import PartContext
from balanced_source.connectors.hybrid.values import HybridSplit, PartCall
from balanced_source.coordinator import CoordinatorState, ExecuteCall, HostState, ReportFact
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HostPhase
from support.hybrid_world import two_parts
from support.pull_source import ListNumbers, Numbers

SOURCE = two_parts(2, 2)
FIRST, SECOND = SOURCE.parts
L0: SplitId = ("lists", "list-0")
L1: SplitId = ("lists", "list-1")


def of(part: str, number: int, *, at: int = 0) -> HybridSplit:
    return HybridSplit(part=part, split=Numbers(name=f"list-{number}", number=at))


class Owner:
    """The hybrid enumerator: notes what it is told."""

    def __init__(self) -> None:
        self.given: list[list[int]] = []
        self.finished: list[SplitId] = []

    def handle_part_call(self, call: PartCall, result: Any) -> None:
        """Not asked here."""

    def note_given(self, owners: Any) -> None:
        self.given.append(sorted(owners))

    def finish(self, split_ids: Iterable[SplitId]) -> None:
        self.finished.extend(split_ids)


class Scene:
    def __init__(self, *, is_last: bool = False) -> None:
        held = [of(FIRST.name, 0), of(SECOND.name, 0), of(SECOND.name, 1)]
        report = HostReport(
            incarnation=1,
            zone="eu-1a",
            positions={s.split_id: number for number, s in enumerate(held)},
        )
        host = HostState(report=report, phase=HostPhase.ACTIVE, known_from=1)
        self.outer: CoordinatorContext[Any] = CoordinatorContext(
            CoordinatorState(
                parallelism=2,
                hosts={"0": host},
                owners={s.split_id: number % 2 for number, s in enumerate(held)},
                splits={s.split_id: s for s in held},
                retained=frozenset({of(FIRST.name, 1).split_id, of(SECOND.name, 7).split_id}),
            )
        )
        self.outer.set_readers({number: ReaderInfo(subtask_id=number) for number in (0, 1)})
        self.outer.turn.now = 7.0
        self.owner = Owner()
        self.part = PartContext(self.outer, self.owner, SECOND, is_last=is_last)

    @property
    def owners(self) -> dict[tuple[str, str], int]:
        found = self.outer.current_assignments().items()
        return {(str(s[0]), str(s[-1])): owner for s, owner in found}


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_part_sees_its_own_splits(scene: Scene) -> None:
    part = scene.part

    assert part.current_assignments() == {L0: 1, L1: 0}
    assert part.split_positions() == {L0: 1, L1: 2}
    assert part.assigned_split(L1) == Numbers(name="list-1", number=2)
    assert part.assigned_attributes(L1) == {"stop": 2}
    assert part.split_loads() == {}
    assert (part.now(), part.current_parallelism(), part.has_reports()) == (7.0, 2, True)
    assert part.zone_of(0) == "eu-1a"
    assert not part.keeps_finished


def test_what_a_part_assigns_gets_its_name(scene: Scene) -> None:
    split: Any = Numbers(name="list-5")

    scene.part.assign_splits(SplitsAssignment(assignment={1: [split]}))
    scene.part.move_splits({L0: 0})

    assert scene.owners == {
        (FIRST.name, "list-0"): 0,
        (SECOND.name, "list-0"): 0,
        (SECOND.name, "list-1"): 0,
        (SECOND.name, "list-5"): 1,
    }
    assert scene.owner.given == [[1]]
    assert scene.part.current_assignments()[("lists", "list-5")] == 1


def test_a_part_lets_go_of_its_own_splits(scene: Scene) -> None:
    scene.part.revoke_splits([L0], retain=True)
    assert scene.part.is_revoking(L0)
    assert not scene.part.is_revoking(L1)
    assert of(SECOND.name, 0).split_id in scene.outer.state.retained

    scene.part.finish_splits([L1])
    assert scene.owner.finished == [of(SECOND.name, 1).split_id]
    scene.part.forget_splits([L0, ("lists", "list-7"), L1])
    assert scene.outer.state.retained == {of(FIRST.name, 1).split_id}


@pytest.mark.parametrize("is_last", [False, True])
def test_only_the_last_part_knows_that_nothing_follows(*, is_last: bool) -> None:
    scene = Scene(is_last=is_last)

    scene.part.signal_no_more_splits(1)

    assert scene.outer.state.no_more_splits == ({1} if is_last else set())


def test_events_facts_and_calls_of_a_part_name_it(scene: Scene) -> None:
    def handle_listing(_call: Any, _result: Any) -> None:
        """The part's own handler."""

    call = ListNumbers(scope="2x1", round=1)
    scene.part.send_event_to_reader(0, SourceEvent(name="hello", payload=5))
    scene.part.report("SplitsRemoved", "gone", warning=True)
    scene.part.call_async(call, handle_listing, initial_delay=3.0)

    (event,) = scene.outer.state.outbox
    assert event.event == SourceEvent(name="hello", payload={"part": SECOND.name, "payload": 5})
    fact, made = scene.outer.turn.effects
    assert fact == ReportFact("SplitsRemoved", "gone", True)
    assert isinstance(made, ExecuteCall)
    assert made.delay == 3.0
    assert made.call == PartCall(SECOND.name, SECOND.source.kind, "handle_listing", call)


def test_readers_report_the_splits_of_the_part(scene: Scene) -> None:
    reader = ReaderInfo(
        subtask_id=0,
        location="pod-0",
        reported_splits=(of(FIRST.name, 0), of(SECOND.name, 1, at=2)),
        retained_splits=(of(SECOND.name, 0), of(FIRST.name, 1)),
        is_first_report=True,
    )
    scene.outer.set_readers({0: reader})

    assert scene.part.registered_readers() == {
        0: ReaderInfo(
            subtask_id=0,
            location="pod-0",
            reported_splits=(Numbers(name="list-1", number=2),),
            retained_splits=(Numbers(name="list-0"),),
            is_first_report=True,
        )
    }
