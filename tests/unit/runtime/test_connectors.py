"""A connector that cannot be used is a condition of its sources, and no end of the operator."""

import pytest

from balanced_source_adapters.connectors import Connectors
from balanced_source_adapters.registrations import BUILT_IN, Registration
from balanced_source_operator.contract import half
from support import virtual_time
from support.builders import spec_json
from support.cluster_story import Story

CLAIMS = [
    Registration(kind="kafka", reference=BUILT_IN["kafka"], package="balanced-source 1"),
    Registration(kind="kafka", reference="fork:KafkaConnector", package="fork 2"),
]


def test_two_packages_that_claim_a_kind_are_named_by_a_condition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story()
    monkeypatch.setattr(half, "installed", lambda: Connectors(CLAIMS))

    async def play() -> None:
        await story.begin(source={"kafka": {}})
        await story.until(
            lambda: "InvalidSpec" in str(story.status), "a condition that names the field"
        )
        story.patch(source=spec_json()["source"])
        await story.until(lambda: "ConnectorBroken" in str(story.status), "a condition")
        assert "fork 2 (fork:KafkaConnector): remove all packages but one" in str(story.status)
        assert "InvalidSpec" not in str(story.status), "corrected"
        assert story.owners == {}

    virtual_time.run(play())
