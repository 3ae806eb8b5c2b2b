"""The autoscaler's decisions, from samples alone."""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from balanced_source.host.reader_figures import BusyTime
from balanced_source.reasons import Reason
from balanced_source_operator.controller.autoscaling import AutoscalerMemory, Sample, decide
from balanced_source_operator.controller.autoscaling.host_samples import WINDOW
from support.builders import make_report
from support.reading_source import POLICY, ReadingSource, measured, with_most


def test_nothing_is_decided_before_the_load_is_known() -> None:
    source = ReadingSource()
    source.decide(source.sample())

    assert (source.reason, source.readers) == (Reason.MEASURING, 2)


def test_a_backlog_teaches_the_capacity_and_the_number_of_readers_follows() -> None:
    source = ReadingSource(readers=2).run(60, 450)

    assert Reason.SCALED_UP in source.reasons
    assert source.readers == 6, "450 / (100 x 0.8) is 5.6, and 12 splits spread evenly over 6"
    scaled_up = next(v for v in source.verdicts if v.reason is Reason.SCALED_UP)
    assert scaled_up.message.endswith("2 readers are too few, 6 suffice")
    assert scaled_up.utilization is not None
    assert scaled_up.utilization > 2


def test_a_known_capacity_needs_no_backlog_to_scale_up() -> None:
    source = measured(readers=6)

    source.run(20, 570)

    assert source.readers == 12
    assert sum(source.backlog.values()) == 0


def test_fewer_readers_come_after_the_delay_and_not_before() -> None:
    source = measured(readers=6)

    source.run(250, 150)
    assert (source.readers, source.reason) == (6, Reason.SCALE_DOWN_DELAYED)
    source.run(100, 150)
    assert source.readers == 2


def test_a_peak_within_the_delay_keeps_the_readers_that_it_needs() -> None:
    source = measured(readers=6)

    source.run(200, 150).run(20, 290).run(200, 150)

    assert source.readers == 4
    assert Reason.SCALED_DOWN in source.reasons


def test_a_number_that_someone_else_sets_stays_for_the_delay() -> None:
    """A person prepares for a load that is about to come."""
    source = measured(readers=6).run(400, 150)
    assert source.readers == 2

    source.readers = 6
    source.run(250, 150)
    assert source.readers == 6
    source.run(100, 150)
    assert source.readers == 2


def test_an_idle_reader_is_not_said_to_process_nothing() -> None:
    source = ReadingSource(readers=1).run(60, 0)

    assert source.message == (
        "0 records/s arrive, and what one reader can process is unknown: 1 reader suffices"
    )


def test_readers_that_wait_for_their_executors_do_not_count_as_reading() -> None:
    source = ReadingSource(readers=2).run(20, 450)
    source.decide(source.sample(readers=2))
    source.readers = 6
    source.now += 10
    source.decide(source.sample(readers=2, unread=9000))

    assert source.message.startswith("2 readers are catching up, and 6 are asked for; ")


def test_readers_without_load_become_the_fewest() -> None:
    assert ReadingSource(readers=6).run(400, 0).readers == 1


def test_an_unknown_capacity_is_found_out_one_step_at_a_time() -> None:
    source = ReadingSource(readers=8, splits=8).run(320, 100)

    assert source.readers == 6
    assert Reason.PROBING in source.reasons


def test_a_hot_split_is_named_and_does_not_add_readers_endlessly() -> None:
    source = measured(readers=6, policy=replace(POLICY, max_readers=50))

    source.run(300, 200, hot=160)

    assert source.reason is Reason.HOT_SPLIT
    assert not source.verdicts[-1].is_able
    assert "Split c/t/0 gets" in source.message
    assert source.readers <= 12, "one for each split at most"


@pytest.mark.parametrize("readers", [6, 8, 12])
def test_a_hot_split_takes_no_reader_away(readers: int) -> None:
    """Four readers would do beside it, but the backlog is not read yet."""
    source = measured(readers=6)
    source.readers = readers

    source.run(300, 200, hot=160)

    assert source.reason is Reason.HOT_SPLIT
    assert source.readers == readers


