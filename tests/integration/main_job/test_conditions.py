"""What a real API server refuses, what others did to our objects, and the emergency stop."""

import asyncio
import json
from typing import Any

import pytest
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration

from balanced_source_operator.controller.refusals import refusal_problem
from balanced_source_operator.kube.client import KubernetesClient
from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.resources.kinds import CONFIG_MAP, KUBEFLOW_APPLICATION
from support.story.operator_process import OperatorProcess
from testbed.commands import CommandError
from testbed.control_plane import ControlPlane

from .conftest import World

APPLICATIONS = f"{KUBEFLOW_APPLICATION.plural}.{KUBEFLOW_APPLICATION.group}"


def warnings(world: World, reason: str) -> list[dict[str, Any]]:
    found = json.loads(world.kubectl("get", "events", "-o", "json"))["items"]
    return [event for event in found if event["reason"] == reason and event["type"] == "Warning"]


def _status(world: World, kind: str, name: str) -> dict[str, Any]:
    found = world.control_plane.get(kind, name, world.namespace) or {}
    return dict(found.get("status", {}))


def reading(world: World) -> None:
    """The source is assigned and its application is created."""
    world.kafka.admin.create_topic(world.topic, partitions=3)
    world.apply()
    world.wait(
        lambda: world.control_plane.get(APPLICATIONS, "orders-1", world.namespace),
        "the application",
    )


def policy(
    world: World, *, group: str, resource: str, operations: list[str], message: str
) -> list[dict[str, Any]]:
    """A ValidatingAdmissionPolicy that denies writes of one kind in the namespace of a test."""
    name = f"deny-{world.namespace}"
    rule = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "resources": [resource],
        "operations": operations,
    }
    selector = {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}
    version = "admissionregistration.k8s.io/v1"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": message}],
    }
    binding = {
        "policyName": name,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": selector},
    }
    return [
        {
            "apiVersion": version,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": spec,
        },
        {
            "apiVersion": version,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": binding,
        },
    ]


def is_denied(world: World, message: str) -> bool:
    """Return whether the API server follows a policy yet; it takes a moment to learn of one."""
    try:
        world.kubectl(
            "create", "rolebinding", "probe", "--role=any", "--user=any", "--dry-run=server"
        )
    except CommandError as error:
        return message in error.stderr
    return False


def is_counted(world: World, resource: str) -> bool:
    """Return whether a quota counts a resource yet; ask for it again.

    The controller learns of custom resources some time after their CRD, and looks at a quota that
    it knows only when its spec changes, or every 5 minutes.
    """
    quota = world.control_plane.get("resourcequota", "small", world.namespace) or {}
    if resource in quota.get("status", {}).get("used", {}):
        return True
    other = int(quota.get("spec", {}).get("hard", {}).get("count/cronjobs.batch", "0")) + 1
    patch = json.dumps({"spec": {"hard": {"count/cronjobs.batch": str(other)}}})
    world.kubectl("patch", "resourcequota", "small", "-p", patch)
    return False


@pytest.mark.parametrize(
    "counted",
    ["count/configmaps", "count/roles.rbac.authorization.k8s.io", f"count/{APPLICATIONS}"],
)
def test_a_quota_is_a_condition_and_a_warning_until_it_is_raised(
    world: World, counted: str
) -> None:
    hard = {counted: "1" if counted == "count/configmaps" else "0"}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": hard},
    }
    quota["metadata"] |= {"namespace": world.namespace}
    world.control_plane.apply(quota)
    world.wait(lambda: is_counted(world, counted), "the quota to be in effect", timeout=90)
    world.kafka.admin.create_topic(world.topic, partitions=3)

    world.apply()

    condition = world.wait_condition("Degraded", "True", "QuotaExceeded", timeout=60)
    assert "exceeded quota: small" in condition["message"]
    assert "Raise the ResourceQuota" in condition["message"]
    world.wait(lambda: warnings(world, "QuotaExceeded"), "a Warning event")
    world.kubectl("delete", "resourcequota", "small")
    world.wait(
        lambda: world.control_plane.get(APPLICATIONS, "orders-1", world.namespace),
        "the application",
        timeout=90,
    )
    world.wait_condition("Degraded", "False", timeout=60)


def test_an_admission_policy_is_a_condition_with_its_words(world: World) -> None:
    denied = policy(
        world,
        group="rbac.authorization.k8s.io",
        resource="rolebindings",
        operations=["CREATE", "UPDATE"],
        message="no bindings in this namespace",
    )
    for manifest in denied:
        world.control_plane.apply(manifest)
    world.wait(lambda: is_denied(world, "no bindings"), "the policy to be in effect", timeout=60)
    world.kafka.admin.create_topic(world.topic, partitions=3)
    try:
        world.apply()
        condition = world.wait_condition("Degraded", "True", "AdmissionDenied", timeout=60)
        assert "no bindings in this namespace" in condition["message"]
        assert "RoleBinding orders-documents" in condition["message"]
        world.wait(lambda: warnings(world, "AdmissionDenied"), "a Warning event")
    finally:
        for manifest in reversed(denied):
            world.control_plane.kubectl("delete", manifest["kind"], manifest["metadata"]["name"])
    world.wait_condition("Degraded", "False", timeout=90)


