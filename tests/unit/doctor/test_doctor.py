"""The doctor names each fault, and says what to do; what it may not see is unknown, never fine."""

import copy
import json
import time
from typing import Any

import pytest
from typer.testing import CliRunner

from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source.reasons import Reason
from balanced_source_operator.cli import app
from balanced_source_operator.doctor import Diagnosis, Level, examine, outside
from balanced_source_operator.doctor.examine import is_healthy
from balanced_source_operator.doctor.finding import as_text
from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.kube.rights import NEEDED
from balanced_source_operator.resources.kinds import (
    APACHE_APPLICATION,
    KUBEFLOW_APPLICATION,
    NAME_LABEL,
    POD,
    SERVICE_ACCOUNT,
)
from balanced_source_operator.spec.crd import custom_resource_definition
from support.doctor_scene import DoctorScene
from support.examined import (
    APACHE,
    CRD,
    DEPLOYMENTS,
    OF_FORMER_OPERATORS,
    OF_OPERATORS,
    SPARK,
    deployment,
)
from support.world import kafka_source


async def test_a_healthy_cluster_has_no_fault(scene: DoctorScene) -> None:
    found = await scene.found()

    assert {diagnosis.level for diagnosis in found} == {Level.OK}
    assert len(found) > 5


async def test_an_api_server_that_does_not_answer(scene: DoctorScene) -> None:
    scene.api.is_reachable = False

    assert await scene.faults() == ["ApiServerUnreachable"]


async def test_a_missing_crd(scene: DoctorScene) -> None:
    scene.api.answers[CRD] = None

    assert await scene.faults() == ["CrdMissing"]


async def test_an_older_crd(scene: DoctorScene) -> None:
    crd = copy.deepcopy(custom_resource_definition())
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["suspend"]
    del spec["properties"]["source"]["properties"]["kafka"]["properties"]["limits"]
    scene.api.answers[CRD] = crd
    (fault,) = [diagnosis for diagnosis in await scene.found() if diagnosis.fault]

    assert fault.fault == "CrdOutdated"
    assert "it lacks spec.source.kafka.limits, spec.suspend, and" in fault.message


async def test_a_missing_spark_operator(scene: DoctorScene) -> None:
    scene.api.answers[SPARK] = None

    assert await scene.faults() == ["SparkOperatorMissing"]


@pytest.mark.parametrize(
    ("fields", "faults"),
    [({"template": {}}, []), ({"cores": {}}, ["SparkOperatorOutdated"]), (None, [])],
    ids=["new", "2.0", "a schema that says nothing"],
)
async def test_a_spark_operator_without_pod_templates(
    scene: DoctorScene, fields: dict[str, Any] | None, faults: list[str]
) -> None:
    """The API server would drop the environment of drivers without a word."""
    driver = {} if fields is None else {"properties": fields}
    schema = {"properties": {"spec": {"properties": {"driver": driver}}}}
    name = "sparkapplications.sparkoperator.k8s.io"
    versions = [{"name": "v1beta2", "schema": {"openAPIV3Schema": schema}}]
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
    scene.api.answers[path] = {"spec": {"versions": versions}}

    assert await scene.faults() == faults


async def test_an_operator_without_pods(scene: DoctorScene) -> None:
    scene.api.answers[DEPLOYMENTS] = {"items": [deployment(available=0)]}

    assert await scene.faults() == ["OperatorUnavailable"]


async def test_an_operator_of_the_first_chart_is_found_by_its_name(scene: DoctorScene) -> None:
    scene.api.answers[DEPLOYMENTS] = {"items": []}
    former = DEPLOYMENTS.replace(OF_OPERATORS, OF_FORMER_OPERATORS)
    scene.api.answers[former] = {"items": [deployment(available=0)]}

    assert await scene.faults() == ["OperatorUnavailable"]


async def test_that_there_is_no_operator_is_said(scene: DoctorScene) -> None:
    scene.api.answers[DEPLOYMENTS] = {"items": []}
    scene.api.answers[DEPLOYMENTS.replace(OF_OPERATORS, OF_FORMER_OPERATORS)] = {"items": []}
    found = await scene.found()

    (operator,) = [one for one in found if one.check == "operator"]
    assert "no Deployment has the label balancedsource.io/component=operator" in operator.message
    assert not any(one.fault for one in found), "it may run elsewhere"


