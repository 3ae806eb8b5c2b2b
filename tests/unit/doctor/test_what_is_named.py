"""What the doctor names: objects, rights, fields and generations, and no others."""

from typing import Any

import pytest

from balanced_source_operator.doctor import Diagnosis, Level, examine
from balanced_source_operator.doctor.cluster import _missing_fields
from balanced_source_operator.doctor.pods import _exhausted
from balanced_source_operator.doctor.sources import CLAIM
from balanced_source_operator.kube.port import Manifest
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, NAME_LABEL, POD, SECRET
from support.builders import source_body
from support.doctor_scene import DoctorScene
from support.examined import CRD, SPARK, Examined


def checks(found: list[Diagnosis], kind: str) -> list[str]:
    """Names of the objects of a kind that were looked up."""
    return [one.check.split()[-1] for one in found if f": {kind} " in one.check]


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        ({}, "there is no status at all"),
        ({"observedGeneration": 1}, "it last saw generation 1"),
        ({"observedGeneration": 6}, "it last saw generation 6"),
        ({"observedGeneration": 7}, None),
        ({"observedGeneration": 8}, None),
    ],
)
async def test_an_operator_that_has_seen_an_older_generation_only(
    scene: DoctorScene, seen: dict[str, int], state: str | None
) -> None:
    scene.body["metadata"]["generation"] = 7
    scene.status = seen

    found = [one.message for one in await scene.found() if one.fault == "OperatorSilent"]

    expected = f"no operator has handled generation 7 of orders: {state}"
    assert found == ([] if state is None else [expected])


async def test_only_conditions_that_name_a_problem_are_repeated(scene: DoctorScene) -> None:
    names = ["Ready", "Degraded", "DataLoss", "Rebalancing"]
    scene.status["conditions"] = [
        {"type": name, "status": "True", "reason": "Finished", "message": name} for name in names
    ]

    assert [one.message for one in await scene.found() if one.fault] == ["Degraded", "DataLoss"]


async def test_a_source_that_is_not_there_and_those_that_are(scene: DoctorScene) -> None:
    for name in ("b", "c", "a"):
        scene.server.add(BALANCED_SOURCE, source_body(name))

    [fault] = [one async for one in examine(scene.api, "default", "d") if one.fault]
    assert fault.message == "there is no BalancedSource d in namespace default (there: a, b, c)"

    found = [one async for one in examine(scene.api, "default", "b")]
    assert {one.check.split(":")[0] for one in found if one.check.startswith("source ")} == {
        "source default/b"
    }
    assert not any(one.fault == "SourceMissing" for one in found)


async def test_a_namespace_without_sources_has_none_to_choose_from(scene: DoctorScene) -> None:
    [fault] = [one async for one in examine(scene.api, "default", "d") if one.fault]
    assert fault.message.endswith("(there: none)")
    assert not [one async for one in examine(scene.api, "default") if one.fault]


async def test_secrets_of_the_spark_configuration_and_of_a_sink_are_needed(
    scene: DoctorScene,
) -> None:
    application = scene.body["spec"]["application"]
    application["imagePullSecrets"] = ["registry"]
    application["sparkConfFrom"] = [{"secretRef": {"name": "conf"}}]
    sink = {"options": {"path": "/data"}, "optionsFrom": [{"secretRef": {"name": "sink"}}]}
    application["pipeline"] = {"checkpointLocation": "/checkpoint", "sink": sink}
    scene.server.add(SECRET, {"metadata": {"namespace": "default", "name": "conf"}, "data": {}})

    found = await scene.found()

    assert checks(found, "Secret") == ["conf", "registry", "sink"]
    assert [one.subject for one in found if one.fault] == ["registry", "sink"]


async def test_claims_of_both_templates_are_needed_and_other_volumes_are_none(
    scene: DoctorScene,
) -> None:
    def template(*volumes: dict[str, Any]) -> dict[str, Any]:
        return {"template": {"spec": {"volumes": [{"name": "v"} | v for v in volumes]}}}

    def claim(name: str) -> dict[str, Any]:
        return {"persistentVolumeClaim": {"claimName": name}}

    application = scene.body["spec"]["application"]
    application["driver"] = template(claim("b"), {"emptyDir": {}})
    application["executor"] = template({"secret": {"secretName": "s"}}, claim("a"), claim("b"))
    scene.server.kinds = [CLAIM, *scene.server.kinds]

    found = await scene.found()

    assert checks(found, "PersistentVolumeClaim") == ["a", "b"]
    assert [one.fault for one in found if one.fault] == ["VolumeClaimMissing"] * 2


