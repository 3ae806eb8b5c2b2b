"""Since when settings count as tried."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import Problem, ProblemBoard
from balanced_source.coordinator import CoordinatorState, HostState
from balanced_source.reasons import Reason
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.rollback import (
    ApplicationSettings,
    TrialMemory,
    TriedApplication,
    text_of,
)
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.kinds import HASH_ANNOTATION
from balanced_source_operator.runtime.environment import Desired
from balanced_source_operator.runtime.trials import Trials
from balanced_source_operator.settings import Settings
from balanced_source_operator.spec import parse_spec
from support import virtual_time
from support.builders import identity, spec_json
from support.world import kafka_source

FAILS = Decision(
    state=ApplicationState.FAILED,
    name="orders-1",
    problem=Problem(reason=Reason.APPLICATION_FAILED, message="no such module"),
)


def desired(image: str) -> Desired:
    application = {
        **spec_json()["application"],
        "image": image,
        "restart": {"rollbackAfter": "1m"},
    }
    return Desired(spec=parse_spec(spec_json(application=application)), source=kafka_source("c"))


def settings(image: str) -> ApplicationSettings:
    return ApplicationSettings(application=desired(image).spec.application, conf={})


class Scene:
    """A source that was healthy with the image "good"."""

    def __init__(self) -> None:
        self.applications = list[Manifest]()
        observed: Any = self
        environment: Any = SimpleNamespace(settings=Settings())
        self.trials = Trials(environment, identity(), observed, ProblemBoard())
        self.trials.recall(text_of(TrialMemory(healthy=settings("good"))))

    def get(self, *_: Any) -> None:
        """No host has ever reported."""

    def judge(self, image: str, *decisions: Decision) -> bool:
        """Look at the application of host 0 while an image is asked for; return what is said."""
        state: CoordinatorState[Any] = CoordinatorState(parallelism=2, hosts={"0": HostState()})
        coordinator: Any = SimpleNamespace(state=state)
        asked = desired(image)
        return self.trials.judge(
            asked,
            asked,
            {str(number): decision for number, decision in enumerate(decisions)},
            coordinator,
        )

    def make(self, image: str, *, age: float) -> None:
        """Replace the application by one that was made so many seconds ago, and does not start."""
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(virtual_time.clock() - age))
        found = settings(image).hash(identity())
        self.applications = [
            {
                "metadata": {
                    "name": "orders-1",
                    "creationTimestamp": created,
                    "annotations": {HASH_ANNOTATION: found},
                },
                "status": {"applicationState": {"state": "FAILING"}},
            }
        ]


def test_settings_are_given_up_when_their_first_application_is_old_enough() -> None:
    async def play() -> None:
        scene = Scene()
        scene.make("bad", age=50)
        assert not scene.judge("bad", FAILS)

        scene.trials.rest()
        scene.make("bad", age=70)

        assert scene.judge("bad", FAILS)

    virtual_time.run(play())


@pytest.mark.parametrize("between", ["bad", "other"])
def test_settings_that_come_again_after_others_get_the_whole_time_again(between: str) -> None:
    """A failed application is made again: the time counts from the first one."""

    async def play() -> None:
        scene = Scene()
        scene.make("bad", age=50)
        assert not scene.judge("bad", FAILS)
        scene.applications = []
        assert not scene.judge(between)

        await asyncio.sleep(20)
        scene.make("bad", age=0)

        assert scene.judge("bad", FAILS) is (between == "bad")

    virtual_time.run(play())


def test_an_application_on_its_way_out_does_not_say_since_when_its_settings_are_tried() -> None:
    """It may be from before the source was stopped."""

    async def play() -> None:
        scene = Scene()
        scene.make("bad", age=500)
        scene.applications[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        assert not scene.judge("bad", FAILS)

        scene.make("bad", age=0)
        assert not scene.judge("bad", FAILS)
        await asyncio.sleep(59)
        assert not scene.judge("bad", FAILS)
        await asyncio.sleep(1)
        assert scene.judge("bad", FAILS)

    virtual_time.run(play())


@pytest.mark.parametrize("created", [None, "yesterday"])
def test_an_application_of_unknown_age_is_tried_since_it_was_seen(created: str | None) -> None:
    async def play() -> None:
        scene = Scene()
        scene.make("bad", age=0)
        scene.applications[0]["metadata"]["creationTimestamp"] = created
        for _ in range(6):
            assert not scene.judge("bad", FAILS)
            await asyncio.sleep(10)
        assert scene.judge("bad", FAILS)

    virtual_time.run(play())


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({}, ""),
        ({"annotations": None}, ""),
        ({"annotations": {}}, ""),
        ({"annotations": {HASH_ANNOTATION: "abc"}}, "abc"),
    ],
)
def test_an_application_without_a_hash_is_made_from_no_known_settings(
    metadata: Manifest, found: str
) -> None:
    tried = TriedApplication(
        manifest={"metadata": metadata},
        decision=FAILS,
        incarnation=1,
        has_adopted=False,
        since=0.0,
    )

    assert tried.hash == found
