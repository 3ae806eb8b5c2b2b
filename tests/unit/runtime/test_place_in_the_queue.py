"""A source keeps its place among those that wait for a restart only while it waits for one."""

from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import Problem, ProblemBoard
from balanced_source.reasons import Reason
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.runtime.fleet import Decisions, Fleet
from balanced_source_operator.runtime.restart_slots import RestartSlots
from balanced_source_operator.settings import Settings
from support import virtual_time
from support.builders import identity

RUNS = Decision(state=ApplicationState.RUNNING)


def waiting(reason: Reason) -> Decision:
    return Decision(
        state=ApplicationState.RUNNING, pending=Problem(reason=reason, message="a restart waits")
    )


class Decided(Fleet):
    """A fleet whose applications need what the test says."""

    def __init__(self, slots: RestartSlots) -> None:
        environment: Any = SimpleNamespace(restarts=slots, settings=Settings())
        unused: Any = None
        super().__init__(environment, identity(), unused, unused, ProblemBoard(), wake=lambda: None)
        self.decisions: Decisions = {}

    async def _turn(self, *_: Any, **__: Any) -> Decisions:
        return self.decisions

    async def decide(self, *decisions: Decision) -> None:
        self.decisions = {str(number): decision for number, decision in enumerate(decisions)}
        unused: Any = None
        await self.turn(unused, None, needs_driver=False)


@pytest.mark.parametrize(
    ("decisions", "keeps_place"),
    [
        ((waiting(Reason.WAITING_FOR_OTHER_SOURCES),), True),
        ((RUNS, waiting(Reason.WAITING_FOR_OTHER_SOURCES)), True),
        ((waiting(Reason.WAITING_FOR_NONCE),), False),
        ((RUNS,), False),
    ],
)
def test_a_source_that_waits_for_others_keeps_its_place(
    decisions: tuple[Decision, ...], *, keeps_place: bool
) -> None:
    async def play() -> None:
        slots, woken = RestartSlots(limit=1), list[str]()
        slots.take(identity("first"), lambda: None)
        slots.take(identity(), lambda: woken.append("this one"))
        slots.take(identity("last"), lambda: woken.append("last"))

        await Decided(slots).decide(*decisions)
        slots.release(identity("first"))

        assert woken[-1] == ("this one" if keeps_place else "last")

    virtual_time.run(play())


@pytest.mark.parametrize(
    ("decision", "has_slot"),
    [(RUNS, False), (Decision(state=ApplicationState.PENDING), True)],
    ids=["runs again", "is on its way"],
)
def test_a_source_has_its_slot_until_its_applications_run_again(
    decision: Decision, *, has_slot: bool
) -> None:
    async def play() -> None:
        slots = RestartSlots(limit=1)
        slots.take(identity(), lambda: None)

        await Decided(slots).decide(RUNS, decision)

        assert slots.has(identity()) is has_slot

    virtual_time.run(play())
