"""A query that hangs reports on, and reads nothing: that is told."""

from collections.abc import Iterable

import pytest

from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.reasons import Reason
from balanced_source_spark.host_runtime import HostRuntime
from balanced_source_spark.planning_watch import KNOWN_FROM, PATIENCE, RECENT, USUAL, PlanningWatch
from support.memory_channel import MemoryChannel
from testbed.waiting import wait_until


class Clock:
    """Stands still but for `pass_`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


def watched(pauses: Iterable[float]) -> tuple[PlanningWatch, Clock]:
    """Spark asks after each of these pauses, and finds nothing to read."""
    clock = Clock()
    watch = PlanningWatch(clock)
    watch.called()
    for pause in pauses:
        clock.pass_(pause)
        watch.called()
    return watch, clock


def read(watch: PlanningWatch, clock: Clock, *batches: tuple[int, float]) -> None:
    """Run micro-batches with so many records, in so many seconds."""
    for records, seconds in batches:
        watch.planned(records)
        clock.pass_(seconds)
        watch.called()


def patience_of(watch: PlanningWatch, clock: Clock) -> float | None:
    """Return after how many seconds a problem is told, to the second; None for not in a week."""
    for seconds in (*range(40_000), 604_800):
        clock.now = watch._last + seconds
        if watch.problem() is not None:
            return seconds
    return None


@pytest.mark.parametrize(
    ("pauses", "patience"),
    [
        ((0.01, 3.0), PATIENCE),
        ((60.0, 240.0, 1.0), 720.0),
        ((3600.0, 3600.0), 10_800.0),
    ],
    ids=["at once", "slow triggers", "a trigger of an hour"],
)
def test_a_pause_is_a_problem_when_it_is_much_longer_than_usual(
    pauses: tuple[float, ...], patience: float
) -> None:
    watch, clock = watched(pauses)
    clock.pass_(patience - 1)
    assert watch.problem() is None
    clock.pass_(1)
    problem = watch.problem()
    assert problem is not None
    assert problem.reason == Reason.QUERY_STALLED
    assert problem.message.startswith(
        f"Spark has begun no micro-batch for {patience:.0f} s, 3 times as long as is usual"
    )
    clock.pass_(100)
    assert watch.problem() == problem, "what says nothing new wakes no one"

    watch.called()
    assert watch.problem() is None


@pytest.mark.parametrize("pauses", [(), (3600.0,)])
def test_before_usual_pauses_are_known_none_is_a_problem(pauses: tuple[float, ...]) -> None:
    """A trigger may fire once an hour."""
    watch, clock = watched(pauses)
    clock.pass_(1e6)
    assert watch.problem() is None
    assert PlanningWatch(clock).problem() is None


def test_the_first_micro_batch_may_read_for_days() -> None:
    """Also when Spark had asked often before there was anything to read."""
    watch, clock = watched([0.5] * 100)
    watch.planned(10**9)

    assert patience_of(watch, clock) is None


def test_a_micro_batch_that_catches_up_may_take_as_long_as_its_records_do() -> None:
    watch, clock = watched([0.01] * 100)
    read(watch, clock, *[(10, 0.5)] * 5)
    watch.planned(10**6)
    clock.pass_(1_200)
    assert watch.problem() is None, "ten records in half a second are a slow pace"


def test_hours_of_catching_up_are_forgotten() -> None:
    watch, clock = watched([0.01] * 100)
    read(watch, clock, (1_000, 1.0), (10**9, 7_200.0), *[(1_000, 1.0)] * (RECENT - 1))
    watch.planned(1_000)
    assert patience_of(watch, clock) == pytest.approx(3 * 7_200, abs=1)

    clock.now = watch._last + 1
    watch.called()
    watch.planned(1_000)
    assert patience_of(watch, clock) == PATIENCE


def test_a_micro_batch_that_is_slow_now_and_then_is_usual() -> None:
    """Such as one in a hundred that compacts a table."""
    watch, clock = watched([0.01] * 3)
    read(watch, clock, (1_000, 1.0), (1_000, 1_200.0), *[(1_000, 1.0)] * 99)
    watch.planned(1_000)

    assert patience_of(watch, clock) == 3 * 1_200


def test_a_trigger_of_an_hour_with_records_each_time() -> None:
    """Its first pause is shorter: Spark begins micro-batches at the full hour."""
    clock = Clock()
    watch = PlanningWatch(clock)
    watch.called()
    read(watch, clock, (1_000, 600.0), *[(1_000, 3_600.0)] * 2)
    watch.planned(1_000)
    assert patience_of(watch, clock) is None

    clock.now = watch._last + 3_600
    watch.called()
    watch.planned(1_000)
    assert patience_of(watch, clock) == 3 * 3_600


@pytest.mark.parametrize("first", [60.0, 3_000.0])
def test_the_first_micro_batch_of_a_process_says_nothing(first: float) -> None:
    """Executors start meanwhile. What is replayed is a micro-batch too, and comes before a call."""
    clock = Clock()
    watch = PlanningWatch(clock)
    read(watch, clock, (100, first), *[(100_000, 2.0)] * 3)
    watch.planned(1_000_000)

    assert patience_of(watch, clock) == PATIENCE


def test_a_host_reports_that_its_query_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("balanced_source_spark.host_reporter.HEARTBEAT_INTERVAL", 0.02)
    watch, clock = watched((1.0, 1.0))
    channel = MemoryChannel()
    runtime = HostRuntime(channel, watch=watch)
    try:
        runtime.committed(StreamOffset())
        wait_until(lambda: channel.reports, 20, "registration", interval=0.005)
        clock.pass_(PATIENCE)
        wait_until(
            lambda: [p.reason for p in channel.reports[-1].problems] == ["QueryStalled"],
            8,
            "the problem",
            interval=0.005,
        )
        runtime.base()
        wait_until(lambda: channel.reports[-1].problems == (), 8, "no problem", interval=0.005)
    finally:
        runtime.close()


def pace(watch: PlanningWatch) -> dict[str, float]:
    """Return what a report tells of micro-batches, without when the newest one has ended."""
    return {name: n for name, n in watch.metrics().items() if name != "positionsAt"}


def test_reports_tell_when_the_micro_batch_ended_that_their_positions_are_of() -> None:
    clock = Clock()
    watch = PlanningWatch(clock, wall=lambda: clock() + 5000)
    watch.called()
    clock.pass_(3)
    watch.called()
    assert watch.metrics() == {}, "nothing was read"

    read(watch, clock, (10, 30.0), (10, 1.5))
    clock.pass_(60)
    watch.called()

    assert watch.metrics()["positionsAt"] == 1000 + 3 + 31.5 + 5000


def test_reports_tell_micro_batches_and_their_time_without_the_first_one() -> None:
    watch, clock = watched([])
    assert watch.metrics() == {}
    read(watch, clock, (10, 30.0))
    assert pace(watch) == {}, "executors start in it"

    read(watch, clock, (10, 1.5), (0, 2.25))

    assert pace(watch) == {"microBatches": 2, "microBatchSeconds": 3.75}


def test_pauses_without_records_are_no_micro_batches() -> None:
    watch, clock = watched([])
    read(watch, clock, (10, 30.0), (10, 1.5))
    before = watch.metrics()
    clock.pass_(60)
    watch.called()

    assert watch.metrics() == before


def test_micro_batches_that_take_longer_than_the_trigger_interval_are_late() -> None:
    clock = Clock()
    watch = PlanningWatch(clock, interval=2.0)
    watch.called()
    read(watch, clock, (10, 30.0), (10, 2.1), (10, 2.5), (10, 4.0))

    assert pace(watch) == {
        "microBatches": 3,
        "microBatchSeconds": 8.6,
        "lateMicroBatchSeconds": 6.5,
    }


def test_micro_batches_without_records_count_as_one_record_together() -> None:
    """The pace of the next one is then what all of them took."""
    watch, clock = watched([0.01] * KNOWN_FROM)
    read(watch, clock, *[(0, 200.0)] * (KNOWN_FROM + 1))
    watch.planned(10)

    assert patience_of(watch, clock) == USUAL * KNOWN_FROM * 200 * 10
