"""Settings change while a host that was just added works at its first micro-batch."""

from typing import Any

import pytest

from balanced_source_operator.resources.kinds import KUBEFLOW_APPLICATION
from support.cluster_story import NAMESPACE, Story
from support.host_drivers import Busy, application
from support.lost_hosts import newest, play_on
from support.played_story import played

NEXT = "balanced-source/spark:next"


def uids(story: Story) -> set[str]:
    found = story.server.select(KUBEFLOW_APPLICATION, NAMESPACE)
    return {m["metadata"]["uid"] for m in found}


def splits(story: Story, host: str) -> int:
    """Splits that are assigned to a host."""
    found = {h["name"]: h["splits"] for h in story.status.get("hosts", [])}
    return int(found.get(host) or 0)


class Young(Busy):
    """The driver of host 2 registers, then works at its first micro-batch until it is let go on."""

    holds = True

    def _run(self, host: str, application: str) -> None:
        if self.holds and host == "2" and splits(self.story, "2"):
            return  # its splits are assigned: it is in the first micro-batch with them
        super()._run(host, application)


@pytest.mark.parametrize(
    "change", [{"image": NEXT}, {"restart": {"nonce": 1}}], ids=["image", "nonce"]
)
def test_a_host_that_was_just_given_splits_hands_them_over_before_it_restarts(
    change: dict[str, Any],
) -> None:
    async def play(story: Story) -> None:
        drivers = Young(story)
        await story.begin(parallelism=6, application=application(count=2))
        await drivers.rest("0", "1")
        story.patch(application=application(count=3))
        await story.until(
            lambda: [
                drivers.step(),
                splits(story, "2") and drivers.reads("0") + drivers.reads("1") < 8,
            ][1],
            "host 2 to be given splits that the others have let go of",
        )
        young = story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, newest(story, "2"))
        given = splits(story, "2")
        assert given

        story.patch(application=change)
        await play_on(drivers, 4)

        assert young["metadata"]["uid"] in uids(story), (
            f"host 2 was stopped with {given} splits, which wait for its restart"
        )
        drivers.holds = False
        await story.until(
            lambda: [drivers.step(), young["metadata"]["uid"] not in uids(story)][1], "its restart"
        )
        await drivers.settle("0", "1", "2")
        drivers.check_each_once()

    played(play)