async def test_a_missing_right(scene: DoctorScene) -> None:
    scene.api.forbidden = {"create sparkapplications", "delete sparkapplications", "get secrets"}
    (fault,) = [diagnosis for diagnosis in await scene.found() if diagnosis.fault]

    assert fault.fault == "PermissionMissing"
    for kind in ("sparkapplications.sparkoperator.k8s.io", "sparkapplications.spark.apache.org"):
        assert f"create, delete {kind}; " in fault.message
    assert "get secrets" in fault.message


@pytest.mark.parametrize(
    "right", [f"{verb} {kind.plural}" for kind, _subresource, verbs in NEEDED for verb in verbs]
)
async def test_each_right_that_the_operator_needs_is_checked(
    scene: DoctorScene, right: str
) -> None:
    scene.api.forbidden = {right}

    assert await scene.faults() == ["PermissionMissing"]


@pytest.mark.parametrize(
    ("lease", "where"),
    [
        ({"valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}, " in system"),
        ({"value": "default"}, ""),
        (None, None),
    ],
)
async def test_rights_on_the_lease_are_checked_where_it_is(
    scene: DoctorScene, lease: dict[str, Any] | None, where: str | None
) -> None:
    scene.api.answers[DEPLOYMENTS] = {"items": [deployment(lease=lease)]}
    scene.api.forbidden = {"create leases", "get leases", "update leases"}
    faults = [diagnosis for diagnosis in await scene.found() if diagnosis.fault]

    assert [fault.fault for fault in faults] == ["PermissionMissing"] * (where is not None)
    kind = "leases.coordination.k8s.io"
    named = f"{kind} balanced-source-operator{where}"
    assert all(f": create {kind}{where}; get, update {named}" in one.message for one in faults)


async def test_a_namespace_that_no_selector_matches(scene: DoctorScene) -> None:
    operators = [deployment(name=n, selector=f"balancedsource.io/shard={n}") for n in "ab"]
    scene.api.answers[DEPLOYMENTS] = {"items": operators}
    scene.api.forbidden = {"get secrets"}
    (fault,) = [diagnosis for diagnosis in await scene.found() if diagnosis.fault]

    assert fault.fault == "NamespaceNotServed"
    for name in "ab":
        assert (
            f"system/{name} serves namespaces with the labels balancedsource.io/shard={name}"
            in (fault.message)
        )
    assert "kubectl label namespace default" in fault.remedy


async def test_a_namespace_that_no_operator_names(scene: DoctorScene) -> None:
    operators = [deployment(name=n, namespaces=f"{n}-1,{n}-2") for n in "ab"]
    scene.api.answers[DEPLOYMENTS] = {"items": operators}
    scene.api.forbidden = {"get secrets"}
    (fault,) = [diagnosis for diagnosis in await scene.found() if diagnosis.fault]

    assert fault.fault == "NamespaceNotServed"
    assert "system/a serves the namespaces a-1, a-2; system/b serves" in fault.message
    assert fault.remedy == "Add default to watchNamespaces of a release."


async def test_a_label_is_a_remedy_if_one_of_the_operators_looks_at_labels(
    scene: DoctorScene,
) -> None:
    operators = [deployment(name="a", selector="shard=a"), deployment(namespaces="elsewhere")]
    scene.api.answers[DEPLOYMENTS] = {"items": operators}
    (fault,) = [diagnosis for diagnosis in await scene.found() if diagnosis.fault]

    assert fault.fault == "NamespaceNotServed"
    assert "kubectl label namespace default" in fault.remedy


@pytest.mark.parametrize("others", ["elsewhere", "elsewhere,default"])
async def test_rights_are_checked_only_of_operators_that_serve_the_namespace(
    scene: DoctorScene, others: str
) -> None:
    operators = [deployment(name="a", namespaces="default"), deployment(namespaces=others)]
    scene.api.answers[DEPLOYMENTS] = {"items": operators}
    found = await scene.found()

    rights = [diagnosis for diagnosis in found if diagnosis.check.startswith("rights of")]
    assert len(rights) == ("default" in others) + 1


@pytest.mark.parametrize("other", ["", "balancedsource.io/shard in (b,c)"])
async def test_a_namespace_that_one_of_two_operators_serves(scene: DoctorScene, other: str) -> None:
    operators = [deployment(name="a", selector="shard=a"), deployment(name="b", selector=other)]
    scene.api.answers[DEPLOYMENTS] = {"items": operators}
    scene.api.labels = {other}

    assert await scene.faults() == []


async def test_an_operator_that_selects_namespaces_must_be_able_to_follow_them(
    scene: DoctorScene,
) -> None:
    scene.api.answers[DEPLOYMENTS] = {"items": [deployment(selector="shard=a")]}
    scene.api.labels = {"shard=a"}
    scene.api.forbidden = {"watch namespaces"}
    (fault,) = [diagnosis for diagnosis in await scene.found() if diagnosis.fault]

    assert (fault.fault, "watch namespaces" in fault.message) == ("PermissionMissing", True)


async def test_labels_that_may_not_be_looked_up_are_unknown(scene: DoctorScene) -> None:
    scene.api.answers[DEPLOYMENTS] = {"items": [deployment(selector="shard=a")]}
    scene.api.labels = None
    found = await scene.found()

    unknown = [d.check for d in found if d.level is Level.UNKNOWN]
    assert unknown == ["operator of namespace default"]
    assert not any(diagnosis.fault for diagnosis in found)


async def test_an_operator_that_has_not_seen_the_source(scene: DoctorScene) -> None:
    scene.status = {}

    assert await scene.faults() == ["OperatorSilent"]


async def test_a_spark_operator_that_has_not_seen_the_application(scene: DoctorScene) -> None:
    metadata = {"namespace": "default", "name": "orders-1", "labels": {NAME_LABEL: "orders"}}
    scene.server.add(KUBEFLOW_APPLICATION, {"metadata": metadata, "spec": {}})

    assert await scene.faults() == ["SparkOperatorSilent"]


async def test_a_spark_operator_may_take_a_moment(scene: DoctorScene) -> None:
    """People run the command right after `kubectl apply`."""
    metadata = {"namespace": "default", "name": "orders-1", "labels": {NAME_LABEL: "orders"}}
    scene.server.clock = time.time
    scene.server.add(KUBEFLOW_APPLICATION, {"metadata": metadata, "spec": {}})

    found = await scene.found()
    (moment,) = [each for each in found if each.level is Level.UNKNOWN]
    assert moment.message.endswith("orders-1 yet: check again in a minute")
    assert not any(each.fault for each in found)


async def test_one_of_the_two_spark_operators_is_enough(scene: DoctorScene) -> None:
    scene.body["spec"]["application"]["provider"] = "Apache"
    scene.server.kinds = [APACHE_APPLICATION, *scene.server.kinds]
    scene.api.answers |= {SPARK: None, APACHE: {}}

    assert await scene.faults() == []


async def test_a_source_whose_spark_operator_is_missing_while_the_other_one_is_there(
    scene: DoctorScene,
) -> None:
    scene.body["spec"]["application"]["provider"] = "Apache"
    (fault,) = [diagnosis for diagnosis in await scene.found() if diagnosis.fault]

    assert fault.fault == "SparkOperatorMissing"
    assert "sparkapplications.spark.apache.org does not exist" in fault.message
    assert "Install Apache's spark-kubernetes-operator" in fault.remedy


async def test_an_application_that_apaches_operator_has_not_seen(scene: DoctorScene) -> None:
    scene.body["spec"]["application"]["provider"] = "Apache"
    scene.server.kinds = [APACHE_APPLICATION, *scene.server.kinds]
    metadata = {"namespace": "default", "name": "orders-1", "labels": {NAME_LABEL: "orders"}}
    scene.server.add(APACHE_APPLICATION, {"metadata": metadata, "spec": {}})

    assert await scene.faults() == ["SparkOperatorSilent"]


async def test_missing_objects(scene: DoctorScene) -> None:
    scene.server.remove(SERVICE_ACCOUNT, "default", "spark")
    scene.body["spec"]["application"]["imagePullSecrets"] = ["registry"]
    scene.body["spec"]["source"]["kafka"]["clusters"][0]["propertiesFrom"] = [
        {"secretRef": {"name": "kafka"}}
    ]

    assert await scene.faults() == ["ServiceAccountMissing", "SecretNotFound", "SecretNotFound"]


async def test_a_missing_config_map(scene: DoctorScene) -> None:
    kafka = {
        "clustersFrom": {"configMapRef": {"name": "streams"}},
        "subscription": {"streams": ["a"]},
    }
    scene.body["spec"]["source"] = {"kafka": kafka}

    assert await scene.faults() == ["ConfigMapMissing"]


async def test_an_invalid_spec_that_the_api_server_accepted(scene: DoctorScene) -> None:
    scene.body["spec"]["assignment"] = {"rebalance": {"mode": "Drift", "minInterval": "1s"}}

    assert await scene.faults() == ["InvalidSpec"]


def degraded(reason: str, message: str) -> dict[str, str]:
    return {
        "type": "Degraded",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


@pytest.mark.parametrize(
    ("message", "times"),
    [
        ("Secret kafka does not exist in namespace default.", 1),
        ("Secret kafka-2 does not exist in namespace default.", 2),
        ("Secret my.kafka does not exist in namespace default.", 2),
        ("Secret kafka.old does not exist in namespace default.", 2),
    ],
)
async def test_what_a_condition_says_of_an_object_is_not_said_twice(
    scene: DoctorScene, message: str, times: int
) -> None:
    scene.body["spec"]["source"]["kafka"]["clusters"][0]["propertiesFrom"] = [
        {"secretRef": {"name": "kafka"}}
    ]
    scene.status["conditions"] = [degraded("SecretNotFound", message)]

    assert await scene.faults() == ["SecretNotFound"] * times


@pytest.mark.parametrize(("scope", "times"), [("main", 1), ("other", 2)])
async def test_an_unreachable_cluster_that_a_condition_names_is_not_said_twice(
    scene: DoctorScene, monkeypatch: pytest.MonkeyPatch, scope: str, times: int
) -> None:
    problem = RefusedDiscoveryError("topic oders does not exist", reason=Reason.NOT_FOUND)
    monkeypatch.setattr(outside, "found_problems", lambda *_: {scope: problem})
    scene.status["conditions"] = [degraded("NotFound", "main: topic oders does not exist")]

    assert await scene.faults() == ["NotFound"] * times


async def test_a_spec_that_a_condition_calls_invalid_is_not_said_twice(scene: DoctorScene) -> None:
    scene.body["spec"]["assignment"] = {"rebalance": {"mode": "Drift", "minInterval": "1s"}}
    scene.status["conditions"] = [degraded("InvalidSpec", "minInterval is too short")]

    assert await scene.faults() == ["InvalidSpec"]


async def test_conditions_come_with_the_remedy_of_their_reason(scene: DoctorScene) -> None:
    scene.status["conditions"] = [degraded("QuotaExceeded", "quota pods")]
    (fault,) = [diagnosis for diagnosis in await scene.found() if diagnosis.fault]

    assert (fault.fault, fault.message, fault.remedy) == (
        "QuotaExceeded",
        "quota pods",
        Reason.QUOTA_EXCEEDED.remedy,
    )


async def test_problems_of_discovery_keep_their_reason(
    scene: DoctorScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = RefusedDiscoveryError("topic oders does not exist", reason=Reason.NOT_FOUND)
    monkeypatch.setattr(outside, "found_problems", lambda *_: {"main": problem})

    assert await scene.faults() == ["NotFound"]


@pytest.mark.parametrize(
    ("ready", "faults"), [("True", []), ("False", ["ClusterUnreachable"])], ids=["read", "not read"]
)
async def test_a_source_that_is_read_has_no_fault_if_only_pods_reach_its_broker(
    scene: DoctorScene, monkeypatch: pytest.MonkeyPatch, ready: str, faults: list[str]
) -> None:
    problem = TransientDiscoveryError("no answer", reason=Reason.CLUSTER_UNREACHABLE)
    monkeypatch.setattr(outside, "found_problems", lambda *_: {"main": problem})
    labels = {NAME_LABEL: "orders", "spark-role": "driver"}
    scene.server.clock = time.time
    scene.server.add(POD, {"metadata": {"namespace": "default", "name": "d", "labels": labels}})
    scene.status["conditions"] = [
        {"type": "Ready", "status": ready, "reason": "Reading", "message": ""},
        {"type": "Degraded", "status": "False", "reason": "AsExpected", "message": ""},
    ]
    found = await scene.found()

    assert [one.fault for one in found if one.level is Level.ERROR] == faults
    (seen,) = [one for one in found if one.check.endswith(": main")]
    assert ("the source is Ready, so its pods can reach it" in seen.message) is (ready == "True")


async def test_a_discovery_that_works_says_what_was_looked_at(
    scene: DoctorScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "found_problems", lambda *_: {})

    (found,) = [d for d in await scene.found() if d.check.endswith(": discovery")]

    assert (found.level, found.message) == (
        Level.OK,
        "the servers of the source answer and list its splits",
    )


def test_a_look_asks_every_part_once_and_repeats_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def execute(call: Any) -> Any:
        asked.append(call.scope)
        raise RefusedDiscoveryError(f"{call.scope} refuses", scope=call.scope)

    class Odd:
        def of(self, source: Any) -> Any:
            return self

        def executor(self, secrets: Any, **_: Any) -> Any:
            return execute

    monkeypatch.setattr(outside, "installed", Odd)

    found = outside.found_problems(kafka_source("a", "b"), {})

    assert {scope: str(error) for scope, error in found.items()} == {
        "a": "a refuses",
        "b": "b refuses",
    }
    assert sorted(asked) == ["a", "b"]


async def test_a_forbidden_lookup_is_unknown(scene: DoctorScene) -> None:
    forbidden = RefusedError("forbidden", status=403)
    scene.server.deny(forbidden, kind=SERVICE_ACCOUNT, verbs=["get"])
    scene.api.answers[DEPLOYMENTS] = None
    found = await scene.found()

    assert [d.check for d in found if d.level is Level.UNKNOWN] == [
        "operator",
        "source default/orders: ServiceAccount spark",
    ]
    assert not any(diagnosis.fault for diagnosis in found)


async def test_a_source_that_is_not_there(scene: DoctorScene) -> None:
    found = [
        diagnosis async for diagnosis in examine(scene.api, "default", "oders") if diagnosis.fault
    ]

    assert [diagnosis.fault for diagnosis in found] == ["SourceMissing"]


def test_without_a_kubeconfig_the_command_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    text = CliRunner().invoke(app, ["doctor"])
    as_json = CliRunner().invoke(app, ["doctor", "-o", "json"])

    assert (text.exit_code, as_json.exit_code) == (1, 1)
    assert "ERROR    cluster: ApiServerUnreachable" in text.stdout
    assert [found["fault"] for found in json.loads(as_json.stdout)] == ["ApiServerUnreachable"]


@pytest.mark.parametrize(("worst", "is_fine"), [(Level.ERROR, False), (Level.UNKNOWN, True)])
def test_one_fault_among_checks_that_pass_is_enough(worst: Level, *, is_fine: bool) -> None:
    """A check that was not possible is no fault: rights may be missing to the user alone."""
    found = [Diagnosis(check="CRD"), Diagnosis(check="rights", level=worst)]
    assert is_healthy(found) == is_fine


def test_a_fault_is_printed_with_its_remedy() -> None:
    diagnosis = Diagnosis(
        check="CRD", level=Level.ERROR, fault="CrdMissing", message="gone", remedy="Install it."
    )

    assert as_text(diagnosis).splitlines() == [
        "ERROR    CRD: CrdMissing",
        "         gone",
        "         → Install it.",
    ]
