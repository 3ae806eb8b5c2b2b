"""A platform team moves streams between clusters.

The ConfigMap changes, breaks and heals under a running query.
"""

from typing import Any

import pytest
import yaml

from balanced_source_operator.resources.kinds import CONFIG_MAP
from support import virtual_time
from support.cluster_story import NAMESPACE, Story

EAST = {"name": "main", "bootstrapServers": "east:9092"}
WEST = {"name": "west", "bootstrapServers": "west:9092"}
SOURCE = {
    "kafka": {
        "clustersFrom": {"configMapRef": {"name": "streams"}},
        "subscription": {"streams": ["orders"]},
        "discovery": {"interval": "1s"},
    }
}


def metadata(**streams: Any) -> str:
    return yaml.safe_dump({"clusters": [EAST, WEST], "streams": {"orders": streams}})


def write(story: Story, text: str) -> None:
    story.metadata = text if text.startswith("clusters") else story.metadata
    story.server.edit(CONFIG_MAP, NAMESPACE, "streams", {"data": {"clusters.yaml": text}})


def owned(story: Story) -> set[Any]:
    return {(split[0], split[1]) for split in story.owners}


@pytest.mark.scenario("D3", "D15", "D16")
def test_streams_move_and_broken_metadata_changes_nothing() -> None:
    """Without metadata the source waits and says so.

    Later trouble leaves in effect what was read last.
    """
    story = Story()

    async def play() -> None:
        story.broker.create("west", "orders-v2", range(4), end=5)
        await story.begin(source=SOURCE)
        await story.until(
            lambda: "InvalidSpec" in str(story.status), "a condition that names the ConfigMap"
        )
        assert "ConfigMap streams" in str(story.status)
        story.metadata = metadata(main=["orders"])
        data = {"clusters.yaml": story.metadata}
        story.server.add(
            CONFIG_MAP, {"metadata": {"namespace": NAMESPACE, "name": "streams"}, "data": data}
        )
        await story.launched()
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)

        write(story, "{")
        await story.until(lambda: "not valid YAML" in str(story.status), "the trouble to be told")
        assert owned(story) == {("main", "orders")}

        ending = {**EAST, "stoppingOffsets": {"type": "Latest"}}
        write(
            story,
            yaml.safe_dump({"clusters": [ending], "streams": {"orders": {"main": ["orders"]}}}),
        )
        await story.until(
            lambda: "stoppingOffsets: cannot be changed" in str(story.status),
            "the refusal to be told",
        )

        write(story, metadata(main=["orders"], west=["orders-v2"]))
        await story.adopted(parallelism=2, splits=12)
        write(story, metadata(west=["orders-v2"]))
        await story.adopted(parallelism=2, splits=4)
        await story.until(lambda: "InvalidSpec" not in str(story.status), "the trouble to be over")
        assert owned(story) == {("west", "orders-v2")}
        await story.end()

    virtual_time.run(play())
    assert story.broken == []
    assert story.applications == ["orders-1"], "nothing was restarted"
    assert len(story.driver.delivered) == sum(story.broker.ends.values())


@pytest.mark.parametrize("is_bounded", [False, True], ids=["unbounded before", "bounded before"])
def test_an_end_that_is_changed_in_metadata_while_no_operator_runs_is_refused(
    *, is_bounded: bool
) -> None:
    """The API server checks the spec alone.

    What the status remembers of the last valid one has the ends.
    """

    def ending(kind: str | None) -> str:
        east = EAST if kind is None else {**EAST, "stoppingOffsets": {"type": kind}}
        return yaml.safe_dump({"clusters": [east], "streams": {"orders": {"main": ["orders"]}}})

    story, before = Story(), ending("Latest" if is_bounded else None)
    story.metadata = before

    async def play() -> None:
        data = {"clusters.yaml": before}
        story.server.add(
            CONFIG_MAP, {"metadata": {"namespace": NAMESPACE, "name": "streams"}, "data": data}
        )
        await story.begin(source=SOURCE)
        await story.launched()
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)
        for operator in list(story.operators):
            await operator.stop()
            story.operators.remove(operator)
        write(story, ending(None if is_bounded else "Latest"))
        story.start_operator(name="operator-2")

        await story.until(
            lambda: "cluster main: stoppingOffsets: was changed" in str(story.status), "the refusal"
        )
        assert len(story.owners) == 8

        story.patch(parallelism=4)
        await story.adopted(parallelism=4, splits=8)
        story.broker.create("main", "orders", range(8, 10), end=5)
        await story.adopted(parallelism=4, splits=8 if is_bounded else 10)
        assert "cluster main: stoppingOffsets: was changed" in str(story.status)

        write(story, before)
        await story.until(lambda: "InvalidSpec" not in str(story.status), "the trouble to be over")
        await story.end()

    virtual_time.run(play())
    assert story.broken == []
    assert story.applications == ["orders-1"], "nothing was restarted"
