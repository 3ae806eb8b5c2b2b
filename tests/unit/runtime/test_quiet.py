"""A source at rest costs nothing.

Heartbeats wake no one, and nothing is written that is there already.
"""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import Position
from balanced_source.connectors.kafka import KafkaSource
from balanced_source.coordinator import state_codec
from balanced_source.documents.alignment import SourceWatermark
from balanced_source.documents.report import HostReport
from balanced_source_operator.controller.liveness import ALIVE, ReportNews, is_heartbeat, news_of
from balanced_source_operator.resources.kinds import ROLE, ROLE_BINDING
from balanced_source_operator.runtime.heard import PROGRESS
from balanced_source_operator.settings import Settings
from balanced_source_operator.spec import parse_spec
from support.builders import source_of
from support.cluster_story import NAMESPACE, SPEC, Story
from support.played_story import played
from support.quiet_story import at_rest, beat, beats
from support.virtual_time import clock
from support.world import UID

WRITES = ("create", "replace", "apply", "patch", "delete", "scale")


def calls(story: Story) -> list[str]:
    return list(story.operators[0].client.calls)


def turns(story: Story) -> float:
    return story.sample("turn_seconds_count") or 0.0


@pytest.mark.parametrize("spec", [{}, {"autoscaling": {"minReaders": 2, "maxReaders": 8}}])
def test_heartbeats_alone_write_nothing_and_cost_no_turn(spec: dict[str, Any]) -> None:
    async def play(story: Story) -> None:
        await at_rest(story, **spec)
        before, began = calls(story), turns(story)
        await beats(story, 300)
        written = [call for call in calls(story)[len(before) :] if call.startswith(WRITES)]
        assert written == []
        assert turns(story) - began <= 2, "30 heartbeats, a check and a discovery"
        assert (story.sample("report_timestamp_seconds") or 0) >= clock() - 11, (
            "and the metric knows of the newest one"
        )

    played(play)


def test_a_driver_that_falls_silent_between_two_checks_is_noticed_at_once() -> None:
    async def play(story: Story) -> None:
        await at_rest(story)
        begin = clock()
        await story.until(lambda: "lag" not in story.status, "the silence to be noticed")
        assert clock() - begin <= ALIVE + 1

    played(play)


def test_a_driver_that_speaks_again_is_noticed_at_once() -> None:
    async def play(story: Story) -> None:
        await at_rest(story)
        await story.until(lambda: "lag" not in story.status, "the silence to be noticed")
        beat(story)
        begin = clock()
        await story.until(lambda: story.status.get("lag") == 0, "the driver to count as alive")
        assert clock() - begin < 10, "virtual seconds: before the next resync"

    played(play)


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

    played(play)


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

    played(play)


def test_an_operator_that_starts_beside_a_source_at_rest_writes_nothing() -> None:
    async def play(story: Story) -> None:
        await at_rest(story)
        await story.operators.pop().stop()
        story.start_operator()
        await beats(story, 2 * Settings().resync + 10)
        assert turns(story) >= 2
        assert [call for call in calls(story) if call.startswith(WRITES)] == []

    played(play)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"sequence": 8, "heartbeat": 20.0}, ReportNews.HEARTBEAT),
        ({"sequence": 8, "lag": 1}, ReportNews.PROGRESS),
        ({"sequence": 8, "metrics": {"unread": 1}}, ReportNews.PROGRESS),
        ({"sequence": 8, "positions": {("c", "t", 0): 6}}, ReportNews.PROGRESS),
        ({"sequence": 8, "positions": {("c", "t", 1): 5}}, ReportNews.MORE),
        ({"sequence": 8, "lag": None}, ReportNews.MORE),
        ({"sequence": 8, "epoch": 2}, ReportNews.MORE),
        ({"sequence": 8, "retained": {("c", "t", 1): 5}}, ReportNews.MORE),
        ({"incarnation": 2}, ReportNews.MORE),
        (
            {
                "sequence": 8,
                "alignment": SourceWatermark(group="g", watermark=1, max_drift=1, idle_timeout=1.0),
            },
            ReportNews.MORE,
        ),
    ],
)
def test_what_a_report_says_that_the_one_before_did_not(
    change: dict[str, Any], expected: ReportNews
) -> None:
    before = HostReport(
        incarnation=1, sequence=7, epoch=1, positions={("c", "t", 0): 5}, lag=0, heartbeat=10.0
    )
    assert news_of(before, replace(before, **change)) is expected
    assert is_heartbeat(before, replace(before, **change)) is (expected is ReportNews.HEARTBEAT)
    assert news_of(None, before) is ReportNews.MORE


async def reads_on(story: Story, seconds: int) -> float:
    """The driver reports other positions every 2 seconds. Returns turns per second."""
    began = turns(story)
    for read in range(1, seconds // 2 + 1):
        beat(story, read=read)
        due = clock() + 2
        await story.until(lambda due=due: clock() >= due, "the next report")  # type: ignore[misc]
    return (turns(story) - began) / seconds


def test_a_driver_that_reads_on_costs_a_turn_every_five_seconds_and_not_one_a_report() -> None:
    async def play(story: Story) -> None:
        await at_rest(story)
        assert await reads_on(story, 60) <= 1 / PROGRESS + 0.05
        beat(story, read=1000)
        begin = clock()
        await beats(story, 40, read=1000)
        (position,) = stored_positions(story)
        assert int(position or 0) >= 1000, "what was read last"
        assert clock() - begin <= 50

    played(play)


@pytest.mark.parametrize(
    "spec",
    [
        {"assignment": {"strategy": "LoadAware"}},
        {"autoscaling": {"minReaders": 2, "maxReaders": 2}},
    ],
)
def test_where_positions_decide_something_each_report_causes_a_turn(spec: dict[str, Any]) -> None:
    async def play(story: Story) -> None:
        await at_rest(story, **spec)
        assert await reads_on(story, 60) >= 0.5

    played(play)


def test_the_end_of_a_split_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KafkaSource, "has_ending_splits", True)

    async def play(story: Story) -> None:
        await at_rest(story)
        assert await reads_on(story, 60) >= 0.5

    played(play)


def test_news_after_progress_do_not_wait() -> None:
    async def play(story: Story) -> None:
        await at_rest(story)
        beat(story, read=1)
        began, begin = turns(story), clock()
        story.patch(parallelism=3)
        await story.until(lambda: turns(story) > began, "a turn")
        assert clock() - begin < 1

    played(play)
