"""Each seeded fault is named, and nothing else.

The first test needs a cluster without CRDs: the order matters.
"""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from balanced_source_operator.spec.crd import custom_resource_definition
from doctor.conftest import Hospital
from testbed.waiting import wait_until

pytestmark = pytest.mark.integration


def test_01_nothing_is_installed(hospital: Hospital) -> None:
    assert hospital.faults("default", "--operator", "doctor:operator")[:2] == [
        "CrdMissing",
        "PermissionMissing",
    ]
    assert "SparkOperatorMissing" in hospital.faults("default")


def test_02_an_older_crd(hospital: Hospital) -> None:
    crd = copy.deepcopy(custom_resource_definition())
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["suspend"]
    hospital.install()
    namespace = hospital.namespace()
    hospital.apply(crd)
    try:
        assert hospital.faults(namespace) == ["CrdOutdated"]
    finally:
        hospital.apply(custom_resource_definition())


def test_03_a_healthy_source(hospital: Hospital) -> None:
    namespace = hospital.namespace()
    hospital.admit(namespace, hospital.spec())

    assert hospital.faults(namespace) == []


def test_04_an_api_server_that_does_not_answer(
    hospital: Hospital, closed_port: int, tmp_path: Path
) -> None:
    config = yaml.safe_load(hospital.control_plane.kubeconfig().read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{closed_port}"
    (tmp_path / "config").write_text(yaml.safe_dump(config))

    assert hospital.faults("default", kubeconfig=tmp_path / "config") == ["ApiServerUnreachable"]


def test_05_an_operator_without_its_roles(hospital: Hospital) -> None:
    namespace = hospital.namespace(is_granted=False)
    hospital.admit(namespace, hospital.spec())

    assert hospital.faults(namespace) == ["PermissionMissing"]


def test_06_no_operator(hospital: Hospital) -> None:
    namespace = hospital.namespace()
    hospital.admit(namespace, hospital.spec(), status={})

    assert hospital.faults(namespace) == ["OperatorSilent"]


def test_07_no_spark_operator_in_this_namespace(hospital: Hospital) -> None:
    namespace = hospital.namespace()
    hospital.admit(namespace, hospital.spec())
    labels = {"balancedsource.io/name": "orders"}
    metadata = {"name": "orders-1", "namespace": namespace, "labels": labels}
    hospital.apply(
        {
            "apiVersion": "sparkoperator.k8s.io/v1beta2",
            "kind": "SparkApplication",
            "metadata": metadata,
        }
    )

    assert hospital.faults(namespace) == [], "it may still come"
    wait_until(
        lambda: hospital.faults(namespace) == ["SparkOperatorSilent"],
        120,
        "the command to be out of patience",
        interval=2,
    )


def _with_claim(spec: dict[str, Any]) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "orders-data"}}
    spec["application"]["driver"] = {"template": {"spec": {"volumes": [volume]}}}


def _with_streams(spec: dict[str, Any]) -> None:
    clusters = {"clustersFrom": {"configMapRef": {"name": "streams"}}}
    spec["source"]["kafka"] = {**clusters, "subscription": {"streams": ["orders"]}}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda spec: spec["application"].update(serviceAccount="sparky"), "ServiceAccountMissing"),
        (lambda spec: spec["application"].update(imagePullSecrets=["registry"]), "SecretNotFound"),
        (_with_claim, "VolumeClaimMissing"),
        (_with_streams, "ConfigMapMissing"),
        (lambda spec: spec.update(assignment={"rebalance": {"minInterval": "1s"}}), "InvalidSpec"),
        (
            lambda spec: spec["source"]["kafka"].update(subscription={"topics": ["oders"]}),
            "UnknownTopic",
        ),
    ],
)
def test_08_a_fault_of_the_source(hospital: Hospital, change: Any, fault: str) -> None:
    namespace, spec = hospital.namespace(), hospital.spec()
    change(spec)
    hospital.admit(namespace, spec)

    assert hospital.faults(namespace) == [fault]


def test_09_a_broker_that_does_not_answer(hospital: Hospital, closed_port: int) -> None:
    namespace, spec = hospital.namespace(), hospital.spec()
    spec["source"]["kafka"]["clusters"][0]["bootstrapServers"] = f"127.0.0.1:{closed_port}"
    hospital.admit(namespace, spec)

    assert hospital.faults(namespace) == ["ClusterUnreachable"]


def test_10_a_condition(hospital: Hospital) -> None:
    namespace = hospital.namespace()
    condition = {
        "type": "Degraded",
        "status": "True",
        "reason": "QuotaExceeded",
        "message": "pods: 10 of 10",
    }
    stamp = {"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}
    hospital.admit(
        namespace,
        hospital.spec(),
        {"observedGeneration": 1, "conditions": [{**condition, **stamp}]},
    )

    assert hospital.faults(namespace) == ["QuotaExceeded"]


def test_11_an_operator_whose_pods_do_not_start(hospital: Hospital) -> None:
    """Found by its Deployment; here no controller starts pods."""
    namespace = hospital.namespace()
    labels = {"app.kubernetes.io/name": "balanced-source"}
    pod = {"serviceAccountName": "operator", "containers": [{"name": "operator", "image": "i"}]}
    hospital.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "operator", "namespace": "doctor", "labels": labels},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }
    )

    assert hospital.faults(namespace, "--output", "json") == ["OperatorUnavailable"]
