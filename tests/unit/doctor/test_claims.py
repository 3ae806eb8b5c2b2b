"""Volume claims that a source needs: whether they have their volume."""

import pytest

from balanced_source_operator.doctor import Level
from balanced_source_operator.doctor.sources import CLAIM
from support.doctor_scene import DoctorScene


@pytest.mark.parametrize(
    ("phase", "is_read", "level", "fault"),
    [
        ("Bound", False, Level.OK, ""),
        ("Pending", False, Level.UNKNOWN, ""),
        ("Pending", True, Level.OK, ""),
        ("Lost", False, Level.ERROR, "VolumeClaimLost"),
    ],
)
async def test_a_claim_and_its_volume(
    scene: DoctorScene, phase: str, level: Level, fault: str, *, is_read: bool
) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "orders-data"}}
    scene.body["spec"]["application"]["driver"] = {"template": {"spec": {"volumes": [volume]}}}
    scene.server.kinds = [CLAIM, *scene.server.kinds]
    claim = {"metadata": {"namespace": "default", "name": "orders-data"}}
    scene.server.add(CLAIM, {**claim, "status": {"phase": phase}})
    if is_read:
        scene.status["conditions"] = [
            {"type": "Ready", "status": "True", "reason": "Finished"},
            {"type": "Degraded", "status": "False"},
        ]

    (found,) = [each for each in await scene.found() if each.check.endswith("orders-data")]

    assert (found.level, found.fault) == (level, fault)
