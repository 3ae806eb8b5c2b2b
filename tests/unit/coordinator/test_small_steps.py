"""Small steps of the coordinator: events, requests, ends and loads, at their limits."""

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import Position, SourceEvent, SplitId
from balanced_source.coordinator import finished, loads, mailbox, requests
from balanced_source.coordinator.loads import AVERAGED_OVER, ENOUGH, LoadTracker, SplitObservation
from balanced_source.coordinator.state import CoordinatorState, HostRole, HostState
from balanced_source.coordinator.state_codec import _version
from balanced_source.documents.assignment import NumberedEvent
from balanced_source.documents.report import HostReport
from support.world import kafka_source

A, B, C, D = (("c", "t", number) for number in range(4))


def event(number: int, reader: int) -> NumberedEvent:
    return NumberedEvent(
        number=number, subtask_id=reader, event=SourceEvent(name="hello", payload=number)
    )


def two_hosts(**changes: Any) -> CoordinatorState[Any]:
    """Return a state in which host 0 runs readers 0 and 2, and host 1 runs reader 1."""
    hosts = {"0": HostState(events_seen=2), "1": HostState(events_seen=7)}
    return CoordinatorState(parallelism=3, hosts=hosts, **changes)


def test_events_of_a_host_are_new_beyond_the_last_number_and_in_order() -> None:
    found = tuple(event(number, 0) for number in (4, 2, 1, 3))
    report = HostReport(incarnation=1, events=found)

    assert [e.number for e in mailbox.fresh_events(two_hosts(), report)] == [3, 4]
    after = mailbox.with_events_seen(two_hosts(), "0", 4)
    assert {name: host.events_seen for name, host in after.hosts.items()} == {"0": 4, "1": 7}


def test_a_host_acknowledges_the_events_of_its_own_readers_alone() -> None:
    state = two_hosts(outbox=(event(1, 0), event(2, 1), event(3, 2), event(4, 0)))

    after = mailbox.acknowledged(state, HostReport(incarnation=1, events_seen=3))

    assert [e.number for e in after.outbox] == [2, 4]
    assert mailbox.acknowledged(state, HostReport(incarnation=1, events_seen=0)) is state


def test_events_of_removed_readers_are_dropped() -> None:
    state = two_hosts(outbox=(event(1, 0), event(2, 1), event(3, 2)))

    assert [e.number for e in mailbox.dropped(state, {1, 2}).outbox] == [1]
    assert mailbox.dropped(state, {5}) is state


@pytest.mark.parametrize(
    ("wanted", "asked", "left"),
    [
        ({}, {}, {}),
        ({0: 1, 2: 3}, {}, {2: 3}),
        ({0: 3, 2: 3}, {}, {0: 2, 2: 3}),
        ({0: 3, 2: 3}, {0: 1, 2: 1}, {0: 1, 2: 2}),
        ({0: 3, 2: 3}, {0: 2, 2: 3}, {}),
        ({1: 5, 2: 1}, {}, {2: 1}),
    ],
    ids=["none", "given", "more than given", "asked before", "all asked", "another host's"],
)
def test_a_request_counts_beyond_what_was_given_and_asked_since(
    wanted: Mapping[int, int], asked: Mapping[int, int], left: Mapping[int, int]
) -> None:
    """Reader 0 has a split that its host has not adopted, and one that it has."""
    state = two_hosts(owners={A: 0, B: 0})
    report = HostReport(incarnation=1, positions={B: 5}, requests=wanted)

    assert requests.unanswered(state, report, asked) == left


def test_each_split_answers_one_request() -> None:
    assert requests.answered({0: 2, 1: 1, 2: 3}, [0, 1, 2, 2]) == {0: 1, 2: 1}
    assert requests.answered({}, [0]) == {}


def bounded(stop: int | None = 10) -> CoordinatorState[Any]:
    source = kafka_source("c")
    attributes = {} if stop is None else {"stop": stop}
    splits = {s: source.create_split(s, 0, attributes) for s in (A, B, C)}
    return two_hosts(owners=dict.fromkeys(splits, 0), splits=splits)


class Ending:
    """A source whose splits end."""

    has_ending_splits = True


class Endless:
    """A source whose splits never end."""

    has_ending_splits = False


def reported(positions: Mapping[SplitId, Position], **more: Any) -> HostReport:
    return HostReport(incarnation=1, epoch=1, positions=positions, **more)


def with_report(state: CoordinatorState[Any], report: HostReport) -> CoordinatorState[Any]:
    hosts = {**state.hosts, "0": HostState(report=report, incarnation=1, known_from=1)}
    return CoordinatorState(
        parallelism=3, hosts=hosts, owners=state.owners, splits=state.splits, epoch=1
    )


