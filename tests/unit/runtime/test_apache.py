"""A source that Apache's operator runs, played by its stand-in, and one that changes operators."""

from datetime import UTC, datetime
from typing import Any

from balanced_source_operator.resources.kinds import APACHE_APPLICATION, KUBEFLOW_APPLICATION, POD
from support.apache_operator import ApacheOperator
from support.builders import spec_json
from support.cluster_story import NAMESPACE, Story
from support.fake_kubernetes import INSTALLED
from support.played_story import played
from support.virtual_time import clock


class ApacheStory(Story):
    """The API server knows both kinds, and Apache's operator runs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.server.kinds = (*INSTALLED, APACHE_APPLICATION)
        self.apache = ApacheOperator(self.server, clock)

    @property
    def names(self) -> list[str]:
        return [
            item["metadata"]["name"] for item in self.server.select(APACHE_APPLICATION, NAMESPACE)
        ]

    async def reaches(self, state: str, name: str = "orders-1") -> None:
        """Apache's operator looks until an application is in a state."""
        await self.until(
            lambda: self.apache.look(NAMESPACE, name) == state, f"{name} to be {state}"
        )

    async def runs(self, name: str = "orders-1") -> None:
        await self.until(lambda: name in self.names, f"application {name}")
        await self.reaches("DriverRequested", name)
        self.pod(name, phase="Running", conditions=[{"type": "Ready", "status": "True"}])
        await self.reaches("RunningHealthy", name)

    def pod(self, name: str = "orders-1", **status: Any) -> None:
        found = self.server.find(APACHE_APPLICATION, NAMESPACE, name)
        self.server.edit(POD, NAMESPACE, self.apache.driver_name(found), {"status": status})

    def condition(self, kind: str) -> tuple[str, str]:
        found = next((c for c in self.status.get("conditions", []) if c["type"] == kind), {})
        return found.get("status", ""), found.get("reason", "")


def application(**changes: Any) -> dict[str, Any]:
    return {**spec_json()["application"], "provider": "Apache", **changes}


async def reading(story: ApacheStory, **changes: Any) -> None:
    await story.begin(application=application(**changes))
    await story.runs()
    story.driver.start()
    await story.adopted(parallelism=2, splits=8)


def test_it_starts_reads_rescales_without_a_restart_and_stops() -> None:
    async def play(story: ApacheStory) -> None:
        await reading(story)
        await story.until(
            lambda: story.condition("Ready") == ("True", "Reading"), "the source to be ready"
        )
        story.patch(parallelism=5)
        await story.adopted(parallelism=5, splits=8)
        assert (story.names, story.server.select(KUBEFLOW_APPLICATION, NAMESPACE)) == (
            ["orders-1"],
            [],
        )
        story.patch(suspend=True)
        await story.until(lambda: story.names == [], "the application to be deleted")
        await story.until(
            lambda: story.status["application"]["state"] == "Paused", "the source to be paused"
        )

    played(play, ApacheStory())


def test_a_driver_that_fails_is_kept_with_its_log_and_started_again() -> None:
    async def play(story: ApacheStory) -> None:
        await reading(story)
        first = story.server.find(APACHE_APPLICATION, NAMESPACE, "orders-1")
        ended = {"reason": "OOMKilled", "exitCode": 137}
        story.pod(phase="Failed", containerStatuses=[{"state": {"terminated": ended}}])
        await story.reaches("TerminatedWithoutReleaseResources")
        await story.until(
            lambda: story.condition("Degraded") == ("True", "ApplicationFailed"), "the problem"
        )
        assert "OOMKilled (exit code 137)" in story.status["message"]
        assert story.server.find(POD, NAMESPACE, story.apache.driver_name(first)) is not None

        def is_replaced() -> bool:
            found = story.server.select(APACHE_APPLICATION, NAMESPACE)
            return bool(found) and found[0]["metadata"]["uid"] != first["metadata"]["uid"]

        await story.until(is_replaced, "a new application")
        await story.runs()
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)
        await story.until(
            lambda: story.condition("Degraded")[0] == "False", "the end of the problem"
        )

    played(play, ApacheStory())


def test_a_driver_that_waits_for_a_node_has_not_failed() -> None:
    async def play(story: ApacheStory) -> None:
        await story.begin(application=application(), restart={"maxFailures": 2})
        await story.until(lambda: "orders-1" in story.names, "the application")
        await story.reaches("DriverRequested")
        full = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/3 nodes are available",
            "lastTransitionTime": datetime.fromtimestamp(clock(), UTC).isoformat(),
        }
        story.pod(conditions=[full])

        def still_waits() -> bool:
            return story.apache.look(NAMESPACE, "orders-1") == "DriverRequested"

        for _ in range(20):
            until = clock() + 60
            await story.until(lambda until=until: still_waits() and clock() > until, "a minute")
        assert story.condition("Degraded") == ("True", "DriverUnschedulable")
        assert story.names == ["orders-1"]

    played(play, ApacheStory())


def test_a_refused_driver_pod_does_not_count_as_a_driver_that_failed() -> None:
    async def play(story: ApacheStory) -> None:
        story.apache.refusal = 'pods "orders-1-0-driver" is forbidden: exceeded quota: small'
        await story.begin(application=application())
        await story.until(lambda: "orders-1" in story.names, "the application")
        await story.reaches("TerminatedWithoutReleaseResources")
        await story.until(
            lambda: story.condition("Degraded") == ("True", "QuotaExceeded"), "the problem"
        )
        assert "Raise the ResourceQuota of the namespace" in story.status["message"]
        assert "driver's log" not in story.status["message"]

    played(play, ApacheStory())


def test_a_change_of_the_operator_replaces_the_application_and_nothing_runs_twice() -> None:
    async def play(story: ApacheStory) -> None:
        await story.begin()
        await story.launched()
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)
        story.patch(application=application())
        await story.until(lambda: story.names == ["orders-1"], "Apache's application")
        assert story.server.select(KUBEFLOW_APPLICATION, NAMESPACE) == []
        await story.runs()
        story.driver.start()
        await story.adopted(parallelism=2, splits=8)

    played(play, ApacheStory())


def test_a_missing_operator_is_named_and_sources_of_the_other_do_not_care() -> None:
    async def play(story: ApacheStory) -> None:
        story.server.kinds = INSTALLED
        await story.begin(application=application())
        await story.until(
            lambda: story.condition("Degraded") == ("True", "SparkOperatorMissing"), "the problem"
        )
        assert "does not serve spark.apache.org/v1 of" in story.status["message"]
        story.patch(application={**application(), "provider": "Kubeflow"})
        await story.launched()
        await story.until(
            lambda: story.condition("Degraded")[0] == "False", "the end of the problem"
        )

    played(play, ApacheStory())
