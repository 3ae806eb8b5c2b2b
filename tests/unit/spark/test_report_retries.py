"""Reports that cannot be written: how often they are tried again, and what is logged of that."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.documents.alignment import SourceWatermark
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.claims import HEARTBEAT_INTERVAL, SILENCE
from balanced_source_spark.host_reporter import REPORT_INTERVAL, Progress
from balanced_source_spark.host_runtime import HostRuntime
from balanced_source_spark.report_retries import ReportRetries
from support.memory_channel import MemoryChannel
from testbed.waiting import wait_until

REFUSED = ChannelError("cannot write orders-readers: configmaps is forbidden")


class RefusingChannel(MemoryChannel):
    """Refuses as many reports as a test says."""

    refusals = 0

    def write(self, report: HostReport) -> None:
        if self.refusals:
            self.refusals -= 1
            raise REFUSED
        super().write(report)


@pytest.fixture
def channel() -> RefusingChannel:
    return RefusingChannel()


@pytest.fixture
def runtime(channel: RefusingChannel) -> Iterator[HostRuntime]:
    made = HostRuntime(channel)
    made.committed(StreamOffset())
    wait_until(lambda: channel.reports, 20, "registration", interval=0.005)
    yield made
    made.close()


@pytest.fixture
def pauses(runtime: HostRuntime, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses after failed reports, which do not last. No news may shorten them."""
    found: list[float] = []

    def wait_for(predicate: Callable[[], Any], timeout: float | None = None) -> bool:
        assert runtime._is_urgent, "the next attempt is made whatever the intervals are"
        found.append(0.0 if predicate() else timeout or 0.0)
        return True

    monkeypatch.setattr(runtime._lock, "wait_for", wait_for)
    return found


def report_soon(runtime: HostRuntime) -> None:
    """Make the next report urgent."""
    runtime._called()


def test_a_driver_whose_reports_are_refused_asks_less_and_less_often(
    channel: RefusingChannel, runtime: HostRuntime, pauses: list[float]
) -> None:
    channel.refusals, count = 8, len(channel.reports)
    with capture_logs() as lines:
        report_soon(runtime)
        wait_until(lambda: len(channel.reports) > count, 20, "a report", interval=0.005)

    assert pauses == [2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0, 10.0]
    warnings = [line for line in lines if line["log_level"] == "warning"]
    assert [line["error"] for line in warnings] == [str(REFUSED)], "once a minute"


def test_after_a_report_that_is_written_the_pauses_begin_again(
    channel: RefusingChannel, runtime: HostRuntime, pauses: list[float]
) -> None:
    for _ in range(3):
        channel.refusals, count = 3, len(channel.reports)
        report_soon(runtime)
        wait_until(lambda seen=count: len(channel.reports) > seen, 20, "a report", interval=0.005)

    assert pauses == [2.0, 4.0, 8.0] * 3


def test_a_source_of_an_alignment_group_reports_within_its_idle_timeout_after_a_fault(
    channel: RefusingChannel, runtime: HostRuntime, pauses: list[float]
) -> None:
    said = SourceWatermark(group="g", watermark=1000, max_drift=60_000, idle_timeout=9.0)
    runtime.note_progress(Progress(alignment=said))
    channel.refusals, count = 4, len(channel.reports)
    report_soon(runtime)
    wait_until(lambda: len(channel.reports) > count, 20, "a report", interval=0.005)

    assert pauses == [2.0, 3.0, 3.0, 3.0]


def test_a_query_that_ends_does_not_wait_for_the_next_attempt(
    channel: RefusingChannel, runtime: HostRuntime
) -> None:
    """The pause would last longer than `close` waits for the last report."""
    channel.refusals = 1
    report_soon(runtime)
    wait_until(lambda: not channel.refusals, 20, "a refusal", interval=0.005)

    runtime.close()

    assert channel.reports[-1].instance == "", "the claim is given up"


class Scene:
    """Retries on a clock of the test."""

    def __init__(self) -> None:
        self.now = 0.0
        self.retries = ReportRetries(clock=lambda: self.now)

    def fail_for(self, seconds: float, error: Exception = REFUSED) -> list[float]:
        end, pauses = self.now + seconds, list[float]()
        while self.now < end:
            pauses.append(self.retries.failed(error))
            self.now += pauses[-1]
        return pauses


def test_the_first_attempt_after_a_fault_comes_as_soon_as_an_ordinary_report() -> None:
    assert Scene().fail_for(1) == [REPORT_INTERVAL]


def test_no_pause_is_longer_than_the_interval_of_heartbeats() -> None:
    """Else a driver would count as dead because of the pause alone."""
    pauses = Scene().fail_for(600)

    assert max(pauses) == HEARTBEAT_INTERVAL < SILENCE / 2


def test_a_fault_is_logged_when_it_begins_and_once_a_minute() -> None:
    scene = Scene()
    with capture_logs() as lines:
        scene.fail_for(240)
        scene.fail_for(30, RuntimeError())
        scene.retries.written()
        scene.retries.written()

    assert [line["log_level"] for line in lines] == ["warning"] * 5 + ["info"]
    assert lines[0]["error"] == str(REFUSED)
    assert lines[-2]["error"] == "RuntimeError()", "another fault is logged at once"
    assert lines[-1]["event"] == "reports are written again"


def test_reports_that_are_written_log_nothing() -> None:
    with capture_logs() as lines:
        Scene().retries.written()

    assert lines == []