async def test_a_pending_claim_of_a_source_with_a_problem_is_unknown(scene: DoctorScene) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    scene.body["spec"]["application"]["driver"] = {"template": {"spec": {"volumes": [volume]}}}
    scene.server.kinds = [CLAIM, *scene.server.kinds]
    claim = {"metadata": {"namespace": "default", "name": "data"}, "status": {"phase": "Pending"}}
    scene.server.add(CLAIM, claim)
    scene.status["conditions"] = [
        {"type": "Ready", "status": "True", "reason": "Finished"},
        {"type": "Degraded", "status": "True", "reason": "QuotaExceeded"},
    ]

    [found] = [one for one in await scene.found() if one.check.endswith("Claim data")]
    assert found.level is Level.UNKNOWN


async def test_a_condition_of_another_type_does_not_make_a_source_ready(scene: DoctorScene) -> None:
    labels = {NAME_LABEL: "orders", "spark-role": "driver"}
    scene.server.add(POD, {"metadata": {"namespace": "default", "name": "d", "labels": labels}})
    scene.status["conditions"] = [
        {"type": "Ready", "status": "False", "reason": "Finished"},
        {"type": "Degraded", "status": "True", "reason": "QuotaExceeded"},
    ]

    assert await scene.faults() == ["QuotaExceeded", "ExecutorsMissing"]


def test_all_that_is_used_up_of_a_quota_is_named_in_order() -> None:
    hard = {"pods": "2", "memory": "8Gi", "cpu": "8"}
    status = {"hard": hard, "used": {"pods": "2", "memory": "1Gi", "cpu": "8", "secrets": "4"}}
    unused = {"metadata": {"name": "new"}, "status": {"hard": hard}}

    assert list(_exhausted([unused, {"metadata": {"name": "team"}, "status": status}])) == [
        "ResourceQuota team is used up: cpu (8 of 8), pods (2 of 2)"
    ]


def test_the_topmost_missing_fields_are_named_below_lists_and_maps_too() -> None:
    def below(*names: str) -> dict[str, Any]:
        return {"properties": {name: {"properties": {"x": {}}} for name in names}}

    def schema(*names: str) -> dict[str, Any]:
        return {
            "properties": {
                "plain": below(*names),
                "list": {"items": below(*names)},
                "map": {"additionalProperties": below(*names)},
                "open": {"additionalProperties": True},
            }
        }

    ours, theirs = schema("a", "b"), schema("a")
    assert list(_missing_fields(ours, theirs, "")) == ["plain.b", "list.b", "map.b"]
    assert list(_missing_fields(theirs, ours, "")) == []
    assert list(_missing_fields(ours, {}, "")) == ["plain", "list", "map", "open"]


class Recording(Examined):
    """Keeps the reviews that are asked for."""

    def __init__(self, scene: DoctorScene) -> None:
        super().__init__(scene.server)
        self.reviews: list[Manifest] = []

    async def ask(self, method: str, path: str, *, body: Manifest | None = None) -> Manifest:
        if body is not None:
            self.reviews.append(body)
        return await super().ask(method, path, body=body)


async def test_rights_are_asked_for_the_account_that_is_named_with_its_groups(
    scene: DoctorScene,
) -> None:
    api = Recording(scene)
    found = [one async for one in examine(api, "default", account=("tools", "robot"))]

    user = "system:serviceaccount:tools:robot"
    assert [one.check for one in found if "rights" in one.check] == [f"rights of {user} in default"]
    assert {review["spec"]["user"] for review in api.reviews} == {user}
    [groups] = {tuple(review["spec"]["groups"]) for review in api.reviews}
    assert groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:tools",
        "system:authenticated",
    )


async def test_a_missing_right_on_a_subresource_is_named_with_it(scene: DoctorScene) -> None:
    scene.api.forbidden = {"patch balancedsources"}
    [fault] = [one for one in await scene.found() if one.fault]
    assert "patch balancedsources/status.balancedsource.io" in fault.message


async def test_faults_of_the_cluster_hide_only_what_follows_from_them(scene: DoctorScene) -> None:
    scene.api.answers |= {CRD: None, SPARK: None}
    scene.status = {}
    assert await scene.faults() == ["CrdMissing", "SparkOperatorMissing"]
