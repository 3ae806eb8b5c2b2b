"""What the enumerator hears of splits that have reached their end."""

from collections.abc import Sequence
from typing import Any

import pytest

from balanced_source.api import STOP, SplitId
from balanced_source.connectors.discovery import DiscoveringSplitEnumerator
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.coordinator import CoordinatorState, HostState
from balanced_source.coordinator.finished import newly_finished
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HostPhase
from support.stage import Stage, bounded_source, splits
from support.world import kafka_source


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[list[SplitId]]:
    """What each call of `handle_finished` said."""
    calls: list[list[SplitId]] = []
    handle_finished = DiscoveringSplitEnumerator.handle_finished

    def spy(self: Any, split_ids: Sequence[SplitId]) -> None:
        calls.append(list(split_ids))
        handle_finished(self, split_ids)

    monkeypatch.setattr(DiscoveringSplitEnumerator, "handle_finished", spy)
    return calls


def read_to_the_end() -> Stage:
    stage = Stage(readers=2, hosts=1, source=bounded_source("c")).topic("t", 4).running()
    for _ in range(4):
        stage.adopts()
    return stage


def test_a_finished_split_is_reported_once(told: list[list[SplitId]]) -> None:
    """However many reports still show it."""
    stage = read_to_the_end()

    assert told == [splits("t", 4)]
    assert stage.operator.coordinator.enumerator.is_finished()


def test_an_older_checkpoint_reopens_what_was_read_to_its_end() -> None:
    """Checkpoint and sink were restored to a copy: another split may end before this one does."""
    stage = read_to_the_end()
    first, *others = splits("t", 4)

    stage.registers(0, holding={first: 2, **dict.fromkeys(others, 10)}, epoch=stage.epoch)

    assert not stage.operator.coordinator.enumerator.is_finished()
    stage.drivers["0"].delivered.clear()
    stage.adopts().adopts()
    assert stage.operator.coordinator.enumerator.is_finished()
    assert stage.read(0)[first] == 10


def test_a_finished_split_is_reported_again_after_it_was_reassigned(
    told: list[list[SplitId]],
) -> None:
    """A rescale gives back what its reader had.

    The enumerator forgets the end with it, and hears of it again.
    """
    stage = read_to_the_end()
    given_anew = sorted(stage.owned(1))

    stage.rescales(1)
    stage.adopts().adopts()

    assert told == [splits("t", 4), given_anew]
    assert stage.operator.coordinator.enumerator.is_finished()


def test_a_finished_split_is_reported_again_after_an_operator_restart(
    told: list[list[SplitId]],
) -> None:
    """What was told is not stored; what the enumerator made of it is."""
    stage = read_to_the_end()

    stage.operator_starts().adopts().adopts()

    assert told == [splits("t", 4), splits("t", 4)]


@pytest.mark.parametrize(
    ("stop", "found", "position", "is_finished"),
    [
        (9, None, 9, True),
        (9, None, 8, False),
        (9, 5, 8, False),
        (None, 9, 9, True),
        (None, 9, 8, False),
        (None, None, 9, False),
        (None, 0, 0, True),
        (None, 1, 0, False),
    ],
)
def test_a_split_is_finished_at_its_own_stop_or_at_the_one_that_its_reader_has_found(
    stop: int | None, found: int | None, position: int, *, is_finished: bool
) -> None:
    split_id: SplitId = ("c", "t", 0)
    split = KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=0, stopping_offset=stop)
    report = HostReport(
        incarnation=1,
        positions={split_id: position, ("c", "t", 7): 99},
        attributes={} if found is None else {split_id: {STOP: found}},
    )
    host = HostState(report=report, phase=HostPhase.ACTIVE, known_from=1)
    state = CoordinatorState(
        epoch=1, hosts={"0": host}, owners={split_id: 0}, splits={split_id: split}
    )

    told = newly_finished(state, bounded_source(), report, ())

    assert told == ([split_id] if is_finished else [])
    assert newly_finished(state, bounded_source(), report, told) == []
    assert newly_finished(state, kafka_source(), report, ()) == [], "its splits never end"
