"""What the autoscaler does in a turn of its source: when it decides, and what it says."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from balanced_source.api import Source
from balanced_source.connectors.files import FilesSource, Format
from balanced_source.connectors.kinesis import KinesisSource
from balanced_source.reasons import Reason
from balanced_source_operator.controller.liveness import ALIVE
from balanced_source_operator.kube.port import ConflictError, RefusedError
from balanced_source_operator.runtime import autoscaler as module
from balanced_source_operator.runtime.autoscaler import LONGEST_SPACING
from balanced_source_operator.runtime.refusals import PATIENCE
from support import virtual_time
from support.autoscaler_scene import Scene


def grows_until_readers_are_added(lag: Callable[[int], int | None], *, seconds: int) -> None:
    """A lag, given by the second, adds readers within so many seconds, and nothing else is said."""

    async def play() -> None:
        scene = Scene()
        for second in range(seconds):
            await asyncio.sleep(1)
            scene.report(lag=lag(second))
            await scene.turn()
            if scene.scaled:
                break
        ((before, after),) = scene.scaled
        assert before == 2
        assert after > 2
        assert scene.posted == [("ScaledUp", False)]

    virtual_time.run(play())


def test_a_number_outside_the_bounds_is_changed_before_anything_is_measured() -> None:
    async def play() -> None:
        scene = Scene()
        assert await scene.turn(20) == Reason.WITHIN_BOUNDS
        assert scene.scaled == [(20, 8)]
        assert scene.posted == [("WithinBounds", False)]
        assert await scene.turn(20) == Reason.WITHIN_BOUNDS
        assert scene.scaled == [(20, 8)], "the same things are decided once"
        await scene.turn(30)
        assert scene.scaled == [(20, 8), (30, 8)]
        assert len(scene.posted) == 1, "the number of readers is the same"

    virtual_time.run(play())


def test_a_conflict_leaves_the_number_to_the_next_turn() -> None:
    async def play() -> None:
        scene = Scene()
        scene.error = ConflictError("another number")
        assert await scene.turn(20) == ""
        assert scene.posted == []
        scene.error = None
        assert await scene.turn(30) == Reason.WITHIN_BOUNDS
        assert scene.scaled == [(30, 8)]

    virtual_time.run(play())


def test_a_refusal_is_told_once_and_tried_again_in_each_turn() -> None:
    async def play() -> None:
        scene = Scene()
        scene.error = RefusedError("forbidden", status=403)
        for _ in range(3):
            assert await scene.turn(20) == Reason.SCALING_REFUSED
        verdict = scene.autoscaler.verdict
        assert verdict is not None
        assert (verdict.readers, verdict.is_able) == (8, False)
        assert set(scene.posted) == {("ScalingRefused", True)}

        scene.error = None
        assert await scene.turn(20) == Reason.WITHIN_BOUNDS
        assert scene.scaled == [(20, 8)]

    virtual_time.run(play())


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_told_when_it_lasts_and_tried_again_meanwhile(status: int) -> None:
    async def play() -> None:
        scene = Scene()
        scene.error = RefusedError("too many requests", status=status)
        assert await scene.turn(20) == ""
        await asyncio.sleep(PATIENCE - 1)
        assert await scene.turn(20) == ""
        scene.error = None
        assert await scene.turn(20) == Reason.WITHIN_BOUNDS
        assert scene.scaled == [(20, 8)], "without a new report"

        scene.error = RefusedError("too many requests", status=status)
        await scene.turn(30)
        await asyncio.sleep(PATIENCE - 1)
        assert await scene.turn(30) == Reason.WITHIN_BOUNDS, "it counts from the first one again"
        await asyncio.sleep(1)
        assert await scene.turn(30) == Reason.SCALING_REFUSED
        assert scene.posted == [("WithinBounds", False), ("ScalingRefused", True)]

    virtual_time.run(play())


async def fight(scene: Scene) -> None:
    """Something else sets the number again and again."""
    for number in (20, 30, 40, 50):
        assert scene.reason in ("", Reason.WITHIN_BOUNDS)
        await scene.turn(number)


def test_another_autoscaler_is_told_of_once_and_as_long_as_it_fights() -> None:
    async def play() -> None:
        scene = Scene()
        await fight(scene)
        verdict = scene.autoscaler.verdict
        assert verdict is not None
        assert (verdict.reason, verdict.is_able) == (Reason.TWO_AUTOSCALERS, False)
        assert "last to 50, and spec.autoscaling undoes it: 8" in verdict.message
        posted = [("WithinBounds", False), ("TwoAutoscalers", True)]
        assert scene.posted == posted
        assert await scene.turn(60) == Reason.TWO_AUTOSCALERS
        assert scene.posted == posted

        scene.error = RefusedError("forbidden", status=403)
        assert await scene.turn(70) == Reason.SCALING_REFUSED, "that is what people have to mend"
        assert scene.posted[2:] == [("ScalingRefused", True)]
        scene.error = None
        assert await scene.turn(8, is_held=True) == ""
        assert await scene.turn(20) == Reason.WITHIN_BOUNDS

    virtual_time.run(play())


def test_a_pause_or_a_spec_without_autoscaling_forgets_what_was_measured() -> None:
    async def play() -> None:
        for forgotten in ({"is_held": True}, {"bounds": None}):
            scene = Scene()
            await scene.read(10)
            assert scene.reason == Reason.WITHIN_TARGET
            assert await scene.turn(**forgotten) == ""  # type: ignore[arg-type]
            await asyncio.sleep(1)
            assert await scene.turn() == Reason.MEASURING, "one sample is no measurement"

    virtual_time.run(play())


def test_an_unknown_lag_does_not_count_as_zero() -> None:
    async def play() -> None:
        scene = Scene()
        assert await scene.turn() == Reason.LAG_UNKNOWN, "no driver has reported"
        assert await scene.turn(3) == Reason.LAG_UNKNOWN
        assert scene.posted == [], "a driver has to start first"
        await scene.read(10)
        assert scene.reason == Reason.WITHIN_TARGET
        await asyncio.sleep(ALIVE - 1)
        scene.report(lag=None)
        assert await scene.turn() == Reason.WITHIN_TARGET
        await asyncio.sleep(1)
        scene.report(lag=None)
        assert await scene.turn() == Reason.LAG_UNKNOWN
        assert scene.posted == [("LagUnknown", True)]
        assert scene.scaled == []

    virtual_time.run(play())


@pytest.mark.parametrize("every", [2, 4, 8, 25])
def test_a_lag_that_is_unknown_now_and_then_hides_no_backlog(every: int) -> None:
    """A broker that answers late leaves out the lag of one report."""
    grows_until_readers_are_added(
        lambda second: None if second % every == 1 else 20_000 + second * 400, seconds=60
    )


def test_calm_time_counts_on_while_the_lag_is_unknown_for_a_moment() -> None:
    async def play() -> None:
        scene = Scene()
        for second in range(700):
            await asyncio.sleep(1)
            scene.report(lag=None if second % 60 == 50 else 0, rate=0)
            await scene.turn(bounds={"minReaders": 1, "maxReaders": 8})
        assert scene.scaled[:1] == [(2, 1)]
        assert "LagUnknown" not in dict(scene.posted)

    virtual_time.run(play())


@pytest.mark.parametrize(
    ("source", "lag"),
    [
        (FilesSource(paths=("/in",), kind_of_file=Format.TEXT), 0),
        (KinesisSource(streams=("orders",)), None),
    ],
    ids=["files", "kinesis"],
)
def test_a_load_that_cannot_be_measured_is_said_once_and_changes_nothing(
    source: Source[Any, Any], lag: int | None
) -> None:
    """The lag of files is that of the few blocks which readers have, and a stream has none."""

    async def play() -> None:
        scene = Scene(source)
        assert await scene.turn() == Reason.LAG_UNKNOWN
        for _ in range(400):
            await asyncio.sleep(1)
            scene.report(lag=lag, rate=0)
            await scene.turn(3)

        verdict = scene.autoscaler.verdict
        assert verdict is not None
        assert (verdict.reason, verdict.is_able) == (Reason.NOT_MEASURABLE, False)
        assert f"The load of a source of kind {source.kind} is unknown" in verdict.message
        assert scene.scaled == []
        assert scene.posted == [("NotMeasurable", True)]
        assert await scene.turn(20) == Reason.WITHIN_BOUNDS, "bounds hold all the same"

    virtual_time.run(play())


def test_a_driver_that_falls_silent_tells_nothing_any_more() -> None:
    async def play() -> None:
        scene = Scene()
        await scene.read(10)
        await asyncio.sleep(ALIVE - 1)
        assert await scene.turn() == Reason.WITHIN_TARGET
        await asyncio.sleep(1)
        assert await scene.turn() == Reason.LAG_UNKNOWN

        scene.report(lag=0)
        assert await scene.turn() == Reason.MEASURING

    virtual_time.run(play())


def test_a_growing_lag_adds_readers() -> None:
    grows_until_readers_are_added(lambda second: 20_000 + second * 400, seconds=30)


def test_records_that_were_gone_are_not_taken_for_read_ones() -> None:
    """A million offsets that retention has deleted are passed in no time."""

    async def play() -> None:
        scene = Scene()
        await scene.read(40)
        before = scene.autoscaler._memory.capacity
        await asyncio.sleep(1)
        scene.report(lag=0, rate=1_000_000, skipped=8_000_000)
        await scene.turn()
        assert scene.reason == Reason.MEASURING
        for _ in range(40):
            await asyncio.sleep(1)
            scene.report(lag=0, skipped=8_000_000)
            await scene.turn()

        after = scene.autoscaler._memory.capacity
        assert before is not None
        assert after is not None
        assert after.rate == before.rate == 400
        assert scene.scaled == []

    virtual_time.run(play())


@pytest.mark.parametrize(("per_second", "spacing"), [(4, 2.0), (0.001, LONGEST_SPACING)])
def test_reports_of_many_splits_are_sampled_less_often(
    monkeypatch: pytest.MonkeyPatch, per_second: float, spacing: float
) -> None:
    monkeypatch.setattr(module, "SPLITS_PER_SECOND", per_second)

    async def play() -> None:
        scene = Scene()
        scene.report(lag=0)
        assert await scene.turn() == Reason.MEASURING
        await asyncio.sleep(spacing - 0.5)
        scene.report(lag=0)
        await scene.turn()
        assert len(scene.autoscaler._memory.series["0"].samples) == 1, (
            "this report is not looked at"
        )
        await asyncio.sleep(0.5)
        scene.report(lag=0)
        await scene.turn()
        assert len(scene.autoscaler._memory.series["0"].samples) == 2

    virtual_time.run(play())


def test_what_is_measured_while_a_change_is_refused_counts_when_the_refusal_ends() -> None:
    async def play() -> None:
        scene = Scene()
        scene.error = RefusedError("forbidden", status=403)
        for second in range(30):
            await asyncio.sleep(1)
            scene.report(lag=20_000 + second * 400)
            await scene.turn()
        assert scene.reason == Reason.SCALING_REFUSED
        memory = scene.autoscaler._memory
        assert memory.newest[-1].at == pytest.approx(virtual_time.clock())
        assert memory.capacity is not None
        assert (memory.moves, memory.attempt) == ((), None), "nothing has changed"

        for _ in range(40):
            await asyncio.sleep(1)
            scene.report(lag=0, rate=20)
            await scene.turn()
        scene.error = None
        await scene.turn()
        assert scene.scaled == [], "the readers suffice by now"

    virtual_time.run(play())


def test_an_operator_begins_with_the_capacity_that_the_one_before_it_has_measured() -> None:
    async def play() -> None:
        scene = Scene(capacity=500.0)
        await scene.read(10)
        verdict = scene.autoscaler.verdict
        assert verdict is not None
        assert (verdict.reason, verdict.capacity) == (Reason.WITHIN_TARGET, 500.0)
        assert await scene.turn(bounds=None) == ""
        await scene.read(10)
        verdict = scene.autoscaler.verdict
        assert verdict is not None
        assert verdict.capacity is None, "without autoscaling it is forgotten"

    virtual_time.run(play())


@pytest.mark.parametrize("hours", [1, 5])
def test_a_resumed_source_gets_the_readers_that_its_backlog_needs_at_once(hours: int) -> None:
    """What one reader can process was measured before, and a pause does not change it."""

    async def play() -> None:
        scene = Scene(capacity=500.0)
        await scene.read(10)
        for _ in range(60 * hours):
            assert await scene.turn(is_held=True) == ""
            await asyncio.sleep(60)

        for second in range(10):
            await asyncio.sleep(1)
            scene.report(lag=100_000 + 400 * second, rate=0)
            await scene.turn(scene.scaled[-1][1] if scene.scaled else 2)
        assert scene.scaled == [(2, 6)], "before the end of the first micro-batch"

    virtual_time.run(play())


@pytest.mark.parametrize("parallelism", [2, 50])
def test_readers_that_would_get_no_splits_are_not_added(parallelism: int) -> None:
    async def play() -> None:
        scene, manual = Scene(), {"rebalance": {"mode": "Manual"}}
        for second in range(30):
            await asyncio.sleep(1)
            scene.report(lag=20_000 + second * 400)
            await scene.turn(parallelism, assignment=manual)
        verdict = scene.autoscaler.verdict
        assert verdict is not None
        assert (verdict.reason, verdict.is_able) == (Reason.REBALANCE_MANUAL, False)
        assert scene.scaled == []
        assert scene.posted == [(Reason.REBALANCE_MANUAL, True)]

        assert await scene.turn(2) == Reason.SCALED_UP

    virtual_time.run(play())
