"""What the status says of applications while the operator may not, or cannot, act on them."""

from collections.abc import Callable
from typing import Any

import pytest

from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CONFIG_MAP,
    KUBEFLOW_APPLICATION,
    PAUSED_ANNOTATION,
    POD,
    ROLE,
    SERVICE_ACCOUNT,
    ResourceKind,
)
from support.broken_hosts import BrokenHosts
from support.builders import spec_json
from support.cluster_story import NAMESPACE, SPEC, Story
from support.host_drivers import Drivers, application
from support.lost_hosts import with_policy
from support.played_story import played
from support.virtual_time import clock

FORBIDDEN = RefusedError('User "operator" cannot list resource', status=403)


def condition(story: Story, kind: str) -> dict[str, Any]:
    found = next((c for c in story.status.get("conditions", ()) if c["type"] == kind), {})
    return {"status": "", "reason": "", "message": "", **found}


def says(story: Story, kind: str) -> tuple[str, str]:
    found = condition(story, kind)
    return found["status"], found["reason"]


async def pass_time(story: Story, seconds: float, drivers: Drivers | None = None) -> None:
    due = clock() + seconds

    def is_over() -> bool:
        if drivers is not None:
            drivers.step()
        return clock() >= due

    await story.until(is_over, "time to pass")


async def reading(story: Story, **spec: Any) -> Drivers:
    drivers = Drivers(story)
    await story.begin(**spec)
    await drivers.rest("0")
    return drivers


def fail(story: Story) -> None:
    failed = {"applicationState": {"state": "FAILED", "errorMessage": "out of memory"}}
    story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, "orders-1", {"status": failed})


def pause(story: Story) -> None:
    annotations = {"metadata": {"annotations": {PAUSED_ANNOTATION: "true"}}}
    story.server.edit(BALANCED_SOURCE, NAMESPACE, "orders", annotations)


def break_spec(story: Story) -> None:
    story.patch(application={"driver": {"memory": "lots"}})


@pytest.mark.parametrize(
    ("stop", "until"),
    [(pause, f"the annotation {PAUSED_ANNOTATION} is removed"), (break_spec, "the spec is valid")],
    ids=["pause", "invalid"],
)
def test_an_application_that_fails_while_a_restarted_operator_may_not_act_is_named(
    stop: Callable[[Story], None], until: str
) -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story)
        stop(story)
        await pass_time(story, 10, drivers)
        await story.operators.pop().stop()
        fail(story)
        story.start_operator()
        await pass_time(story, 100)

        found = condition(story, "Degraded")
        assert found["status"] == "True"
        assert "SparkApplication orders-1 failed (1 in a row): out of memory" in found["message"]
        assert f"It is not started again before {until}" in found["message"]
        assert "ApplicationFailed" in story.events
        assert says(story, "Ready")[0] == "False"
        assert story.applications == ["orders-1"]

        story.server.remove(KUBEFLOW_APPLICATION, NAMESPACE, "orders-1")
        await pass_time(story, 100)
        words = f"no application runs, and none is started before {until}"
        if stop is pause:
            assert condition(story, "Ready")["message"] == words

    played(play)


@pytest.mark.parametrize(
    ("kind", "verbs", "name"),
    [
        (ROLE, ("get", "apply"), "orders-documents"),
        (CONFIG_MAP, ("get", "create", "replace"), "orders-assignment"),
    ],
    ids=["role", "assignment"],
)
def test_an_application_that_fails_while_turns_are_cut_off_is_not_taken_to_run(
    kind: ResourceKind, verbs: tuple[str, ...], name: str
) -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story)
        allow = story.server.deny(FORBIDDEN, kind=kind, verbs=verbs)
        story.server.remove(kind, NAMESPACE, name)
        await story.until(lambda: says(story, "Degraded")[0] == "True", "the refusal")
        assert says(story, "Ready") == ("True", "Reading"), "its driver reads on"

        fail(story)
        await story.until(lambda: says(story, "Ready")[0] == "False", "the failure")
        assert story.status["application"]["state"] == "Failed"
        assert (
            "orders-1 failed (1 in a row): out of memory" in condition(story, "Degraded")["message"]
        )
        assert "ApplicationFailed" in story.events

        allow()
        await story.until(lambda: len(story.applications) == 2, "another application")
        await drivers.rest("0")
        await story.until(lambda: says(story, "Degraded")[0] == "False", "all to be well")

    played(play)


@pytest.mark.parametrize("kind", [CONFIG_MAP, POD, ROLE])
@pytest.mark.parametrize("is_restarted", [False, True], ids=["in memory", "after a restart"])
def test_suspend_works_while_a_list_is_refused(kind: ResourceKind, *, is_restarted: bool) -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story)
        story.server.deny(FORBIDDEN, kind=kind, verbs=["list"])
        await pass_time(story, 70, drivers)
        if is_restarted:
            await story.operators.pop().stop()
            story.start_operator()

        story.patch(suspend=True)

        await story.until(
            lambda: story.server.find(KUBEFLOW_APPLICATION, NAMESPACE, "orders-1") is None,
            "the application to stop",
        )
        await story.until(lambda: says(story, "Ready")[1] == "Suspended", "the status")
        assert says(story, "Degraded") == ("True", "PermissionMissing")

    played(play)


