"""Which hosts are lost, what becomes of their splits, and what is said of them."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import ProblemBoard
from balanced_source.coordinator import (
    CoordinatorState,
    HostGivenUp,
    HostPhase,
    HostRole,
    HostSilent,
    HostState,
)
from balanced_source.documents.report import HostReport
from balanced_source_operator.controller.liveness import ALIVE, Pulses
from balanced_source_operator.runtime.host_losses import QUIET, STARTING, HostLosses
from balanced_source_operator.spec.host_loss import HostLossPolicy
from support import virtual_time
from support.builders import driver_pod, spark_application

ACTIVE = HostState(phase=HostPhase.ACTIVE, incarnation=3)
EXPECTED = HostState()
STALE = replace(ACTIVE, report=HostReport(incarnation=3, sequence=1, heartbeat=1.0))
"""What the driver before the present one reported last."""

NAMES = {"first": "0", "second": "1", "third": "2"}
OWNERS = {("a",): 0, ("b",): 1, ("c",): 1}

WAIT = HostLossPolicy.model_validate({"after": "1m"})
REASSIGN = HostLossPolicy.model_validate({"after": "1m", "type": "Reassign"})
TWICE = HostLossPolicy.model_validate(
    {"after": "1m", "type": "Reassign", "guarantee": "AtLeastOnce"}
)
SILENT, GIVEN_UP = HostSilent("1", 3), HostGivenUp("1", 3, accepts_duplicates=False)


def spec(policy: HostLossPolicy, *, suspend: bool = False) -> Any:
    return SimpleNamespace(suspend=suspend, application=SimpleNamespace(host_loss_policy=policy))


class Scene:
    """Hosts 0 and 1 of a source; their drivers report when the test says so."""

    def __init__(self, policy: HostLossPolicy = REASSIGN) -> None:
        self.board, self.pulses = ProblemBoard(), Pulses()
        self.policy = policy
        self.applications: dict[str, Any] = {}
        self.sequence = 0
        self.is_suspended = False
        observed: Any = SimpleNamespace(by_host=self.applications)
        self.losses = HostLosses(self.pulses, self.board, observed)

    def report(self, *hosts: str) -> None:
        self.sequence += 1
        for host in hosts:
            report = HostReport(host=host, incarnation=3, sequence=self.sequence)
            self.pulses.look(host, report, now=virtual_time.clock())

    async def only(self, host: str, seconds: int) -> None:
        """Let time pass in which one host reports."""
        for _ in range(seconds // 10):
            await asyncio.sleep(10)
            self.report(host)

    def events(self, *, lineage: int = 1, **hosts: HostState) -> list[Any]:
        given = {"first": ACTIVE, "second": ACTIVE, **hosts}
        named = {NAMES[name]: host for name, host in given.items()}
        state: CoordinatorState[Any] = CoordinatorState(
            parallelism=2, hosts=named, owners=OWNERS, lineage=lineage
        )
        source = SimpleNamespace(has_ending_splits=True)
        coordinator: Any = SimpleNamespace(state=state, source=source)
        return self.losses.events(coordinator, spec(self.policy, suspend=self.is_suspended))

    @property
    def told(self) -> list[str]:
        return [problem.message for problem in self.board]


async def silent(policy: HostLossPolicy = REASSIGN, *, seconds: int = 60) -> Scene:
    """Host 1 falls silent, and host 0 reports on."""
    scene = Scene(policy)
    scene.report("0", "1")
    await scene.only("0", seconds)
    return scene


@pytest.mark.parametrize(
    ("policy", "expected", "words"),
    [
        (WAIT, SILENT, "Its 2 splits must wait until its application runs again"),
        (REASSIGN, GIVEN_UP, "Its 2 splits will go to the other hosts when a drain attempt"),
        (TWICE, replace(GIVEN_UP, accepts_duplicates=True), "The other hosts read its splits"),
    ],
)
def test_the_policy_decides_what_becomes_of_a_lost_host(
    policy: HostLossPolicy, expected: object, words: str
) -> None:
    async def play() -> None:
        scene = await silent(policy, seconds=50)
        assert (scene.events(), scene.told) == ([], [])
        await scene.only("0", 10)
        assert scene.events() == [expected]
        (told,) = scene.told
        assert told.startswith(f"Host 1 has not reported for 60 s. {words}")

        scene.report("1")
        assert (scene.events(), scene.told) == ([], [])

    virtual_time.run(play())


@pytest.mark.parametrize(
    ("role", "policy", "expected"),
    [
        (HostRole.LEAVING, REASSIGN, GIVEN_UP),
        (HostRole.JOINING, REASSIGN, SILENT),
        (HostRole.JOINING, TWICE, SILENT),
        (HostRole.DRAINING, REASSIGN, SILENT),
    ],
)
def test_a_host_that_has_nothing_or_is_given_up_already_is_not_given_up(
    role: HostRole, policy: HostLossPolicy, expected: object
) -> None:
    async def play() -> None:
        scene = await silent(policy)
        assert scene.events(second=replace(ACTIVE, role=role)) == [expected]

    virtual_time.run(play())


def test_who_accepts_duplicates_need_not_wait_for_a_drain_attempt() -> None:
    async def play() -> None:
        scene = await silent(TWICE)
        draining = replace(ACTIVE, role=HostRole.DRAINING)
        assert scene.events(second=draining) == [replace(GIVEN_UP, accepts_duplicates=True)]

    virtual_time.run(play())


def test_where_a_host_was_that_was_not_heard_since_a_loss_only_a_drain_attempt_tells() -> None:
    async def play() -> None:
        scene, draining = Scene(TWICE), replace(EXPECTED, role=HostRole.DRAINING)
        scene.report("0")
        scene.events(second=EXPECTED, lineage=2)
        await scene.only("0", 60)
        (given_up,) = scene.events(second=EXPECTED, lineage=2)
        assert isinstance(given_up, HostGivenUp)
        assert "splits will go to the other hosts when a drain attempt" in scene.told[0]
        assert scene.events(second=draining, lineage=2) == [HostSilent("1", 0)]

    virtual_time.run(play())


def test_a_host_that_has_just_fallen_silent_takes_over_nothing() -> None:
    async def play() -> None:
        scene, joining = Scene(), replace(ACTIVE, role=HostRole.JOINING)
        scene.report("0", "1", "2")
        await scene.only("0", 30)
        await scene.only("2", 30)
        assert scene.events(third=joining) == [SILENT]

    virtual_time.run(play())


def test_no_host_of_a_suspended_source_is_lost() -> None:
    async def play() -> None:
        scene = await silent(REASSIGN, seconds=60)
        assert scene.events() == [GIVEN_UP]
        scene.is_suspended = True
        assert (scene.events(), scene.told) == ([], [])
        scene.is_suspended = False
        assert scene.events() == [GIVEN_UP]

    virtual_time.run(play())


def test_a_host_that_is_alone_is_not_lost() -> None:
    async def play() -> None:
        scene = await silent()
        state: CoordinatorState[Any] = CoordinatorState(parallelism=1, hosts={"1": ACTIVE})
        coordinator: Any = SimpleNamespace(state=state, source=None)
        assert scene.losses.events(coordinator, spec(REASSIGN)) == []

    virtual_time.run(play())


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (HostRole.LEAVING, [replace(GIVEN_UP, accepts_duplicates=True)]),
        (HostRole.JOINING, []),
    ],
)
def test_a_host_that_has_read_everything_leaves_without_a_drain_attempt(
    role: HostRole, expected: list[object]
) -> None:
    async def play() -> None:
        scene = await silent()
        done = spark_application("orders-1", state="COMPLETED")
        scene.applications["1"] = [done]
        report = HostReport(host="1", incarnation=3, sequence=1)
        host = replace(ACTIVE, role=role, report=report)
        assert scene.events(second=host) == expected
        assert scene.told == []

    virtual_time.run(play())


def test_without_a_successor_the_splits_wait() -> None:
    async def play() -> None:
        scene = await silent()
        lost = HostState(phase=HostPhase.LOST, incarnation=3)
        assert scene.events(first=lost) == [SILENT]
        assert "Its 2 splits must wait, because no other host reports" in scene.told[0]

    virtual_time.run(play())


def test_while_no_host_reports_none_is_given_up_and_a_lost_one_stays_lost() -> None:
    async def play() -> None:
        scene = await silent()
        assert scene.events() == [GIVEN_UP]
        await asyncio.sleep(ALIVE)
        assert scene.events() == []
        assert scene.told[0].startswith("Host 1 has not reported")

        scene.report("0")
        assert (scene.events(), scene.told) == ([], []), "the silence of all counts for no one"

    virtual_time.run(play())


@pytest.mark.parametrize(
    ("lineage", "expected"), [(1, []), (2, [replace(GIVEN_UP, incarnation=0)])]
)
def test_a_host_that_was_not_heard_since_the_state_was_lost_is_lost_after_a_while(
    lineage: int, expected: list[object]
) -> None:
    async def play() -> None:
        scene = Scene()
        scene.report("0")
        assert scene.events(second=EXPECTED, lineage=lineage) == []
        await scene.only("0", 50)
        assert scene.events(second=EXPECTED, lineage=lineage) == []
        assert scene.losses.pause() == (10.0 if expected else None)
        await scene.only("0", 10)
        assert scene.events(second=EXPECTED, lineage=lineage) == [
            replace(each, incarnation=0) for each in expected
        ]

    virtual_time.run(play())


def test_a_host_behind_the_gate_can_take_over_from_one_that_was_never_heard() -> None:
    async def play() -> None:
        scene, behind = Scene(), HostState(phase=HostPhase.RECOVERING)
        scene.report("0")
        scene.events(first=behind, second=EXPECTED, lineage=2)
        await scene.only("0", 60)
        assert scene.events(first=behind, second=EXPECTED, lineage=2) == [
            replace(GIVEN_UP, incarnation=0)
        ]
        assert "splits will go to the other hosts" in scene.told[0]

    virtual_time.run(play())


def test_what_a_host_may_hold_since_the_state_was_lost_is_waited_for() -> None:
    async def play() -> None:
        scene = Scene(WAIT)
        scene.report("0")
        scene.events(second=EXPECTED, lineage=2)
        await scene.only("0", 60)
        assert scene.events(second=EXPECTED, lineage=2) == [HostSilent("1", 0)]
        assert "It may hold splits since before the documents" in scene.told[0]

    virtual_time.run(play())


def running(scene: Scene, uid: str = "first") -> None:
    """Host 0 runs; host 1 has an application that runs, and one that has ended."""
    application = spark_application("orders-1", uid=uid)
    scene.applications["1"] = [
        spark_application("orders-2"),
        spark_application("orders-3", state="COMPLETED"),
    ]
    scene.applications["0"] = [application]


def test_drivers_that_run_and_do_not_report_are_a_problem_after_a_while() -> None:
    async def play() -> None:
        scene = Scene()
        running(scene)
        scene.report("0", "1")
        scene.events()
        await asyncio.sleep(QUIET - 1)
        scene.events()
        assert scene.told == []
        assert scene.losses.pause() == 1.0
        await asyncio.sleep(1)
        scene.events()
        (told,) = scene.told
        assert told.startswith(
            "no driver of this source has reported for 120 s, although orders-1, orders-2 run:"
        )

        scene.report("0")
        scene.events()
        assert scene.told == []

    virtual_time.run(play())


def test_a_driver_that_has_just_started_again_is_given_more_time() -> None:
    """Of one that reads packages, the pod runs for minutes before it reports."""

    async def play() -> None:
        scene = Scene()
        running(scene)
        del scene.applications["1"]
        scene.report("0")
        pod = driver_pod(uid="second", creationTimestamp="2026-01-01T00:00:00Z")
        scene.pulses.look_at_drivers(scene.applications, [pod], now=virtual_time.clock())
        scene.events(first=STALE)
        await asyncio.sleep(STARTING - 1)
        scene.events(first=STALE)
        assert scene.told == []
        assert scene.losses.pause() == 1.0
        await asyncio.sleep(1)
        scene.events(first=STALE)
        (told,) = scene.told
        assert told.startswith("driver pod orders-1-driver has run for 300 s and has not regist")
        assert "Deleting the pod would begin its start again" in told

    virtual_time.run(play())


def test_an_application_that_has_just_started_is_given_the_whole_time() -> None:
    async def play() -> None:
        scene = Scene()
        running(scene)
        scene.report("0", "1")
        scene.events()
        await asyncio.sleep(QUIET - 1)
        running(scene, "second")
        scene.events()
        await asyncio.sleep(QUIET - 1)
        scene.events()
        assert scene.told == []
        await asyncio.sleep(1)
        scene.events()
        assert len(scene.told) == 1

        scene.applications.clear()
        scene.events()
        assert scene.told == [], "none runs"

    virtual_time.run(play())


def test_a_source_whose_drivers_were_never_heard_is_not_quiet() -> None:
    async def play() -> None:
        scene = Scene()
        running(scene)
        scene.events()
        await asyncio.sleep(QUIET)
        scene.events()
        assert (scene.told, scene.losses.pause()) == ([], None)

    virtual_time.run(play())


def test_nothing_is_due_while_all_hosts_report() -> None:
    async def play() -> None:
        scene = Scene()
        scene.report("0", "1")
        scene.events(lineage=2)
        assert scene.losses.pause() is None

    virtual_time.run(play())


def test_the_next_look_is_due_when_a_silent_host_counts_as_lost() -> None:
    async def play() -> None:
        scene = await silent(seconds=40)
        scene.events()
        assert scene.losses.pause() == 20.0
        await scene.only("0", 20)
        assert scene.losses.pause() is None

    virtual_time.run(play())
