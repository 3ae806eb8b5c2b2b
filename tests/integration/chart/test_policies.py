"""The chart's admission policies in a real API server."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from testbed.builds import SPARK_OPERATOR_FILES, Builder
from testbed.control_plane import ControlPlane
from testbed.errors import CommandError
from testbed.helm import Helm
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

pytestmark = pytest.mark.integration
SYSTEM: Final = "system"
OPERATOR: Final = f"system:serviceaccount:{SYSTEM}:demo-balanced-source"
DRIVER: Final = "system:serviceaccount:jobs:spark"
COLLECTOR: Final = "system:serviceaccount:kube-system:generic-garbage-collector"
OWNED: Final = {"balancedsource.io/name": "orders", "balancedsource.io/uid": "u"}


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    crds = Builder().ensure(SPARK_OPERATOR_FILES)[SPARK_OPERATOR_FILES] / "crds"
    folder = tmp_path_factory.mktemp("policies")
    with ControlPlane(folder, crds=[crds, CHECKOUT / "crds"]) as started:
        for namespace in (SYSTEM, "jobs", "other"):
            started.kubectl("create", "namespace", namespace)
        binding = "--clusterrole=cluster-admin", "--user=ann", f"--user={OPERATOR}"
        more = f"--user={DRIVER}", f"--user={COLLECTOR}", "--user=velero"
        started.kubectl("create", "clusterrolebinding", "all", *binding, *more)
        install(Helm(folder / "helm", control_plane=started))
        started.apply(config_map("orders-enumerator"))
        started.apply(config_map("orders-readers"))
        wait_until(lambda: is_in_force(started), 60, "the policies", interval=0.5)
        yield started


def install(helm: Helm) -> None:
    on = {"enabled": True}
    values = {
        "watchNamespaces": ["jobs"],
        "crds": {"install": False},
        "admissionPolicies": {
            "documents": on,
            "applications": on,
            "namespaces": on,
            "exempt": {"users": ["velero"]},
        },
    }
    chart, file = CHECKOUT / "charts" / "balanced-source", helm.values("policies", values)
    helm("install", "demo", chart, "--namespace", SYSTEM, "--values", file)


def is_in_force(plane: ControlPlane) -> bool:
    """Whether the newest policy and the one of documents refuse; they take a moment."""
    return bool(
        refused(plane, "ann", "create", source("other"))
        and refused(plane, "ann", "label", "configmap/orders-readers", "probe=1")
    )


def config_map(name: str, namespace: str = "jobs") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": OWNED}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}


def source(namespace: str) -> str:
    """Return the example as text; nothing reads it."""
    text = (CHECKOUT / "examples" / "orders.yaml").read_text()
    return text.replace("  name: orders\n", f"  name: orders\n  namespace: {namespace}\n", 1)


def refused(plane: ControlPlane, user: str, verb: str, *words: str) -> str:
    """Try it as a user, without an effect; returns the refusal, or nothing."""
    arguments = [verb, *words, "-n", "jobs"] if len(words[0]) < 100 else [verb, "-f", "-"]
    stdin = {} if len(words[0]) < 100 else {"stdin": words[0]}
    try:
        plane.kubectl(*arguments, "--as", user, "--dry-run=server", **stdin)
    except CommandError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", ["orders-enumerator", "orders-readers"])
@pytest.mark.parametrize("verb", ["label", "delete"])
def test_people_do_not_write_documents(control_plane: ControlPlane, name: str, verb: str) -> None:
    words = ("probe=1",) if verb == "label" else ()
    text = refused(control_plane, "ann", verb, f"configmap/{name}", *words)
    assert f"ConfigMap {name} belongs to the BalancedSource orders" in text
    assert "exempt ann in admissionPolicies.exempt" in text


@pytest.mark.parametrize("user", [OPERATOR, COLLECTOR, "velero"])
def test_the_operator_the_system_and_exempt_users_do(
    control_plane: ControlPlane, user: str
) -> None:
    assert not refused(control_plane, user, "label", "configmap/orders-enumerator", "probe=1")
    assert not refused(control_plane, user, "delete", "configmap/orders-enumerator")


def test_a_driver_writes_its_report_and_nothing_else(control_plane: ControlPlane) -> None:
    assert not refused(control_plane, DRIVER, "label", "configmap/orders-readers", "probe=1")
    assert refused(control_plane, DRIVER, "label", "configmap/orders-enumerator", "probe=1")
    assert refused(control_plane, DRIVER, "delete", "configmap/orders-readers")


def test_operators_of_other_releases_write_in_their_namespaces(control_plane: ControlPlane) -> None:
    """This release serves the namespace jobs."""
    control_plane.apply(config_map("orders-enumerator", "other"))
    what = "label", "configmap/orders-enumerator", "probe=1", "-n", "other"

    control_plane.kubectl(*what, "--as", "ann", "--dry-run=server")


def test_other_config_maps_are_no_concern_of_it(control_plane: ControlPlane) -> None:
    control_plane.kubectl("create", "configmap", "own-readers", "-n", "jobs")
    assert not refused(control_plane, "ann", "delete", "configmap/own-readers")


def test_the_spec_of_an_application_stays_as_it_is(control_plane: ControlPlane) -> None:
    application = {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "orders-1", "namespace": "jobs", "labels": OWNED},
        "spec": {
            "type": "Python",
            "sparkVersion": "4.2.0",
            "mainApplicationFile": "local:///app.py",
            "driver": {},
            "executor": {"instances": 1},
        },
    }
    control_plane.apply(application)
    name = "sparkapplications.sparkoperator.k8s.io/orders-1"
    wait_until(
        lambda: refused(control_plane, OPERATOR, "patch", name, *patch("spec", 2)),
        60,
        "the policy to take hold",
        interval=0.5,
    )
    text = refused(control_plane, "ann", "patch", name, *patch("spec", 2))
    assert "change spec.application of the BalancedSource instead" in text
    assert not refused(control_plane, "ann", "label", name, "team=data")
    assert not refused(control_plane, "velero", "patch", name, *patch("spec", 2))


def patch(part: str, instances: int) -> tuple[str, ...]:
    return "--type=merge", "-p", f'{{"{part}": {{"executor": {{"instances": {instances}}}}}}}'


def test_sources_are_created_only_where_they_are_served(control_plane: ControlPlane) -> None:
    text = refused(control_plane, "ann", "create", source("other"))
    assert "no operator serves BalancedSources of the namespace other. Use one of jobs" in text
    assert not refused(control_plane, "ann", "create", source("jobs"))
