"""An application whose source another query reads is restarted only when that has ended."""

from typing import Any

from balanced_source.documents.report import HostReport
from balanced_source.reasons import Reason
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.holding import ALIVE, SETTLED, Holding

RESTART = Decision(state=ApplicationState.PENDING, name="orders-2", create="orders-2")


def application(state: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "orders-1", "uid": "1"},
        "status": {"applicationState": {"state": state}},
    }


class Scene:
    """A source on a clock, with reports of whoever reads it."""

    def __init__(self) -> None:
        self.holding = Holding()
        self.now = 1000.0
        self.sequence = 1
        self.applications = [application("RUNNING")]
        self.decision = RESTART

    def look(
        self,
        seconds: float,
        *,
        reports: bool,
        has_driver: bool = False,
        instance: str = "3f2a9c1b pod=notebook uid=u machine=m pid=17",
    ) -> Decision:
        self.now += seconds
        self.sequence += reports
        report = HostReport(
            incarnation=4, instance=instance, sequence=self.sequence, location="laptop"
        )
        self.holding = self.holding.looked(report, has_driver=has_driver, now=self.now)
        self.holding, decision = self.holding.apply(RESTART, self.applications, report)
        return decision


def held(scene: Scene) -> Decision:
    scene.look(0, reports=True, has_driver=True)
    scene.applications = [application("PENDING_RERUN")]
    scene.look(SETTLED, reports=False)
    return scene.look(5, reports=True)


def test_a_failed_application_is_deleted_while_another_query_reports() -> None:
    decision = held(Scene())

    assert decision.reason == Reason.SOURCE_IN_USE
    assert [a["metadata"]["name"] for a in decision.delete] == ["orders-1"]
    assert not decision.create
    assert "3f2a9c1b, pod=notebook, uid=u on laptop, incarnation 4" in decision.message


def test_an_application_that_the_spark_operator_has_given_up_is_kept_with_its_log() -> None:
    scene = Scene()
    held(scene)
    scene.applications = [application("FAILED")]
    decision = scene.look(5, reports=True)

    assert decision.reason == Reason.SOURCE_IN_USE
    assert decision.problem is not None
    assert not decision.delete


def test_it_is_not_started_until_the_other_query_has_fallen_silent() -> None:
    scene = Scene()
    held(scene)
    scene.applications = []
    for _ in range(10):
        assert scene.look(10, reports=True).reason == Reason.SOURCE_IN_USE
    assert scene.look(ALIVE - 1, reports=False).reason == Reason.SOURCE_IN_USE

    assert scene.look(1, reports=False) == RESTART
    assert scene.look(1, reports=True) == RESTART, "only an application that fails is held"


def test_it_is_started_at_once_when_the_other_query_gives_up_its_claim() -> None:
    scene = Scene()
    held(scene)
    assert scene.look(5, reports=True).reason == Reason.SOURCE_IN_USE

    assert scene.look(1, reports=True, instance="") == RESTART


def test_a_late_report_of_the_own_driver_delays_nothing() -> None:
    scene = Scene()
    scene.look(0, reports=True, has_driver=True)
    scene.applications = [application("PENDING_RERUN")]

    assert scene.look(SETTLED - 1, reports=True) == RESTART
    assert scene.look(20, reports=False) == RESTART


def test_a_driver_that_lives_is_our_own() -> None:
    scene = Scene()
    held(scene)

    assert scene.look(1, reports=True, has_driver=True) == RESTART


def test_an_application_that_has_not_failed_is_left_alone() -> None:
    scene = Scene()
    scene.applications = [application("SUBMITTED")]
    for _ in range(10):
        assert scene.look(10, reports=True) == RESTART
