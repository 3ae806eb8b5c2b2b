"""Outputs per split, the watermark of many, idleness, and alignment."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK
from balanced_source.errors import ContractViolationError
from balanced_source.reader import CombinedWatermark, SplitOutputs
from balanced_source.reader.least import Least
from balanced_source.testing.alignment import AlignmentGroup, PauseOrResume, SplitAlignment
from balanced_source.testing.idleness import SplitIdleness

A, B = ("a",), ("b",)


class Seen:
    """An output, and what came out of it."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.output: SplitOutputs[str] = SplitOutputs(
            lambda record, timestamp: self.log.append((record, timestamp)),
            self.log.append,
            lambda is_idle: self.log.append("idle" if is_idle else "active"),
        )


def test_a_watermark_of_the_whole_reader_counts_like_that_of_a_split() -> None:
    seen = Seen()

    seen.output.emit_watermark(7)
    assert seen.log == [7]

    seen.output.create_output_for_split(A).emit_watermark(3)
    seen.output.emit_watermark(9)
    assert seen.log == [7]


def test_the_slowest_split_decides() -> None:
    seen = Seen()
    a, b = seen.output.create_output_for_split(A), seen.output.create_output_for_split(B)

    a.emit_watermark(10)
    b.emit_watermark(5)
    a.emit_watermark(20)
    b.emit_watermark(30)
    b.emit_watermark(25)

    assert seen.log == [5, 20]


def test_a_finished_split_holds_back_no_other_split() -> None:
    seen = Seen()
    a = seen.output.create_output_for_split(A)
    seen.output.create_output_for_split(B)
    a.emit_watermark(10)
    assert seen.log == []

    seen.output.release_output_for_split(B)
    seen.output.release_output_for_split(("nobody",))

    assert seen.log == [10]


def test_an_idle_split_holds_back_no_other_split_and_its_return_does_not_lower_the_watermark() -> (
    None
):
    seen = Seen()
    a, b = seen.output.create_output_for_split(A), seen.output.create_output_for_split(B)
    b.mark_idle()
    a.emit_watermark(10)
    b.collect("late", 3)
    b.emit_watermark(4)
    a.emit_watermark(20)
    b.emit_watermark(15)

    assert seen.log == [10, ("late", 3), 15]


def test_when_all_are_idle_the_reader_is() -> None:
    seen = Seen()
    a, b = seen.output.create_output_for_split(A), seen.output.create_output_for_split(B)
    a.emit_watermark(7)
    b.emit_watermark(9)

    a.mark_idle()
    b.mark_idle()
    b.mark_active()

    assert seen.log == [7, 9, "idle", "active"]


def test_a_split_has_one_output_until_it_is_released() -> None:
    seen = Seen()
    output = seen.output.create_output_for_split(A)
    assert seen.output.create_output_for_split(A) is output
    seen.output.release_output_for_split(A)

    with pytest.raises(ContractViolationError, match="was released"):
        output.collect("too late")

    assert seen.output.create_output_for_split(A) is not output


def test_a_reader_may_speak_for_itself() -> None:
    seen = Seen()
    seen.output.collect("x", 1)
    seen.output.emit_watermark(1)
    seen.output.mark_idle()
    seen.output.mark_active()

    assert seen.log == [("x", 1), 1, "idle", "active"]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "remove", "update", "idle", "active"]),
            st.integers(0, 3),
            st.integers(-50, 50),
        ),
        max_size=60,
    )
)
def test_the_combined_watermark_is_never_ahead_of_an_active_part_that_came_before(
    steps: list[tuple[str, int, int]],
) -> None:
    combined: CombinedWatermark[int] = CombinedWatermark()
    model: dict[int, tuple[int, bool]] = {}
    for step, key, watermark in steps:
        before = combined.watermark
        match step:
            case "add":
                combined.add(key)
                model.setdefault(key, (MIN_WATERMARK, False))
            case "remove":
                combined.remove(key)
                model.pop(key, None)
            case "update" if key in model:
                combined.update(key, watermark)
                model[key] = (max(model[key][0], watermark), False)
            case "idle" if key in model:
                combined.mark_idle(key)
                model[key] = (model[key][0], True)
            case "active" if key in model:
                combined.mark_active(key)
                model[key] = (model[key][0], False)
            case _:
                continue
        active = [w for w, is_idle in model.values() if not is_idle]
        assert combined.watermark == max([before, min(active)] if active else [before])
        assert combined.is_idle == (bool(model) and not active)


def test_silence_makes_idle_and_is_counted_only_while_a_split_could_speak() -> None:
    idleness = SplitIdleness(timeout=10)

    assert idleness.look(100, {A: 0, B: 0}) == ()
    assert idleness.look(109, {A: 0, B: 0}, held=[B]) == ()
    assert idleness.look(110, {A: 0, B: 0}) == (A,)
    assert idleness.look(115, {A: 1, B: 0}) == ()
    assert idleness.look(119, {A: 1, B: 0}) == (B,)
    assert idleness.look(126, {A: 1}) == (A,)
    assert idleness.look(140, {A: 1, B: 0}) == (A,), "one that comes back begins anew"


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(-20, 20)), max_size=300))
def test_the_least_is_the_least(steps: list[tuple[int, int | None]]) -> None:
    least: Least[int] = Least()
    model: dict[int, int] = {}
    for key, value in steps:
        if value is None:
            least.discard(key)
            model.pop(key, None)
        else:
            least.put(key, value)
            model[key] = value
        assert least.value == min(model.values(), default=None)


def test_members_of_a_group_wait_for_the_slowest() -> None:
    group: AlignmentGroup[int] = AlignmentGroup("g", max_drift=100)
    assert group.max_allowed == MAX_WATERMARK

    group.report(1, MIN_WATERMARK)
    assert group.max_allowed == MAX_WATERMARK, "who has no event time yet stops nobody"
    group.report(1, 1000)
    group.report(2, 5000)
    assert group.max_allowed == 1100
    group.report(1, 1000, is_idle=True)
    assert group.max_allowed == 5100
    group.leave(2)
    assert group.max_allowed == MAX_WATERMARK


def test_a_group_cannot_drift_backwards() -> None:
    with pytest.raises(ContractViolationError, match="max_drift -1"):
        AlignmentGroup("g", max_drift=-1)


def test_splits_that_are_ahead_are_paused_once_and_continue_once() -> None:
    alignment = SplitAlignment()

    assert alignment.check({A: 50, B: 150}, 100) == PauseOrResume(to_pause=(B,))
    assert not alignment.check({A: 60, B: 150}, 100)
    assert alignment.check({A: 101, B: 150}, 100) == PauseOrResume(to_pause=(A,))
    assert alignment.check({B: 150}, 200) == PauseOrResume(to_resume=(B,))
    assert alignment.paused == frozenset()
