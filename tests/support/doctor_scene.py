"""A source that the doctor examines."""

from typing import Any

from balanced_source_operator.doctor import Diagnosis, Level, examine
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, SERVICE_ACCOUNT
from support.builders import source_body
from support.examined import Examined
from support.fake_kubernetes import FakeKubernetes


class DoctorScene:
    """A healthy source in a healthy cluster."""

    def __init__(self) -> None:
        self.server = FakeKubernetes()
        self.api = Examined(self.server)
        self.server.add(SERVICE_ACCOUNT, {"metadata": {"namespace": "default", "name": "spark"}})
        self.body = source_body()
        self.status: dict[str, Any] = {"observedGeneration": 1}

    async def found(self) -> list[Diagnosis]:
        self.server.add(BALANCED_SOURCE, self.body)
        self.server.edit(BALANCED_SOURCE, "default", "orders", {"status": self.status})
        return [diagnosis async for diagnosis in examine(self.api, "default")]

    async def faults(self) -> list[str]:
        return [
            diagnosis.fault for diagnosis in await self.found() if diagnosis.level is Level.ERROR
        ]
