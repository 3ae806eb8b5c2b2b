"""The chart in a real API server.

The operator does all its work with exactly the chart's rights.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.chart.values import EVERYTHING
from testbed.cluster import ProcessCluster
from testbed.errors import CommandError
from testbed.helm import Helm
from testbed.ports import PortPool
from testbed.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]
SYSTEM, JOBS = "system", "jobs"
RELEASE = "demo"
ACCOUNT = f"system:serviceaccount:{SYSTEM}:{RELEASE}-balanced-source"
OWNED = "configmaps,pods,sparkapplications.sparkoperator.k8s.io,roles,rolebindings"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    folder = tmp_path_factory.mktemp("chart") / "run"
    with ProcessCluster(folder, kafka=["main"], keep_logs=True) as started:
        started.kafka().admin.create_topics({"orders": 4, "payments": 3})
        started.kafka().admin.produce("orders", (b"%d" % number for number in range(100)))
        for namespace, level in ((SYSTEM, "restricted"), (JOBS, "privileged")):
            labels = {"pod-security.kubernetes.io/enforce": level}
            started.control_plane.apply(
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": namespace, "labels": labels},
                }
            )
        yield started


@pytest.fixture
def ports() -> Iterator[PortPool]:
    # all pods of the process node listen on the same addresses
    pool = PortPool()
    yield pool
    pool.close()


@pytest.fixture(
    params=[("helm", []), ("helm4", [JOBS])], ids=["all-namespaces", "one-namespace-helm4"]
)
def release(
    cluster: ProcessCluster, chart: Path, ports: PortPool, request: pytest.FixtureRequest
) -> Iterator[Helm]:
    program, namespaces = request.param
    helm = Helm(cluster.run_dir / program, control_plane=cluster.control_plane, program=program)
    values = {
        "image": {"repository": "balanced-source/operator", "tag": "dev"},
        "watchNamespaces": namespaces,
        "sparkConf": cluster.driver_spark_conf,
        "metrics": {"port": ports.take()},
        "probes": {"port": ports.take()},
        "spark": {"jobNamespaces": [JOBS]},
        "settings": {"resyncSeconds": 5, "saveIntervalSeconds": 2},
    }
    file = helm.values("install", values)
    helm(
        "install",
        RELEASE,
        chart,
        "--namespace",
        SYSTEM,
        "--values",
        file,
        "--wait",
        "--timeout",
        "3m",
    )
    yield helm
    helm("uninstall", RELEASE, "--namespace", SYSTEM, "--wait", "--timeout", "3m")


def source(cluster: ProcessCluster, folder: Path) -> dict[str, Any]:
    """A BalancedSource in the namespace of jobs that writes to a folder of the host."""
    pipeline = {
        "sink": {"format": "parquet", "options": {"path": "/data/sink"}},
        "checkpointLocation": "/data/checkpoint",
    }
    kafka = {
        "clusters": [{"name": "main", "bootstrapServers": cluster.kafka().bootstrap}],
        "subscription": {"topics": ["orders", "payments"]},
        "discovery": {"interval": "2s"},
    }
    application = {
        "image": cluster.image(),
        "sparkVersion": cluster.spark_versions[0],
        "pipeline": pipeline,
        "sparkConf": {"spark.ui.enabled": "false"},
        "driver": {"memory": "512m", "template": with_volume("spark-kubernetes-driver", folder)},
        "executor": {
            "memory": "512m",
            "cores": 2,
            "template": with_volume("spark-kubernetes-executor", folder),
        },
    }
    return {
        "apiVersion": "balancedsource.io/v1alpha1",
        "kind": "BalancedSource",
        "metadata": {"name": "orders", "namespace": JOBS},
        "spec": {"parallelism": 2, "source": {"kafka": kafka}, "application": application},
    }


def with_volume(container: str, folder: Path) -> dict[str, Any]:
    """A pod template that has a folder of the host at /data."""
    mount = {"name": "data", "mountPath": "/data"}
    volume = {"name": "data", "hostPath": {"path": str(folder), "type": "DirectoryOrCreate"}}
    return {
        "spec": {"containers": [{"name": container, "volumeMounts": [mount]}], "volumes": [volume]}
    }


def operator_log(cluster: ProcessCluster) -> str:
    """All that the release's operator has logged.

    That of an earlier one lost its rights before it ended.
    """
    names = [
        pod["metadata"]["name"]
        for pod in cluster.pods(f"app.kubernetes.io/instance={RELEASE}", SYSTEM)
    ]
    return "".join(cluster.all_logs(name, SYSTEM) for name in names)


def may(cluster: ProcessCluster, verb: str, what: str, *more: str) -> bool:
    """Whether the operator's service account may do something."""
    try:
        cluster.control_plane.kubectl("auth", "can-i", verb, what, f"--as={ACCOUNT}", *more)
    except CommandError:
        return False
    return True


