"""Whatever keeps applications from reading for long is a condition that stays, with an event."""

from datetime import UTC, datetime
from typing import Any

from balanced_source_operator.resources.kinds import (
    EVENT,
    KUBEFLOW_APPLICATION,
    POD,
)
from support.broken_hosts import BrokenHosts
from support.builders import spec_json
from support.cluster_story import NAMESPACE, SPEC, Story
from support.host_drivers import Drivers, application
from support.played_story import played
from support.virtual_time import clock


def condition(story: Story, kind: str) -> tuple[str, str]:
    found = next((c for c in story.status.get("conditions", ()) if c["type"] == kind), {})
    return str(found.get("status")), str(found.get("reason"))


async def pass_time(story: Story, seconds: float) -> None:
    due = clock() + seconds
    await story.until(lambda: clock() >= due, "time to pass")


async def reading(story: Story) -> None:
    await story.begin()
    await story.launched()
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)


def test_without_a_working_spark_operator_the_source_stays_degraded() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await pass_time(story, 310)
        since = clock()
        while clock() < since + 900:
            assert condition(story, "Degraded") == ("True", "ApplicationStuck")
            await pass_time(story, 5)
        assert len(story.applications) >= 4, "it is made again each time"

        await story.launched()
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)
        await story.until(lambda: condition(story, "Degraded")[0] == "False", "all to be well")

    played(play)


def attempt(story: Story, state: str, number: int, *, submitted: float) -> None:
    """Let the Spark operator say what an attempt to run the driver does."""
    stamp = datetime.fromtimestamp(submitted, UTC).isoformat()
    status = {
        "applicationState": {"state": state, "errorMessage": "out of memory"},
        "executionAttempts": number,
        "lastSubmissionAttemptTime": stamp,
    }
    story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, "orders-1", {"status": status})


async def read_on(story: Story, seconds: float) -> None:
    """Let time pass while the driver reads and reports."""
    for _ in range(round(seconds / 30)):
        story.driver.batch()
        await pass_time(story, 30)


def test_a_driver_that_fails_every_few_minutes_degrades_the_source_without_a_gap() -> None:
    """The Spark operator starts it again by itself, and between two failures it reads."""

    async def play(story: Story) -> None:
        await reading(story)
        attempt(story, "RUNNING", 1, submitted=clock())
        await read_on(story, 690)
        for number in (1, 2, 3):
            attempt(story, "FAILING", number, submitted=clock() - 120)
            await pass_time(story, 10)
            assert condition(story, "Degraded") == ("True", "ApplicationRestarting")
            attempt(story, "RUNNING", number + 1, submitted=clock())
            await read_on(story, 120)
            is_row = number > 1
            assert condition(story, "Degraded")[0] == str(is_row), "one crash happens"
        message = next(c["message"] for c in story.status["conditions"] if c["type"] == "Degraded")
        assert "started again after 3 failures in a row" in message
        assert "out of memory" in message, "the cause stays"
        assert "Ready" in {c["type"] for c in story.status["conditions"] if c["status"] == "True"}

        await read_on(story, 600)
        assert condition(story, "Degraded")[0] == "False"

    played(play)


def test_a_driver_pod_that_never_goes_is_a_problem_also_while_the_source_is_suspended() -> None:
    async def play(story: Story) -> None:
        await reading(story)
        story.server.edit(POD, NAMESPACE, "orders-1-driver", {"metadata": {"ownerReferences": []}})
        story.patch(application={"image": "next"})
        await pass_time(story, 200)
        assert condition(story, "Degraded")[0] == "False"
        await pass_time(story, 110)
        assert condition(story, "Degraded") == ("True", "OldApplicationRemains")

        story.patch(suspend=True)
        await pass_time(story, 400)
        assert condition(story, "Degraded") == ("True", "OldApplicationRemains")
        assert story.status["application"]["state"] == "Stopping"
        story.server.remove(POD, NAMESPACE, "orders-1-driver")
        await story.until(lambda: story.status["application"]["state"] == "Paused", "the end")
        assert condition(story, "Degraded")[0] == "False"

    played(play)


def test_each_host_that_fails_has_an_event_of_its_own() -> None:
    async def play(story: Story) -> None:
        drivers = BrokenHosts(story, "FAILED")
        drivers.works = lambda *_: False
        await story.begin(parallelism=4, application=application(count=2))
        await drivers.pass_time(20)

        events = story.server.select(EVENT, NAMESPACE)
        failed = sorted(e["message"].split()[1] for e in events if e["reason"].endswith("Failed"))
        assert failed == sorted(story.applications[:2])

    played(play)


def test_a_query_with_the_trigger_available_now_ends_in_order() -> None:
    pipeline: dict[str, Any] = {
        "checkpointLocation": "s3a://shop/checkpoint",
        "trigger": {"availableNow": True},
        "sink": {"format": "delta", "options": {"path": "s3a://shop/orders"}},
    }

    async def play(story: Story) -> None:
        drivers = Drivers(story)
        made = {**spec_json(**SPEC)["application"], "pipeline": pipeline}
        await story.begin(application=made)
        await drivers.rest("0")
        completed = {"status": {"applicationState": {"state": "COMPLETED"}}}
        story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, "orders-1", completed)
        await pass_time(story, 600)

        assert condition(story, "Ready") == ("True", "Finished")
        assert condition(story, "Degraded")[0] == "False"
        assert story.status.get("lag") is None, "what has arrived since is unknown"
        assert story.applications == ["orders-1"]

    played(play)