def test_an_application_of_the_other_spark_operator_reads_on_while_that_one_is_missing() -> None:
    async def play(story: Story) -> None:
        drivers = await reading(story)
        story.patch(application={"provider": "Apache"})
        await pass_time(story, 100, drivers)

        assert says(story, "Degraded") == ("True", "SparkOperatorMissing")
        assert says(story, "Ready") == ("True", "Reading")
        assert story.status["application"] == {"name": "orders-1", "state": "Running"}

        story.patch(application={"provider": "Kubeflow"})
        await story.until(lambda: says(story, "Degraded")[0] == "False", "all to be well")
        assert story.applications == ["orders-1"]

    played(play)


# --- suspended ------------------------------------------------------------------------------------


async def suspended(story: Story) -> None:
    story.patch(suspend=True)
    await story.until(lambda: story.status["application"]["state"] == "Paused", "the end")
    await pass_time(story, 600)


def is_at_rest(story: Story) -> bool:
    return (says(story, "Ready"), says(story, "Degraded")[0]) == (("False", "Suspended"), "False")


def test_what_was_wrong_with_an_application_is_over_when_it_is_suspended() -> None:
    async def play(story: Story) -> None:
        await reading(story)
        stripped = {"metadata": {"ownerReferences": []}}
        story.server.edit(KUBEFLOW_APPLICATION, NAMESPACE, "orders-1", stripped)
        await story.until(lambda: says(story, "Degraded")[1] == "OwnerReferenceMissing", "it")

        await suspended(story)
        assert is_at_rest(story)

    played(play)


@pytest.mark.parametrize("missing", ["account", "operator"])
def test_what_is_missing_for_a_start_does_not_degrade_a_suspended_source(missing: str) -> None:
    async def play(story: Story) -> None:
        made = spec_json(**SPEC)["application"]
        changes = {"provider": "Apache"} if missing == "operator" else {"serviceAccount": "nobody"}
        await story.begin(application={**made, **changes})
        await story.until(lambda: says(story, "Degraded")[0] == "True", "the problem")

        await suspended(story)
        assert is_at_rest(story)

        story.server.add(SERVICE_ACCOUNT, {"metadata": {"namespace": NAMESPACE, "name": "nobody"}})
        story.patch(suspend=False, application={"provider": "Kubeflow"})
        await story.until(lambda: story.applications, "the application")

    played(play)


def test_no_host_is_late_while_its_source_is_suspended() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        drivers.absent.add("1")
        await story.begin(parallelism=4, application=application(count=2))
        await pass_time(story, 100, drivers)

        await suspended(story)
        assert is_at_rest(story)
        assert story.status["hosts"][1]["role"] == "Member", "its share waits for it"

        story.patch(suspend=False)
        await pass_time(story, 250, drivers)
        assert says(story, "Degraded")[1] != "ReadersMissing", "it has the whole time again"
        drivers.absent.clear()
        await drivers.rest("0", "1")

    played(play)


def test_a_lost_host_does_not_degrade_a_suspended_source() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        await story.begin(parallelism=4, application=with_policy(2, after="1m"))
        await drivers.rest("0", "1")
        drivers.absent.add("1")
        await pass_time(story, 100, drivers)
        assert says(story, "Degraded") == ("True", "HostLost")

        await suspended(story)
        assert is_at_rest(story)

        drivers.absent.clear()
        story.patch(suspend=False)
        await drivers.rest("0", "1")
        await story.until(lambda: says(story, "Degraded")[0] == "False", "all to be well")
        drivers.check_each_once()

    played(play)


def test_a_spec_that_is_corrected_while_it_is_suspended_is_not_rolled_back_any_more() -> None:
    async def play(story: Story) -> None:
        drivers = BrokenHosts(story, "FAILED")
        drivers.works = lambda _, image: image != "broken"
        made = spec_json(**SPEC)["application"]
        await story.begin(application={**made, "restart": {"rollbackAfter": "1m"}})
        await drivers.rest("0")
        await drivers.pass_time(30)
        story.patch(application={"image": "broken"})
        await drivers.until(lambda: says(story, "Degraded")[1] == "RolledBack", "the rollback")

        await suspended(story)
        assert says(story, "Degraded") == ("True", "RolledBack")
        story.patch(application={"image": "corrected"})
        await story.until(lambda: is_at_rest(story), "the correction to be known")

    played(play)


def test_a_resumed_application_has_the_whole_time_again() -> None:
    """Its settings were right, and what they name was missing until it was suspended."""

    async def play(story: Story) -> None:
        drivers = BrokenHosts(story, "FAILED")
        drivers.works = lambda _, image: image != "late"
        made = spec_json(**SPEC)["application"]
        await story.begin(application={**made, "restart": {"rollbackAfter": "5m"}})
        await drivers.rest("0")
        await drivers.pass_time(30)
        story.patch(application={"image": "late"})
        await drivers.until(lambda: drivers.images() == {"0": "late"}, "the new settings")
        await drivers.pass_time(120)

        await suspended(story)
        story.patch(suspend=False)
        await drivers.pass_time(120)
        assert says(story, "Degraded")[1] != "RolledBack"
        drivers.works = lambda *_: True
        await drivers.until(lambda: says(story, "Ready")[0] == "True", "the source to be read")
        assert drivers.images() == {"0": "late"}

    played(play)
