"""An application that another query has fenced is not started again while that query reads."""

from dataclasses import dataclass
from typing import Any

import pytest

from balanced_source.documents import report as report_document
from balanced_source_operator.controller.liveness import ALIVE
from balanced_source_operator.resources.kinds import EVENT, KUBEFLOW_APPLICATION, POD
from support.cluster_story import NAMESPACE, Story
from support.played_story import played
from support.virtual_time import clock
from support.world import UID

EVERY = 10.0
"""Seconds between two reports of the other query."""

NOTEBOOK = "3f2a9c1b pod=notebook uid=u machine=m pid=17"


@dataclass
class OtherQuery:
    """A query of a notebook, with the checkpoint of the source. It claims the host and reads."""

    story: Story
    reported_at: float = 0.0

    def begin(self) -> None:
        self.story.driver.start()
        self.report()

    def report(self, *, instance: str = NOTEBOOK) -> None:
        driver = self.story.driver
        driver.see_assignment()
        driver.sequence += 1
        report = driver.host.report(
            sequence=driver.sequence, heartbeat=clock(), instance=instance, location="laptop"
        )
        assert report is not None
        self.story.documents["0"] = report_document.encode(report, source=UID)
        self.reported_at = clock()

    async def reads_for(self, seconds: float) -> None:
        end = clock() + seconds
        await self.story.until(lambda: self._step() >= end, "time to pass")

    def _step(self) -> float:
        if clock() - self.reported_at >= EVERY:
            self.report()
        return clock()


def fail(story: Story, word: str) -> None:
    """End the driver of the application with an error, as a fenced query ends."""
    story.server.remove(POD, NAMESPACE, "orders-1-driver")
    state = {"state": word, "errorMessage": "another query has taken over this source"}
    story.server.edit(
        KUBEFLOW_APPLICATION, NAMESPACE, "orders-1", {"status": {"applicationState": state}}
    )


async def fenced(story: Story, word: str) -> OtherQuery:
    """A source whose application has read, until another query has claimed its host."""
    await story.begin()
    await story.launched()
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)
    other = OtherQuery(story)
    other.begin()
    fail(story, word)
    return other


def degraded(story: Story) -> dict[str, Any]:
    return next(c for c in story.status["conditions"] if c["type"] == "Degraded")


def present(story: Story) -> list[str]:
    found = story.server.select(KUBEFLOW_APPLICATION, NAMESPACE)
    return [application["metadata"]["name"] for application in found]


@pytest.mark.parametrize(
    ("word", "kept"), [("FAILED", ["orders-1"]), ("PENDING_RERUN", []), ("FAILING", [])]
)
def test_it_is_not_started_while_the_other_query_reports(word: str, kept: list[str]) -> None:
    """One that the Spark operator would submit again is deleted; another one stays with its log."""

    async def play(story: Story) -> None:
        other = await fenced(story, word)

        await other.reads_for(500)

        assert story.applications == ["orders-1"], "none is created"
        assert present(story) == kept
        assert degraded(story)["reason"] == "SourceInUse"
        assert "3f2a9c1b, pod=notebook, uid=u on laptop" in degraded(story)["message"]
        found = story.server.select(EVENT, NAMESPACE)
        assert [e["type"] for e in found if e["reason"] == "SourceInUse"] == ["Warning"]

    played(play)


@pytest.mark.parametrize("gives_up", [True, False])
def test_it_is_started_when_the_other_query_has_ended(*, gives_up: bool) -> None:
    """Killed, so that it is only silent, or in order: then its last report names no instance."""

    async def play(story: Story) -> None:
        other = await fenced(story, "PENDING_RERUN")
        await other.reads_for(120)
        assert present(story) == []
        ended = clock()
        if gives_up:
            other.report(instance="")

        await story.until(lambda: len(story.applications) > 1, "a new application")

        assert (clock() - ended < EVERY) == gives_up
        assert clock() - ended < ALIVE + 3 * EVERY
        await story.launched(story.applications[-1])
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)
        await story.until(lambda: degraded(story)["status"] == "False", "all is well")

    played(play)
