"""A healthy source; its servers answer."""

import pytest

from balanced_source_operator.doctor import outside
from support.doctor_scene import DoctorScene


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> DoctorScene:
    monkeypatch.setattr(outside, "found_problems", lambda *_: {})
    return DoctorScene()
