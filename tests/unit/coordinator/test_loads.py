"""What splits cost is averaged from the positions that hosts report."""

import pytest

from balanced_source.coordinator.loads import LoadTracker
from balanced_source.documents.report import HostReport

A, B, C = (("c", "t", p) for p in range(3))


def report(at: float, **positions: int | None) -> HostReport:
    names = {"a": A, "b": B, "c": C}
    return HostReport(
        incarnation=1, heartbeat=at, positions={names[n]: p for n, p in positions.items()}
    )


def observed(*reports: HostReport) -> LoadTracker:
    tracker = LoadTracker()
    for seen in reports:
        tracker = tracker.observe(seen, {A, B, C})
    return tracker


def test_a_load_is_records_per_second() -> None:
    tracker = observed(report(100, a=0, b=50), report(150, a=500, b=50), report(200, a=1000, b=60))

    assert tracker.loads()[A] == pytest.approx(10.0)
    assert tracker.loads()[B] == pytest.approx(0.1, rel=0.1)


def test_no_load_is_given_before_enough_was_observed() -> None:
    assert observed(report(100, a=0), report(110, a=500)).loads() == {}


def test_recent_samples_count_more() -> None:
    slow = [report(60.0 * i, a=60 * i) for i in range(30)]
    end = 60 * 29
    fast = [report(60.0 * (29 + i), a=end + 600 * i) for i in range(1, 11)]

    assert observed(*slow).loads()[A] == pytest.approx(1.0)
    assert 8 < observed(*slow, *fast).loads()[A] < 10


def test_positions_and_clocks_that_go_back_are_ignored() -> None:
    steady = [report(0, a=0), report(100, a=1000)]

    assert observed(*steady, report(110, a=10), report(120, a=110)).loads()[A] == pytest.approx(
        10.0
    )
    assert observed(*steady, report(90, a=5000)).loads()[A] == pytest.approx(10.0)
    assert observed(*steady, report(200, a=None), report(300, a=2000)).loads()[A] == pytest.approx(
        10.0
    )


def test_an_idle_split_costs_a_little() -> None:
    loads = observed(report(0, a=0, b=0), report(100, a=1000, b=0)).loads()

    assert 0 < loads[B] < 0.1


def test_unknown_splits_are_dropped() -> None:
    tracker = observed(report(0, a=0, b=0), report(100, a=1000, b=0))

    assert tracker.observe(report(200, a=2000), {A}).observations.keys() == {A}
    assert tracker.observe(report(200, a=2000), {A, B}).observations.keys() == {A, B}, (
        "another host may hold it"
    )
