"""Who belongs to an alignment group, and when an operator has heard all of them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK
from balanced_source.documents.alignment import SourceWatermark
from balanced_source.documents.report import HostReport
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.runtime.alignment import (
    LONGEST_SETTLE,
    SETTLE,
    Alignments,
    _declared,
)
from support import virtual_time
from support.builders import make_spec, spec_json

IDLE = 30.0
UNALIGNED = make_spec()
IN_GROUP = make_spec(
    application={
        **spec_json()["application"],
        "pipeline": {"checkpointLocation": "/c", "alignment": {"maxDrift": "1m", "group": "g"}},
    }
)


class Scene:
    """What an operator hears and says of sources in a namespace.

    Attributes:
        woken: names of sources that were woken, in turn.
    """

    def __init__(self) -> None:
        self.alignments = Alignments()
        self.woken: list[str] = []
        self._sequences: dict[str, int] = {}

    def expect(self, *names: str) -> None:
        for name in names:
            self.alignments.expect(source(name))

    def says(self, name: str, watermark: int | None, *, group: str = "g", spec: Any = None) -> None:
        """A driver reads, and reports how far it is; None: it is not aligned."""
        self._sequences[name] = self._sequences.get(name, 0) + 1
        alignment = None
        if watermark is not None:
            alignment = SourceWatermark(
                group=group, watermark=watermark, max_drift=60_000, idle_timeout=IDLE
            )
        report = HostReport(
            incarnation=1,
            sequence=self._sequences[name],
            alignment=alignment,
            metrics={"skew": 1.0},
        )
        self.hear(name, report, spec=spec)

    def hear(self, name: str, report: HostReport | None, *, spec: Any = None) -> None:
        self.alignments.hear(
            source(name), spec or UNALIGNED, report, lambda: self.woken.append(name)
        )

    def told(self, name: str) -> int | None:
        news = self.alignments.news(source(name))
        return None if news is None else news.watermark


def source(name: str) -> Identity:
    return Identity.of({"metadata": {"name": name, "namespace": "jobs", "uid": f"uid-{name}"}})


def play(story: Callable[[Scene], Any]) -> None:
    virtual_time.run(story(Scene()))


def test_nothing_is_said_before_the_slowest_first_turn_however_long_it_takes() -> None:
    """With a thousand sources, a source may be heard long after the first one."""

    async def story(scene: Scene) -> None:
        scene.expect("orders", "payments")
        scene.says("orders", 9_000)
        await asyncio.sleep(4 * SETTLE)
        scene.says("orders", 9_000)
        assert scene.told("orders") is None

        scene.says("payments", 500)
        assert "orders" in scene.woken
        assert scene.told("orders") == 500

    play(story)


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_source_that_is_never_heard_is_not_waited_for_without_end(*, is_deleted: bool) -> None:
    """Its spec was never valid."""

    async def story(scene: Scene) -> None:
        scene.expect("orders", "broken")
        scene.says("orders", 9_000)
        await asyncio.sleep(SETTLE)
        assert scene.told("orders") is None
        due = scene.alignments.pause(source("orders"))
        assert due == pytest.approx(LONGEST_SETTLE - SETTLE)

        if is_deleted:
            scene.alignments.forget(source("broken"))
            assert scene.woken == ["orders"]
        else:
            await asyncio.sleep(LONGEST_SETTLE - SETTLE)
        assert scene.told("orders") == MAX_WATERMARK

    play(story)


def test_a_source_that_is_made_later_holds_no_other_source_before_it_is_heard() -> None:
    async def story(scene: Scene) -> None:
        scene.expect("orders")
        scene.says("orders", 9_000)
        await asyncio.sleep(SETTLE)
        assert scene.told("orders") == MAX_WATERMARK

        scene.expect("payments")
        await asyncio.sleep(2)
        scene.hear("payments", None, spec=IN_GROUP)
        assert scene.told("orders") == MIN_WATERMARK

    play(story)


def test_a_namespace_without_sources_is_settled_again_when_they_return() -> None:
    async def story(scene: Scene) -> None:
        scene.expect("orders")
        scene.says("orders", 9_000)
        await asyncio.sleep(2 * SETTLE)
        scene.alignments.forget(source("orders"))

        scene.expect("orders", "payments")
        scene.says("orders", 9_000)
        await asyncio.sleep(2 * SETTLE)
        assert scene.told("orders") is None

    play(story)


def test_a_source_that_left_alignment_holds_no_other_source_and_hears_no_more_of_it() -> None:
    """Its setting was removed, and its driver restarted: no document is written for it any more."""

    async def story(scene: Scene) -> None:
        scene.says("orders", 9_000)
        scene.says("payments", 500)
        await asyncio.sleep(SETTLE)
        assert scene.told("orders") == 500
        scene.woken.clear()

        scene.says("payments", None)
        assert scene.woken == ["orders"]
        await asyncio.sleep(1)
        assert scene.told("orders") == MAX_WATERMARK
        assert scene.alignments.pause(source("payments")) is None

    play(story)


def test_the_first_report_of_a_driver_does_not_take_it_out_of_its_group() -> None:
    """It says only that it is there; the settings of a program of the user's own are not seen."""

    async def story(scene: Scene) -> None:
        scene.says("orders", 9_000)
        scene.says("payments", 500)
        await asyncio.sleep(SETTLE)

        scene.hear("payments", HostReport(incarnation=2, sequence=1))
        assert scene.told("orders") == 500

    play(story)


def test_a_setting_that_waits_for_a_restart_holds_the_others_no_longer_than_their_timeout() -> None:
    """The spec has a group by now, and the driver does not know it yet."""

    async def story(scene: Scene) -> None:
        scene.says("orders", 9_000)
        for _ in range(round(IDLE)):
            scene.says("payments", None, spec=IN_GROUP)
            await asyncio.sleep(1)
        scene.says("orders", 9_000)
        assert scene.told("orders") == MAX_WATERMARK

    play(story)


def test_the_members_of_the_former_group_are_released_at_once() -> None:
    async def story(scene: Scene) -> None:
        scene.says("orders", 9_000)
        scene.says("payments", 500)
        await asyncio.sleep(SETTLE)
        assert scene.told("orders") == 500
        await asyncio.sleep(1)
        scene.woken.clear()

        scene.says("payments", 600, group="h")
        assert scene.woken == ["orders"]
        assert scene.told("orders") == MAX_WATERMARK

    play(story)


def test_a_source_that_will_be_in_a_group_declares_the_settings_of_its_spec() -> None:
    declared = _declared(source("orders"), IN_GROUP)

    assert declared == SourceWatermark(
        group="jobs/g", watermark=MIN_WATERMARK, max_drift=60_000, idle_timeout=IDLE
    )
