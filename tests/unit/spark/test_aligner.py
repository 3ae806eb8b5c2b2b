"""The aligner against simulated logs.

Where it begins, what it admits, and clusters that do not answer.
"""

import bisect
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK, SplitId
from balanced_source.errors import DiscoveryError, InvalidSpecError
from balanced_source.host.alignment import RecordTime
from balanced_source_spark.aligner import Aligner
from balanced_source_spark.options import parse_options
from balanced_source_spark.planner import StreamPlanner

A, B, OTHER = ("a", "t", 0), ("a", "t", 1), ("b", "t", 0)
START = 1_700_000_000_000


class Brokers:
    """Answers from lists of times."""

    def __init__(self, logs: Mapping[SplitId, Sequence[int]]) -> None:
        self.logs = logs
        self.down: set[str] = set()

    def __call__(
        self, scope: str, millis: Mapping[SplitId, int]
    ) -> Mapping[SplitId, RecordTime | None]:
        if scope in self.down:
            raise DiscoveryError("not now", scope=scope)
        return {s: self._first(self.logs[s], moment) for s, moment in millis.items()}

    @staticmethod
    def _first(times: Sequence[int], moment: int) -> RecordTime | None:
        offset = bisect.bisect_left(times, moment)
        return RecordTime(offset=offset, time=times[offset]) if offset < len(times) else None

    @property
    def ends(self) -> dict[SplitId, int]:
        return {s: len(times) for s, times in self.logs.items()}


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def aligner(brokers: Brokers, clock: Clock | None = None) -> Aligner:
    return Aligner(brokers, max_drift=10_000, idle_timeout=30, clock=clock or Clock())


@pytest.fixture
def brokers() -> Brokers:
    """A's records are a second apart, B's a minute."""
    return Brokers(
        {A: range(START, START + 100_000, 1000), B: range(START, START + 6_000_000, 60_000)}
    )


def test_the_first_micro_batch_is_within_the_drift_of_the_slowest(brokers: Brokers) -> None:
    assert aligner(brokers).cap({A: 0, B: 0}, brokers.ends) == {A: 11, B: 1}


def test_a_restart_begins_where_the_splits_stand(brokers: Brokers) -> None:
    """A at 50 s, B at 60 s: the slowest is A."""
    assert aligner(brokers).cap({A: 50, B: 1}, brokers.ends) == {A: 61, B: 2}


def test_a_split_that_is_read_holds_the_others_until_it_is_idle(brokers: Brokers) -> None:
    clock = Clock()
    made = aligner(brokers, clock)

    first = made.cap({A: 100, B: 2}, brokers.ends)
    clock.now += 31
    later = made.cap({A: 100, B: 2}, brokers.ends)

    assert (first[B], later[B]) == (2, 3)
    assert made.report()["idle"] == 1


def test_a_cluster_that_does_not_answer_is_not_read_and_holds_the_others_until_it_is_idle(
    brokers: Brokers,
) -> None:
    both, clock = Brokers({A: brokers.logs[A], OTHER: brokers.logs[B]}), Clock()
    made = aligner(both, clock)
    made.cap({A: 0, OTHER: 0}, both.ends)
    both.down = {"b"}

    assert made.cap({A: 11, OTHER: 1}, both.ends) == {A: 11}
    clock.now += 31
    assert made.cap({A: 11, OTHER: 1}, both.ends) == {A: 22}


def test_without_an_idle_timeout_splits_that_answer_count_and_silent_ones_hold_no_other(
    brokers: Brokers,
) -> None:
    """A query that ends by itself waits for no split, and reads all the same."""
    both = Brokers({A: brokers.logs[A], OTHER: brokers.logs[B]})
    made = Aligner(both, max_drift=10_000, idle_timeout=0.0, clock=Clock())

    assert made.cap({A: 0, OTHER: 0}, both.ends) == {A: 11, OTHER: 1}
    both.down = {"b"}
    assert made.cap({A: 11, OTHER: 1}, both.ends) == {A: 22}


def test_before_all_clusters_have_answered_nothing_is_read(brokers: Brokers) -> None:
    brokers.down = {"a"}

    assert aligner(brokers).cap({A: 0, B: 0}, brokers.ends) == {A: 0, B: 0}


