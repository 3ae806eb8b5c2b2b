"""Alignment groups in a Spark driver.

What comes without a new epoch is seen, and what others wait for is reported.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from balanced_source.api import MAX_WATERMARK
from balanced_source.documents.alignment import GroupWatermark, SourceWatermark
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source_spark.host_reporter import Progress
from balanced_source_spark.host_runtime import HostRuntime
from support.memory_channel import MemoryChannel
from testbed.waiting import wait_until

SAID = SourceWatermark(group="g", watermark=1000, max_drift=60_000, idle_timeout=0.3)
DOCUMENT = Assignment(epoch=1, parallelism=1, incarnations={"0": 1})


@pytest.fixture
def channel() -> MemoryChannel:
    return MemoryChannel()


@pytest.fixture
def runtime(channel: MemoryChannel) -> Iterator[HostRuntime]:
    made = HostRuntime(channel)
    made.committed(StreamOffset())
    wait_until(lambda: channel.reports, 20, "registration", interval=0.005)
    yield made
    made.close()


def test_news_of_the_group_come_without_a_new_epoch(
    channel: MemoryChannel, runtime: HostRuntime
) -> None:
    channel.publish(DOCUMENT)
    told = GroupWatermark(watermark=500, heartbeat=1.0)

    channel.publish(replace(DOCUMENT, alignment=told))

    newest = runtime.newest_assignment(timeout=5)
    assert newest is not None
    assert newest.alignment == told
    channel.publish(replace(DOCUMENT, epoch=0))
    assert runtime.newest_assignment(timeout=5) == newest, "an older epoch changes nothing"


def test_a_source_in_a_group_reports_within_its_idle_timeout_although_nothing_changes(
    channel: MemoryChannel, runtime: HostRuntime
) -> None:
    """Without a group the next report would come after ten seconds."""
    runtime.note_progress(Progress(alignment=SAID))

    wait_until(
        lambda: [r.alignment for r in channel.reports].count(SAID) >= 3,
        8,
        "signs of life",
        interval=0.005,
    )


def test_that_a_source_is_idle_is_reported_soon(
    channel: MemoryChannel, runtime: HostRuntime
) -> None:
    patient = replace(SAID, idle_timeout=3600.0)
    runtime.note_progress(Progress(alignment=patient))
    wait_until(lambda: channel.reports[-1].alignment == patient, 8, "the watermark", interval=0.005)

    idle = replace(patient, watermark=MAX_WATERMARK)
    runtime.note_progress(Progress(alignment=idle))

    wait_until(lambda: channel.reports[-1].alignment == idle, 8, "the news", interval=0.005)
