"""A source at rest costs nothing.

Heartbeats wake no one, and nothing is written that is there already.
"""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import Position
from balanced_source.coordinator import state_codec
from balanced_source.documents import report as report_document
from balanced_source.documents.alignment import SourceWatermark
from balanced_source.documents.report import HostReport
from balanced_source_operator.controller.liveness import ALIVE, is_heartbeat
from balanced_source_operator.resources.kinds import ROLE, ROLE_BINDING
from balanced_source_operator.settings import Settings
from balanced_source_operator.spec import parse_spec
from support import virtual_time
from support.builders import source_of
from support.cluster_story import NAMESPACE, SPEC, Story
from support.virtual_time import clock
from support.world import UID

WRITES = ("create", "replace", "apply", "patch", "delete", "scale")


def check(play: Callable[[Story], Coroutine[Any, Any, None]]) -> None:
    story = Story()

    async def run() -> None:
        await play(story)
        await story.end()

    virtual_time.run(run())
    assert story.broken == []


async def at_rest(story: Story, **spec: Any) -> None:
    """All is read, and the operator has written what it has to say about it."""
    source = {"kafka": {**SPEC["source"]["kafka"], "discovery": {"interval": "5m"}}}
    await story.begin(source=source, **spec)
    await story.launched()
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)
    await beats(story, 2 * Settings().resync + 10)


async def beats(story: Story, seconds: float, *, read: int = 0) -> None:
    """The driver reports every 10 seconds."""
    begin = clock()
    while clock() - begin < seconds:
        beat(story, read=read)
        due = clock() + 10
        await story.until(lambda due=due: clock() >= due, "the next heartbeat")  # type: ignore[misc]


def beat(story: Story, *, read: int = 0) -> None:
    """A report; `read`: records of each split that were read since the driver started."""
    story.driver.sequence += 1
    report = story.driver.host.report(sequence=story.driver.sequence)
    assert report is not None
    positions = {split_id: int(at or 0) + read for split_id, at in report.positions.items()}
    story.documents["0"] = report_document.encode(
        replace(report, heartbeat=clock(), lag=0, positions=positions), source=UID
    )


def calls(story: Story) -> list[str]:
    return list(story.operators[0].client.calls)


def turns(story: Story) -> float:
    return story.sample("turn_seconds_count") or 0.0


def test_heartbeats_alone_write_nothing_and_cost_no_turn() -> None:
    async def play(story: Story) -> None:
        await at_rest(story)
        before, began = calls(story), turns(story)
        await beats(story, 300)
        written = [call for call in calls(story)[len(before) :] if call.startswith(WRITES)]
        assert written == []
        assert turns(story) - began <= 2, "30 heartbeats, a check and a discovery"
        assert (story.sample("report_timestamp_seconds") or 0) >= clock() - 11, (
            "and the metric knows of the newest one"
        )

    check(play)


def test_a_driver_that_falls_silent_between_two_checks_is_noticed_at_once() -> None:
    async def play(story: Story) -> None:
        await at_rest(story)
        begin = clock()
        await story.until(lambda: "lag" not in story.status, "the silence to be noticed")
        assert clock() - begin <= ALIVE + 1

    check(play)


def test_a_driver_that_speaks_again_is_noticed_at_once() -> None:
    async def play(story: Story) -> None:
        await at_rest(story)
        await story.until(lambda: "lag" not in story.status, "the silence to be noticed")
        beat(story)
        begin = clock()
        await story.until(lambda: story.status.get("lag") == 0, "the driver to count as alive")
        assert clock() - begin < 10, "virtual seconds: before the next resync"

    check(play)


def stored_positions(story: Story) -> set[Position]:
    text = story.documents.text("enumerator")
    assert text is not None
    state = state_codec.decode(text, source_of(parse_spec(SPEC), None), uid=UID).coordinator
    return set(state.positions(state.owners).values())


def test_positions_are_stored_although_only_heartbeats_follow_them() -> None:
    async def play(story: Story) -> None:
        await at_rest(story)
        (before,) = stored_positions(story)
        await beats(story, 10, read=1)
        await story.until(lambda: stored_positions(story) == {int(before or 0) + 1}, "a store")
        await beats(story, Settings().save_interval + 10, read=2)
        assert stored_positions(story) == {int(before or 0) + 2}, "not only at the next check"
        began = turns(story)
        await beats(story, 200, read=2)
        assert turns(story) - began <= 2, "and then nothing is due"

    check(play)


def test_the_right_of_a_driver_is_written_when_it_differs_and_only_then() -> None:
    async def play(story: Story) -> None:
        await at_rest(story)
        assert sum("apply roles" in call for call in calls(story)) == 1
        story.server.edit(ROLE, NAMESPACE, "orders-documents", {"rules": []})
        await story.until(
            lambda: story.server.find(ROLE, NAMESPACE, "orders-documents")["rules"], "the rules"
        )
        story.server.remove(ROLE_BINDING, NAMESPACE, "orders-documents")
        await story.until(
            lambda: story.server.find(ROLE_BINDING, NAMESPACE, "orders-documents"), "the binding"
        )

    check(play)


def test_an_operator_that_starts_beside_a_source_at_rest_writes_nothing() -> None:
    async def play(story: Story) -> None:
        await at_rest(story)
        await story.operators.pop().stop()
        story.start_operator()
        await beats(story, 2 * Settings().resync + 10)
        assert turns(story) >= 2
        assert [call for call in calls(story) if call.startswith(WRITES)] == []

    check(play)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"sequence": 8, "heartbeat": 20.0}, True),
        ({"sequence": 8, "lag": 1}, False),
        ({"sequence": 8, "epoch": 2}, False),
        ({"incarnation": 2}, False),
        ({"sequence": 8, "positions": {("c", "t", 0): 6}}, False),
        (
            {
                "sequence": 8,
                "alignment": SourceWatermark(group="g", watermark=1, max_drift=1, idle_timeout=1.0),
            },
            False,
        ),
    ],
)
def test_only_a_report_that_says_nothing_else_is_a_heartbeat(
    change: dict[str, Any], *, expected: bool
) -> None:
    before = HostReport(
        incarnation=1, sequence=7, epoch=1, positions={("c", "t", 0): 5}, lag=0, heartbeat=10.0
    )
    assert is_heartbeat(before, replace(before, **change)) is expected
    assert not is_heartbeat(None, before)
