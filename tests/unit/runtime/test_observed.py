"""Applications that this process has deleted, while a watch may not have told so yet."""

from typing import Any

import pytest

from balanced_source.coordinator import HostPhase, HostRole, HostState
from balanced_source.documents.report import HostReport
from balanced_source_operator.controller.rollback import is_of_former_times
from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.resources.kinds import (
    BALANCED_SOURCE,
    CHILDREN,
    KUBEFLOW_APPLICATION,
    ResourceKind,
)
from balanced_source_operator.runtime.observed import Observed
from support.builders import spark_application

BODY = {"metadata": {"namespace": "shop", "name": "orders", "uid": "uid"}}
JOINING = HostState(role=HostRole.JOINING, phase=HostPhase.EXPECTED)
REPORT = HostReport(host="0", incarnation=1, lineage=1)


class Server:
    """Has one application, or none."""

    def __init__(self, *applications: dict[str, Any]) -> None:
        self.applications = list(applications)

    async def get(self, kind: ResourceKind, _namespace: str, _name: str) -> dict[str, Any]:
        assert kind == BALANCED_SOURCE
        return BODY

    async def list(
        self, kind: ResourceKind, _namespace: str, *, selector: str
    ) -> list[dict[str, Any]]:
        assert selector
        assert kind in CHILDREN
        return self.applications if kind == KUBEFLOW_APPLICATION else []


def running() -> dict[str, Any]:
    application = spark_application("orders-1")
    owner = {"uid": "uid", "kind": "BalancedSource", "name": "orders", "controller": True}
    labels = {"balancedsource.io/uid": "uid"}
    application["metadata"] |= {"uid": "first", "ownerReferences": [owner], "labels": labels}
    return application


@pytest.mark.asyncio
async def test_a_driver_whose_application_was_just_deleted_does_not_join() -> None:
    """It would get splits that no one reads until the next application runs."""
    server, observed = Server(running()), Observed(BODY)
    api: Any = server
    await observed.refresh(api)
    assert not is_of_former_times(JOINING, REPORT, observed.staying("0"))

    observed.stopping.add("first")
    await observed.refresh(api)
    assert is_of_former_times(JOINING, REPORT, observed.staying("0"))

    server.applications[0]["metadata"]["uid"] = "second"
    await observed.refresh(api)
    assert not is_of_former_times(JOINING, REPORT, observed.staying("0"))
    assert observed.stopping == set()


class Refusing(Server):
    """Refuses the list of the first kind."""

    async def list(
        self, kind: ResourceKind, _namespace: str, *, selector: str
    ) -> list[dict[str, Any]]:
        if kind == CHILDREN[0]:
            raise RefusedError("no", status=403)
        return await super().list(kind, _namespace, selector=selector)


@pytest.mark.asyncio
async def test_a_kind_whose_list_is_refused_hides_no_other() -> None:
    api: Any = Refusing(running())
    observed = Observed(BODY)

    with pytest.raises(RefusedError):
        await observed.refresh(api)

    assert CHILDREN[0] != KUBEFLOW_APPLICATION
    assert [a["metadata"]["name"] for a in observed.applications] == ["orders-1"]
