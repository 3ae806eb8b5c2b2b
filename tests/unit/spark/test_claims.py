"""A driver that wants a source which another one has read.

When it may take over, and when it must not.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import MILLIS_BEHIND, HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import FencedError, SourceInUseError
from balanced_source_spark import claims
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.channels.folder import FolderChannel
from balanced_source_spark.claims import HEARTBEAT_INTERVAL, PATIENCE, SILENCE, ClaimWatch
from balanced_source_spark.host_reporter import Progress
from balanced_source_spark.host_runtime import HostRuntime
from balanced_source_spark.instance import POD_NAME, POD_UID, Instance
from support.memory_channel import MemoryChannel
from testbed.waiting import wait_until

ME = Instance(id="me", pod="orders-2-driver", uid="u2")
FORMER = Instance(id="former", pod="orders-1-driver", uid="u1")
ELSEWHERE = Instance(id="laptop", machine="boot-of-another/1", pid=4711, started=99)


class Scene:
    """A former driver, whose reports the test writes, and its successor's claim."""

    def __init__(self, former: Instance = FORMER, me: Instance = ME) -> None:
        self.channel = MemoryChannel()
        self.now = 1000.0
        self.report: HostReport | None = HostReport(
            incarnation=3, instance=str(former), sequence=7, location="node-1"
        )
        self.channel.former = lambda _: self.report  # type: ignore[method-assign]
        self.watch = ClaimWatch(self.channel, host="0", instance=me, clock=lambda: self.now)

    def heartbeat(self) -> None:
        assert self.report is not None
        self.report = replace(self.report, sequence=self.report.sequence + 1)

    def after(self, seconds: float) -> bool:
        self.now += seconds
        return self.watch.may_claim()


def test_the_first_claim_finds_no_former_instance() -> None:
    scene = Scene()
    scene.report = None
    assert scene.watch.may_claim()


def test_a_driver_that_keeps_reporting_is_left_alone() -> None:
    scene = Scene()
    assert not scene.watch.may_claim()
    for _ in range(int(PATIENCE / HEARTBEAT_INTERVAL) - 1):
        scene.heartbeat()
        assert not scene.after(HEARTBEAT_INTERVAL)

    scene.heartbeat()
    with pytest.raises(
        SourceInUseError, match=r"pod orders-1-driver, incarnation 3 .* Stop the other query"
    ):
        scene.after(HEARTBEAT_INTERVAL)


def test_a_driver_that_has_fallen_silent_is_followed_after_three_heartbeats() -> None:
    scene = Scene()
    assert not scene.watch.may_claim()
    scene.heartbeat()
    assert not scene.after(HEARTBEAT_INTERVAL)
    assert not scene.after(SILENCE - 1)
    assert scene.after(1)


def test_clocks_of_two_machines_are_never_compared() -> None:
    scene = Scene()
    assert scene.report is not None
    for heartbeat in (0.0, 1e12):
        scene.report = replace(scene.report, heartbeat=heartbeat)
        assert not scene.watch.may_claim()


@pytest.mark.parametrize(
    ("former", "me"),
    [
        (
            Instance(id="a", pod="orders-1-driver", uid="u1"),
            Instance(id="b", pod="orders-1-driver", uid="u2"),
        ),
        (replace(Instance.of_this_process(), pid=2**22 + 1), Instance.of_this_process()),
        (replace(Instance.of_this_process(), started=1), Instance.of_this_process()),
    ],
    ids=["its pod was replaced", "its process is gone", "its process id is another process's"],
)
def test_a_driver_that_is_known_to_be_gone_is_followed_at_once(
    former: Instance, me: Instance
) -> None:
    assert Scene(former, me).watch.may_claim()


def test_the_cluster_knows_that_a_pod_is_gone() -> None:
    scene = Scene()
    scene.channel.is_gone = lambda instance: instance == FORMER  # type: ignore[method-assign]
    assert scene.watch.may_claim()


