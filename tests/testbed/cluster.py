"""A whole cluster behind one interface, whatever its pods run on.

`ProcessCluster` runs pods as local processes and needs no privileges. Two further kinds have the
same interface: `testbed.node.cluster`, a node with a real kubelet in a closed network namespace,
for what processes cannot show (limits, probes, Services, real images), and `testbed.kind` on
machines with an engine.
"""

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import psutil

from testbed import images
from testbed.builds import SPARK_OPERATOR_FILES, Builder
from testbed.cache import Cache
from testbed.control_plane import ControlPlane
from testbed.errors import TestbedError
from testbed.etcd_data import EtcdData
from testbed.kafka import KafkaCluster
from testbed.kubectl import Kubectl
from testbed.node_process import NodeProcess
from testbed.ports import PortPool
from testbed.process_node.images import ProcessImage
from testbed.processes import Supervisor
from testbed.progress import QUIET, Progress
from testbed.spark_operator import SparkOperator
from testbed.started import Started
from testbed.venvs import ensure_venv, spark_home
from testbed.versions import SPARK

_MANIFEST = "testbed.json"
_BROKER_GRACE = 3.0  # seconds


class Cluster(Protocol):
    """What end-to-end tests and the demo need of a cluster."""

    @property
    def run_dir(self) -> Path:
        """Where everything of this cluster is."""

    @property
    def spark_versions(self) -> tuple[str, ...]:
        """Those with an image."""

    @property
    def control_plane(self) -> Kubectl:
        """The Kubernetes API."""

    @property
    def spark_operator(self) -> SparkOperator:
        """Kubeflow's controller."""

    @property
    def driver_spark_conf(self) -> dict[str, str]:
        """Settings that every application needs in a cluster of this kind."""

    def kafka(self, name: str = ...) -> KafkaCluster:
        """A Kafka cluster by name."""

    def image(self, spark_version: str = ...) -> str:
        """Name of the image with a version of Spark and the checkout's application."""

    def pods(self, selector: str = ..., namespace: str = ...) -> list[dict[str, Any]]:
        """The pods with these labels."""

    def logs(self, pod: str, namespace: str = ..., container: str = ...) -> str:
        """What a pod has written so far."""

    def all_logs(self, pod: str, namespace: str = ...) -> str:
        """What all pods of a name have ever written, oldest run first, also those that are gone."""

    def kill_pod_process(self, pod: str, namespace: str = ..., container: str = ...) -> int:
        """Let a container crash (SIGKILL); returns the process id that it had."""