async def test_missing_rights_are_distinguished(control_plane: ControlPlane) -> None:
    configuration = Configuration()
    path = control_plane.create_user("somebody")
    await config.load_kube_config(str(path), client_configuration=configuration)
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "default", "name": "orders-enumerator"},
    }
    async with asyncio.timeout(30), ApiClient(configuration) as client:
        with pytest.raises(RefusedError) as raised:
            await KubernetesClient(client).create(CONFIG_MAP, manifest)

    problem = refusal_problem(
        "create ConfigMap orders-enumerator", raised.value, scope="ConfigMap/orders-enumerator"
    )
    assert (raised.value.status, problem.reason) == (403, "PermissionMissing")
    assert 'cannot create resource "configmaps"' in problem.message


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("configmap", "orders-readers"),
        ("configmap", "orders-enumerator"),
        ("role", "orders-documents"),
    ],
)
def test_a_foreign_object_is_left_alone_and_named(world: World, kind: str, name: str) -> None:
    more = (
        ("--from-literal=theirs=1",) if kind == "configmap" else ("--verb=get", "--resource=pods")
    )
    world.kubectl("create", kind, name, *more)
    before = world.control_plane.get(kind, name, world.namespace)
    world.kafka.admin.create_topic(world.topic, partitions=3)

    world.apply()

    condition = world.wait_condition("Degraded", "True", "ForeignObject", timeout=60)
    assert f"{name} exists and does not belong to BalancedSource orders" in condition["message"]
    world.wait(lambda: warnings(world, "ForeignObject"), "a Warning event")
    assert world.control_plane.get(kind, name, world.namespace) == before
    world.kubectl("delete", kind, name)
    world.wait(
        lambda: world.control_plane.get(APPLICATIONS, "orders-1", world.namespace),
        "the application",
        timeout=90,
    )


@pytest.mark.parametrize("suffix", ["enumerator", "assignment", "readers"])
def test_a_lost_owner_reference_is_restored(world: World, suffix: str) -> None:
    reading(world)
    uid = world.source.get()["metadata"]["uid"]
    before = world.config_map(suffix)
    patch = json.dumps({"metadata": {"ownerReferences": None}})

    world.kubectl("patch", "configmap", f"orders-{suffix}", "--type", "merge", "-p", patch)

    def owners() -> list[str]:
        metadata = (world.config_map(suffix) or {})["metadata"]
        return [owner["uid"] for owner in metadata.get("ownerReferences", [])]

    world.wait(lambda: owners() == [uid], "the owner reference")
    after = world.config_map(suffix)
    assert after is not None
    assert before is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def test_an_edited_status_is_repaired(world: World) -> None:
    reading(world)
    world.wait(lambda: world.source.status.get("splits") == 3, "the status")
    patch = json.dumps({"status": {"splits": 99, "message": "all is lost"}})

    world.kubectl(
        "patch", "bsrc", "orders", "--subresource", "status", "--type", "merge", "-p", patch
    )

    world.wait(lambda: world.source.status["splits"] == 3, "the status as it was")
    assert world.source.status["message"] != "all is lost"


@pytest.mark.parametrize("is_restarted", [False, True], ids=["in memory", "after a restart"])
def test_suspend_stops_a_source_whose_spec_is_invalid(
    world: World, operator: OperatorProcess, is_restarted: bool
) -> None:
    reading(world)
    cluster = world.manifest()["spec"]["source"]["kafka"]["clusters"][0]
    broken = {**cluster, "properties": {"ssl.truststore.location": "/etc/pki/trust.jks"}}
    world.source.patch({"source": {"kafka": {"clusters": [broken]}}})
    world.wait_condition("Degraded", "True", "InvalidSpec")
    if is_restarted:
        operator.kill()
        operator.start()

    world.source.patch({"suspend": True})

    world.wait(
        lambda: not world.control_plane.items(APPLICATIONS, world.namespace),
        "the application to be gone",
    )
    world.wait_condition("Ready", "False", "Suspended")
    assert world.source.condition("Degraded")["reason"] == "InvalidSpec"


def test_an_application_that_cannot_be_submitted_is_a_condition(world: World) -> None:
    reading(world)
    state = {"state": "SUBMISSION_FAILED", "errorMessage": "no such image"}
    failed = {"status": {"applicationState": state, "driverInfo": {}}}
    world.kubectl(
        "patch",
        APPLICATIONS,
        "orders-1",
        "--subresource",
        "status",
        "--type",
        "merge",
        "-p",
        json.dumps(failed),
    )

    assert (
        "no such image" in world.wait_condition("Degraded", "True", "SubmissionFailed")["message"]
    )
    world.wait(lambda: warnings(world, "SubmissionFailed"), "a Warning event")