def test_the_pod_of_an_older_release_is_known_by_its_host_name() -> None:
    scene = Scene(Instance(id="3f2a9c1b"))
    scene.channel.is_gone = lambda instance: instance.pod == "node-1"  # type: ignore[method-assign]
    assert scene.watch.may_claim()


@pytest.mark.parametrize(
    "former", [ELSEWHERE, FORMER, Instance(id="3f2a9c1b"), Instance.of_this_process()]
)
def test_an_unknown_instance_is_not_taken_for_dead(former: Instance) -> None:
    assert not Scene(former, Instance.of_this_process()).watch.may_claim()


def test_a_killed_process_is_gone_and_a_frozen_one_is_not() -> None:
    code = (
        "from balanced_source_spark.instance import Instance; print(Instance.of_this_process(),"
        " flush=True); input()"
    )
    command = [sys.executable, "-c", code]
    # Our code
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:  # noqa: S603
        assert child.stdout is not None
        former = Instance.parse(child.stdout.readline().decode().strip())
        me = Instance.of_this_process()
        assert former.pid == child.pid
        assert not former.is_gone(seen_from=me)
        child.send_signal(signal.SIGSTOP)
        assert not former.is_gone(seen_from=me)
        child.kill()
        # a zombie, as long as no one asks for its exit code
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert former.is_gone(seen_from=me)
    assert former.is_gone(seen_from=me)


def test_a_driver_gets_the_name_of_its_pod() -> None:
    told = Instance.of_this_process({POD_NAME: "orders-1-driver", POD_UID: "u1"})
    assert (told.pod, told.uid) == ("orders-1-driver", "u1")


@given(
    st.builds(
        Instance,
        id=st.from_regex(r"[0-9a-f]{8}", fullmatch=True),
        pod=st.from_regex(r"[a-z0-9.-]{0,20}", fullmatch=True),
        uid=st.from_regex(r"[a-z0-9-]{0,36}", fullmatch=True),
        machine=st.from_regex(r"[a-z0-9/-]{0,40}", fullmatch=True),
        pid=st.integers(0, 2**31),
        started=st.integers(0, 2**62),
    )
)
def test_an_instance_is_read_as_it_was_written(instance: Instance) -> None:
    assert Instance.parse(str(instance)) == instance


@given(st.text())
def test_a_claim_of_older_software_is_an_unknown_instance(text: str) -> None:
    assert not Instance.parse(text).is_gone(seen_from=ME)


# --- what becomes of the query --------------------------------------------------------------------


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


def assignment(incarnation: int) -> Assignment:
    return Assignment(epoch=1, parallelism=1, incarnations={"0": incarnation})


def test_a_query_that_is_fenced_by_the_assignment_ends_with_an_error(
    channel: MemoryChannel, runtime: HostRuntime
) -> None:
    channel.publish(assignment(1))
    wait_until(lambda: runtime.base() is not None, 20, "an assignment", interval=0.005)
    channel.publish(replace(assignment(2), epoch=2))

    with pytest.raises(FencedError, match=r"incarnation 2 of host 0.*stop the other one"):
        wait_until(lambda: runtime.base() is None, 20, "an error", interval=0.005)
    with pytest.raises(FencedError):
        runtime.base()


def test_a_query_whose_report_is_refused_ends_with_an_error(
    channel: MemoryChannel, runtime: HostRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(report: HostReport) -> None:
        raise FencedError(f"incarnation {report.incarnation + 1} has taken over")

    monkeypatch.setattr(channel, "write", refuse)
    channel.publish(replace(assignment(1), lineage=2))

    def ended() -> bool:
        runtime.committed(StreamOffset(epoch=1))
        runtime.planned(StreamOffset(epoch=2))
        return runtime.base() is None and False

    with pytest.raises(FencedError, match="has taken over"):
        wait_until(ended, 20, "an error", interval=0.005)


def test_the_second_query_on_one_folder_ends_with_an_error_and_the_first_reads_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "PATIENCE", 0.1)
    monkeypatch.setattr(claims, "LOOK_EVERY", 0.01)
    monkeypatch.setattr("balanced_source_spark.host_reporter.LOOK_EVERY", 0.01)
    first = HostRuntime(FolderChannel(tmp_path, source="local"), instance=ELSEWHERE)
    first.committed(StreamOffset())
    report = FolderChannel(tmp_path, source="local")
    wait_until(lambda: report.former("0"), 20, "registration of the first", interval=0.005)
    second = HostRuntime(FolderChannel(tmp_path, source="local"))
    second.committed(StreamOffset())

    epochs = iter(range(1, 10_000))

    def ended() -> bool:
        first.planned(StreamOffset(epoch=next(epochs)))  # each one is reported at once
        assert first.base() is None
        return second.base() is not None

    with pytest.raises(SourceInUseError, match="process 4711, incarnation 1 of host 0"):
        wait_until(ended, 20, "an error of the second", interval=0.02)
    first.check_owner()
    first.close()
    second.close()


