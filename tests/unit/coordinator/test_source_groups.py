"""Sources that are aligned together.

Who holds whom, for how long, and how often anybody is told.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK
from balanced_source.coordinator import source_groups
from balanced_source.coordinator.source_groups import (
    SIGNS_OF_LIFE,
    STEPS,
    TELL_INTERVAL,
    SourceGroups,
)
from balanced_source.documents.alignment import SourceWatermark
from balanced_source.host.alignment import advance

IDLE = 30.0
DRIFT = 1000


def at(watermark: int, group: str = "g") -> SourceWatermark:
    return SourceWatermark(group=group, watermark=watermark, max_drift=DRIFT, idle_timeout=IDLE)


def heard(**watermarks: int) -> SourceGroups[str]:
    groups: SourceGroups[str] = SourceGroups()
    for name, watermark in watermarks.items():
        groups.hear(name, at(watermark), stamp=1, now=0.0)
    return groups


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ((), MAX_WATERMARK),
        ((500, 700), 500),
        ((500, MAX_WATERMARK), 500),
        ((MAX_WATERMARK,), MAX_WATERMARK),
        ((500, MIN_WATERMARK), MIN_WATERMARK),
    ],
    ids=["alone", "the least", "an idle one", "only idle ones", "one that is not known yet"],
)
def test_a_source_waits_for_the_slowest_of_the_others(others: Sequence[int], expected: int) -> None:
    groups = heard(
        me=7, **{f"other-{number}": watermark for number, watermark in enumerate(others)}
    )

    assert groups.watermark("me", now=1.0) == expected


def test_groups_are_separate_and_a_source_may_change_its_group() -> None:
    groups = heard(me=7, other=100)

    groups.hear("other", at(100, group="h"), stamp=2, now=1.0)

    assert groups.watermark("me", now=1.0) == MAX_WATERMARK
    assert groups.members("g") == ["me"]


def test_a_silent_source_holds_no_other_after_the_idle_timeout_until_it_reports_again() -> None:
    groups = heard(me=7, other=100)

    groups.hear("other", at(100), stamp=1, now=IDLE - 1)  # the old report, seen again

    assert groups.watermark("me", now=IDLE - 1) == 100
    assert groups.watermark("me", now=IDLE) == MAX_WATERMARK
    groups.hear("other", at(101), stamp=2, now=IDLE + 1)
    assert groups.watermark("me", now=IDLE + 1) == 101


def test_a_removed_source_holds_no_other_source() -> None:
    groups = heard(me=7, other=100)

    groups.forget("other")

    assert groups.watermark("me", now=1.0) == MAX_WATERMARK
    assert "other" not in groups


def test_small_steps_are_sent_only_when_a_heartbeat_is_due() -> None:
    groups = heard(me=7, other=100)
    assert groups.due_in("me", now=0.0) == 0.0
    groups.tell("me", now=0.0)

    groups.hear("other", at(100 + DRIFT // STEPS - 1), stamp=2, now=2.0)
    assert groups.due_in("me", now=2.0) == IDLE / SIGNS_OF_LIFE - 2.0
    groups.hear("other", at(100 + DRIFT // STEPS), stamp=3, now=2.0)
    assert groups.due_in("me", now=2.0) == 0.0


def test_even_news_wait_a_second_after_the_last() -> None:
    groups = heard(me=7, other=100)
    groups.tell("me", now=0.0)

    groups.hear("other", at(MAX_WATERMARK), stamp=2, now=0.25)

    assert groups.due_in("me", now=0.25) == TELL_INTERVAL - 0.25
    assert groups.tell("me", now=1.0) == MAX_WATERMARK
    assert groups.due_in("me", now=1.0) is None, "there is nobody to wait for, and nothing to say"


def test_without_any_drift_what_was_said_is_not_said_again() -> None:
    """Each document is a write to the API server, once a second and for ever."""
    groups: SourceGroups[str] = SourceGroups()
    for name in ("me", "other"):
        report = SourceWatermark(group="g", watermark=100, max_drift=0, idle_timeout=IDLE)
        groups.hear(name, report, stamp=1, now=0.0)
    groups.tell("me", now=0.0)

    assert groups.due_in("me", now=5.0) == IDLE / SIGNS_OF_LIFE - 5.0


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c", "d"]),
            st.sampled_from(["g", "h"]),
            st.sampled_from([MIN_WATERMARK, 100, 200, MAX_WATERMARK]),
            st.sampled_from([5.0, 30.0]),
        ),
        max_size=20,
    )
)
def test_everyone_is_told_the_least_of_the_others_that_are_alive(
    words: list[tuple[str, str, int, float]],
) -> None:
    groups, newest = SourceGroups[str](), dict[str, tuple[str, int, float, float]]()
    for number, (name, group, watermark, patience) in enumerate(words):
        now = 2.0 * number
        newest[name] = group, watermark, patience, now
        report = SourceWatermark(
            group=group, watermark=watermark, max_drift=DRIFT, idle_timeout=patience
        )
        groups.hear(name, report, stamp=number, now=now)
        for one, (mine, _, asked, _) in newest.items():
            others = [
                mark
                for other, (theirs, mark, _, at) in newest.items()
                if other != one and theirs == mine and now - at < asked
            ]
            assert groups.watermark(one, now=now) == min(others, default=MAX_WATERMARK)
        due = {
            one: left for one in groups.members(group) if (left := groups.due_in(one, now=now)) == 0
        }
        assert set(groups.due_soon(group, now=now, within=0.0)) == due.keys()


def test_what_a_report_costs_depends_on_its_group_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand sources report every two seconds each, in groups of ten."""
    looked: list[int] = []
    find = source_groups._lowest

    def counted(members: Mapping[int, Any], *arguments: Any) -> Any:
        looked.append(len(members))
        return find(members, *arguments)

    monkeypatch.setattr(source_groups, "_lowest", counted)
    groups: SourceGroups[int] = SourceGroups()
    for number in range(1000):
        groups.hear(number, at(number, f"g{number // 10}"), stamp=1, now=0.0)
    groups.hear(0, at(5, "g0"), stamp=2, now=1.0)
    groups.due_soon("g0", now=1.0, within=1.0)
    groups.due_in(0, now=1.0)

    assert looked == [10, 10]


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    """Times of each source's micro-batches, ascending; and which source takes a turn."""
    times = draw(
        st.lists(
            st.lists(st.integers(0, 20_000), min_size=1, max_size=15).map(sorted),
            min_size=1,
            max_size=4,
        )
    )
    turns = draw(st.lists(st.integers(0, len(times) - 1), max_size=60))
    return times, turns