class ProcessCluster(Started):
    """Control plane, process node, spark-operator and Kafka clusters as processes on loopback.

    A context manager that starts and stops everything. Nothing is left behind, neither processes
    nor files; logs stay if they are asked for or if the body raised.

    Args:
        run_dir: where everything goes; made if missing.
        kafka: names of Kafka clusters of one node to start; others by `add_kafka`.
        crds: further custom resources, files or folders.
        spark_versions: those with an image; the first one's spark-submit is used.
        extra_images: further images, or other ones for known names.
        mount_namespaces: whether containers get a root of their own; None: if the machine can.
        keep_logs: leave the logs when it stops.
        detach: let everything outlive this process, until `stop_recorded`.
        cache: where built parts are.
        progress: told about each step.
    """

    def __init__(
        self,
        run_dir: Path,
        *,
        kafka: Iterable[str] = (),
        crds: Iterable[Path] = (),
        spark_versions: tuple[str, ...] = SPARK[:1],
        extra_images: Mapping[str, ProcessImage] | None = None,
        mount_namespaces: bool | None = None,
        keep_logs: bool = False,
        detach: bool = False,
        cache: Cache | None = None,
        progress: Progress = QUIET,
    ) -> None:
        self.run_dir = run_dir.resolve()
        self.spark_versions = spark_versions
        self._kafka_names = tuple(kafka)
        self._kafka: dict[str, KafkaCluster] = {}
        self._crds = tuple(crds)
        self._extra_images = extra_images or {}
        self._mount_namespaces = mount_namespaces
        self._keep_logs = keep_logs
        self._detach = detach
        self._cache = cache or Cache()
        self._progress = progress
        self._ports = PortPool()
        self._builder = Builder(self._cache, progress)
        self._supervisor = Supervisor(self.run_dir, detach=detach)

    def end(self, error: BaseException | None) -> None:
        self.stop(keep_logs=self._logs_matter(error))

    def start(self) -> None:
        """Build what is missing and start everything; 10 s once all is built."""
        catalogue = images.catalogue(self._cache, self._progress, self.spark_versions) | dict(
            self._extra_images
        )
        files = self._builder.ensure(SPARK_OPERATOR_FILES)[SPARK_OPERATOR_FILES]
        self.control_plane = ControlPlane(
            self.run_dir,
            supervisor=self._supervisor,
            ports=self._ports,
            builder=self._builder,
            progress=self._progress,
            crds=[files / "crds", *self._crds],
        )
        self.control_plane.start()
        self.node = NodeProcess(
            self.control_plane,
            catalogue,
            ports=self._ports,
            mount_namespaces=self._mount_namespaces,
        )
        with self._progress.step("start process node"):
            self.node.start()
        self._start_spark_operator()
        for name in self._kafka_names:
            self.add_kafka(name)
        self._write_manifest()

    def stop(self, *, keep_logs: bool = False) -> None:
        """End everything that was started, as far as it got.

        Does not raise for a part that is gone.
        """
        self._kafka.clear()  # ends the helpers' connections
        stop_recorded(self._supervisor)
        self._ports.close()
        clean(self.run_dir, keep_logs=keep_logs)

    def add_kafka(self, name: str = "main", **options: Any) -> KafkaCluster:
        """Start a further Kafka cluster.

        Args:
            name: of the cluster.
            options: of `KafkaCluster`, such as `nodes`, `properties` or `security`.
        """
        cluster = KafkaCluster(
            name,
            self.run_dir,
            supervisor=self._supervisor,
            ports=self._ports,
            cache=self._cache,
            progress=self._progress,
            **options,
        )
        self._kafka[name] = cluster
        cluster.start()
        return cluster

    def kafka(self, name: str = "main") -> KafkaCluster:
        """A Kafka cluster that was started."""
        return self._kafka[name]

    def image(self, spark_version: str = SPARK[0]) -> str:
        """Name of the image with a version of PySpark and the checkout's application."""
        if spark_version not in self.spark_versions:
            raise TestbedError(
                f"this cluster has no image of Spark {spark_version}; it has {self.spark_versions}"
            )
        return images.spark_image_name(spark_version)

    @property
    def driver_spark_conf(self) -> dict[str, str]:
        """The API server is no Service here, and there is no DNS for the driver's one."""
        return {
            "spark.kubernetes.driver.master": self.control_plane.server,
            "spark.kubernetes.executor.useDriverPodIP": "true",
        }

    def pods(self, selector: str = "", namespace: str = "default") -> list[dict[str, Any]]:
        """The pods with these labels."""
        return self.control_plane.items("pods", namespace, selector)

    def logs(self, pod: str, namespace: str = "default", container: str = "") -> str:
        """What a pod has written so far, by the API."""
        choice = ["-c", container] if container else []
        return self.control_plane.kubectl("logs", pod, "-n", namespace, *choice)

    def all_logs(self, pod: str, namespace: str = "default") -> str:
        """What all pods of a name have ever written, oldest run first, also those that are gone."""
        files = (self.node.folder / "logs").glob(f"{namespace}_{pod}_*/*.log")
        # a run ends before the next one of its name begins, so the last writes are in the runs'
        # order
        by_age = sorted(files, key=lambda file: file.stat().st_mtime_ns)
        return "".join(file.read_text(errors="replace") for file in by_age)

    def kill_pod_process(self, pod: str, namespace: str = "default", container: str = "") -> int:
        """Let a container crash (SIGKILL); returns the process id that it had.

        Args:
            pod: its name.
            namespace: of the pod.
            container: the first one if empty.

        Raises:
            TestbedError: it does not run, or the process is no container of this cluster.
        """
        found = self.control_plane.get("pods", pod, namespace)
        statuses = found["status"].get("containerStatuses", []) if found else []
        wanted = [
            one
            for one in statuses
            if one["name"] == (container or one["name"]) and "running" in one["state"]
        ]
        if not wanted:
            raise TestbedError(f"no running container {container or ''} in pod {pod}")
        pid = int(wanted[0]["containerID"].removeprefix("process://"))
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).ppid() != self.node.pid:
                raise TestbedError(f"process {pid} of pod {pod} is no child of this cluster's node")
            os.kill(pid, signal.SIGKILL)
        return pid

    def _logs_matter(self, error: BaseException | None) -> bool:
        return self._keep_logs or isinstance(error, Exception)

    def _start_spark_operator(self) -> None:
        submitting = ensure_venv(self.spark_versions[0], self._cache, self._progress)
        self.spark_operator = SparkOperator(
            self.control_plane,
            spark_home(submitting),
            ports=self._ports,
            builder=self._builder,
            detach=self._detach,
        )
        with self._progress.step("start spark-operator"):
            self.spark_operator.start()

    def _write_manifest(self) -> None:
        facts = {
            "kubeconfig": str(self.control_plane.kubeconfig()),
            "kubectl": str(self._builder.ensure("kubectl")["kubectl"]),
            "server": self.control_plane.server,
            "kafka": {name: cluster.bootstrap for name, cluster in self._kafka.items()},
            "images": [images.spark_image_name(version) for version in self.spark_versions],
            "sparkConf": self.driver_spark_conf,
        }
        (self.run_dir / _MANIFEST).write_text(json.dumps(facts, indent=2) + "\n")


def read_manifest(run_dir: Path) -> dict[str, Any]:
    """What a running cluster wrote about itself.

    Raises:
        TestbedError: there is none in this folder.
    """
    try:
        return dict(json.loads((run_dir / _MANIFEST).read_text()))
    except FileNotFoundError:
        raise TestbedError(f"there is no testbed in {run_dir}") from None


def stop_recorded(supervisor: Supervisor) -> None:
    """End all processes of a run folder, started by this or by an earlier process."""
    supervisor.adopt()
    # the node first, so that it can end its containers; brokers together, since they wait for each
    # other
    brokers = [child for child in supervisor.children if child.name.startswith("kafka-")]
    for child in reversed([child for child in supervisor.children if child not in brokers]):
        supervisor.stop(child)
    # their data go too: no one needs them to end in good order
    supervisor.stop_together(brokers, grace=_BROKER_GRACE)


def clean(run_dir: Path, *, keep_logs: bool) -> None:
    """Delete everything of a stopped cluster, but the logs if they are to be kept."""
    EtcdData(run_dir).delete()
    if not keep_logs:
        shutil.rmtree(run_dir, ignore_errors=True)
        return
    for path in (*run_dir.iterdir(), *(run_dir / "node").glob("*")):
        if path.name not in ("logs", "node"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
