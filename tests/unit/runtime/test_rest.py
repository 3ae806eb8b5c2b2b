"""How the task of a source waits for its next turn, and what ends it."""

import asyncio
from dataclasses import replace

import pytest

from balanced_source.documents.report import HostReport
from balanced_source_operator.controller.liveness import ALIVE, Pulses
from balanced_source_operator.runtime.rest import rest, unless_ended, until_check
from support import virtual_time

REPORT = HostReport(incarnation=1, sequence=1)


class Scene:
    """A source whose driver has just reported."""

    def __init__(self) -> None:
        self.event, self.pulses = asyncio.Event(), Pulses()
        self.report()

    def report(self, sequence: int = 1) -> None:
        self.pulses.look("0", replace(REPORT, sequence=sequence), now=virtual_time.clock())

    async def rested(self, pause: float, *, turn: float = 0.0) -> float:
        """Return the seconds for which the source rests after a turn of so many seconds."""
        silent = self.pulses.silent(now=virtual_time.clock())
        await asyncio.sleep(turn)
        begin = virtual_time.clock()
        await rest(pause, self.event, self.pulses, silent=silent)
        return virtual_time.clock() - begin


def test_a_source_rests_until_its_time_is_up() -> None:
    async def play() -> None:
        assert await Scene().rested(20.0) == 20.0

    virtual_time.run(play())


def test_other_tasks_run_even_if_a_source_does_not_rest() -> None:
    async def play() -> None:
        ran: list[bool] = []
        asyncio.get_running_loop().call_soon(ran.append, True)
        await Scene().rested(0.0)
        assert ran

    virtual_time.run(play())


def test_a_source_that_is_woken_rests_no_longer() -> None:
    async def play() -> None:
        scene = Scene()
        asyncio.get_running_loop().call_later(5.0, scene.event.set)
        assert await scene.rested(20.0) == 5.0

    virtual_time.run(play())


def test_a_driver_that_falls_silent_ends_the_rest() -> None:
    async def play() -> None:
        scene = Scene()
        assert await scene.rested(100.0) == ALIVE
        assert await scene.rested(100.0) == 100.0, "its silence is known"

    virtual_time.run(play())


def test_a_driver_that_falls_silent_in_a_turn_is_noticed_after_it() -> None:
    async def play() -> None:
        assert await Scene().rested(100.0, turn=ALIVE + 1) == 0.0

    virtual_time.run(play())


def test_a_driver_that_has_reported_meanwhile_ends_no_rest() -> None:
    async def play() -> None:
        scene = Scene()
        asyncio.get_running_loop().call_later(20.0, scene.report, 2)
        assert await scene.rested(100.0) == 20.0 + ALIVE

    virtual_time.run(play())


def test_a_cancelled_task_ends_and_an_error_of_a_connector_does_not_end_it() -> None:
    async def play() -> None:
        error = ValueError("of a connector")
        assert unless_ended(error) is error
        cancelled = asyncio.CancelledError()
        assert unless_ended(cancelled) is cancelled, "the task itself was not cancelled"
        with pytest.raises(GeneratorExit):
            unless_ended(GeneratorExit())

    async def cancelled() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            unless_ended(error)

    async def stopped() -> None:
        task = asyncio.create_task(cancelled())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    virtual_time.run(play())
    virtual_time.run(stopped())


@pytest.mark.parametrize(
    ("reasons", "times"),
    [
        (["Reading", "Stable", "AsExpected"], 5),
        (["Reading", "Stable", "AsExpected", "WithinTarget"], 5),
        (["Reading", "Stable", "AsExpected", "ScaleDownDelayed"], 1),
        (["WithinTarget"], 1),
        ([], 1),
        (["Reading", "Stable"], 1),
        (["Reading", "WaitingForReaders", "AsExpected"], 1),
        (["Reading", "Stable", "ClusterUnreachable"], 1),
        (["Suspended", "Stable", "AsExpected"], 1),
        (["Reading", "Stable", "AsExpected", "RestartPending"], 1),
    ],
)
def test_only_a_source_at_rest_is_checked_less_often(reasons: list[str], times: int) -> None:
    status = {"conditions": [{"reason": reason} for reason in reasons]}
    assert until_check(60.0, status) == 60.0 * times


@pytest.mark.parametrize(
    ("role", "state", "times"),
    [("Member", "Running", 5), ("Joining", "Running", 1), ("Member", "Submitted", 1)],
)
def test_a_source_one_of_whose_hosts_comes_or_goes_is_not_at_rest(
    role: str, state: str, times: int
) -> None:
    hosts = [{"role": "Member", "state": "Running"}, {"role": role, "state": state}]
    reasons = ("Reading", "Stable", "AsExpected")
    status = {"conditions": [{"reason": reason} for reason in reasons], "hosts": hosts}
    assert until_check(60.0, status) == 60.0 * times
