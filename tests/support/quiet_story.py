"""Stories of a source of which all is read, and whose driver reports by hand."""

from dataclasses import replace
from typing import Any

from balanced_source.documents import report as report_document
from balanced_source_operator.settings import Settings
from support.cluster_story import SPEC, Story
from support.virtual_time import clock
from support.world import UID


async def at_rest(story: Story, **spec: Any) -> None:
    """All is read, and the operator has written what it has to say about it."""
    source = {"kafka": {**SPEC["source"]["kafka"], "discovery": {"interval": "5m"}}}
    await story.begin(source=source, **spec)
    await story.launched()
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)
    await beats(story, 2 * Settings().resync + 10)


async def beats(story: Story, seconds: float, *, read: int = 0) -> None:
    """The driver reports every 10 seconds."""
    begin = clock()
    while clock() - begin < seconds:
        beat(story, read=read)
        due = clock() + 10
        await story.until(lambda due=due: clock() >= due, "the next heartbeat")  # type: ignore[misc]


def beat(story: Story, *, read: int = 0, lag: int | None = 0) -> None:
    """A report; `read`: records of each split that were read since the driver started."""
    story.driver.sequence += 1
    report = story.driver.host.report(sequence=story.driver.sequence)
    assert report is not None
    positions = {split_id: int(at or 0) + read for split_id, at in report.positions.items()}
    story.documents["0"] = report_document.encode(
        replace(report, heartbeat=clock(), lag=lag, positions=positions), source=UID
    )