def test_a_driver_that_starts_while_a_cluster_is_down_waits_for_it_until_it_is_idle(
    brokers: Brokers,
) -> None:
    """Its splits stand at their ends, as far as anyone knows."""
    both, clock = Brokers({A: brokers.logs[A], OTHER: brokers.logs[B]}), Clock()
    both.down = {"b"}
    made, ends = aligner(both, clock), {A: 100, OTHER: 0}

    assert made.cap({A: 0, OTHER: 0}, ends) == {A: 0, OTHER: 0}
    assert made.watermark == MIN_WATERMARK
    clock.now += 29
    assert made.cap({A: 0, OTHER: 0}, ends) == {A: 0, OTHER: 0}
    clock.now += 2
    assert made.cap({A: 0, OTHER: 0}, ends) == {A: 11}
    assert made.watermark == START

    both.down = set()
    assert made.cap({A: 11, OTHER: 0}, both.ends) == {A: 11, OTHER: 1}, "the slowest counts again"


def test_a_split_that_stands_still_holds_the_others_until_it_is_idle(brokers: Brokers) -> None:
    """It was admitted, and then its topic was created again, or its leader fell silent."""
    both, clock = Brokers({A: brokers.logs[A], B: brokers.logs[A]}), Clock()
    made = aligner(both, clock)
    assert made.cap({A: 50, B: 50}, both.ends) == {A: 61, B: 61}

    stuck = {A: 50, B: 100}
    assert made.cap({A: 50, B: 61}, stuck) == {A: 50, B: 61}
    clock.now += 31
    assert made.cap({A: 50, B: 61}, stuck)[B] == 72


def test_a_cluster_that_stays_silent_is_logged_once_a_minute(
    brokers: Brokers, capsys: pytest.CaptureFixture[str]
) -> None:
    brokers.down, clock = {"a"}, Clock()
    made = aligner(brokers, clock)
    for _ in range(120):
        made.cap({A: 0, B: 0}, brokers.ends)
        clock.now += 1

    assert capsys.readouterr().out.count("times of records unknown") == 2


def test_times_of_splits_that_are_gone_are_forgotten() -> None:
    """A pattern of topics that are made anew each day must not fill the driver's memory."""
    day = range(START, START + 10)
    brokers = Brokers({("a", f"t-{number}", 0): day for number in range(50)})
    made = aligner(brokers)
    for split_id in brokers.logs:
        made.cap({split_id: 0}, {split_id: 10})

    assert len(made._last_seen) <= 3


def test_clusters_that_were_asked_are_forgotten() -> None:
    day = range(START, START + 10)
    brokers = Brokers({(f"day-{number}", "t", 0): day for number in range(50)})
    made = aligner(brokers)
    for split_id in brokers.logs:
        made.cap({split_id: 0}, {split_id: 10})

    assert made._pending == {}


@pytest.mark.scenario("H8")
def test_h8_a_split_that_waits_is_not_read_and_continues() -> None:
    """Of two splits of N records the one that is a day ahead gives none until the other is read.

    Then 2N came.
    """
    day = range(START + 86_400_000, START + 86_400_000 + 10, 1)
    both, clock = Brokers({A: range(START, START + 10), B: day}), Clock()
    made = aligner(both, clock)

    first = made.cap({A: 0, B: 0}, both.ends)
    clock.now += 31
    waiting = made.cap(first, both.ends)
    clock.now += 31
    last = made.cap(waiting, both.ends)

    assert (first, last) == ({A: 10, B: 0}, {A: 10, B: 10})


@pytest.mark.scenario("H9")
def test_h9_a_waiting_split_that_leaves_causes_no_error(brokers: Brokers) -> None:
    """Upstream's consumer refused to pause what was not assigned (FLINK-39728).

    The reader failed.
    """
    made = aligner(brokers)
    assert made.cap({A: 0, B: 0}, brokers.ends) == {A: 11, B: 1}, "B waits"

    assert made.cap({A: 11}, brokers.ends) == {A: 22}
    assert made.cap({}, brokers.ends) == {}
    assert made.cap({B: 1}, brokers.ends)[B] >= 1, "it may come back"


def test_no_cluster_is_queried_without_new_records(brokers: Brokers) -> None:
    brokers.down = {"a"}

    assert aligner(brokers).cap(brokers.ends, brokers.ends) == brokers.ends


class Others:
    """What the operator said last of the other sources of the group."""

    watermark = MIN_WATERMARK

    def __call__(self) -> int:
        return self.watermark