def test_readers_that_share_splits_have_no_hot_split() -> None:
    policy = replace(POLICY, shares_splits=True)
    source = ReadingSource(policy=policy)
    for number in range(5):
        source.now = 1000.0 + 10 * number
        one = {"positions": {("c", "t", 0): 2000 * number}, "owners": {("c", "t", 0): 0}}
        source.decide(source.sample(unread=4000 + 1000 * number, **one))

    steps = [Reason.MEASURING, Reason.CATCHING_UP, Reason.SCALED_UP, Reason.CATCHING_UP]
    assert source.reasons == steps
    assert source.readers == 4, "2 readers read 200 records/s of one split, and 300 arrive"


def test_uneven_splits_are_distinguished_from_too_few_readers() -> None:
    source = measured(readers=6)

    source.run(60, 250, hot=60)

    assert Reason.SPLITS_UNEVEN in source.reasons
    assert "Use strategy LoadAware" in next(
        v.message for v in source.verdicts if v.reason is Reason.SPLITS_UNEVEN
    )


def test_an_assigner_that_follows_the_load_needs_no_further_readers_for_that() -> None:
    source = measured(readers=6, policy=replace(POLICY, follows_load=True))

    source.run(60, 330, hot=60)

    assert source.readers == 6


def test_readers_that_wait_for_the_sink_do_not_become_more_and_more() -> None:
    source = ReadingSource(readers=2, limit=200, splits=48, policy=with_most(48)).run(120, 400)
    highest = source.readers
    assert highest < 12, "there is room for more"
    source.run(300, 400)

    assert source.reason is Reason.DOWNSTREAM_LIMIT
    assert "Check the sink" in source.message
    assert source.readers == highest


@pytest.mark.parametrize(
    ("in_source", "words"),
    [
        (0.9, "spend 90 % of their time in the source: check its servers"),
        (0.2, "spend 80 % of their time waiting for Spark .* check the sink"),
    ],
)
def test_measured_times_tell_the_source_from_what_follows_it(in_source: float, words: str) -> None:
    source = ReadingSource(readers=2, limit=200, in_source=in_source).run(420, 400)

    assert source.reason is Reason.DOWNSTREAM_LIMIT
    assert re.search(words, source.message)


def test_falling_times_are_ignored() -> None:
    """A reader that is gone takes its time along."""
    source = ReadingSource()
    source.now += 10
    source.decide(source.sample(busy=BusyTime(500, 500)))
    source.now += 10
    source.decide(source.sample(busy=BusyTime(1, 1)))

    found = source.memory.recent(10)
    assert found is not None
    assert found.in_source is None


def test_a_need_for_more_than_the_maximum_is_reported() -> None:
    source = ReadingSource(policy=replace(POLICY, max_readers=3)).run(120, 900)

    assert (source.readers, source.reason) == (3, Reason.AT_MAXIMUM)
    assert not source.verdicts[-1].is_able


@pytest.mark.parametrize(("readers", "bounded"), [(1, 2), (9, 6)])
def test_a_number_outside_the_bounds_is_corrected_at_once(readers: int, bounded: int) -> None:
    memory = decide(
        replace(POLICY, min_readers=2, max_readers=6), AutoscalerMemory(), wanted=readers, now=0.0
    )

    assert memory.verdict is not None
    assert (memory.verdict.readers, memory.verdict.reason) == (bounded, Reason.WITHIN_BOUNDS)


def test_directions_change_at_most_four_times_in_any_hour() -> None:
    source = measured(readers=6, policy=replace(POLICY, scale_down_delay=30.0))
    moves: list[tuple[float, int]] = []
    for _ in range(60):
        for load in (150, 600):
            before = source.readers
            source.run(120, load)
            moves += (
                [(source.now, 1 if source.readers > before else -1)]
                if source.readers != before
                else []
            )

    turns = [after[0] for before, after in pairwise(moves) if before[1] != after[1]]
    assert len(turns) >= 4, "it does scale down now and then"
    assert max(sum(at <= turn < at + 3600 for turn in turns) for at in turns) <= 4


def test_a_long_micro_batch_is_not_taken_for_idle_readers() -> None:
    """Reports in the middle of a micro-batch say nothing new but the time."""
    source = measured(readers=6)
    before = source.memory
    unread, begin = {"unread": 500}, source.now
    source.now = begin + 10
    source.decide(source.sample(**unread))
    known = source.memory.series["0"].samples
    for number in range(2, 6):
        source.now = begin + 10 * number
        source.decide(source.sample(**unread))

    assert source.memory.series["0"].samples == known
    assert source.memory.capacity == before.capacity


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"incarnation": 2}, id="another driver"),
        pytest.param({"positions": {("c", "t", 0): 5}}, id="other splits"),
        pytest.param(
            {"positions": {("c", "t", s): 0 for s in range(12)}}, id="positions that went back"
        ),
    ],
)
def test_incomparable_samples_start_a_new_measurement(changes: dict[str, Any]) -> None:
    source = measured()
    source.now += 10
    source.decide(source.sample(**changes))

    assert len(source.memory.series["0"].samples) == 1
    assert source.reason is Reason.MEASURING
    assert source.memory.capacity is not None, "what a reader can process is still true"


