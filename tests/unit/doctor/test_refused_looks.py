"""What the doctor says where the API server refuses to answer."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from balanced_source_operator.doctor import Diagnosis, Level, cluster, sources
from balanced_source_operator.doctor.examine import _sources
from balanced_source_operator.doctor.finding import Fault
from balanced_source_operator.kube.port import KubernetesError, RefusedError
from balanced_source_operator.spec.crd import custom_resource_definition
from support.doctor_scene import DoctorScene
from support.examined import CRD


class Refusing:
    """An API server that refuses everything."""

    def __init__(self, refusal: KubernetesError) -> None:
        self._refusal = refusal

    async def ask(self, *_: Any, **__: Any) -> Any:
        raise self._refusal

    async def list(self, *_: Any, **__: Any) -> Any:
        raise self._refusal


def refusing(status: int) -> Any:
    return Refusing(RefusedError("because of this", status=status))


async def collected(diagnoses: AsyncIterator[Diagnosis]) -> list[Diagnosis]:
    return [diagnosis async for diagnosis in diagnoses]


async def test_sources_that_may_not_be_listed_are_a_missing_right() -> None:
    [found] = await collected(_sources(refusing(403), "default", ""))
    assert (found.level, found.fault) == (Level.ERROR, Fault.RIGHT_MISSING)
    assert found.message == "sources of default may not be listed: because of this"


@pytest.mark.parametrize(
    "api", [refusing(500), Refusing(KubernetesError("because of this"))], ids=["500", "silent"]
)
async def test_sources_that_cannot_be_listed_now_are_unknown(api: Any) -> None:
    [found] = await collected(_sources(api, "default", ""))
    assert (found.level, found.fault) == (Level.UNKNOWN, "")
    assert found.message == "sources of default cannot be listed now: because of this"


@pytest.mark.parametrize("status", [403, 500])
async def test_a_definition_that_may_not_be_read_is_unknown(status: int) -> None:
    found = await cluster.check_crd(refusing(status))
    assert found.level is Level.UNKNOWN
    assert "may not be read: because of this" in found.message


@pytest.mark.parametrize("status", [403, 500])
async def test_kinds_of_spark_operators_that_may_not_be_read_are_unknown(status: int) -> None:
    found = await cluster.check_spark_operators(refusing(status))
    assert (found.level, found.message) == (Level.UNKNOWN, "because of this")


async def test_a_definition_without_the_version_of_this_program_lacks_everything() -> None:
    scene = DoctorScene()
    definition = custom_resource_definition()
    for version in definition["spec"]["versions"]:
        version["name"] = "v0"
    scene.api.answers[CRD] = definition
    assert "CrdOutdated" in await scene.faults()


async def test_texts_that_may_not_be_read_leave_a_spec_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(*_: Any, **__: Any) -> Any:
        raise RefusedError("because of this", status=403)

    monkeypatch.setattr(sources, "read_texts", refuse)
    found = [d for d in await DoctorScene().found() if d.message == "because of this"]
    assert [diagnosis.level for diagnosis in found] == [Level.UNKNOWN]


@pytest.mark.parametrize("stamp", ["", "yesterday", "2026-01-01T00:00:00"])
def test_an_object_that_does_not_say_when_it_was_created_has_no_age(stamp: str) -> None:
    created = {"metadata": {"creationTimestamp": stamp}}
    assert sources.age({"metadata": {}}, otherwise=7.0) == 7.0
    assert sources.age(created, otherwise=7.0) == 7.0
