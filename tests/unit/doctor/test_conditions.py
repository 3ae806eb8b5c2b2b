"""What `doctor` makes of the conditions of a source."""

from balanced_source_operator.doctor import Level
from support.doctor_scene import DoctorScene


async def test_a_loss_that_no_driver_could_count_is_unknown(scene: DoctorScene) -> None:
    doubt = {"type": "DataLoss", "status": "Unknown", "reason": "OffsetsUncounted", "message": "30"}
    scene.status["conditions"] = [*scene.status.get("conditions", []), doubt]

    (found,) = [d for d in await scene.found() if d.check.endswith("DataLoss")]

    assert (found.level, found.message) == (Level.UNKNOWN, "30")
