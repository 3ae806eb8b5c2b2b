"""Lag and rate over an hour: a bounded number of points, and nothing is 0 that is unknown."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.documents.report import HostReport
from balanced_source.host.reader_figures import FIGURES
from balanced_source_operator.page.series import POINTS, SPACING, Series

REPORT = HostReport(
    incarnation=1, epoch=3, heartbeat=100.0, positions={("c", "t", 0): 10, ("c", "t", 1): 20}
)


def moved(seconds: float, **changes: Any) -> HostReport:
    """A later report in which each split is 50 further."""
    positions = {split: position + 50 for split, position in REPORT.positions.items()}
    return replace(REPORT, **{"heartbeat": 100.0 + seconds, "positions": positions, **changes})


def test_the_points_cover_an_hour_and_no_more_are_kept() -> None:
    series = Series()
    for number in range(2 * POINTS):
        series.add(number * SPACING, number, {})

    assert (len(series.points), POINTS * SPACING) == (360, 3600)
    assert [point.lag for point in series.points] == list(range(POINTS, 2 * POINTS))


def test_the_rate_is_the_difference_between_two_reports() -> None:
    series = Series()
    series.add(0.0, 5, {"0": REPORT})
    series.add(10.0, 4, {"0": moved(20)})
    series.add(20.0, 4, {"0": moved(40)})

    assert [point.rate for point in series.points] == [None, 5.0, 0.0]


@pytest.mark.parametrize(
    "after",
    [
        moved(10, epoch=4),
        moved(10, incarnation=2),
        moved(10, lineage=2),
        moved(10, positions={("c", "t", 0): 60}),
        moved(10, positions={("c", "t", 0): 60, ("c", "t", 1): None}),
        moved(10, positions={("c", "t", 0): {"file": 1}, ("c", "t", 1): 2}),
        moved(10, positions={("c", "t", 0): 0, ("c", "t", 1): 0}),
        moved(0),
        moved(-5),
    ],
    ids=[
        "epoch",
        "driver",
        "lineage",
        "splits",
        "no position",
        "not a number",
        "backwards",
        "same report",
        "older",
    ],
)
def test_a_rate_is_unknown_unless_both_reports_are_about_the_same(after: HostReport) -> None:
    series = Series()
    series.add(0.0, 5, {"0": REPORT})
    series.add(10.0, 4, {"0": after})

    assert series.points[-1].rate is None


def figures(**records: int) -> dict[str, Any]:
    """Metrics of a report: records by reader."""
    return {FIGURES: [[int(name[1:]), count, 0, 0, 0, None] for name, count in records.items()]}


def test_where_splits_have_changed_the_rate_is_that_of_the_records() -> None:
    """Those of files change all the time."""
    blocks = {("f", "/in/b", 0): 7}
    series = Series()
    series.add(0.0, 5, {"0": replace(REPORT, metrics=figures(r0=100, r1=50))})
    series.add(10.0, 4, {"0": moved(10, epoch=4, metrics=figures(r0=100, r1=150))})
    series.add(
        20.0, 4, {"0": moved(20, epoch=5, positions=blocks, metrics=figures(r0=101, r1=200))}
    )
    series.add(
        30.0, 4, {"0": moved(30, epoch=6, metrics=figures(r0=101, r1=200, r2=200), positions={})}
    )

    assert [point.rate for point in series.points] == [None, 10.0, 5.1, 20.0]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, figures(r0=10)),
        (figures(r0=10), {}),
        (figures(r0=10, r1=10), figures(r0=90)),
        (figures(r0=10, r1=10), figures(r0=9, r1=90)),
        (figures(r0=10), {FIGURES: [[0]]}),
        (figures(r0=10), {FIGURES: [["0", 20]]}),
    ],
    ids=["unknown", "lost", "a reader is gone", "backwards", "short", "no number"],
)
def test_a_rate_is_unknown_where_records_are(first: dict[str, Any], second: dict[str, Any]) -> None:
    series = Series()
    series.add(0.0, 5, {"0": replace(REPORT, metrics=first)})
    series.add(10.0, 4, {"0": moved(10, epoch=4, metrics=second)})

    assert series.points[-1].rate is None


def test_the_rate_is_that_of_all_hosts_or_unknown() -> None:
    series = Series()
    series.add(0.0, None, {"0": REPORT, "1": REPORT})
    series.add(10.0, None, {"0": moved(10), "1": moved(20)})
    series.add(20.0, None, {"0": moved(20), "1": moved(20)})

    assert [point.rate for point in series.points] == [None, 15.0, None]
    assert [point.lag for point in series.points] == [None, None, None]
