"""Numbers that people get: rounded ones, and those of splits of which nothing was read."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import STOP, SplitId
from balanced_source.documents.report import ADMITTED, POSITIONS_AT, UNREAD, UNREAD_AT
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import ContractViolationError
from balanced_source.host import SplitRange
from balanced_source.host.ends import Look
from balanced_source.host.observation import observe
from balanced_source_spark.checkpoints import CheckpointWatch, checkpoint_problem, splits_behind
from balanced_source_spark.options import parse_options
from balanced_source_spark.partition import SampleTarget
from balanced_source_spark.planner_figures import _metrics, _Noted, _whole
from balanced_source_spark.planning_watch import PlanningWatch
from balanced_source_spark.short_splits import unheard
from balanced_source_spark.skipped_ranges import decoded_ranges, encoded_ranges
from balanced_source_spark.task_log import TELL_EVERY
from unit.spark.test_checkpoints import ONE, REPORTED, TWO
from unit.spark.test_planning_watch import Clock, read
from unit.spark.test_reading_log import Scene

A: SplitId = ("c", "t", 0)


def test_seconds_of_micro_batches_are_reported_with_three_digits() -> None:
    clock = Clock()
    watch = PlanningWatch(clock, interval=1.0, wall=lambda: 100.12345)
    watch.called()

    read(watch, clock, (10, 30.0), (10, 2.34567))

    assert watch.metrics() == {
        "microBatches": 1,
        "microBatchSeconds": 2.346,
        "lateMicroBatchSeconds": 2.346,
        POSITIONS_AT: 100.123,
    }


def test_seconds_of_a_reader_are_logged_with_three_digits() -> None:
    scene = Scene()
    scene.read(0.12345)
    scene.now += TELL_EVERY

    scene.read(0.0)

    (line,) = scene.lines
    assert (line["waited"], line["first_rows"]) == (0.123, 0.123)


def offset(position: int) -> StreamOffset:
    return StreamOffset(
        epoch=1, parallelism=1, readers=(0,), owners={A: 0}, positions={A: position}
    )


@pytest.mark.parametrize(
    ("end", "admitted", "told"),
    [
        (5, None, {UNREAD: 5, UNREAD_AT: 1.235}),
        (5, -3, {UNREAD: 5, UNREAD_AT: 1.235, ADMITTED: 0}),
        (5, 2, {UNREAD: 5, UNREAD_AT: 1.235, ADMITTED: 2}),
        (None, None, {}),
    ],
)
def test_a_report_tells_what_is_unread_where_that_is_known(
    end: int | None, admitted: int | None, told: dict[str, float]
) -> None:
    begin, after = offset(0), offset(3)
    seen = observe(begin, after, {} if end is None else {A: end})

    found = _metrics(_Noted(begin, after, seen, {}, None, {}, {}, 1.23456, admitted, {}))

    assert {name: found[name] for name in (UNREAD, UNREAD_AT, ADMITTED) if name in found} == told


def test_a_report_does_not_tell_since_when_nothing_is_unread() -> None:
    same = offset(5)
    noted = _Noted(same, same, observe(same, same, {A: 5}), {}, None, {}, {}, 1.0, None, {})

    found = _metrics(noted)

    assert (found[UNREAD], UNREAD_AT in found) == (0, False)


def test_only_the_numbers_of_a_connector_that_are_not_whole_are_named() -> None:
    wrong: Any = {"a": 1, "b": True, "c": 1.5}

    with pytest.raises(ContractViolationError, match=r"returned {'b': True, 'c': 1\.5}: return"):
        _whole(wrong)
    assert _whole({"a": 1}) == {"a": 1}


def test_a_range_without_positions_is_told_as_an_empty_one() -> None:
    target = SampleTarget("127.0.0.1", 9, "token")

    (datagram,) = encoded_ranges(target, [SplitRange(split_id=A, start=None, end=None)])

    assert decoded_ranges(datagram, "token") == [SplitRange(split_id=A, start=0, end=0)]


def test_a_checkpoint_that_has_read_nothing_of_a_split_begins_at_0() -> None:
    unread = StreamOffset(epoch=5, positions={ONE: None, TWO: 70})

    problem = checkpoint_problem(unread, REPORTED)

    assert problem is not None
    assert "1 split will go back by 500 offsets, e.g. main/orders/0 from 500 to 0. The" in (
        problem.message
    )
    assert splits_behind(unread, replace(REPORTED, positions={ONE: 1})) == {ONE: 1}


@pytest.mark.parametrize(
    ("begin", "end", "given_up"), [(None, None, {}), (0, None, {}), (1, None, {ONE: 1})]
)
def test_a_replay_that_goes_back_to_the_beginning_gives_up_what_was_read(
    begin: Any, end: Any, given_up: dict[SplitId, int]
) -> None:
    watch = CheckpointWatch()
    after = StreamOffset(positions={ONE: end})

    watch.note_replay(StreamOffset(positions={ONE: begin}), after)

    assert watch._given_up == given_up
    assert watch._read(after).positions == (given_up or {ONE: None})


def test_a_short_split_of_which_nothing_was_read_was_read_up_to_0() -> None:
    base = StreamOffset(positions={A: None}, attributes={A: {STOP: 1}})

    found = unheard(base, Look(short={A: 0}), [A], timeout=5.0)

    assert str(found).startswith("1 split, c/t/0 (read up to 0, ends at 0): ")


def test_the_smallest_drift_is_a_millisecond() -> None:
    options = {"kafka.bootstrap.servers": "b:9", "subscribe": "t", "alignmentMaxDrift": "1ms"}

    asked = parse_options(options).alignment

    assert asked is not None
    assert asked.max_drift == 1


@pytest.mark.parametrize(
    ("options", "interval"), [({}, 300.0), ({"discoveryIntervalSeconds": "0"}, None)]
)
def test_topics_are_discovered_every_five_minutes_unless_asked_otherwise(
    options: dict[str, str], interval: float | None
) -> None:
    source: Any = parse_options(
        {"kafka.bootstrap.servers": "b:9", "subscribe": "t", **options}
    ).embedded

    assert source.discovery_interval == interval
