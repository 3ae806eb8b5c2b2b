"""How long a host that has not registered is waited for before the others read its share."""

import asyncio
from typing import Any

import pytest

from balanced_source.api import ProblemBoard
from balanced_source.coordinator import CoordinatorState, HostPhase, HostRole, HostState
from balanced_source_operator.runtime.host_deadlines import HostDeadlines
from support import virtual_time

EXPECTED = HostState()
RECOVERING = HostState(phase=HostPhase.RECOVERING)
ACTIVE = HostState(phase=HostPhase.ACTIVE)


class Scene:
    """Hosts 0 and 1 of a source; a host may take a minute."""

    def __init__(self) -> None:
        self.board = ProblemBoard()
        self._deadlines = HostDeadlines(60.0, self.board)

    def overdue(self, first: HostState, second: HostState, *, lineage: int = 1) -> list[str]:
        state: CoordinatorState[Any] = CoordinatorState(
            parallelism=2, hosts={"0": first, "1": second}, lineage=lineage
        )
        return self._deadlines.overdue(state)

    @property
    def named(self) -> list[str]:
        return [problem.scope for problem in self.board]


def test_a_host_that_does_not_register_is_overdue_after_its_time() -> None:
    async def play() -> None:
        scene = Scene()
        assert scene.overdue(ACTIVE, EXPECTED) == []
        await asyncio.sleep(59.9)
        assert (scene.overdue(ACTIVE, EXPECTED), scene.named) == ([], [])
        await asyncio.sleep(0.1)
        assert (scene.overdue(ACTIVE, EXPECTED), scene.named) == (["1"], ["1"])
        (problem,) = scene.board
        assert problem.message.startswith("Host 1 has not registered for 60 s.")

    virtual_time.run(play())


def test_a_host_that_has_come_and_goes_again_has_the_whole_time_again() -> None:
    async def play() -> None:
        scene = Scene()
        scene.overdue(ACTIVE, EXPECTED)
        await asyncio.sleep(60)
        assert scene.overdue(ACTIVE, EXPECTED) == ["1"]

        assert (scene.overdue(ACTIVE, ACTIVE), scene.named) == ([], [])
        assert scene.overdue(ACTIVE, EXPECTED) == []
        await asyncio.sleep(59)
        assert (scene.overdue(ACTIVE, EXPECTED), scene.named) == ([], [])

    virtual_time.run(play())


@pytest.mark.parametrize(
    ("role", "is_named"),
    [(HostRole.JOINING, True), (HostRole.LEAVING, False), (HostRole.DRAINING, False)],
)
def test_no_share_of_a_host_without_readers_is_waited_for(
    role: HostRole, *, is_named: bool
) -> None:
    async def play() -> None:
        scene = Scene()
        scene.overdue(ACTIVE, HostState(role=role))
        await asyncio.sleep(60)
        assert scene.overdue(ACTIVE, HostState(role=role)) == []
        assert scene.named == ["1"] * is_named

    virtual_time.run(play())


@pytest.mark.parametrize(
    ("other", "lineage", "is_late"),
    [
        (EXPECTED, 1, False),
        (RECOVERING, 1, True),
        (RECOVERING, 2, False),
        (ACTIVE, 2, True),
    ],
    ids=["no host has come", "behind the gate", "behind the gate after a loss", "reads"],
)
def test_the_time_runs_while_another_host_can_read_the_share(
    other: HostState, lineage: int, *, is_late: bool
) -> None:
    async def play() -> None:
        scene = Scene()
        scene.overdue(EXPECTED, other, lineage=lineage)
        await asyncio.sleep(60)
        assert scene.overdue(EXPECTED, other, lineage=lineage) == ["0"] * is_late

    virtual_time.run(play())
