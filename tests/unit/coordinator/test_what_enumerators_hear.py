"""What an enumerator hears: who asks from where, what comes back, and what is finished."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from balanced_source.api import SPLIT_REQUEST
from balanced_source.coordinator import SourceCoordinator
from balanced_source.coordinator.effects import PublishAssignment, ReportFact
from balanced_source.coordinator.events import HostGivenUp, ParallelismChanged, ReportReceived
from balanced_source.coordinator.state import HostRole, HostState, Revocation
from balanced_source.documents.assignment import NumberedEvent
from balanced_source.documents.report import HostReport
from balanced_source.lifecycles import HostPhase
from support.numbers import NumbersSplit
from support.numbers_source import NumbersSource
from support.world import kafka_source

SPLITS = tuple(NumbersSplit(name=name, next=0, stop=9) for name in "abcd")
A, B, C, D = (split.split_id for split in SPLITS)


def running() -> SourceCoordinator[Any, Any]:
    """Return a coordinator of four readers, whose only host has registered."""
    coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(
        NumbersSource(SPLITS), parallelism=4
    )
    coordinator.start(now=0.0)
    coordinator.handle(ReportReceived(HostReport(incarnation=1, sequence=1)), now=1.0)
    return coordinator


def heard(coordinator: SourceCoordinator[Any, Any], name: str) -> list[tuple[Any, ...]]:
    """Note the calls of a method of the enumerator from now on, and pass them on."""
    found: list[tuple[Any, ...]] = []
    method: Callable[..., None] = getattr(coordinator.enumerator, name)

    def noted(*arguments: Any) -> None:
        found.append(arguments)
        method(*arguments)

    setattr(coordinator.enumerator, name, noted)
    return found


def reported(coordinator: SourceCoordinator[Any, Any], sequence: int, **changes: Any) -> None:
    """The host has adopted the newest epoch, and reports."""
    state = coordinator.state
    report = HostReport(
        incarnation=1, sequence=sequence, epoch=state.epoch, owners=state.owners, **changes
    )
    coordinator.handle(ReportReceived(report), now=float(sequence))


def asking(*readers: int) -> tuple[NumberedEvent, ...]:
    return tuple(
        NumberedEvent(number=number, subtask_id=reader, event=SPLIT_REQUEST)
        for number, reader in enumerate(readers, 1)
    )


@pytest.mark.parametrize(("location", "place"), [("", None), ("zone-a", "zone-a")])
def test_a_request_comes_from_the_place_of_the_host(location: str, place: str | None) -> None:
    coordinator = running()
    levels = heard(coordinator, "handle_split_requests")
    events = heard(coordinator, "handle_split_request")

    reported(coordinator, 2, location=location, requests={2: 1, 0: 1})
    assert levels == [({0: 1, 2: 1}, place)]
    assert list(levels[0][0]) == [0, 2], "in the order of the readers"
    events.clear()
    reported(coordinator, 3, location=location, events=asking(1))

    assert events == [(1, place)]


def test_splits_of_removed_readers_come_back_in_the_order_of_the_readers() -> None:
    """Not in the order in which they were given out."""
    coordinator = running()
    reported(coordinator, 2, events=asking(3, 2, 1, 0))
    assert list(coordinator.state.owners.values()) == [3, 2, 1, 0]
    back = heard(coordinator, "add_splits_back")

    coordinator.handle(ParallelismChanged(1), now=3.0)

    assert [reader for _, reader in back] == [1, 2, 3]


def test_finished_splits_are_named_in_the_order_of_their_ids_and_once() -> None:
    coordinator = running()
    reported(coordinator, 2, events=asking(0, 1, 2))
    finished = heard(coordinator, "handle_finished")

    reported(coordinator, 3, events_seen=9, positions={C: 9, B: 8, A: 9})
    reported(coordinator, 4, events_seen=9, positions={C: 9, B: 9, A: 9})

    assert finished == [([A, C],), ([B],)]


@pytest.mark.parametrize(("lineage", "is_published"), [(1, False), (2, True)])
def test_hosts_see_a_new_lineage_before_anything_is_discovered(
    lineage: int, *, is_published: bool
) -> None:
    """They register again when they see it."""
    coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(kafka_source("c"), lineage=lineage)

    effects = coordinator.start(now=0.0)

    assert any(isinstance(e, PublishAssignment) for e in effects) is is_published


def test_a_restarted_coordinator_publishes_before_it_does_anything_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its predecessor may have died between storing the state and publishing."""
    source = NumbersSource(SPLITS)
    first: SourceCoordinator[Any, Any] = SourceCoordinator(source, lineage=2)
    first.start(now=0.0)
    again = SourceCoordinator(source, restored=first.checkpoint())
    report = partial(again._context.report, "Started", "the enumerator has started")
    monkeypatch.setattr(again.enumerator, "start", report)

    effects = again.start(now=1.0)

    assert [type(effect) for effect in effects] == [PublishAssignment, ReportFact]
    assert again.state.epoch == first.state.epoch


def test_splits_on_their_way_wait_for_a_host_that_was_not_heard_since_the_state_was_lost() -> None:
    """No position of it is known, also where duplicates are accepted."""
    coordinator: SourceCoordinator[Any, Any] = SourceCoordinator(
        NumbersSource(SPLITS), parallelism=2, hosts=("0", "1"), lineage=2
    )
    coordinator.start(now=0.0)
    held = {D: Revocation(host="1", epoch=1, split=SPLITS[3])}
    report = HostReport(incarnation=1, epoch=1)
    active = HostState(
        incarnation=1, phase=HostPhase.ACTIVE, report=report, addressed_epoch=1, known_from=1
    )
    hosts = {"0": active, "1": HostState()}
    coordinator._context.state = replace(coordinator.state, revoking=held, hosts=hosts)

    coordinator.handle(HostGivenUp("1", 0, accepts_duplicates=True), now=1.0)

    assert coordinator.state.hosts["1"].role is HostRole.DRAINING
    assert coordinator.state.revoking == held
