"""A discovery that the doctor cannot try is unknown, and says why."""

from typing import Any

import pytest

from balanced_source_operator.doctor import Level, outside
from balanced_source_operator.kube.port import KubernetesError
from support.doctor_scene import DoctorScene


@pytest.mark.parametrize(
    ("silence", "message"),
    [
        (KubernetesError("the API server does not answer"), "the API server does not answer"),
        (TimeoutError(), f"no answer within {outside.PATIENCE:.0f} s"),
    ],
    ids=["the API server", "the servers of the source"],
)
async def test_a_discovery_that_cannot_be_tried_is_unknown(
    scene: DoctorScene, monkeypatch: pytest.MonkeyPatch, silence: Exception, message: str
) -> None:
    def fail(*_: Any) -> None:
        raise silence

    monkeypatch.setattr(outside, "found_problems", fail)

    (found,) = [d for d in await scene.found() if d.check.endswith(": discovery")]

    assert (found.level, found.message) == (Level.UNKNOWN, message)
