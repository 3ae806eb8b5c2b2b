"""What the operator finds around it.

Missing kinds and accounts, an API server that is away, edited rights.
"""

import asyncio
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from balanced_source.connectors.discovery import DiscoveringSplitEnumerator
from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.resources.kinds import (
    KUBEFLOW_APPLICATION,
    POD,
    ROLE,
    SERVICE_ACCOUNT,
)
from balanced_source_operator.runtime.fleet import Fleet
from support.cluster_story import NAMESPACE, Story
from support.fake_kubernetes import INSTALLED, FakeClient
from support.played_story import Play, played
from support.virtual_time import clock


def check(play: Play) -> Story:
    story = played(play)
    assert len(story.driver.delivered) == sum(story.broker.ends.values())
    return story


async def read(story: Story, parallelism: int = 2, application: str = "orders-1") -> None:
    await story.launched(application)
    story.driver.start()
    await story.adopted(parallelism=parallelism, splits=8)


def has(story: Story, kind: str, reason: str) -> bool:
    conditions = story.status.get("conditions", [])
    return any(c["type"] == kind and c["reason"] == reason for c in conditions)


def test_without_a_spark_operator_it_waits_and_says_so() -> None:
    async def play(story: Story) -> None:
        story.server.kinds = [kind for kind in INSTALLED if kind != KUBEFLOW_APPLICATION]
        await story.begin()
        await story.until(lambda: has(story, "Degraded", "SparkOperatorMissing"), "a condition")
        await story.until(lambda: len(story.owners) == 8, "splits are assigned all the same")
        story.server.kinds = INSTALLED
        await read(story)
        await story.until(lambda: has(story, "Ready", "Reading"), "all is well")

    assert check(play).applications == ["orders-1"]


def test_without_a_service_account_it_waits_and_says_so() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        story.server.remove(SERVICE_ACCOUNT, NAMESPACE, "spark")
        await story.until(lambda: has(story, "Degraded", "ServiceAccountMissing"), "a condition")
        assert story.applications == []
        story.server.add(SERVICE_ACCOUNT, {"metadata": {"namespace": NAMESPACE, "name": "spark"}})
        await read(story)

    check(play)


def test_widened_rights_are_narrowed_again() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        before = story.server.find(ROLE, NAMESPACE, "orders-documents")["rules"]
        everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
        story.server.edit(ROLE, NAMESPACE, "orders-documents", {"rules": everything})
        await story.until(
            lambda: story.server.find(ROLE, NAMESPACE, "orders-documents")["rules"] == before,
            "the rights as they were",
        )

    check(play)


def test_deleted_rights_are_granted_again() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        story.server.remove(ROLE, NAMESPACE, "orders-documents")
        await story.until(
            lambda: story.server.find(ROLE, NAMESPACE, "orders-documents"), "the rights again"
        )

    check(play)