@given(runs())
def test_no_source_runs_ahead_of_another_and_all_come_to_their_ends(
    run: tuple[list[list[int]], list[int]],
) -> None:
    """Sources that report after each step and follow what they are told, however late.

    Then in turn until the end.
    """
    times, turns = run
    groups: SourceGroups[int] = SourceGroups()
    position = [0] * len(times)
    aligned = [-1] * len(times)
    told = [MIN_WATERMARK] * len(times)

    def mark(source: int) -> int:
        left = times[source][position[source] :]
        return left[0] if left else MAX_WATERMARK

    for source in range(len(times)):
        groups.hear(source, at(MIN_WATERMARK), stamp=0, now=0.0)

    def step(source: int, now: float) -> None:
        groups.hear(source, at(mark(source)), stamp=now, now=now)
        if groups.due_in(source, now=now) == 0.0:
            told[source] = groups.tell(source, now=now)
        aligned[source] = advance(
            aligned[source], mark(source), others=told[source], max_drift=DRIFT
        )
        while mark(source) <= aligned[source]:
            others = [mark(other) for other in range(len(times)) if other != source]
            assert mark(source) <= min(others, default=MAX_WATERMARK) + DRIFT
            position[source] += 1

    now = 0.0
    for source in turns:
        now += 0.7
        step(source, now)
    for _ in range(2000):
        for source in range(len(times)):
            now += 0.7
            step(source, now)
        if all(mark(source) == MAX_WATERMARK for source in range(len(times))):
            return
    raise AssertionError("they wait for each other for ever")


@pytest.mark.parametrize(("within", "due"), [(1.9, []), (2.1, ["me", "other"])])
def test_members_are_due_within_a_time(within: float, due: list[str]) -> None:
    """Both get a sign that the other one is there."""
    groups = heard(me=7, other=100)
    for name in ("me", "other"):
        groups.tell(name, now=0.0)
    now = IDLE / SIGNS_OF_LIFE - 2.0

    assert groups.due_in("me", now=now) == 2.0
    assert groups.due_soon("g", now=now, within=within) == due
