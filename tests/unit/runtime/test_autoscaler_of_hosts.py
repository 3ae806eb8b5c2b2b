"""The autoscaler of a source with several hosts, of which not all report."""

import asyncio

import pytest

from balanced_source.documents.report import HostReport
from balanced_source.reasons import Reason
from balanced_source_operator.controller.liveness import ALIVE
from support import virtual_time
from unit.runtime.test_autoscaler_turns import Scene

HOSTS = ("0", "1", "2")


class Hosts(Scene):
    """Three hosts with four splits and a reader each."""

    def __init__(self) -> None:
        super().__init__()
        self._reports = dict.fromkeys(HOSTS)
        self.readers = 3

    def report_of(self, host: str, *, rate: int, lag: int | None) -> None:
        """One host has read each of its splits at this rate since its last report."""
        self._sequence += 1
        before = self._reports[host]
        splits = [("s", f"{host}-{number}") for number in range(4)]
        position = rate + (next(iter(before.positions.values()), 0) or 0 if before else 0)
        self._reports[host] = HostReport(
            host=host,
            incarnation=1,
            sequence=self._sequence,
            parallelism=self.readers,
            heartbeat=virtual_time.clock(),
            lag=lag,
            positions=dict.fromkeys(splits, position),
            owners=dict.fromkeys(splits, int(host)),
        )

    async def pass_(self, seconds: int, *hosts: str, growth: int = 0) -> None:
        """Let these hosts report each second; their backlog grows by so many records."""
        for second in range(seconds):
            await asyncio.sleep(1)
            for host in hosts:
                lag = 20_000 + growth * second if growth else 0
                self.report_of(host, rate=100, lag=lag)
                await self.turn(self.readers)
            if self.scaled:
                self.readers = self.scaled[-1][1]

    @property
    def message(self) -> str:
        assert self.autoscaler.verdict is not None
        return self.autoscaler.verdict.message


def test_no_reader_is_taken_away_while_a_host_is_silent_and_the_message_names_it() -> None:
    async def play() -> None:
        scene = Hosts()
        await scene.pass_(20, *HOSTS)
        assert scene.reason == Reason.SCALE_DOWN_DELAYED

        await scene.pass_(int(ALIVE), "0", "2")
        assert scene.reason == Reason.LAG_UNKNOWN
        assert scene.message.startswith("Host 1 has not reported its lag")
        await scene.pass_(900, "0", "2")

        assert scene.scaled == []
        assert scene.posted == [("LagUnknown", True)]
        await scene.pass_(10, *HOSTS)
        assert scene.reason == Reason.SCALE_DOWN_DELAYED
        assert scene.scaled == [], "the delay begins again"

    virtual_time.run(play())


def test_readers_are_added_as_far_as_the_hosts_that_report_need_them() -> None:
    async def play() -> None:
        scene = Hosts()
        await scene.pass_(20, *HOSTS)
        await scene.pass_(int(ALIVE) + 5, "0", "2")
        assert scene.scaled == []

        await scene.pass_(30, "0", "2", growth=400)

        assert scene.scaled[0][0] == 3
        assert scene.readers > 3
        assert ("ScaledUp", False) in scene.posted

    virtual_time.run(play())


@pytest.mark.parametrize("never", ["0", "1", "2"])
def test_a_host_that_has_never_reported_is_no_host_without_load(never: str) -> None:
    async def play() -> None:
        scene = Hosts()
        await scene.pass_(900, *(host for host in HOSTS if host != never))

        assert scene.reason == Reason.LAG_UNKNOWN
        assert f"Host {never} has not" in scene.message
        assert scene.scaled == []

    virtual_time.run(play())


def test_a_source_of_which_no_host_reports_has_an_unknown_lag() -> None:
    async def play() -> None:
        scene = Hosts()
        await scene.pass_(20, *HOSTS)
        await asyncio.sleep(ALIVE)
        assert await scene.turn(3) == Reason.LAG_UNKNOWN
        assert scene.message.startswith("The driver has not reported its lag")

    virtual_time.run(play())
