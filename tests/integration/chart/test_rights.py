"""The rights of the chart's accounts, as an API server lists them.

A real driver runs with no more than these.
"""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration

from balanced_source_operator.kube.reviews import Reviews
from balanced_source_operator.page.access import AccessError, ReviewedToken
from balanced_source_operator.resources.spark_application import DEFAULT_CONF
from testbed.builds import SPARK_OPERATOR_FILES, Builder
from testbed.cluster import ProcessCluster
from testbed.control_plane import ADMIN, ControlPlane
from testbed.errors import CommandError
from testbed.helm import Helm
from testbed.waiting import wait_until

pytestmark = pytest.mark.integration
SYSTEM, JOBS = "system", "jobs"
ACCOUNT = f"system:serviceaccount:{SYSTEM}:demo-balanced-source"
SPARK = f"system:serviceaccount:{JOBS}:spark"
APPLICATIONS = "sparkapplications.sparkoperator.k8s.io"
OPERATOR_RIGHTS = {
    "balancedsources.balancedsource.io": {"get", "list", "watch"},
    "balancedsources.balancedsource.io/scale": {"patch"},
    "balancedsources.balancedsource.io/status": {"patch"},
    "balancedsources.balancedsource.io/finalizers": {"update"},
    "configmaps": {"get", "list", "watch", "create", "update", "patch"},
    "sparkapplications.sparkoperator.k8s.io": {"get", "list", "watch", "create", "delete"},
    "sparkapplications.spark.apache.org": {"get", "list", "watch", "create", "delete"},
    "pods": {"list", "watch"},
    "podtemplates": {"create"},
    "secrets": {"get"},
    "serviceaccounts": {"get"},
    "roles.rbac.authorization.k8s.io": {"get", "list", "watch", "create", "patch"},
    "rolebindings.rbac.authorization.k8s.io": {"get", "list", "watch", "create", "patch"},
    "events": {"create"},
}
CLUSTER_RIGHTS = {"customresourcedefinitions.apiextensions.k8s.io": {"list", "watch"}}
LEASE_RIGHTS = {
    "leases.coordination.k8s.io": {"create"},
    "leases.coordination.k8s.io balanced-source-operator": {"get", "update"},
}
SPARK_RIGHTS = {
    "pods": {"get", "list", "watch", "create", "patch", "delete", "deletecollection"},
    "persistentvolumeclaims": {"get", "list", "create", "patch", "delete", "deletecollection"},
    "services": {"get", "list", "delete", "deletecollection"},
}


def rights(control_plane: ControlPlane, account: str, namespace: str) -> dict[str, set[str]]:
    """Return the verbs by resource, or by resource and name, except what every account has."""
    listed = control_plane.kubectl("auth", "can-i", "--list", f"--as={account}", "-n", namespace)
    found: dict[str, set[str]] = {}
    for line in listed.splitlines()[1:]:
        match = re.fullmatch(r"(\S*)\s+\[(.*?)\]\s+\[(.*?)\]\s+\[(.*?)\]\s*", line)
        assert match is not None, line
        resource, _, names, verbs = match.groups()
        if resource and not resource.startswith("selfsubject"):
            found.setdefault(f"{resource} {names}".strip(), set()).update(verbs.split())
    return found


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    crds = Builder().ensure(SPARK_OPERATOR_FILES)[SPARK_OPERATOR_FILES] / "crds"
    with ControlPlane(tmp_path_factory.mktemp("rights"), crds=[crds]) as started:
        for namespace in (SYSTEM, JOBS):
            started.kubectl("create", "namespace", namespace)
        yield started


