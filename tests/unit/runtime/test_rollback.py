"""Settings that fail are given up for the last healthy ones, and tried again ever more seldom."""

from typing import Any

import pytest

from balanced_source_operator.controller import rollback
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, KUBEFLOW_APPLICATION
from support.builders import spec_json
from support.cluster_story import NAMESPACE, SPEC, Story
from support.host_drivers import Drivers, base
from support.played_story import played
from support.virtual_time import clock

GOOD = "balanced-source/spark:4.2.0"
AFTER = {"rollbackAfter": "1m"}


def application(**changes: Any) -> dict[str, Any]:
    return {**spec_json(**SPEC)["application"], "restart": AFTER, **changes}


def degraded(story: Story) -> dict[str, Any]:
    return dict(next(c for c in story.status["conditions"] if c["type"] == "Degraded"))


def image(story: Story, name: str = "orders-1") -> str:
    found = story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, name)
    return str(found["spec"]["image"]) if found is not None else ""


class Images(Drivers):
    """Drivers that come up only with an image that works.

    The Spark operator says the state of all others.
    """

    def __init__(
        self, story: Story, state: str = "FAILING", *, working: tuple[str, ...] = (GOOD,)
    ) -> None:
        super().__init__(story)
        self.working = working
        self.state = state
        self.images = list[str]()

    def _run(self, host: str, application: str) -> None:
        found = self.story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, application)
        assert found is not None
        if found["spec"]["image"] in self.working:
            super()._run(host, application)
        elif found.get("status") is None:
            status = {
                "status": {
                    "applicationState": {"state": self.state, "errorMessage": "no such module"}
                }
            }
            self.story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, application, status)

    async def until(self, condition: Any, what: str) -> None:
        await self.story.until(lambda: [self.step(), condition()][1], what)

    async def pass_time(self, seconds: float) -> None:
        while seconds > 0:
            due = clock() + min(seconds, 500)
            await self.until(lambda due=due: clock() >= due, "time to pass")
            seconds -= 500


async def reading(story: Story, drivers: Images, **changes: Any) -> None:
    await story.begin(parallelism=2, application=application(**changes))
    await drivers.rest("0")
    await drivers.until(
        lambda: "healthy" in story.status.get("settings", ""), "the settings to be remembered"
    )


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("FAILING", "The driver of SparkApplication orders-1 failed (FAILING): no such module"),
        ("SUBMITTED", "it is SUBMITTED"),
        ("RUNNING", "its driver has not registered"),
        ("FAILED", "SparkApplication orders-1 failed"),
    ],
)
def test_settings_that_do_not_work_are_given_up(state: str, words: str) -> None:
    async def play(story: Story) -> None:
        drivers = Images(story, state)
        await reading(story, drivers)
        story.patch(application={"image": "broken"})
        await drivers.until(lambda: image(story) == "broken", "the new settings")
        at = clock()
        await drivers.until(lambda: image(story) == GOOD, "the old settings")
        assert 59 <= clock() - at < 100
        await drivers.rest("0")

        said = degraded(story)
        assert (said["status"], said["reason"]) == ("True", "RolledBack")
        assert f"(image: '{GOOD}' → 'broken')" in said["message"]
        assert words in said["message"]
        assert "RolledBack" in story.events
        made = len(story.applications)
        await drivers.pass_time(100)
        assert len(story.applications) == made, "nothing flaps"
        drivers.check_each_once()

    played(play)


def test_a_corrected_spec_takes_effect_and_the_condition_goes() -> None:
    async def play(story: Story) -> None:
        drivers = Images(story, working=(GOOD, "better"))
        await reading(story, drivers)
        story.patch(application={"image": "broken"})
        await drivers.until(
            lambda: "RolledBack" in story.events and image(story) == GOOD, "the rollback"
        )
        await drivers.rest("0")

        story.patch(application={"image": "better"})
        await drivers.until(lambda: image(story) == "better", "the corrected settings")
        await drivers.rest("0")
        await drivers.until(
            lambda: degraded(story)["reason"] == "AsExpected", "the condition to go"
        )
        await drivers.until(lambda: "better" in story.status["settings"], "them to be remembered")
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_they_are_tried_again_with_growing_pauses_also_by_the_next_operator(
    is_restarted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollback, "FIRST_PAUSE", 100.0)

    async def play(story: Story) -> None:
        drivers = Images(story)
        await reading(story, drivers)
        story.patch(application={"image": "broken"})
        pauses = []
        for _ in range(2):
            await drivers.until(lambda: image(story) == "broken", "a try")
            await drivers.until(lambda: image(story) == GOOD, "the rollback")
            at = clock()
            await drivers.rest("0")
            if is_restarted:
                await story.operators.pop().stop()
                story.start_operator()
            await drivers.until(lambda: image(story) != GOOD, "the next try")
            pauses.append(clock() - at)
        assert 90 <= pauses[0] < 140
        assert 190 <= pauses[1] < 240
        drivers.check_each_once()

    played(play)


