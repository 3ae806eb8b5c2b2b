"""The application of a source that ends."""

from typing import Any

import pytest

from balanced_source_operator.resources.kinds import KUBEFLOW_APPLICATION
from support import virtual_time
from support.builders import spec_json
from support.cluster_story import NAMESPACE, Story


@pytest.mark.parametrize(
    ("more", "policy"), [({}, "Always"), ({"stoppingOffsets": {"type": "Latest"}}, "OnFailure")]
)
def test_it_is_not_started_again_when_everything_is_read(more: dict[str, Any], policy: str) -> None:
    kafka = {**spec_json()["source"]["kafka"], **more}
    story = Story()

    async def play() -> None:
        await story.begin(source={"kafka": kafka})
        await story.until(lambda: bool(applications()), "an application")
        await story.end()

    def applications() -> list[dict[str, Any]]:
        return list(story.server.select(KUBEFLOW_APPLICATION, NAMESPACE))

    virtual_time.run(play())
    assert [one["spec"]["restartPolicy"]["type"] for one in applications()] == [policy]
