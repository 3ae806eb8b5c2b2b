"""A source with one application that restarts without a gap: a second one reads meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest

from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.resources.kinds import KUBEFLOW_APPLICATION
from balanced_source_operator.runtime.restart_slots import PATIENCE
from support.builders import spec_json
from support.cluster_story import NAMESPACE, SPEC, Story
from support.host_drivers import Drivers, base
from support.played_story import played
from support.virtual_time import clock

NEXT = "balanced-source/spark:next"
BROKEN = "balanced-source/spark:broken"
SECOND = f"{base('1')}-1"


def application(image: str | None = None, **restart: Any) -> dict[str, Any]:
    """An application whose sink two queries may write to."""
    plain = spec_json(**SPEC)["application"]
    sink = {"format": "delta", "options": {"path": "s3a://shop/orders"}}
    return {
        **plain,
        "image": image or plain["image"],
        "pipeline": {"checkpointLocation": "s3a://shop/checkpoint", "sink": sink},
        "restart": {"strategy": "BlueGreen", **restart},
    }


class Watched(Drivers):
    """Drivers that note for how many steps each split has had no reader that runs."""

    def __init__(self, story: Story) -> None:
        super().__init__(story)
        self.unread: dict[str, int] = {}
        self.longest = 0

    def step(self) -> None:
        super().step()
        read = {s for driver in self.of.values() for s in driver.host.durable.owners}
        splits = {str(s) for s in self.story.broker.ends}
        self.unread = {s: self.unread.get(s, 0) + 1 for s in splits - set(map(str, read))}
        self.longest = max([self.longest, *self.unread.values()])


def test_a_second_application_reads_everything_while_the_first_one_restarts() -> None:
    async def play(story: Story) -> None:
        drivers = Watched(story)
        await story.begin(parallelism=4, application=application())
        await drivers.rest("0")
        drivers.longest = 0
        story.patch(application=application(NEXT))

        await story.until(
            lambda: [drivers.step(), story.applications == ["orders-1", SECOND, "orders-1"]][1],
            "the first application again",
        )
        assert len(drivers.of["1"].host.durable.owners) == 8, "the second one reads everything"
        await drivers.rest("0")
        assert story.status["hosts"] == []
        assert len(drivers.of["0"].host.durable.owners) == 8
        assert drivers.longest <= 3, "steps of a hand-over"
        drivers.check_each_once()

    played(play)


def waits(drivers: Drivers, seconds: float) -> Callable[[], bool]:
    due = clock() + seconds
    return lambda: [drivers.step(), clock() >= due][1]


def test_the_first_application_is_not_stopped_before_the_second_one_reads() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        drivers.absent.add("1")
        await story.begin(parallelism=4, application=application(rollbackAfter="0s"))
        await drivers.rest("0")
        story.patch(application=application(NEXT, rollbackAfter="0s"))

        await story.until(waits(drivers, 400), "longer than any patience")
        assert story.applications.count("orders-1") == 1
        pending = next(c for c in story.status["conditions"] if c["type"] == "RestartPending")
        assert pending["status"] == "True"
        assert pending["message"].endswith(
            "It restarts when a second application with the new settings has taken over its splits"
        )
        assert len(drivers.of["0"].host.durable.owners) == 8

        drivers.absent.clear()
        await drivers.rest("0")
        assert story.applications.count("orders-1") == 2
        drivers.check_each_once()

    played(play)


def test_a_restart_that_takes_longer_than_its_place_in_the_queue_is_carried_through() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        drivers.absent.add("1")
        await story.begin(parallelism=4, application=application(rollbackAfter="0s"))
        await drivers.rest("0")
        slots = story.operators[0].restarts
        slots.limit = 1
        story.patch(application=application(NEXT, rollbackAfter="0s"))
        await story.until(lambda: SECOND in story.applications, "the second application")
        other = Identity(namespace=NAMESPACE, name="other", uid="uid-2")
        assert not slots.take(other, lambda: None)

        await story.until(waits(drivers, PATIENCE - 60), "most of the time")
        await story.until(
            lambda: [drivers.step(), slots.take(other, lambda: None)][1], "the place to be free"
        )
        await story.until(waits(drivers, 120), "the other one to restart")
        assert len(story.status["hosts"]) == 2, "the second application is there"

        drivers.absent.clear()
        await drivers.rest("0")
        assert story.applications.count("orders-1") == 2
        drivers.check_each_once()

    played(play)


class Failing(Drivers):
    """A second application fails: its settings do not work, or its query keeps state."""

    def _run(self, host: str, application: str) -> None:
        if host == "0":
            super()._run(host, application)
            return
        status = {"state": "FAILED", "errorMessage": "no such module"}
        changed = {"status": {"applicationState": status}}
        self.story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, application, changed)


async def on_trial_for_minutes(story: Story) -> Failing:
    """Begin with settings that are healthy and remembered; others have five minutes after that."""
    drivers = Failing(story)
    await story.begin(parallelism=4, application=application(rollbackAfter="5m"))
    await drivers.rest("0")
    await story.until(
        lambda: [drivers.step(), "healthy" in story.status.get("settings", "")][1],
        "the settings to be remembered",
    )
    return drivers


def test_settings_that_do_not_work_never_stop_the_first_application() -> None:
    async def play(story: Story) -> None:
        drivers = await on_trial_for_minutes(story)

        story.patch(application=application(BROKEN, rollbackAfter="5m"))

        def is_rolled_back() -> bool:
            drivers.step()
            return any(c["reason"] == "RolledBack" for c in story.status.get("conditions", ()))

        await story.until(is_rolled_back, "the former settings")
        await story.until(waits(drivers, 60), "a minute")
        assert story.applications.count("orders-1") == 1, "the first one runs on"
        assert story.status["hosts"] == []
        assert len(drivers.of["0"].host.durable.owners) == 8
        assert "no such module" in story.status["message"]

    played(play)


def test_a_change_that_is_taken_back_dismisses_the_second_application() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        drivers.absent.add("1")
        await story.begin(parallelism=4, application=application())
        await drivers.rest("0")
        story.patch(application=application(NEXT))
        await story.until(lambda: SECOND in story.applications, "the second application")

        story.patch(application=application())
        await story.until(waits(drivers, 60), "a minute")
        await drivers.rest("0")
        assert story.applications == ["orders-1", SECOND]
        assert story.status["hosts"] == []

    played(play)


def test_settings_that_were_taken_back_have_the_whole_time_when_they_are_tried_again() -> None:
    async def play(story: Story) -> None:
        drivers = await on_trial_for_minutes(story)
        story.patch(application=application(NEXT, rollbackAfter="5m"))
        await story.until(waits(drivers, 120), "two minutes")
        story.patch(application=application(rollbackAfter="5m"))
        await story.until(waits(drivers, 400), "longer than the trial")

        story.patch(application=application(NEXT, rollbackAfter="5m"))
        await story.until(waits(drivers, 120), "two minutes")
        assert all(c["reason"] != "RolledBack" for c in story.status["conditions"])

    played(play)


@pytest.mark.parametrize("applications", [2, 3], ids=["before", "after"])
def test_an_operator_that_starts_meanwhile_leaves_no_split_without_a_reader(
    applications: int,
) -> None:
    """It does not know why there is a second application, and finds it reading.

    It starts before or after the first application is stopped.
    """

    async def play(story: Story) -> None:
        drivers = Watched(story)
        await story.begin(parallelism=4, application=application())
        await drivers.rest("0")
        drivers.longest = 0
        story.patch(application=application(NEXT))
        await story.until(
            lambda: [drivers.step(), len(story.applications) == applications][1], "the restart"
        )

        await story.operators.pop().stop()
        story.start_operator()
        await story.until(
            lambda: [drivers.step(), story.applications.count("orders-1") == 2][1],
            "the first application again",
        )
        await drivers.rest("0")
        assert drivers.longest <= 3, "steps of a hand-over"
        drivers.check_each_once()

    played(play)


def test_an_operator_that_starts_while_the_first_application_is_gone_keeps_the_second_one() -> None:
    async def play(story: Story) -> None:
        drivers = Watched(story)
        await story.begin(parallelism=4, application=application())
        await drivers.rest("0")
        story.patch(application=application(NEXT))

        def is_replaced() -> bool:
            if len(story.applications) == 3:
                return True  # and its driver does not run yet
            drivers.step()
            return False

        await story.until(is_replaced, "the first application to be replaced")
        drivers.longest = 0
        await story.operators.pop().stop()
        drivers.absent.add("0")
        story.start_operator()
        await story.until(waits(drivers, 120), "two minutes")
        assert drivers.longest == 0
        assert len(drivers.of["1"].host.durable.owners) == 8

        drivers.absent.clear()
        await drivers.rest("0")
        assert drivers.longest <= 3, "steps of a hand-over"
        drivers.check_each_once()

    played(play)