def test_splits_finish_at_their_stop_and_are_shown_once() -> None:
    report = reported({A: 10, B: 9, C: 11, D: 12})
    state = with_report(bounded(), report)
    ending: Any = Ending()
    endless: Any = Endless()

    assert sorted(finished.newly_finished(state, ending, report, ())) == [A, C]
    assert finished.newly_finished(state, ending, report, {A}) == [C]
    assert finished.newly_finished(state, endless, report, ()) == []


def test_a_finished_split_that_is_read_again_is_open() -> None:
    report = reported({A: 10, B: 9})

    assert finished.reopened(with_report(bounded(), report), report, {A, B, C}) == {B}
    assert finished.reopened(with_report(bounded(), report), report, {A}) == frozenset()


@pytest.mark.parametrize(
    ("stop", "position", "is_finished"),
    [
        (5, 4, False),
        (5, 5, True),
        (0, 0, True),
        (None, 9, False),
        (None, 0, False),
        (1, 0, False),
        (1, None, False),
        (0, None, True),
    ],
)
def test_a_reader_may_have_found_the_end_of_a_split(
    stop: int | None, position: int | None, *, is_finished: bool
) -> None:
    split = SimpleNamespace(split_id=A, position=position)
    attributes = {} if stop is None else {A: {"stop": stop}}

    assert finished.is_at_end(split, reported({A: position}, attributes=attributes)) is is_finished


def test_older_progress_counts_less() -> None:
    decay = math.exp(-1)
    first = LoadTracker(observations={A: SplitObservation(100, 0.0, 60.0, 30.0)})
    report = HostReport(incarnation=1, heartbeat=AVERAGED_OVER, positions={A: 700})

    (found,) = first.observe(report, ()).observations.values()

    assert (found.position, found.at) == (700, AVERAGED_OVER)
    assert found.records == pytest.approx(60 * decay + 600)
    assert found.seconds == pytest.approx(30 * decay + AVERAGED_OVER)


@pytest.mark.parametrize(("at", "records"), [(99.0, 60.0), (100.0, 60.0), (101.0, 65.0)])
def test_a_report_that_is_not_newer_says_nothing_about_the_load(at: float, records: float) -> None:
    tracker = LoadTracker(observations={A: SplitObservation(100, 100.0, 60.0, 30.0)})

    after = tracker.observe(HostReport(incarnation=1, heartbeat=at, positions={A: 105}), ())

    assert after.observations[A].records == pytest.approx(records, abs=0.5)
    assert (after is not tracker, after.observations[A].at) == (True, max(100.0, at))


@pytest.mark.parametrize(("seconds", "is_known"), [(ENOUGH - 0.1, False), (ENOUGH, True)])
def test_a_load_is_known_after_enough_seconds(seconds: float, *, is_known: bool) -> None:
    tracker = LoadTracker(observations={A: SplitObservation(0, 0.0, 60.0, seconds)})

    assert (A in tracker.loads()) is is_known


def test_an_idle_split_costs_a_hundredth_of_the_mean() -> None:
    rates = {A: 900.0, B: 0.0, C: 3.0}
    tracker = LoadTracker(
        observations={s: SplitObservation(0, 0.0, 60 * rate, 60.0) for s, rate in rates.items()}
    )

    assert tracker.loads() == pytest.approx({A: 900.0, B: 3.01, C: 3.01})


def test_loads_are_stored_in_eighths_of_a_doubling_and_without_places() -> None:
    rates = {A: 1.0, B: 2.0, C: 1000.0}
    tracker = LoadTracker(
        observations={s: SplitObservation(7, 9.0, 60 * rate, 60.0) for s, rate in rates.items()}
    )
    stored = loads.to_json(tracker)
    again = loads.from_json(stored)

    # 3.34 is the least that counts here, a hundredth of the mean.
    assert stored == [[["c", "t"], [[0, 3]], [14, 14, 80]]]
    assert again.loads() == pytest.approx({A: 3.34, B: 3.34, C: 1000.0}, rel=0.05)
    assert {(o.position, o.at, o.seconds) for o in again.observations.values()} == {
        (None, 0.0, AVERAGED_OVER)
    }


def test_a_source_without_records_has_no_stored_loads() -> None:
    idle = LoadTracker(observations={A: SplitObservation(7, 9.0, 0.0, 60.0)})

    assert loads.to_json(idle) == []
    assert LoadTracker().loads() == {}


def test_a_state_is_stored_in_the_oldest_version_that_can_say_it() -> None:
    """An operator of an older release can take over then."""
    hosts = {"0": HostState(), "1": HostState(role=HostRole.JOINING)}
    joining: CoordinatorState[Any] = CoordinatorState(hosts=hosts)

    assert (_version(two_hosts()), _version(joining)) == (3, 4)
