"""The operator counts drivers that had to be started again, however long they ran."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from balanced_source_operator.resources.kinds import KUBEFLOW_APPLICATION, POD
from support.cluster_story import NAMESPACE, Story
from support.host_drivers import Drivers, application
from support.played_story import played
from support.virtual_time import clock

CYCLE = 720.0
"""Seconds for which a driver runs: longer than what ends a row of failures."""


def restarts(story: Story, host: str = "0") -> float | None:
    return story.sample("driver_restarts_total", host=host)


async def passes(story: Story, seconds: float) -> None:
    """Let the driver read and report for a while."""
    due = clock() + seconds
    while clock() < due:
        story.driver.batch()
        story.driver.report()
        await asyncio.sleep(10)


def now() -> str:
    return datetime.fromtimestamp(clock(), UTC).isoformat()


def say(story: Story, word: str, name: str = "orders-1", **status: Any) -> None:
    change = {"status": {"applicationState": {"state": word}, **status}}
    story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, name, change)


async def dies_and_is_started_again(story: Story) -> None:
    """Kubeflow's operator keeps the application, and makes another pod of the same name."""
    say(story, "FAILING", terminationTime=now())
    story.server.remove(POD, NAMESPACE, "orders-1-driver")
    await passes(story, 10)
    say(story, "PENDING_RERUN")
    await passes(story, 10)
    await story.launched()
    say(story, "RUNNING", lastSubmissionAttemptTime=now(), terminationTime=None)
    await passes(story, 10)


async def reads(story: Story, **spec: Any) -> None:
    await story.begin(**spec)
    await story.launched()
    say(story, "RUNNING", lastSubmissionAttemptTime=now())
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)


def test_each_driver_that_dies_after_twelve_minutes_is_counted() -> None:
    async def play(story: Story) -> None:
        await reads(story)
        assert restarts(story) == 0
        for count in range(1, 4):
            await passes(story, CYCLE)
            await dies_and_is_started_again(story)
            assert restarts(story) == count
            assert story.sample("application_failures") in (0, 1), "it is never a row"
        assert story.applications == ["orders-1"], "the Spark operator has started them"

    played(play)


def test_a_driver_of_a_new_application_counts_if_the_former_has_failed() -> None:
    async def play(story: Story) -> None:
        await reads(story)
        await passes(story, CYCLE)
        say(story, "FAILED", terminationTime=now())
        story.server.edit(POD, NAMESPACE, "orders-1-driver", {"status": {"phase": "Failed"}})
        await story.until(lambda: len(story.applications) == 2, "the next application")
        assert restarts(story) == 0, "its driver is still to come"
        await story.until(
            lambda: story.server.find(POD, NAMESPACE, "orders-1-driver") is None, "the pod to go"
        )
        await story.launched(story.applications[-1])
        await passes(story, 10)
        assert restarts(story) == 1

    played(play)


@pytest.mark.parametrize("change", ["image", "nonce", "suspend"])
def test_a_restart_that_the_user_asks_for_does_not_count(change: str) -> None:
    async def play(story: Story) -> None:
        await reads(story)
        settings = application()
        settings.pop("hosts")
        if change == "suspend":
            story.patch(suspend=True)
            await story.until(
                lambda: not story.server.select(KUBEFLOW_APPLICATION, NAMESPACE), "the stop"
            )
            story.patch(suspend=False)
        elif change == "nonce":
            story.patch(application={**settings, "restart": {"nonce": 1}})
        else:
            story.patch(application={**settings, "image": "next"})
        await story.until(lambda: len(story.applications) == 2, "the restart")
        await story.launched(story.applications[-1])
        await passes(story, 60)
        assert restarts(story) == 0

    played(play)


def test_a_change_of_parallelism_starts_no_driver() -> None:
    async def play(story: Story) -> None:
        await reads(story)
        story.patch(parallelism=4)
        await story.adopted(parallelism=4, splits=8)
        assert restarts(story) == 0

    played(play)


class DriversWithPods(Drivers):
    """Drivers whose pods are seen, too."""

    def _run(self, host: str, application: str) -> None:
        if self.story.server.find(POD, NAMESPACE, f"{application}-driver") is None:
            self._add_pod(application)
        super()._run(host, application)

    def _add_pod(self, name: str) -> None:
        found = self.story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, name)
        assert found is not None
        metadata = {
            "namespace": NAMESPACE,
            "name": f"{name}-driver",
            "labels": {
                **found["metadata"]["labels"],
                "spark-role": "driver",
                "sparkoperator.k8s.io/app-name": name,
            },
            "ownerReferences": [{"name": name, "uid": found["metadata"]["uid"]}],
        }
        self.story.server.add(POD, {"metadata": metadata, "status": {"phase": "Running"}})


def test_a_change_that_restarts_one_host_after_the_other_does_not_count() -> None:
    async def play(story: Story) -> None:
        hosts = ("0", "1", "2")
        drivers = DriversWithPods(story)
        await story.begin(parallelism=6, application=application(count=len(hosts)))
        await drivers.rest(*hosts)

        story.patch(application={**application(count=len(hosts)), "image": "next"})
        await story.until(
            lambda: [drivers.step(), len(story.applications) == 2 * len(hosts)][1], "all restarts"
        )
        await drivers.rest(*hosts)
        assert [restarts(story, host) for host in hosts] == [0, 0, 0]

        name = story.server.select(KUBEFLOW_APPLICATION, NAMESPACE)[-1]["metadata"]["name"]
        story.server.remove(POD, NAMESPACE, f"{name}-driver")
        await drivers.rest(*hosts)
        await passes(story, 10)
        assert sorted(restarts(story, host) or 0 for host in hosts) == [0, 0, 1], "it was evicted"

    played(play)


def test_an_operator_that_starts_counts_only_what_it_sees_start() -> None:
    async def play(story: Story) -> None:
        await reads(story)
        await passes(story, CYCLE)
        await dies_and_is_started_again(story)
        assert restarts(story) == 1

        await story.operators.pop().stop()
        story.start_operator()
        await story.until(lambda: restarts(story) is not None, "the count")
        await passes(story, 60)
        assert restarts(story) == 0, "the one before it has counted that"
        await passes(story, CYCLE)
        await dies_and_is_started_again(story)
        assert restarts(story) == 1

    played(play)


def test_an_operator_that_starts_while_a_driver_is_down_counts_the_next_one() -> None:
    async def play(story: Story) -> None:
        await reads(story)
        await passes(story, CYCLE)
        await story.operators.pop().stop()
        say(story, "PENDING_RERUN", terminationTime=now())
        story.server.remove(POD, NAMESPACE, "orders-1-driver")
        story.start_operator()
        await story.until(lambda: restarts(story) == 0, "the count")
        await story.launched()
        await story.until(lambda: restarts(story) == 1, "the next driver")

    played(play)
