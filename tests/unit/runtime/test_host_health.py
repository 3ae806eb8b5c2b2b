"""Which hosts do not run, and which of them changed settings do not wait for."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import ProblemBoard
from balanced_source.coordinator import CoordinatorState, HostRole, HostState
from balanced_source.documents import report as report_document
from balanced_source.documents.report import HostReport
from balanced_source.documents.storage import pack
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.broken_hosts import BrokenHosts
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.rollback import TriedApplication
from balanced_source_operator.resources.kinds import INCARNATION_ANNOTATION
from balanced_source_operator.runtime.host_health import HostHealth
from support import virtual_time
from support.builders import UID, identity

HOSTS = ("0", "1")
PATIENCE = 60.0


def application(
    state: ApplicationState = ApplicationState.RUNNING,
    *,
    has_adopted: bool = False,
    has_registered: bool = False,
) -> TriedApplication:
    annotations = {INCARNATION_ANNOTATION: "0" if has_registered else "1"}
    return TriedApplication(
        manifest={"metadata": {"annotations": annotations}},
        decision=Decision(state=state),
        incarnation=1,
        has_adopted=has_adopted,
        since=0.0,
    )


RUNS = application(has_adopted=True, has_registered=True)
BEGINS = application(has_registered=True)
STARTS = application(ApplicationState.PENDING)


class Scene:
    """Hosts 0 and 1; host 0 runs."""

    def __init__(self) -> None:
        self.board = ProblemBoard()
        self.known = BrokenHosts()
        self._reports: dict[str, Any] = {}
        observed: Any = SimpleNamespace(get=lambda _, name: self._reports.get(name))
        self.health = HostHealth(PATIENCE, identity(), observed, self.board)

    def has_run(self, host: str, *, epoch: int = 3) -> None:
        """The last driver of a host has reported."""
        report = HostReport(host=host, incarnation=1, sequence=1, epoch=epoch)
        blob = pack(report_document.encode(report, source=UID))
        name = identity().on_host(host).documents.readers
        self._reports[name] = {"data": dict(blob.data), "binaryData": dict(blob.binary)}

    def look(
        self,
        second: TriedApplication | None = None,
        *,
        role: HostRole = HostRole.MEMBER,
        trial: float = 0.0,
    ) -> frozenset[str]:
        """Look at the hosts; return those that nothing waits for."""
        hosts = {"0": HostState(), "1": HostState(role=role)}
        state: CoordinatorState[Any] = CoordinatorState(parallelism=2, hosts=hosts)
        seen = {"0": RUNS} | ({} if second is None else {"1": second})
        self.known = self.health.look(self.known, HOSTS, seen, state, trial=trial)
        return self.health.skipped

    @property
    def named(self) -> list[str]:
        return [problem.scope for problem in self.board]


def after_its_time(second: TriedApplication | None, **options: Any) -> Scene:
    """Look at host 1 for as long as a host may take."""
    scene = Scene()

    async def play() -> None:
        scene.look(second, **options)
        await asyncio.sleep(PATIENCE - 1)
        assert scene.look(second, **options) == frozenset()
        assert scene.known.broken == frozenset()
        await asyncio.sleep(1)
        scene.look(second, **options)

    virtual_time.run(play())
    return scene


@pytest.mark.parametrize("second", [None, STARTS, application()])
def test_a_host_that_does_not_run_for_long_is_broken(second: TriedApplication | None) -> None:
    scene = after_its_time(second)

    assert scene.known.broken == {"1"}
    assert scene.health.skipped == {"1"}, "it has never run"
    assert scene.named == [], "it was not broken before the settings in effect"


@pytest.mark.parametrize("second", [RUNS, BEGINS], ids=["runs", "first micro-batch"])
def test_a_host_that_runs_or_is_at_its_first_micro_batch_is_not_broken(
    second: TriedApplication,
) -> None:
    scene = after_its_time(second)

    assert (scene.known.broken, scene.health.skipped) == (frozenset(), frozenset())


def test_a_host_that_hands_over_has_its_time_when_it_should_be_back() -> None:
    scene = after_its_time(None, role=HostRole.LEAVING)

    assert (scene.known.broken, scene.health.skipped) == (frozenset(), frozenset())


def test_while_settings_are_on_trial_a_host_that_they_may_break_is_not_broken() -> None:
    async def play() -> None:
        scene = Scene()
        scene.look(trial=100.0)
        await asyncio.sleep(PATIENCE)
        assert scene.look(trial=100.0) == {"1"}
        assert scene.known.broken == frozenset()
        await asyncio.sleep(100)
        scene.look(trial=100.0)
        assert scene.known.broken == {"1"}

    virtual_time.run(play())


@pytest.mark.parametrize(("epoch", "is_skipped"), [(0, True), (1, False)])
def test_a_host_that_has_read_with_other_settings_is_waited_for(
    epoch: int, *, is_skipped: bool
) -> None:
    async def play() -> None:
        scene = Scene()
        scene.has_run("1", epoch=epoch)
        scene.look()
        await asyncio.sleep(PATIENCE)
        assert scene.look() == ({"1"} if is_skipped else frozenset())
        assert scene.known.broken == {"1"}

    virtual_time.run(play())


def test_a_host_that_was_broken_before_the_settings_is_named_until_it_runs() -> None:
    async def play() -> None:
        scene = Scene()
        scene.has_run("1")
        scene.known = BrokenHosts(broken=frozenset("1"), excused=frozenset("1"))
        scene.look()
        await asyncio.sleep(PATIENCE)
        assert scene.look() == {"1"}
        assert scene.named == ["1"]
        (problem,) = scene.board
        assert problem.message.startswith("Host 1 did not run before its settings changed")

        assert scene.look(RUNS) == frozenset()
        assert scene.named == []
        assert scene.known == BrokenHosts()

    virtual_time.run(play())


def test_with_other_settings_all_hosts_have_the_whole_time_again() -> None:
    scene = after_its_time(None)

    async def play() -> None:
        scene.health.begin()
        assert scene.health.skipped == frozenset()
        scene.look()
        await asyncio.sleep(PATIENCE - 1)
        assert scene.look() == frozenset()

    virtual_time.run(play())
