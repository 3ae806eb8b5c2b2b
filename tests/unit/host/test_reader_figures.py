"""What tasks measure, added up per reader."""

from typing import Any

import pytest

from balanced_source.host.reader_figures import (
    FIGURES,
    MOST_READERS,
    BusyTime,
    ReaderFigures,
    TaskSample,
    busy_time,
    for_report,
    joined,
    records_read,
)


def of_tasks(*samples: TaskSample) -> ReaderFigures:
    found = ReaderFigures()
    for sample in samples:
        found = found.with_task(sample)
    return found


def task(extent: int, seconds: float) -> TaskSample:
    return TaskSample(reader=0, extent=extent, source=seconds)


def test_tasks_are_added_up_and_the_first_records_are_those_of_the_newest_task_with_any() -> None:
    figures = of_tasks(
        TaskSample(reader=0, records=5, size=50, source=1.0, downstream=0.5, first=0.25),
        TaskSample(reader=0, source=0.5),
    )

    assert figures == ReaderFigures(records=5, size=50, source=1.5, downstream=0.5, first=0.25)


def test_speed_follows_the_newest_tasks() -> None:
    assert of_tasks(task(100, 1.0)).speed == 100
    assert of_tasks(task(100, 1.0), task(10, 1.0)).speed == 55
    slow = of_tasks(task(100, 1.0), *[task(10, 1.0)] * 6).speed
    assert slow == pytest.approx(10, rel=0.2)


def test_the_time_that_spark_takes_counts_for_the_speed() -> None:
    assert of_tasks(TaskSample(reader=0, extent=100, source=1.0, downstream=3.0)).speed == 25


def test_tasks_that_read_nothing_or_end_at_once_say_nothing_of_speed() -> None:
    assert of_tasks(task(0, 3.0), task(10, 0.0), task(10, 0.0049)).speed is None
    assert of_tasks(task(1, 0.005)).speed == 200
    assert of_tasks(task(10, 1.0), task(0, 1.0)).speed == 10


def test_a_report_lists_readers_in_whole_milliseconds() -> None:
    one = ReaderFigures(records=5, size=50, source=1.2345, downstream=0.5, first=None)

    assert for_report({1: one, 0: one}) == {
        FIGURES: [[0, 5, 50, 1234, 500, None], [1, 5, 50, 1234, 500, None]]
    }


def test_a_report_stays_small() -> None:
    assert for_report({}) == {}
    assert for_report(dict.fromkeys(range(MOST_READERS + 1), ReaderFigures())) == {}


ONE = for_report({0: ReaderFigures(source=1.0, downstream=2.0)})
TWO = for_report({1: ReaderFigures(source=3.0, downstream=4.0)})


def test_the_time_of_all_readers_is_known_if_each_host_reports_it() -> None:
    assert busy_time(joined([ONE, TWO])) == BusyTime(source=4000, downstream=6000)
    assert joined([ONE, {}]) == {}
    assert joined([]) == {}


@pytest.mark.parametrize(
    "table", [None, [], 7, ["x"], [[0, 1, 2]], [[0, 1, 2, -1, 3, None]], [[0, 1, 2, "a", 3, None]]]
)
def test_figures_of_another_shape_are_unknown(table: Any) -> None:
    assert busy_time({FIGURES: table}) is None


def test_the_records_of_each_reader_are_read_from_a_report() -> None:
    figures = {2: ReaderFigures(records=5, size=50), 0: ReaderFigures(records=0, size=7)}

    assert records_read(for_report(figures)) == {0: 0, 2: 5}
    assert records_read({}) == {}
    assert records_read({FIGURES: [[0, 1], [1, -1]]}) == {}, "one is malformed"
