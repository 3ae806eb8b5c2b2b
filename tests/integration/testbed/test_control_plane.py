"""What the operator's tests rely on in the API server and the controllers."""

import json
from collections.abc import Iterator

import pytest

from testbed.control_plane import ControlPlane
from testbed.errors import CommandError
from testbed.waiting import wait_until

pytestmark = pytest.mark.integration
CRD = "gauges.testbed.example.org"


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> ControlPlane:
    control_plane.wait_established(CRD)
    return control_plane


@pytest.fixture
def gauge(api: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.node.name.replace("_", "-")[:50].rstrip("-")
    # the definition may be established a moment before its first request is served
    wait_until(lambda: _create(api, name), 10, "the first gauge", ignoring=(CommandError,))
    yield name
    api.kubectl("delete", CRD, name, "--ignore-not-found")


def _create(api: ControlPlane, name: str, size: int = 2) -> bool:
    api.apply(
        {
            "apiVersion": "testbed.example.org/v1",
            "kind": "Gauge",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"size": size},
        }
    )
    return True


def test_defaults_and_cel_rules_hold(api: ControlPlane, gauge: str) -> None:
    found = api.get(CRD, gauge)
    assert found is not None
    assert found["spec"] == {"size": 2, "limit": 10, "topic": "orders"}
    with pytest.raises(CommandError, match="size is over the limit"):
        _create(api, f"{gauge}-b", 99)
    change = json.dumps({"spec": {"topic": "other"}})
    with pytest.raises(CommandError, match="topic is immutable"):
        api.kubectl("patch", CRD, gauge, "--type", "merge", "-p", change)


def test_scale_goes_through_validation(api: ControlPlane, gauge: str) -> None:
    api.kubectl("scale", CRD, gauge, "--replicas=5")
    found = api.get(CRD, gauge)
    assert found is not None
    assert found["spec"]["size"] == 5
    with pytest.raises(CommandError, match="size is over the limit"):
        api.kubectl("scale", CRD, gauge, "--replicas=50")


def test_a_stale_resource_version_is_refused(api: ControlPlane) -> None:
    api.kubectl("create", "configmap", "cas", "--from-literal=epoch=1")
    first = api.get("configmaps", "cas")
    assert first is not None
    api.kubectl("patch", "configmap", "cas", "-p", '{"data": {"epoch": "2"}}')
    stale = {**first, "data": {"epoch": "3"}}
    with pytest.raises(CommandError, match="the object has been modified"):
        api.kubectl("replace", "-f", "-", stdin=json.dumps(stale))


def test_owned_objects_are_collected(api: ControlPlane, gauge: str) -> None:
    owner = api.get(CRD, gauge)
    assert owner is not None
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": gauge,
        "uid": owner["metadata"]["uid"],
    }
    child = {"name": "child", "namespace": "default", "ownerReferences": [reference]}
    api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": child})
    api.kubectl("delete", CRD, gauge)
    wait_until(lambda: api.get("configmaps", "child") is None, 15, "the child to be collected")


def test_a_new_user_may_nothing_until_a_role_grants_it(api: ControlPlane) -> None:
    api.create_user("alice", ["readers"])
    with pytest.raises(CommandError, match='User "alice" cannot list'):
        api.kubectl("get", "configmaps", user="alice")
    api.kubectl("create", "role", "read", "--verb=get,list", "--resource=configmaps")
    api.kubectl("create", "rolebinding", "read", "--role=read", "--group=readers")
    wait_until(
        lambda: "kube-root-ca.crt" in api.kubectl("get", "configmaps", user="alice"),
        10,
        "the role to count",
        ignoring=(CommandError,),
    )


def test_a_namespace_goes_with_its_content(api: ControlPlane) -> None:
    api.kubectl("create", "namespace", "gone")
    api.kubectl("create", "configmap", "x", "-n", "gone")
    api.kubectl("delete", "namespace", "gone", timeout=60)
    assert api.get("namespaces", "gone") is None


def test_state_and_address_survive_an_outage_of_the_api_server(api: ControlPlane) -> None:
    api.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    server = api.server
    api.kill_apiserver()
    assert not api.ready()
    with pytest.raises(CommandError, match="refused"):
        api.kubectl("get", "configmap", "kept")
    api.start_apiserver()
    assert api.server == server
    found = api.get("configmaps", "kept")
    assert found is not None
    assert found["data"] == {"a": "b"}
