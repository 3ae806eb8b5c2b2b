"""Over which time the autoscaler measures."""

from dataclasses import replace

import pytest

from balanced_source.host.reader_figures import BusyTime
from balanced_source_operator.controller.autoscaling.host_samples import HostSamples
from balanced_source_operator.controller.autoscaling.samples import Sample, between

SPLIT = ("c", "t", 0)


def sample(at: float, owner: int = 0, *, busy: BusyTime | None = None) -> Sample:
    return Sample(
        at=at,
        readers=2,
        unread=0,
        positions={SPLIT: round(100 * at)},
        owners={SPLIT: owner},
        busy=busy,
    )


@pytest.mark.parametrize(
    ("owners", "seconds"),
    [([0, 0, 0, 0], 10.0), ([1, 0, 0, 0], 10.0), ([0, 1, 0, 0, 0], 10.0), ([0, 0, 1, 1], None)],
    ids=["always the same", "changed once", "changed and back", "changed just now"],
)
def test_readers_are_measured_since_the_newest_change_of_owners(
    owners: list[int], seconds: float | None
) -> None:
    """The first report may come within a micro-batch, so nothing is measured from there."""
    series = HostSamples()
    for number, owner in enumerate(owners):
        series = series.observed(sample(5.0 * number, owner), now=5.0 * number)

    steady = series.steady
    assert (None if steady is None else steady.seconds) == seconds


@pytest.mark.parametrize("known", ["before", "after"])
def test_where_readers_spend_their_time_is_unknown_if_one_report_does_not_say(known: str) -> None:
    busy = {known: BusyTime(1, 1)}
    interval = between(sample(0.0, busy=busy.get("before")), sample(5.0, busy=busy.get("after")))

    assert interval.in_source is None


@pytest.mark.parametrize(("records", "is_saturated"), [(0, False), (5, True)])
def test_readers_that_read_slowly_have_work_all_the_time_too(
    records: int, *, is_saturated: bool
) -> None:
    before = Sample(at=0.0, readers=1, unread=1000, positions={SPLIT: 0}, owners={SPLIT: 0})
    after = replace(before, at=10.0, positions={SPLIT: records})

    assert between(before, after).is_saturated(30.0) == is_saturated


def test_a_split_that_went_back_begins_a_new_measurement() -> None:
    other = ("c", "t", 1)
    before = Sample(at=0.0, readers=1, unread=0, positions={SPLIT: 5, other: 5}, owners={})
    after = replace(before, at=10.0, positions={SPLIT: 9, other: 4})

    assert not after.continues(before)
    series = HostSamples().observed(before, now=0.0)
    assert series.observed(after, now=10.0).samples == (after,)


@pytest.mark.parametrize(
    ("lost", "continues"), [((3, 3), True), ((3, 4), False), ((None, None), False)]
)
def test_a_jump_over_lost_records_that_may_be_begins_a_new_measurement(
    lost: tuple[int | None, int | None], *, continues: bool
) -> None:
    before, after = (replace(sample(5.0 * number), lost=count) for number, count in enumerate(lost))

    assert after.continues(before) is continues


@pytest.mark.parametrize(("unread", "times"), [(0, (0.0, 5.0)), (1, (0.0,))])
def test_a_report_within_a_micro_batch_says_nothing_new_however_little_is_unread(
    unread: int, times: tuple[float, ...]
) -> None:
    """An idle source, in contrast, has truly read nothing in that time."""
    before = replace(sample(0.0), unread=unread)
    series = HostSamples().observed(before, now=0.0)
    series = series.observed(replace(before, at=5.0), now=5.0)

    assert tuple(each.at for each in series.samples) == times


@pytest.mark.parametrize("jump", [3600.0, -3600.0, 40.0])
def test_a_clock_that_jumps_begins_a_new_measurement(jump: float) -> None:
    """An hour without a record would halve what a reader can process."""
    series = HostSamples()
    for number in range(4):
        series = series.observed(sample(5.0 * number), now=5.0 * number)
    assert series.steady is not None

    series = series.observed(sample(20.0 + jump), now=20.0)
    assert (len(series.samples), series.steady) == (1, None)
    for number in range(1, 5):
        series = series.observed(sample(20.0 + jump + 5 * number), now=20.0 + 5 * number)
    steady = series.steady
    assert steady is not None
    assert steady.rate == pytest.approx(100)


def test_reports_that_are_seen_late_are_no_jump() -> None:
    series = HostSamples()
    for number, late in enumerate((0.0, 9.0, 1.0, 12.0, 0.0)):
        series = series.observed(sample(5.0 * number), now=5.0 * number + late)

    assert len(series.samples) > 1


def test_time_passes_while_all_that_is_unread_is_held_back() -> None:
    """No micro-batch runs: nothing may be read."""
    series = HostSamples()
    for number in range(3):
        held = Sample(
            at=5.0 * number, readers=2, unread=7, admitted=0, positions={SPLIT: 1}, owners={}
        )
        series = series.observed(held, now=5.0 * number)

    assert len(series.samples) == 3


def test_what_has_arrived_since_counts_from_the_newest_end() -> None:
    series = HostSamples()
    for at, position in ((0.0, 0), (20.0, 1000), (40.0, 2000), (60.0, 2000)):
        found = replace(sample(at), positions={SPLIT: position}, unread=round(100 * at) - position)
        series = series.observed(found, now=at)

    since = series.since_end

    assert since is not None
    assert (since.seconds, since.arrival) == (20.0, 100.0)


@pytest.mark.parametrize("later", [BusyTime(4, 9), BusyTime(9, 4)])
def test_where_readers_spend_their_time_is_unknown_if_one_is_gone(later: BusyTime) -> None:
    """It takes its time along."""
    interval = between(sample(0.0, busy=BusyTime(5, 5)), sample(5.0, busy=later))

    assert interval.in_source is None


def test_reports_that_come_often_are_thinned_from_the_second_on() -> None:
    series = HostSamples()
    for second in range(4):
        series = series.observed(sample(float(second)), now=float(second))

    assert [known.at for known in series.samples] == [0.0, 2.0, 3.0]