@pytest.fixture(params=[[], [JOBS]], ids=["all-namespaces", "one-namespace"])
def watched(
    control_plane: ControlPlane, chart: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[list[str]]:
    """Install the chart, whose pod no one starts.

    Return the namespaces that the operator serves.
    """
    helm = Helm(tmp_path / "helm", control_plane=control_plane)
    values = helm.values(
        "rights", {"watchNamespaces": request.param, "spark": {"jobNamespaces": [JOBS]}}
    )
    helm("install", "demo", chart, "--namespace", SYSTEM, "--values", values)
    yield request.param
    helm("uninstall", "demo", "--namespace", SYSTEM)


def test_an_operator_that_selects_namespaces_may_follow_their_labels(
    control_plane: ControlPlane, chart: Path, tmp_path: Path
) -> None:
    helm = Helm(tmp_path / "helm", control_plane=control_plane)
    values = helm.values("selector", {"watchNamespaceSelector": "balancedsource.io/shard=a"})
    helm("install", "demo", chart, "--namespace", SYSTEM, "--values", values)
    try:
        found = rights(control_plane, ACCOUNT, JOBS)
        assert found == OPERATOR_RIGHTS | CLUSTER_RIGHTS | {"namespaces": {"list", "watch"}}
        named = helm.values("named", {"watchNamespaces": [JOBS], "crds": {"install": False}})
        for other in (values, named):
            taken = "Lease of namespace system belongs to release demo"
            with pytest.raises(CommandError, match=taken):
                helm("install", "other", chart, "--namespace", SYSTEM, "--values", other)
        more = ("--set", "crds.install=false", "--create-namespace")
        helm("install", "other", chart, "--namespace", "other", "--values", values, *more)
        helm("uninstall", "other", "--namespace", "other")
    finally:
        helm("uninstall", "demo", "--namespace", SYSTEM)


def test_each_account_has_exactly_the_rights_that_the_chart_promises(
    control_plane: ControlPlane, watched: list[str]
) -> None:
    everywhere = {} if watched else OPERATOR_RIGHTS | CLUSTER_RIGHTS

    assert rights(control_plane, ACCOUNT, JOBS) == OPERATOR_RIGHTS | everywhere
    assert rights(control_plane, ACCOUNT, "default") == everywhere
    assert rights(control_plane, ACCOUNT, SYSTEM) == everywhere | LEASE_RIGHTS
    assert rights(control_plane, SPARK, JOBS) == SPARK_RIGHTS
    assert rights(control_plane, SPARK, SYSTEM) == {}
    assert rights(control_plane, SPARK, "default") == {}


@pytest.fixture
def page_account(control_plane: ControlPlane, chart: Path, tmp_path: Path) -> Iterator[str]:
    """Install the chart with the status page; return a token of the operator's account."""
    helm = Helm(tmp_path / "helm", control_plane=control_plane)
    values = helm.values("page", {"watchNamespaces": [JOBS], "page": {"enabled": True}})
    helm("install", "demo", chart, "--namespace", SYSTEM, "--values", values)
    yield control_plane.kubectl("create", "token", "demo-balanced-source", "-n", SYSTEM).strip()
    helm("uninstall", "demo", "--namespace", SYSTEM)


@pytest.mark.asyncio
async def test_viewers_of_the_page_see_what_their_rights_name(
    control_plane: ControlPlane, page_account: str
) -> None:
    """The API server reviews tokens for an account that has no more than the chart's rights."""
    kubectl = control_plane.kubectl
    kubectl("create", "serviceaccount", "viewer", "-n", JOBS)
    role, account = "--clusterrole=demo-balanced-source-view", f"--serviceaccount={JOBS}:viewer"
    kubectl("create", "rolebinding", "viewer", "-n", JOBS, role, account)
    viewer = kubectl("create", "token", "viewer", "-n", JOBS).strip()

    async with client_with(control_plane, page_account) as client:
        access = ReviewedToken(Reviews(client))
        guest = await access.admit(viewer)
        admin = await access.admit(control_plane.token(ADMIN))
        assert [await guest.may_see(namespace) for namespace in (JOBS, SYSTEM)] == [True, False]
        assert guest.refusal(SYSTEM).startswith(
            f"system:serviceaccount:{JOBS}:viewer may not get BalancedSources"
        )
        assert await admin.may_see(SYSTEM)
        with pytest.raises(AccessError, match="does not accept this token") as refused:
            await access.admit(viewer[:-3] + "xyz")
        assert refused.value.status == 401

    async with client_with(control_plane, viewer) as client:
        with pytest.raises(
            AccessError, match=r"It is unknown who may look .*tokenreviews.* is forbidden"
        ) as unknown:
            await ReviewedToken(Reviews(client)).admit(viewer)
        assert unknown.value.status == 503
        assert viewer not in str(unknown.value)


@asynccontextmanager
async def client_with(control_plane: ControlPlane, token: str) -> AsyncIterator[ApiClient]:
    """A client of the API server that has this token, and no other credential."""
    configuration = Configuration()
    await config.load_kube_config(
        str(control_plane.kubeconfig()), client_configuration=configuration
    )
    configuration.api_key = {"BearerToken": f"Bearer {token}"}
    configuration.cert_file = configuration.key_file = None
    async with ApiClient(configuration) as client:
        yield client


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_driver_starts_its_executors_without_any_right_to_config_maps(
    tmp_path: Path, chart: Path
) -> None:
    """Real Spark from the Spark operator, with the chart's account and the operator's settings."""
    helm = Helm(tmp_path / "helm")
    values = helm.values("spark", {"spark": {"jobNamespaces": [JOBS]}})
    only = ("--show-only", "templates/spark-accounts.yaml")
    accounts = yaml.safe_load_all(helm("template", "demo", chart, "--values", values, *only))
    with ProcessCluster(tmp_path / "run", keep_logs=True) as cluster:
        cluster.control_plane.kubectl("create", "namespace", JOBS)
        for account in accounts:
            cluster.control_plane.apply(account)
        cluster.control_plane.apply(pi(cluster))

        wait_until(
            lambda: state(cluster) in ("COMPLETED", "FAILED", "SUBMISSION_FAILED"),
            600,
            "the end of pi",
        )

        log = cluster.all_logs("pi-driver", JOBS)
        assert state(cluster) == "COMPLETED", log[-2000:]
        assert "Pi is roughly 3.1" in log
        assert "orbidden" not in log, [line for line in log.splitlines() if "orbidden" in line][:3]
        maps = [
            found["metadata"]["name"] for found in cluster.control_plane.items("configmaps", JOBS)
        ]
        assert not [name for name in maps if name.startswith("spark-exec")], maps


def pi(cluster: ProcessCluster) -> dict[str, object]:
    """Return an application with one executor."""
    size = {"cores": 1, "memory": "512m"}
    spec = {
        "type": "Python",
        "mode": "cluster",
        "pythonVersion": "3",
        "sparkVersion": cluster.spark_versions[0],
        "image": cluster.image(),
        "mainApplicationFile": "local:///opt/spark/examples/src/main/python/pi.py",
        "arguments": ["2"],
        "restartPolicy": {"type": "Never"},
        "sparkConf": {**cluster.driver_spark_conf, **DEFAULT_CONF, "spark.ui.enabled": "false"},
        "driver": {**size, "serviceAccount": "spark"},
        "executor": {**size, "instances": 1},
    }
    metadata = {"name": "pi", "namespace": JOBS}
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": metadata,
        "spec": spec,
    }


def state(cluster: ProcessCluster) -> str:
    """Return the state of the application; empty before it has one."""
    found = cluster.control_plane.get(APPLICATIONS, "pi", JOBS) or {}
    return str(found.get("status", {}).get("applicationState", {}).get("state", ""))
