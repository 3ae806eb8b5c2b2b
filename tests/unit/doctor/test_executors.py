"""A driver without executors: whether the doctor tells, and why there are none."""

import time

import pytest

from balanced_source_operator.doctor.executors import QUOTA
from balanced_source_operator.resources.kinds import NAME_LABEL, POD
from support.doctor_scene import DoctorScene


def with_pods(scene: DoctorScene, *roles: str, phase: str = "Running") -> None:
    for role in roles:
        labels = {NAME_LABEL: "orders", "spark-role": role}
        metadata = {"namespace": "default", "name": f"orders-1-{role}", "labels": labels}
        scene.server.add(POD, {"metadata": metadata, "status": {"phase": phase}})


def with_quota(scene: DoctorScene, used: str) -> None:
    status = {"hard": {"pods": "2", "cpu": "8"}, "used": {"pods": used, "cpu": "1"}}
    scene.server.kinds = [QUOTA, *scene.server.kinds]
    metadata = {"namespace": "default", "name": "team"}
    scene.server.add(QUOTA, {"metadata": metadata, "status": status})


async def test_a_driver_without_executors_and_a_quota_that_is_used_up(scene: DoctorScene) -> None:
    with_pods(scene, "driver")
    with_quota(scene, used="2")
    (fault,) = [diagnosis for diagnosis in await scene.found() if diagnosis.fault]

    assert fault.fault == "ExecutorsMissing"
    assert fault.message == (
        "driver pod orders-1-driver runs without an executor pod, so nothing is read. ResourceQuota"
        " team is used up: pods (2 of 2)"
    )
    assert fault.remedy.startswith("Raise the quota, or free what it counts. See why executors")


async def test_a_driver_without_executors_for_another_reason(scene: DoctorScene) -> None:
    with_pods(scene, "driver")
    with_quota(scene, used="1")
    (fault,) = [diagnosis for diagnosis in await scene.found() if diagnosis.fault]

    assert fault.message.endswith("so nothing is read")
    assert fault.remedy.startswith("See why executors were refused: kubectl logs -n default")


async def test_quotas_that_may_not_be_listed_are_said_to_be_unknown(scene: DoctorScene) -> None:
    with_pods(scene, "driver")
    (fault,) = [diagnosis for diagnosis in await scene.found() if diagnosis.fault]

    assert "Its ResourceQuotas cannot be listed" in fault.message


@pytest.mark.parametrize("case", ["executors", "ready", "young", "ended"])
async def test_executors_that_are_there_or_not_needed_are_no_fault(
    scene: DoctorScene, case: str
) -> None:
    if case == "ready":
        scene.status["conditions"] = [{"type": "Ready", "status": "True"}]
    if case == "young":
        scene.server.clock = time.time
    roles = ("driver", "executor") if case == "executors" else ("driver",)
    with_pods(scene, *roles, phase="Failed" if case == "ended" else "Running")

    assert await scene.faults() == []
