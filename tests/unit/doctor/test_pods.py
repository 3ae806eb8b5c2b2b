"""A source without a driver or executors: whether the doctor says so, and why there are none."""

import time

import pytest

from balanced_source_operator.doctor.pods import QUOTA
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


def call_ready(scene: DoctorScene, reason: str) -> None:
    scene.status["conditions"] = [{"type": "Ready", "status": "True", "reason": reason}]


async def test_a_source_that_is_called_read_without_a_driver(scene: DoctorScene) -> None:
    """Its conditions stay as they are while no operator runs."""
    call_ready(scene, "Reading")
    with_pods(scene, "driver", phase="Failed")
    (fault,) = [diagnosis for diagnosis in await scene.found() if diagnosis.fault]

    assert fault.fault == "DriverMissing"
    assert "no driver pod of it lives, so nothing is read" in fault.message


async def test_a_suspended_source_needs_no_driver_and_is_said_to_be_suspended(
    scene: DoctorScene,
) -> None:
    call_ready(scene, "Reading")
    scene.body["spec"]["suspend"] = True

    found = await scene.found()

    assert [diagnosis.fault for diagnosis in found if diagnosis.fault] == []
    assert any(diagnosis.message.startswith("it is suspended") for diagnosis in found)


async def test_a_driver_without_executors_and_a_quota_that_is_used_up(scene: DoctorScene) -> None:
    with_pods(scene, "driver")
    with_quota(scene, used="2")
    scene.server.add(QUOTA, {"metadata": {"namespace": "default", "name": "new"}})
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


@pytest.mark.parametrize("case", ["executors", "ready", "finished", "young", "ended"])
async def test_executors_that_are_there_or_not_needed_are_no_fault(
    scene: DoctorScene, case: str
) -> None:
    if case in {"ready", "finished"}:
        call_ready(scene, "Reading" if case == "ready" else "Finished")
    if case == "young":
        scene.server.clock = time.time
    roles = ("driver", "executor") if case == "executors" else ("driver",)
    with_pods(scene, *roles, phase="Failed" if case in {"ended", "finished"} else "Running")

    assert await scene.faults() == []