def test_an_api_server_that_is_away_for_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a crash nor a storm: what was wanted meanwhile happens when it is back."""
    away = False
    asked: list[float] = []
    call = FakeClient._call

    async def refusing(self: FakeClient, verb: str, *rest: Any) -> Any:
        if away:
            asked.append(clock())
            raise KubernetesError("the API server does not answer: connection refused")
        return await call(self, verb, *rest)

    monkeypatch.setattr(FakeClient, "_call", refusing)

    async def play(story: Story) -> None:
        nonlocal away
        await story.begin()
        await read(story)
        away = True
        story.patch(parallelism=3)
        end = clock() + 300
        await story.until(lambda: clock() > end, "five minutes")
        away = False
        await story.adopted(parallelism=3, splits=8)

    check(play)
    times = Counter(asked)
    assert 5 <= len(times) <= 40, "it tries again, ever more slowly"
    assert max(times.values()) <= 2, "beside what it wants, it asks only whether anyone answers"


def test_a_failed_application_is_recreated_once_its_driver_is_gone() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        failed = {
            "status": {"applicationState": {"state": "FAILED", "errorMessage": "out of memory"}}
        }
        story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, "orders-1", failed)
        end = clock() + 300
        await story.until(lambda: clock() > end, "five minutes")
        assert story.applications == ["orders-1"], "left alone: its driver pod lives"
        story.server.remove(POD, NAMESPACE, "orders-1-driver")
        await story.until(lambda: len(story.applications) == 2, "a new application")
        await read(story, application=story.applications[-1])

    assert len(check(play).applications) == 2


def test_a_change_of_the_application_replaces_it_and_a_rescale_does_not() -> None:
    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        story.patch(parallelism=5)
        await story.adopted(parallelism=5, splits=8)
        assert story.applications == ["orders-1"]
        story.patch(application={"sparkConf": {"spark.task.maxFailures": "9"}})
        await story.until(
            lambda: len(story.applications) == 2, "an application with the new settings"
        )
        await read(story, parallelism=5, application=story.applications[-1])

    check(play)


def test_an_application_that_fails_again_and_again_is_started_ever_later_until_the_limit() -> None:
    async def play(story: Story) -> None:
        await story.begin(restart={"maxFailures": 3})
        starts: list[float] = []
        for number in (1, 2, 3):
            await story.until(
                lambda count=number: len(story.applications) == count, "an application"
            )
            starts.append(clock())
            failed = {
                "status": {"applicationState": {"state": "FAILED", "errorMessage": "no such class"}}
            }
            story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, story.applications[-1], failed)
        await story.until(lambda: has(story, "Degraded", "RestartLimitReached"), "a condition")
        assert [round(after - before, -1) for before, after in pairwise(starts)] == [30, 60]
        assert "no such class" in next(
            c["message"] for c in story.status["conditions"] if c["type"] == "Degraded"
        )
        end = clock() + 500
        await story.until(lambda: clock() > end, "a long time")
        assert len(story.applications) == 3, "it stays with its log"
        kept = story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, story.applications[-1])
        story.patch(restart={"maxFailures": None})
        await story.until(lambda: len(story.applications) == 4, "another one without a limit")
        assert kept["metadata"]["name"] in story.applications
        await read(story, application=story.applications[-1])
        await story.until(lambda: has(story, "Degraded", "AsExpected"), "all is well")

    check(play)


@pytest.mark.parametrize("method", ["is_finished", "pending_splits", "problems", "undiscovered"])
@pytest.mark.parametrize(
    "error", [ValueError("odd"), SystemExit(3), asyncio.CancelledError()], ids=repr
)
def test_an_enumerator_that_cannot_tell_how_it_is_does_not_end_the_source(
    monkeypatch: pytest.MonkeyPatch, method: str, error: BaseException
) -> None:
    """The status asks it, also the status that says that it failed."""

    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        with monkeypatch.context() as patch:
            patch.setattr(DiscoveringSplitEnumerator, method, raising(error))
            story.patch(parallelism=3)
            await story.until(lambda: has(story, "Degraded", "InternalError"), "a condition")
        await story.adopted(parallelism=3, splits=8)
        await story.until(lambda: has(story, "Ready", "Reading"), "all is well")

    check(play)


@pytest.mark.parametrize("method", ["look_after", "images"])
@pytest.mark.parametrize("error", [ValueError("odd"), asyncio.CancelledError()], ids=repr)
def test_a_look_that_fails_at_each_turn_does_not_end_the_source(
    monkeypatch: pytest.MonkeyPatch, method: str, error: BaseException
) -> None:
    """As an object would that no one can make sense of."""

    async def play(story: Story) -> None:
        await story.begin()
        await read(story)
        with monkeypatch.context() as patch:
            patch.setattr(Fleet, "turn", raising(error))
            broken = raising(error)
            patch.setattr(Fleet, method, broken if method == "look_after" else property(broken))
            story.patch(parallelism=3)
            end = clock() + 60
            await story.until(lambda: clock() > end, "a minute")
        await story.adopted(parallelism=3, splits=8)
        await story.until(lambda: has(story, "Ready", "Reading"), "all is well")

    check(play)


def raising(error: BaseException) -> Any:
    def method(*_: Any) -> Any:
        raise error

    return method


class Boom(BaseException):
    """What no one expects."""


@pytest.mark.parametrize("method", ["handle_discovery", "start"])
@pytest.mark.parametrize(
    "error",
    [asyncio.CancelledError(), GeneratorExit(), KeyboardInterrupt(), SystemExit(3), Boom("no")],
    ids=repr,
)
def test_whatever_an_enumerator_raises_its_source_is_served_again(
    monkeypatch: pytest.MonkeyPatch, method: str, error: BaseException
) -> None:
    """Most of these would end the task of the source, or the operator with all its sources."""

    async def play(story: Story) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(DiscoveringSplitEnumerator, method, raising(error))
            await story.begin()
            await story.until(lambda: has(story, "Degraded", "InternalError"), "a condition")
        await read(story)
        await story.until(lambda: has(story, "Degraded", "AsExpected"), "all is well")

    check(play)


def test_an_enumerator_that_fails_to_close_does_not_end_the_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(story: Story) -> None:
        monkeypatch.setattr(DiscoveringSplitEnumerator, "close", raising(SystemExit(1)))
        await story.begin()
        await read(story)
        with monkeypatch.context() as patch:
            patch.setattr(DiscoveringSplitEnumerator, "rebalance", raising(ValueError("odd")))
            story.patch(parallelism=3)
            await story.until(lambda: has(story, "Degraded", "InternalError"), "a condition")
        await story.adopted(parallelism=3, splits=8)

    check(play)
