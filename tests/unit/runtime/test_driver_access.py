"""The right of drivers to their documents, while settings of applications change."""

from typing import Any

import pytest

from balanced_source_operator.resources.kinds import (
    KUBEFLOW_APPLICATION,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
)
from balanced_source_operator.resources.providers import service_account_of
from support.builders import spec_json
from support.cluster_story import NAMESPACE, SPEC, Story
from support.host_drivers import Busy, Drivers, base
from support.lost_hosts import SOURCE
from support.played_story import played
from support.rolls import Roll
from support.virtual_time import clock
from unit.runtime import test_changes_in_a_restart as restarts

ACCOUNT = "spark-next"


def may_read(story: Story, host: str = "0") -> set[str]:
    """Return the service accounts that may read the documents of a host."""
    found = story.server.find(ROLE_BINDING, NAMESPACE, f"{base(host)}-documents") or {}
    return {subject["name"] for subject in found.get("subjects", ())}


def accounts(story: Story) -> dict[str, str]:
    """Return the service account of each application."""
    found = story.server.select(KUBEFLOW_APPLICATION, NAMESPACE)
    return {m["metadata"]["name"]: service_account_of(m) for m in found}


def has_another_account(story: Story) -> None:
    account = {"metadata": {"namespace": NAMESPACE, "name": ACCOUNT}}
    story.server.add(SERVICE_ACCOUNT, account)


async def pass_time(story: Story, drivers: Drivers, seconds: float) -> None:
    due = clock() + seconds
    await story.until(lambda: [drivers.step(), clock() >= due][1], "time to pass")


def test_a_running_driver_keeps_its_right_until_it_restarts_with_another_account() -> None:
    async def play(story: Story) -> None:
        drivers = Drivers(story)
        application = spec_json(**SPEC)["application"]
        await story.begin(application={**application, "restart": {"policy": "OnNonce"}})
        await drivers.rest("0")
        assert may_read(story) == {"spark"}

        has_another_account(story)
        story.patch(application={"serviceAccount": ACCOUNT})
        await pass_time(story, drivers, 60)
        assert may_read(story) == {"spark", ACCOUNT}

        story.patch(application={"restart": {"nonce": 1}})
        await story.until(
            lambda: [drivers.step(), accounts(story) == {"orders-1": ACCOUNT}][1], "the restart"
        )
        await drivers.rest("0")
        await story.until(lambda: may_read(story) == {ACCOUNT}, "the former right to end")

    played(play)


@pytest.mark.parametrize("roll", [restarts.BLUE_GREEN, restarts.IN_TURN], ids=["second", "turns"])
def test_each_driver_may_read_its_documents_throughout_a_restart(roll: Roll) -> None:
    async def play(story: Story) -> None:
        drivers = Busy(story)
        await story.begin(parallelism=6, application=roll.application(None))
        await drivers.rest(*roll.hosts)
        has_another_account(story)
        story.patch(application={**roll.application(None), "serviceAccount": ACCOUNT})

        def is_over() -> bool:
            drivers.step()
            for name, account in accounts(story).items():
                assert account in may_read(story, SOURCE.host_of(name)), name
            return set(accounts(story).values()) == {ACCOUNT}

        await story.until(is_over, "the restart")
        await drivers.settle(*roll.hosts)
        drivers.check_each_once()

    played(play)


@pytest.mark.parametrize("spec", [{}, {"driver": None}, {"sparkConf": None}])
@pytest.mark.parametrize("group", ["sparkoperator.k8s.io/v1beta2", "spark.apache.org/v1"])
def test_an_application_that_names_no_account_has_none(group: str, spec: Any) -> None:
    assert service_account_of({"apiVersion": group, "spec": spec}) == ""