def test_memory_is_bounded_whatever_the_interval_between_reports() -> None:
    for step in (0.5, 2.0, 10.0, 45.0):
        source = ReadingSource()
        for number in range(400):
            source.now = 1000.0 + step * number
            source.decide(source.sample(unread=0))
        assert len(source.memory.series["0"].samples) <= 2 + WINDOW / 2.5
        assert len(source.memory.needs) <= 12


def test_a_report_becomes_a_sample_if_it_knows_its_lag() -> None:
    report = make_report(parallelism=2, lag=7, metrics={"skew": 1.0, "unread": 19})

    sample = Sample.of(report)

    assert sample is not None
    assert sample.unread == 19
    older = Sample.of(replace(report, metrics={"unread": True}))
    assert older is not None
    assert older.unread == 7, "a driver of an older release does not say it"
    assert Sample.of(replace(report, lag=None)) is None
    for wrong in (-1, 10**30, True, "7", 1.5, float("nan")):
        assert Sample.of(replace(report, lag=wrong)) is None, "it is no number of records"
    assert Sample.of(replace(report, parallelism=0)) is None


@pytest.mark.parametrize(
    ("looked", "at"),
    [(995.0, 995.0), (None, 1000.0), (1001.0, 1000.0), (0.0, 1000.0), (float("nan"), 1000.0)],
)
def test_what_a_driver_has_seen_is_as_old_as_it_says(looked: float | None, at: float) -> None:
    metrics = {"unread": 19, **({} if looked is None else {"unreadAt": looked})}

    sample = Sample.of(make_report(parallelism=2, lag=7, heartbeat=1000.0, metrics=metrics))

    assert sample is not None
    assert sample.at == at


def behind(source: ReadingSource, records: float) -> ReadingSource:
    """So much of each split is unread, and has been for long."""
    source.backlog = dict.fromkeys(source.backlog, records)
    source.memory = replace(source.memory, series={})
    return source


def held_back(source: ReadingSource, seconds: int, *, rate: float) -> ReadingSource:
    """An alignment admits so many records per second, and readers have read them in no time."""
    for _ in range(seconds // 10):
        source.now += 10
        for split in source.read:
            source.read[split] += 10 * rate / source.splits
            source.backlog[split] += 10 * (300 - rate) / source.splits
        source.decide(source.sample(admitted=round(2 * rate)))
    return source


def test_an_alignment_that_holds_records_back_adds_and_takes_away_no_readers() -> None:
    """They look slow under a backlog, or idle: neither says what they can process."""
    source = behind(ReadingSource(readers=4), 100_000.0)

    held_back(source, 1200, rate=200)

    assert source.readers == 4
    assert source.reason is Reason.HELD_BACK
    assert source.message.endswith("so another number of readers does not help: 4 now")
    assert source.verdicts[-1].is_able
    assert source.memory.capacity is not None
    assert not source.memory.capacity.is_measured


def test_what_is_known_of_readers_counts_while_an_alignment_holds_records_back() -> None:
    source = behind(measured(readers=6), 100_000.0)
    known = source.memory.capacity

    held_back(source, 280, rate=200)
    assert (source.readers, source.reason) == (6, Reason.SCALE_DOWN_DELAYED)
    held_back(source, 100, rate=200)

    assert source.memory.capacity is not None
    assert known is not None
    assert source.memory.capacity.rate == pytest.approx(known.rate)
    assert source.readers == 4, "300 records/s arrive, and the backlog may not be read"


def test_readers_are_added_when_what_was_held_back_may_be_read() -> None:
    source = held_back(behind(measured(readers=4), 10_000.0), 100, rate=200)
    assert (source.readers, source.reason) == (4, Reason.HELD_BACK)

    source.run(60, 300)

    assert source.readers == 12


def test_a_sentence_stays_while_its_decision_is_the_same() -> None:
    source = measured(readers=6)
    messages = {source.run(10, 420 + number).message for number in range(5)}

    assert len(messages) <= 2
