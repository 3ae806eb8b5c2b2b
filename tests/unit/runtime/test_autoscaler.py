"""`spec.autoscaling` in the operator: a load changes the number of readers of a running source."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from balanced_source.documents import report as report_document
from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, EVENT
from support.cluster_story import NAMESPACE, Story
from support.played_story import played
from support.virtual_time import clock
from support.world import UID

AUTOSCALING = {"maxReaders": 8, "scaleDownDelay": "2m"}


async def begin(story: Story, **spec: Any) -> None:
    await story.begin(autoscaling=AUTOSCALING, **spec)
    await story.launched()
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)


def condition(story: Story) -> dict[str, str]:
    return next((c for c in story.status.get("conditions", []) if c["type"] == "Autoscaling"), {})


def reason(story: Story) -> str:
    return condition(story).get("reason", "")


def parallelism(story: Story) -> int:
    return int(story.server.find(BALANCED_SOURCE, NAMESPACE, "orders")["spec"]["parallelism"])


def test_a_backlog_adds_readers_live_and_says_why() -> None:
    async def play(story: Story) -> None:
        await begin(story)

        await loaded(story, lambda: parallelism(story) > 2, arrival=300, capacity=100)
        await story.until(lambda: story.status["autoscaling"]["desiredReaders"] > 2, "the status")
        assert story.status["autoscaling"]["desiredReaders"] == parallelism(story)
        assert 90 <= story.status["autoscaling"]["capacityPerReader"] <= 110

        await story.adopted(parallelism=parallelism(story), splits=8)
        assert story.applications == ["orders-1"], "no restart"
        events = [e for e in story.server.select(EVENT, NAMESPACE) if e["reason"] == "ScaledUp"]
        assert [e["type"] for e in events] == ["Normal"]
        assert "2 readers are too few" in events[0]["message"]

    played(play)


def test_a_restarted_operator_knows_the_capacity_that_its_predecessor_has_measured() -> None:
    async def play(story: Story) -> None:
        await begin(story)
        await loaded(story, lambda: parallelism(story) > 2, arrival=300, capacity=100)
        await story.until(
            lambda: "capacityPerReader" in story.status["autoscaling"], "the capacity"
        )
        await story.operators.pop().stop()
        story.start_operator()
        await loaded(story, lambda: reason(story) == "Measuring", arrival=150, capacity=100)

        await loaded(story, lambda: reason(story) != "Measuring", arrival=150, capacity=100)

        assert 90 <= story.status["autoscaling"]["capacityPerReader"] <= 110

    played(play)


def test_the_load_goes_and_so_do_the_readers() -> None:
    async def play(story: Story) -> None:
        await begin(story, parallelism=2)
        await loaded(story, lambda: parallelism(story) == 1, arrival=0, capacity=100)
        assert condition(story)["status"] == "True"

    played(play)


def test_a_number_outside_the_bounds_is_corrected() -> None:
    async def play(story: Story) -> None:
        await begin(story)
        story.patch(parallelism=20)
        await story.until(lambda: parallelism(story) == 8, "the maximum")
        story.patch(autoscaling={"minReaders": 3, "maxReaders": 4})
        await story.until(lambda: parallelism(story) == 4, "the new maximum")

    played(play)


def test_a_paused_source_is_left_alone_and_pause_wins() -> None:
    async def play(story: Story) -> None:
        await begin(story)
        story.patch(suspend=True, parallelism=20)
        await story.until(
            lambda: story.status["application"]["state"] in ("Paused", "Stopping"), "the pause"
        )
        await passed(story, 60)
        assert parallelism(story) == 20
        assert condition(story) == {}

    played(play)


def test_without_autoscaling_nothing_is_decided() -> None:
    async def play(story: Story) -> None:
        await begin(story)
        await story.until(lambda: condition(story), "the condition")
        story.patch(autoscaling=None)
        await story.until(lambda: condition(story) == {}, "the condition to go")
        assert story.status.get("autoscaling") is None

    played(play)


def test_a_silent_driver_is_reported_and_changes_nothing() -> None:
    async def play(story: Story) -> None:
        await begin(story)
        await story.until(
            lambda: condition(story).get("reason") == "LagUnknown", "the driver's silence"
        )
        assert condition(story)["status"] == "False"
        assert parallelism(story) == 2

    played(play)


def test_a_driver_that_falls_silent_within_a_long_micro_batch_is_reported() -> None:
    """Its newest report says nothing new but the time, and stays the newest one forever."""

    async def play(story: Story) -> None:
        await begin(story)
        await loaded(
            story, lambda: condition(story).get("reason") != "LagUnknown", arrival=150, capacity=100
        )
        for _ in range(3):
            report(story, unread=100)
            await passed(story, 5)

        await story.until(
            lambda: condition(story).get("reason") == "LagUnknown", "the driver's silence"
        )

    played(play)


@pytest.mark.parametrize(
    ("status", "words", "advice"),
    [
        (
            403,
            'User "operator" cannot patch resource "balancedsources/scale"',
            "Grant patch on balancedsources/scale",
        ),
        (
            422,
            "ValidatingAdmissionPolicy 'few' denied request: at most 4",
            "so that the admission policy allows the object",
        ),
        (
            422,
            'BalancedSource "orders" is invalid: spec.parallelism: Invalid value',
            "Correct the field of the BalancedSource",
        ),
        (500, "etcdserver: request timed out", "Check the cause that the message names"),
    ],
    ids=["right", "policy", "invalid", "error"],
)
def test_a_refusal_is_a_condition_and_holds_nothing_else_up(
    status: int, words: str, advice: str
) -> None:
    async def play(story: Story) -> None:
        await begin(story)
        allow = story.server.deny(
            RefusedError(words, status=status), kind=BALANCED_SOURCE, verbs=("scale",)
        )
        story.patch(parallelism=20)
        await story.until(lambda: condition(story).get("reason") == "ScalingRefused", "the refusal")
        assert advice in condition(story)["message"]
        await story.adopted(parallelism=20, splits=8)
        assert story.events.count("ScalingRefused") == 1
        allow()
        await story.until(lambda: parallelism(story) == 8, "the correction")
        await story.until(
            lambda: condition(story)["reason"] != "ScalingRefused", "the condition to go"
        )

    played(play)


def test_a_rival_is_reported_once_it_has_been_undone_three_times_and_no_longer_than_it_fights() -> (
    None
):
    async def play(story: Story) -> None:
        await begin(story)
        for number in (20, 30, 40, 50):
            assert condition(story).get("reason") != "TwoAutoscalers"
            story.patch(parallelism=number)
            await story.until(lambda: parallelism(story) == 8, "the correction")

        await story.until(lambda: condition(story).get("reason") == "TwoAutoscalers", "the fight")
        assert condition(story)["status"] == "False"
        assert "last to 50, and spec.autoscaling undoes it: 8" in condition(story)["message"]
        assert (
            "Delete the HorizontalPodAutoscaler or the ScaledObject" in condition(story)["message"]
        )
        assert story.events.count("TwoAutoscalers") == 1
        await passed(story, 600)
        await story.until(lambda: condition(story).get("reason") != "TwoAutoscalers", "the peace")

    played(play)


def test_numbers_that_a_person_sets_within_the_bounds_are_no_fight() -> None:
    async def play(story: Story) -> None:
        await begin(story)
        for number in (3, 4, 5, 6, 7):
            story.patch(parallelism=number)
            await story.adopted(parallelism=number, splits=8)

        assert parallelism(story) == 7
        assert condition(story).get("reason") != "TwoAutoscalers"

    played(play)


async def loaded(story: Story, is_done: Callable[[], bool], *, arrival: int, capacity: int) -> None:
    """Micro-batches under a load, 5 seconds each, until something is so.

    The driver says how much is unread.
    """
    until = clock() + 600
    while not is_done():
        assert clock() < until, story.status
        driver, ends = story.driver, story.broker.ends
        driver.see_assignment()
        held = driver.host.durable
        for split in held.positions:
            ends[split] += 5 * arrival // len(held.positions)
        unread = sum(ends[s] - int(p or 0) for s, p in held.positions.items())
        share = 5 * capacity * held.parallelism // len(held.positions)
        driver.batch(upto={s: min(ends[s], int(p or 0) + share) for s, p in held.positions.items()})
        report(story, unread=unread)
        await passed(story, 5)


def report(story: Story, *, unread: int) -> None:
    """The driver says how far behind it is."""
    driver = story.driver
    driver.sequence += 1
    made = driver.host.report(sequence=driver.sequence)
    assert made is not None
    made = replace(made, lag=unread, heartbeat=clock())
    story.documents[driver.name] = report_document.encode(made, source=UID)


async def passed(story: Story, seconds: float) -> None:
    begin = clock()
    await story.until(lambda: clock() - begin >= seconds, "time to pass")