def test_a_nonce_tries_again_at_once_and_policy_on_nonce_tries_only_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rollback, "FIRST_PAUSE", 100.0)

    async def play(story: Story) -> None:
        drivers = Images(story)
        await reading(story, drivers, restart={**AFTER, "policy": "OnNonce"})
        story.patch(application={"image": "broken", "restart": {"nonce": 1}})
        await drivers.until(lambda: image(story) == "broken", "the first try")
        await drivers.until(
            lambda: image(story) == GOOD, "the rollback, although the policy is OnNonce"
        )
        await drivers.rest("0")
        made = len(story.applications)
        await drivers.pass_time(200)
        assert len(story.applications) == made

        drivers.working = (GOOD, "broken")
        story.patch(application={"restart": {"nonce": 2}})
        await drivers.until(lambda: image(story) == "broken", "the second try")
        await drivers.rest("0")
        await drivers.until(
            lambda: degraded(story)["reason"] == "AsExpected", "the condition to go"
        )
        await drivers.pass_time(100)
        assert image(story) == "broken", "it works now"

    played(play)


def test_only_the_first_of_several_hosts_tries_settings_that_do_not_work() -> None:
    async def play(story: Story) -> None:
        drivers = Images(story, "RUNNING")
        await story.begin(parallelism=4, application=application(hosts={"count": 2}))
        await drivers.rest("0", "1")
        await drivers.until(
            lambda: "healthy" in story.status.get("settings", ""), "the settings to be remembered"
        )
        story.patch(application={"image": "broken"})
        await drivers.until(
            lambda: "RolledBack" in story.events and image(story) == GOOD, "the rollback"
        )
        await drivers.rest("0", "1")

        assert story.applications == ["orders-1", f"{base('1')}-1", "orders-1", "orders-1"]
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize(
    "changes",
    [
        {"restart": {"rollbackAfter": "0"}},
        {
            "arguments": ["--password=$(hunter2)"],
            "mainApplicationFile": "local:///app/mine.py",
            "pipeline": None,
        },
    ],
    ids=["switched off", "not remembered because of a secret"],
)
def test_without_rollback_the_new_settings_stay(changes: dict[str, Any]) -> None:
    async def play(story: Story) -> None:
        drivers = Images(story)
        await story.begin(parallelism=2, application=application(**changes))
        await drivers.rest("0")
        await drivers.pass_time(10)
        story.patch(application={"image": "broken"})
        await drivers.until(lambda: image(story) == "broken", "the new settings")
        await drivers.pass_time(150)
        assert image(story) == "broken"
        assert "hunter2" not in str(
            story.server.find(BALANCED_SOURCE, NAMESPACE, "orders")["status"]
        )

    played(play)


def test_a_first_micro_batch_that_takes_long_is_waited_for() -> None:
    async def play(story: Story) -> None:
        drivers = Images(story, "RUNNING")
        await reading(story, drivers)
        story.patch(application={"image": "slow"})
        await drivers.until(lambda: image(story) == "slow", "the new settings")
        drivers.of["0"].start()
        drivers.of["0"].report()
        await drivers.pass_time(120)

        assert image(story) == "slow"

    played(play)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"healthy":{}}', '{"healthy":{"application":{},"conf":{}}}', "7"]
)
def test_an_unreadable_memory_counts_as_absent(text: str) -> None:
    async def play(story: Story) -> None:
        drivers = Images(story)
        await reading(story, drivers)
        await story.operators.pop().stop()
        story.server.edit(BALANCED_SOURCE, NAMESPACE, "orders", {"status": {"settings": text}})
        story.start_operator()
        await drivers.until(
            lambda: GOOD in story.status["settings"], "the settings to be remembered again"
        )
        assert len(story.applications) == 1

    played(play)
