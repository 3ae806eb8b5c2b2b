"""Real SparkApplications through Kubeflow's controller, spark-submit and the process node."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from testbed.cluster import ProcessCluster
from testbed.errors import TestbedError
from testbed.versions import SPARK
from testbed.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.thorough]
APPLICATIONS = "sparkapplications.sparkoperator.k8s.io"
# the chart's rights do not allow the driver's NetworkPolicy
NO_NETWORK_POLICY = {
    "spark.kubernetes.driver.pod.excludedFeatureSteps": (
        "org.apache.spark.deploy.k8s.features.NetworkPolicyFeatureStep"
    )
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    folder = tmp_path_factory.mktemp("spark") / "run"
    with ProcessCluster(folder, spark_versions=SPARK, keep_logs=True) as started:
        yield started


def submit(cluster: ProcessCluster, name: str, version: str, partitions: int, **spec: Any) -> None:
    conf = {**cluster.driver_spark_conf, **NO_NETWORK_POLICY, "spark.ui.enabled": "false"}
    size = {"cores": 1, "memory": "512m"}
    application = {
        "type": "Python",
        "mode": "cluster",
        "pythonVersion": "3",
        "sparkVersion": version,
        "image": cluster.image(version),
        "mainApplicationFile": "local:///opt/spark/examples/src/main/python/pi.py",
        "arguments": [str(partitions)],
        "restartPolicy": {"type": "Never"},
        "sparkConf": conf,
        "driver": {**size, "serviceAccount": "spark"},
        "executor": {**size, "instances": 1},
    }
    cluster.control_plane.apply(
        {
            "apiVersion": "sparkoperator.k8s.io/v1beta2",
            "kind": "SparkApplication",
            "metadata": {"name": name, "namespace": "default"},
            "spec": application | spec,
        }
    )


def state(cluster: ProcessCluster, name: str) -> str:
    found = cluster.control_plane.get(APPLICATIONS, name) or {}
    return str(found.get("status", {}).get("applicationState", {}).get("state", ""))


def wait_state(cluster: ProcessCluster, name: str, *wanted: str) -> None:
    ends = {"COMPLETED", "FAILED", "SUBMISSION_FAILED"}
    wait_until(
        lambda: state(cluster, name) in ends | set(wanted),
        280,
        f"{name} to be {wanted}",
        interval=0.3,
    )
    application = cluster.control_plane.get(APPLICATIONS, name)
    assert application is not None
    assert application["status"]["applicationState"]["state"] in wanted, application["status"]


def test_an_application_completes_with_rewritten_paths(tmp_path: Path) -> None:
    with ProcessCluster(tmp_path / "run", mount_namespaces=False, keep_logs=True) as cluster:
        submit(cluster, "pi", SPARK[0], 2)
        wait_state(cluster, "pi", "COMPLETED")
        assert "Pi is roughly 3.1" in cluster.logs("pi-driver")


@pytest.mark.parametrize("version", SPARK[1:])  # the first one runs in nearly every other test
def test_an_application_completes(cluster: ProcessCluster, version: str) -> None:
    name = f"pi-{version.replace('.', '')}"
    submit(cluster, name, version, 2)
    wait_state(cluster, name, "COMPLETED")
    log = cluster.logs(f"{name}-driver")
    assert "Pi is roughly 3.1" in log
    assert f"Running Spark version {version}" in log
    cluster.control_plane.kubectl("delete", APPLICATIONS, name)
    # owner references: the driver goes with its application
    wait_until(lambda: cluster.pods("spark-role") == [], 30, "the pods to be gone")


def test_killed_processes_are_replaced(cluster: ProcessCluster) -> None:
    always = {"type": "Always", "onFailureRetries": 3, "onFailureRetryInterval": 1}
    submit(
        cluster,
        "long",
        SPARK[0],
        1_000_000,
        restartPolicy=always | {"onSubmissionFailureRetryInterval": 1},
    )
    wait_state(cluster, "long", "RUNNING")

    def running(role: str) -> list[dict[str, Any]]:
        return [
            pod for pod in cluster.pods(f"spark-role={role}") if pod["status"]["phase"] == "Running"
        ]

    def replaced(role: str, uid: str) -> bool:
        return any(pod["metadata"]["uid"] != uid for pod in running(role))

    wait_until(lambda: running("executor"), 60, "an executor", interval=0.3)
    for role in ("executor", "driver"):
        victim = running(role)[0]["metadata"]
        cluster.kill_pod_process(victim["name"])
        wait_until(
            lambda role=role, uid=victim["uid"]: replaced(role, uid),
            90,
            f"another {role}",
            interval=0.3,
        )
    wait_until(
        # the log of the killed driver is still there, before that of its successor
        lambda: cluster.all_logs("long-driver").count("Running Spark version") == 2,
        60,
        "the logs of both drivers",
        interval=0.3,
    )
    cluster.control_plane.kubectl("delete", APPLICATIONS, "long")
    wait_until(lambda: cluster.pods("spark-role") == [], 60, "the pods to be gone")


def test_only_containers_of_the_cluster_can_be_killed(cluster: ProcessCluster) -> None:
    with pytest.raises(TestbedError, match="no running container"):
        cluster.kill_pod_process("no-such-pod")


def processes_of(folder: Path) -> list[str]:
    """Command lines of all processes that have something to do with a run folder."""
    lines = (
        " ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])
    )
    return [line for line in lines if str(folder) in line and "pytest" not in line.split()[:3]]


def test_the_command_line_starts_describes_and_ends_a_testbed(tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def testbed(*arguments: str) -> str:
        command = [sys.executable, "-m", "testbed", *arguments, "--dir", str(folder)]
        settings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(  # noqa: S603 - the tests' own interpreter
            command, env=settings, check=True, capture_output=True, text=True, timeout=120
        ).stdout

    try:
        told = testbed("up", "--detach", "--kafka", "1")
        kubeconfig = next(line for line in told.splitlines() if "KUBECONFIG" in line).partition(
            "="
        )[2]
        assert Path(kubeconfig).is_file()
        status = testbed("status")
        for part in (
            "etcd",
            "kube-apiserver",
            "process-node",
            "spark-operator",
            "kafka-main-1",
            "Kafka main: 127.0.0.1:",
        ):
            assert part in status
        assert processes_of(folder)
    finally:
        began = time.monotonic()
        testbed("down")
    assert time.monotonic() - began < 30
    assert not folder.exists()
    assert processes_of(folder) == []