def test_the_operator_reaches_ready_and_leaves_nothing_behind(
    cluster: ProcessCluster, release: Helm, tmp_path: Path
) -> None:
    kubectl = cluster.control_plane.kubectl
    told = release("test", RELEASE, "--namespace", SYSTEM, "--timeout", "2m", "--logs")
    assert "the operator demo-balanced-source is ready" in told
    assert "the API server takes BalancedSource helm-test" in told
    left = cluster.pods("app.kubernetes.io/component=test", SYSTEM)
    assert bool(left) == (release.program.name == "helm"), "later versions delete it"
    cluster.control_plane.apply(source(cluster, tmp_path / "data"))

    def ready() -> bool:
        found = cluster.control_plane.get("balancedsources", "orders", JOBS) or {}
        conditions = {c["type"]: c["status"] for c in found.get("status", {}).get("conditions", [])}
        return conditions.get("Ready") == "True"

    wait_until(ready, 300, "the source to be ready", interval=0.5)
    kubectl(
        "patch",
        "bsrc/orders",
        "-n",
        JOBS,
        "--type",
        "merge",
        "-p",
        json.dumps({"spec": {"parallelism": 3}}),
    )
    wait_until(
        lambda: (
            kubectl("get", "bsrc/orders", "-n", JOBS, "-o", "jsonpath={.status.readers}") == "3"
        ),
        120,
        "3 readers",
    )
    drivers = [pod["metadata"]["name"] for pod in cluster.pods("spark-role=driver", JOBS)]
    driver_log = "".join(cluster.all_logs(name, JOBS) for name in drivers)
    assert driver_log, "the driver runs"
    assert "orbidden" not in driver_log, [
        line for line in driver_log.splitlines() if "orbidden" in line
    ][:3]
    assert not [
        m
        for m in cluster.control_plane.items("configmaps", JOBS)
        if "spark-exec" in m["metadata"]["name"]
    ]
    kubectl("delete", "bsrc/orders", "-n", JOBS)
    label = "balancedsource.io/name"
    # the garbage collector looks for new kinds, such as the chart's, only every 30 s
    wait_until(
        lambda: not cluster.control_plane.items(OWNED, JOBS, label),
        150,
        "everything to be gone",
        interval=1,
    )
    assert not cluster.pods("spark-role", JOBS)
    log = operator_log(cluster)
    assert '"serving"' in log
    for word in ("forbidden", "Forbidden", "Not enough permissions", "Traceback"):
        assert word not in log, [line for line in log.splitlines() if word in line][:3]


def test_the_operator_may_do_nothing_else(cluster: ProcessCluster, release: Helm) -> None:
    everywhere = (
        f"- {JOBS}"
        not in release("get", "values", RELEASE, "-n", SYSTEM).partition("watchNamespaces")[2]
    )
    for verb, what in (
        ("delete", "balancedsources.balancedsource.io"),
        ("patch", "balancedsources.balancedsource.io"),
        ("list", "secrets"),
        ("delete", "configmaps"),
        ("deletecollection", "configmaps"),
        ("create", "pods"),
        ("delete", "pods"),
        ("patch", "sparkapplications.sparkoperator.k8s.io"),
        ("update", "sparkapplications.sparkoperator.k8s.io"),
        ("escalate", "roles.rbac.authorization.k8s.io"),
        ("bind", "roles.rbac.authorization.k8s.io"),
        ("delete", "roles.rbac.authorization.k8s.io"),
        ("create", "serviceaccounts"),
        ("create", "serviceaccounts/token"),
    ):
        assert not may(cluster, verb, what, "-n", JOBS), f"may {verb} {what}"
    for what in ("nodes", "namespaces", "clusterroles.rbac.authorization.k8s.io"):
        assert not may(cluster, "list", what), f"may list {what}"
    assert may(cluster, "get", "secrets", "-n", JOBS)
    assert may(cluster, "get", "secrets", "-n", "default") == everywhere
    assert may(cluster, "list", "customresourcedefinitions.apiextensions.k8s.io") == everywhere
    assert not may(cluster, "get", "leases.coordination.k8s.io/somebody-elses", "-n", SYSTEM)


@pytest.mark.usefixtures("release")
def test_users_of_the_clusters_roles_may_edit_sources(cluster: ProcessCluster) -> None:
    rules = json.dumps((cluster.control_plane.get("clusterroles", "edit") or {})["rules"])
    assert "balancedsources" in rules
    assert "balancedsources" in json.dumps(
        (cluster.control_plane.get("clusterroles", "view") or {})["rules"]
    )


def test_the_api_server_takes_everything_that_can_be_on(
    cluster: ProcessCluster, chart: Path
) -> None:
    helm = Helm(cluster.run_dir / "helm", control_plane=cluster.control_plane)
    # whose kind is not installed here
    monitor = {"service": {"enabled": True}, "serviceMonitor": {"enabled": False}}
    values = helm.values("everything", EVERYTHING | {"watchNamespaces": [JOBS], "metrics": monitor})
    text = helm("template", "all", chart, "--namespace", SYSTEM, "--values", values, "--no-hooks")
    told = cluster.control_plane.kubectl(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", stdin=text
    )
    for kind in ("networkpolicy", "poddisruptionbudget", "deployment", "service/"):
        assert kind in told
