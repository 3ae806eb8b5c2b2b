"""The application of a source that ends."""

from typing import Any

import pytest

from balanced_source_operator.resources.kinds import KUBEFLOW_APPLICATION
from support import virtual_time
from support.builders import spec_json
from support.cluster_story import NAMESPACE, Story


@pytest.mark.parametrize(
    ("more", "retries"), [({}, 2**31 - 1), ({"stoppingOffsets": {"type": "Latest"}}, 5)]
)
def test_its_spark_operator_starts_no_program_again_that_has_ended(
    more: dict[str, Any], retries: int
) -> None:
    kafka = {**spec_json()["source"]["kafka"], **more}
    story = Story()

    async def play() -> None:
        await story.begin(source={"kafka": kafka})
        await story.until(lambda: bool(applications()), "an application")
        await story.end()

    def applications() -> list[dict[str, Any]]:
        return list(story.server.select(KUBEFLOW_APPLICATION, NAMESPACE))

    virtual_time.run(play())
    (policy,) = (one["spec"]["restartPolicy"] for one in applications())
    assert policy["type"] == "OnFailure"
    assert policy["onFailureRetries"] == policy["onSubmissionFailureRetries"] == retries
