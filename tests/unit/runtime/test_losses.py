"""Records that drivers count as lost reach the status in the words of the connector."""

from typing import Any

import pytest

from balanced_source_operator.contract.half import OperatorHalf, half_of
from balanced_source_operator.controller import losses
from support.cluster_story import Story
from support.played_story import played


def condition(story: Story, kind: str) -> dict[str, Any]:
    found = [c for c in story.status.get("conditions", []) if c["type"] == kind]
    return found[0] if found else {"status": "False", "reason": "", "message": ""}


async def read(story: Story, **numbers: int) -> None:
    story.driver.metrics = dict(numbers)
    await story.begin()
    await story.launched("orders-1")
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)


def test_offsets_that_a_driver_has_skipped_are_a_data_loss() -> None:
    async def play(story: Story) -> None:
        await read(story, skippedOffsets=12)
        await story.until(lambda: condition(story, "DataLoss")["status"] == "True", "the condition")

        assert condition(story, "DataLoss")["reason"] == "OffsetsSkipped"
        assert condition(story, "DataLoss")["message"].startswith(
            "12 offsets deleted before being read"
        )

    played(play)


def test_offsets_that_no_one_could_count_are_unknown_and_not_zero() -> None:
    async def play(story: Story) -> None:
        await read(story, uncountedOffsets=300)
        await story.until(
            lambda: condition(story, "DataLoss")["status"] == "Unknown", "the condition"
        )
        assert condition(story, "DataLoss")["reason"] == "OffsetsUncounted"
        assert condition(story, "Ready")["status"] == "True"
        assert story.sample("skipped_records") is None

        story.driver.metrics = {}
        story.driver.report()
        await story.until(lambda: story.sample("skipped_records") == 0, "the count")
        assert condition(story, "DataLoss")["status"] == "False"

    played(play)


def test_a_connector_that_cannot_describe_a_loss_degrades_its_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        def losses(self, numbers: Any) -> Any:
            raise KeyError("torn")

    def half(kind: str) -> OperatorHalf[Any] | Broken:
        return Broken() if is_broken else half_of(kind)

    is_broken = True
    monkeypatch.setattr(losses, "half_of", half)

    async def play(story: Story) -> None:
        nonlocal is_broken
        await read(story, skippedOffsets=12)
        await story.until(
            lambda: condition(story, "Degraded")["reason"] == "ConnectorBroken", "the condition"
        )
        assert "connector 'kafka' failed on the numbers of its drivers: KeyError" in str(
            story.status
        )
        assert len(story.driver.delivered) == sum(story.broker.ends.values()), (
            "the source is read all the same"
        )
        assert story.sample("skipped_records") is None

        is_broken = False
        story.driver.metrics["skippedOffsets"] = 13
        story.driver.report()
        await story.until(
            lambda: condition(story, "Degraded")["status"] == "False", "the end of the problem"
        )

    played(play)