def test_a_query_that_ends_gives_up_its_claim(channel: MemoryChannel) -> None:
    """Its last report keeps the positions; its lag is unknown from then on."""
    runtime = HostRuntime(channel)
    runtime.committed(
        StreamOffset(epoch=3, positions={("c", "t", 0): 7}, owners={("c", "t", 0): 0})
    )
    wait_until(lambda: channel.reports, 20, "registration", interval=0.005)
    runtime.note_progress(Progress(lag=5, metrics=lambda: {"skippedOffsets": 2, MILLIS_BEHIND: 0}))
    runtime.close()

    first, *_, last = channel.reports
    assert first.instance
    assert not last.instance
    assert last.sequence > max(report.sequence for report in channel.reports[:-1])
    assert (last.positions, last.lag, last.metrics) == (
        {("c", "t", 0): 7},
        None,
        {"skippedOffsets": 2},
    )


def test_the_next_query_starts_at_once_without_another_sign_that_the_previous_one_ended(
    tmp_path: Path,
) -> None:
    first = HostRuntime(FolderChannel(tmp_path, source="local"), instance=ELSEWHERE)
    first.committed(StreamOffset())
    report = FolderChannel(tmp_path, source="local")
    wait_until(lambda: report.former("0"), 20, "registration of the first", interval=0.005)
    watch = ClaimWatch(report, host="0", instance=ME)
    assert not watch.may_claim()

    first.close()

    assert watch.may_claim()


def test_a_query_that_never_registered_has_nothing_to_give_up(channel: MemoryChannel) -> None:
    HostRuntime(channel).close()
    assert not channel.reports


def test_a_query_that_was_fenced_does_not_touch_the_claim_of_the_other_one(
    channel: MemoryChannel, runtime: HostRuntime
) -> None:
    channel.publish(assignment(2))
    with pytest.raises(FencedError):
        runtime.base()
    runtime.close()

    assert all(report.instance for report in channel.reports)


def test_a_claim_that_cannot_be_given_up_keeps_nothing_from_ending(
    channel: MemoryChannel, runtime: HostRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: HostReport) -> None:
        raise ChannelError("the API server does not answer")

    monkeypatch.setattr(channel, "write", refuse)
    runtime.close()

    assert channel.listener is None, "the channel is closed too"


class Sleeps:
    """The module `time`, whose pauses are noted and do not last."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)


def test_a_driver_that_cannot_register_tries_again_less_and_less_often(
    channel: MemoryChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeps, refusals = Sleeps(), [ChannelError("the API server does not answer")] * 6

    def claim(_: str) -> int:
        if refusals:
            raise refusals.pop()
        return 1

    monkeypatch.setattr("balanced_source_spark.host_reporter.time", sleeps)
    monkeypatch.setattr(channel, "claim", claim)
    runtime = HostRuntime(channel)
    runtime.committed(StreamOffset())
    wait_until(lambda: channel.reports, 20, "registration", interval=0.005)
    runtime.close()

    first = sleeps.seconds[0]
    expected = [first * factor for factor in (1, 2, 4, 8, 16, 32)]
    assert sleeps.seconds[:6] == [min(delay, 5.0) for delay in expected]
    assert expected[-1] > 5.0
