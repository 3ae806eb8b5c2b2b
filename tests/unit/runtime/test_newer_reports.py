"""A driver of a newer release than the operator's: that its reports cannot be read is reported."""

import json
from typing import Any

import pytest

from balanced_source.documents import envelope
from balanced_source.documents import report as report_document
from balanced_source.documents.storage import unpack
from balanced_source_operator.resources.documents import blob_of
from balanced_source_operator.resources.kinds import CONFIG_MAP
from support.cluster_story import NAMESPACE, Story
from support.host_drivers import Drivers
from support.played_story import played
from support.virtual_time import clock
from support.world import UID

NEXT = report_document.KIND.version + 1


def condition(story: Story, kind: str) -> dict[str, Any]:
    return next((c for c in story.status.get("conditions", ()) if c["type"] == kind), {})


def write_newer(story: Story) -> None:
    """Store the report of the driver as the next release may write it."""
    found = story.server.find(CONFIG_MAP, NAMESPACE, "orders-readers")
    assert found is not None
    body = json.loads(unpack(blob_of(found)))["body"]
    story.documents["0"] = envelope.encode(report_document.KIND, UID, body, version=NEXT)


async def pass_time(story: Story, seconds: float) -> None:
    due = clock() + seconds
    await story.until(lambda: clock() >= due, "time to pass")


def test_a_report_of_a_newer_release_is_named_until_one_can_be_read() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin()
        await drivers.rest("0")

        write_newer(story)
        await story.until(lambda: condition(story, "Degraded")["status"] == "True", "the problem")
        found = condition(story, "Degraded")
        assert found["reason"] == "ReportTooNew"
        assert "ConfigMap orders-readers" in found["message"]
        assert (
            f"has version {NEXT}, and the operator reads versions up to {NEXT - 1}"
            in found["message"]
        )
        assert "ReportTooNew" in story.events
        await pass_time(story, 300)
        assert condition(story, "Degraded")["reason"] == "ReportTooNew", "the cause of the silence"

        await drivers.rest("0")
        await story.until(lambda: condition(story, "Degraded")["status"] == "False", "the end")

    played(play)


def test_the_last_report_of_a_newer_driver_does_not_degrade_a_suspended_source() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin()
        await drivers.rest("0")
        write_newer(story)
        story.patch(suspend=True)
        await story.until(lambda: condition(story, "Ready")["reason"] == "Suspended", "the end")
        await pass_time(story, 60)
        assert condition(story, "Degraded")["status"] == "False"

    played(play)


@pytest.mark.parametrize("text", ["", "{", '{"kind": "other"}'])
def test_an_edited_report_is_no_one_s(text: str) -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin()
        await drivers.rest("0")
        story.documents["0"] = text
        await pass_time(story, 5)
        assert condition(story, "Degraded")["status"] == "False"

    played(play)