def grouped(brokers: Brokers, others: Others, clock: Clock | None = None) -> Aligner:
    return Aligner(
        brokers, max_drift=10_000, idle_timeout=30, others=others, clock=clock or Clock()
    )


def test_other_sources_hold_this_one_and_release_it(brokers: Brokers) -> None:
    others = Others()
    made = grouped(brokers, others)

    assert made.cap({A: 0, B: 0}, brokers.ends) == {A: 0, B: 0}, "nobody knows yet where they are"
    assert made.report()["others"] == "unknown"
    others.watermark = START - 5_000
    assert made.cap({A: 0, B: 0}, brokers.ends) == {A: 6, B: 1}
    assert made.report()["others"] == START - 5_000
    others.watermark = MAX_WATERMARK
    assert made.cap({A: 6, B: 1}, brokers.ends) == {A: 17, B: 1}
    assert "others" not in made.report()


def test_the_slowest_split_is_published_even_if_this_source_may_not_read(
    brokers: Brokers,
) -> None:
    others = Others()
    made = grouped(brokers, others)
    assert made.watermark == MIN_WATERMARK

    made.cap({A: 3, B: 1}, brokers.ends)
    assert made.watermark == START + 3_000
    others.watermark = MAX_WATERMARK
    made.cap({A: 3, B: 1}, brokers.ends)
    made.cap({A: 14, B: 1}, brokers.ends)
    assert made.watermark == START + 14_000


def test_a_source_that_has_read_everything_is_idle_after_its_timeout(brokers: Brokers) -> None:
    others, clock = Others(), Clock()
    others.watermark = MAX_WATERMARK
    made = grouped(brokers, others, clock)
    made.cap({A: 99, B: 99}, brokers.ends)

    made.cap(brokers.ends, brokers.ends)
    soon = made.watermark
    clock.now += 31
    made.cap(brokers.ends, brokers.ends)

    assert (soon, made.watermark) == (START + 99_000, MAX_WATERMARK)


def test_a_source_that_was_idle_holds_the_others_again_when_records_come(brokers: Brokers) -> None:
    """How far it is may be unknown for a while: the time before it was idle counts."""
    others, clock = Others(), Clock()
    others.watermark = MAX_WATERMARK
    made = grouped(brokers, others, clock)
    made.cap({A: 99}, brokers.ends)
    made.cap({A: 100}, {A: 100})
    clock.now += 31
    made.cap({A: 100}, {A: 100})
    assert made.watermark == MAX_WATERMARK

    brokers.logs = {A: [*brokers.logs[A], START + 100_000]}
    made.cap({A: 100}, {A: 101})

    assert made.watermark == START + 99_000


@pytest.mark.parametrize("is_batch", [False, True])
def test_alignment_of_a_source_without_event_times_is_refused(
    tmp_path: Path, *, is_batch: bool
) -> None:
    """Otherwise nothing would ever be read, and nobody would say why."""
    raw = {"connector": "files", "path": str(tmp_path), "alignmentmaxdrift": "5m"}
    with pytest.raises(InvalidSpecError, match="alignmentMaxDrift: connector 'files' does not"):
        StreamPlanner(parse_options(raw, is_batch=is_batch))


@pytest.mark.parametrize("first", [0, 5], ids=["a whole log", "a compacted log"])
def test_a_log_whose_first_record_is_beyond_the_position_is_aligned(first: int) -> None:
    """Compaction leaves offsets without records, also at the beginning of a log.

    Negative times are none: brokers answer −1 with the end of a log, and all would be read.
    """
    asked: list[int] = []

    def ask(_scope: str, millis: Mapping[SplitId, int]) -> Mapping[SplitId, RecordTime | None]:
        asked.extend(millis.values())
        steps = {A: 1000, B: 60_000}
        found = {s: max(first, -(-(moment - START) // steps[s])) for s, moment in millis.items()}
        return {
            s: RecordTime(offset=offset, time=START + offset * steps[s]) if offset < 100 else None
            for s, offset in found.items()
        }

    made = Aligner(ask, max_drift=10_000, idle_timeout=30, clock=Clock())
    positions = {A: 0, B: 0}
    for _ in range(3):
        positions = made.cap(positions, {A: 100, B: 100})

    assert min(asked) >= 0
    assert positions[A] < 60
    assert positions[B] <= first + 1
