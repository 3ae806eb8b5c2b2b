"""Custom events in a Spark driver.

From the assignment to whoever listens, from readers into the report.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from balanced_source.api import SourceEvent
from balanced_source.documents.assignment import Assignment, NumberedEvent
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source_spark.host_runtime import HostRuntime
from support.memory_channel import MemoryChannel
from testbed.waiting import wait_until

SPLIT = ("main", "orders", 0)


class Scene:
    """A driver that is registered, and an operator that is this test."""

    def __init__(self, on_event: Callable[[int, SourceEvent], None] | None = None) -> None:
        self.heard: list[tuple[int, str]] = []
        self.channel = MemoryChannel()
        listen = on_event or (lambda subtask, event: self.heard.append((subtask, event.name)))
        self.runtime = HostRuntime(self.channel, on_event=listen)
        self.runtime.committed(StreamOffset())
        wait_until(lambda: self.channel.reports, 20, "registration", interval=0.005)

    def publish(self, epoch: int, *names: str, seen: int = 0) -> None:
        events = tuple(
            NumberedEvent(number=number, subtask_id=0, event=SourceEvent(name=name))
            for number, name in enumerate(names, start=1)
        )
        document = Assignment(
            epoch=epoch,
            parallelism=1,
            incarnations={"0": 1},
            owners={SPLIT: 0},
            starts={SPLIT: 0},
            events=events,
            events_seen={"0": seen},
        )
        self.channel.publish(document)

    def batch(self) -> None:
        wait_until(lambda: self.runtime.base() is not None, 20, "an assignment", interval=0.005)
        base = self.runtime.base()
        assert base is not None
        self.runtime.planned(replace(base, starts=base.starts))

    def wait_report(self, what: str, condition: Callable[[HostReport], bool]) -> None:
        wait_until(lambda: condition(self.channel.reports[-1]), 20, what, interval=0.005)


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.runtime.close()


def test_events_come_with_the_first_batch_of_their_epoch_and_once(scene: Scene) -> None:
    scene.publish(1, "one", "two")
    assert scene.heard == []

    scene.batch()
    scene.batch()
    scene.publish(2, "one", "two", "three")
    scene.batch()

    assert scene.heard == [(0, "one"), (0, "two"), (0, "three")]
    scene.wait_report("the acknowledgement", lambda report: report.events_seen == 3)


def test_a_readers_event_is_reported_until_it_is_acknowledged(scene: Scene) -> None:
    scene.publish(1)
    scene.batch()

    scene.runtime.send_event(0, SourceEvent(name="hello"))
    scene.wait_report(
        "the event", lambda report: [e.event.name for e in report.events] == ["hello"]
    )
    scene.publish(2, seen=1)
    scene.batch()

    scene.wait_report("a report without it", lambda report: report.epoch == 2 and not report.events)


def test_a_listener_that_fails_does_not_end_the_query() -> None:
    def fail(subtask: int, event: SourceEvent) -> None:
        raise ValueError(f"{subtask} does not like {event.name}")

    scene = Scene(fail)
    scene.publish(1, "one")
    scene.batch()

    scene.wait_report("the acknowledgement", lambda report: report.events_seen == 1)
    scene.runtime.close()


def test_a_report_that_cannot_be_written_does_not_end_reporting(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the reason, such as a value that is not JSON.

    The driver would be lost, and no one would know why.
    """
    tries: list[HostReport] = []

    def write(_: MemoryChannel, report: HostReport) -> None:
        tries.append(report)
        raise TypeError("Object of type Decimal is not JSON serializable")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryChannel, "write", write)
        scene.runtime.send_event(0, SourceEvent(name="hello"))
        wait_until(lambda: len(tries) > 1, 20, "another attempt", interval=0.005)

    scene.wait_report(
        "the event", lambda report: [e.event.name for e in report.events] == ["hello"]
    )
    assert "Object of type Decimal is not JSON serializable" in capsys.readouterr().out


def test_an_event_before_the_registration_is_not_taken() -> None:
    """Its sender keeps it."""
    runtime = HostRuntime(MemoryChannel())
    try:
        assert not runtime.send_event(0, SourceEvent(name="early"))
    finally:
        runtime.close()
    scene = Scene()
    scene.publish(1)
    scene.batch()
    assert scene.runtime.send_event(0, SourceEvent(name="hello"))
    scene.runtime.close()


def test_a_registration_is_logged_with_what_the_host_holds() -> None:
    with capture_logs() as lines:
        runtime = HostRuntime(MemoryChannel(), host="2")
        runtime.committed(StreamOffset(epoch=1, positions={SPLIT: 5}))
        wait_until(lambda: lines, 20, "the line", interval=0.005)
        runtime.close()

    line = next(line for line in lines if line["event"] == "the driver has joined its source")
    assert (line["host"], line["incarnation"], line["splits_of_its_checkpoint"]) == ("2", 1, 1)
