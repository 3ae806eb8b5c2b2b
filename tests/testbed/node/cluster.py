"""A cluster with a real node."""

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from testbed import builds, images
from testbed.builds import SPARK_OPERATOR_FILES, Builder
from testbed.cache import Cache
from testbed.control_plane import ControlPlane
from testbed.errors import TestbedError
from testbed.kafka import KafkaCluster
from testbed.node import system
from testbed.node.containers import Containerd
from testbed.node.kubernetes import NodeServices
from testbed.node.network import NODE_ADDRESS, ClosedNetwork
from testbed.node.oci import ImageBuilder
from testbed.ports import PortPool
from testbed.processes import Supervisor
from testbed.progress import QUIET, Progress
from testbed.spark_operator import SparkOperator
from testbed.started import Started
from testbed.venvs import ensure_venv, spark_home
from testbed.versions import SPARK


class NodeCluster(Started):
    """Control plane, a real node, spark-operator and Kafka clusters in a closed network namespace.

    A context manager. From its start to its end the calling thread is in the namespace: start it
    from the main thread. Only what this thread starts meanwhile can reach the cluster. Nothing is
    left behind but the cache.

    Args:
        run_dir: where everything goes; made if missing, and on a disk.
        kafka: names of Kafka clusters of one node to start; others by `add_kafka`.
        crds: further custom resources, files or folders.
        spark_versions: those with an image; the first one's spark-submit is used.
        keep_logs: leave the logs when it stops.
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
        keep_logs: bool = False,
        cache: Cache | None = None,
        progress: Progress = QUIET,
    ) -> None:
        self.run_dir = run_dir.resolve()
        self.spark_versions = spark_versions
        self._kafka_names = tuple(kafka)
        self._kafka: dict[str, KafkaCluster] = {}
        self._crds = tuple(crds)
        self._keep_logs = keep_logs
        self._cache = cache or Cache()
        self._progress = progress
        self._ports = PortPool()
        self._builder = Builder(self._cache, progress)
        self._network = ClosedNetwork(f"balanced-source-{os.getpid()}")
        self._stack = contextlib.ExitStack()

    def end(self, error: BaseException | None) -> None:
        self.stop(keep_logs=self._keep_logs or isinstance(error, Exception))

    def start(self) -> None:
        """Build what is missing, then start everything."""
        system.ensure_packages()
        archives = self._build()
        self._supervisor = Supervisor(self.run_dir)
        self._stack.enter_context(system.only_node())
        # in the order of their undoing, from the last: processes, network, folders
        data = self.run_dir / "data"
        system.record(namespace=self._network.name, folders=[data])
        self._network.create()
        self._network.enter()
        self._stack.callback(self._network.leave)
        self._stack.callback(self._supervisor.stop_all, grace=5.0)
        self._start_control_plane()
        self._start_containerd(data / "containerd", archives)
        self._start_services(data)
        self._start_spark_operator()
        for name in self._kafka_names:
            self.add_kafka(name)

    def stop(self, *, keep_logs: bool = False) -> None:
        """End everything and take back what was changed on the machine."""
        self._kafka.clear()  # ends the helpers' connections
        self._stack.close()
        self._ports.close()
        for path in self.run_dir.glob("*"):
            if not (keep_logs and path.name == "logs"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def add_kafka(self, name: str = "main", **options: Any) -> KafkaCluster:
        """Start a further Kafka cluster, which pods can reach.

        Args:
            name: of the cluster.
            options: of `KafkaCluster`, such as `nodes` or `properties`.
        """
        cluster = KafkaCluster(
            name,
            self.run_dir,
            supervisor=self._supervisor,
            ports=self._ports,
            cache=self._cache,
            progress=self._progress,
            host=NODE_ADDRESS,
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
        """Nothing: this is a cluster like any other."""
        return {}

    def pods(self, selector: str = "", namespace: str = "default") -> list[dict[str, Any]]:
        """The pods with these labels."""
        return self.control_plane.items("pods", namespace, selector)

    def logs(self, pod: str, namespace: str = "default", container: str = "") -> str:
        """What a pod has written so far, by the API."""
        choice = ["-c", container] if container else []
        return self.control_plane.kubectl("logs", pod, "-n", namespace, *choice)

    def all_logs(self, pod: str, namespace: str = "default") -> str:
        """What all runs of the pod's containers have written.

        The kubelet deletes those of pods that are gone.
        """
        files = self._services.pod_logs.glob(f"{namespace}_{pod}_*/*/*.log")
        return "".join(
            file.read_text(errors="replace")
            for file in sorted(files, key=lambda file: file.stat().st_mtime)
        )

    def kill_pod_process(self, pod: str, namespace: str = "default", container: str = "") -> int:
        """Let a container crash (SIGKILL); returns the process id that it had.

        Raises:
            TestbedError: it does not run.
        """
        found = self.control_plane.get("pods", pod, namespace)
        statuses = found["status"].get("containerStatuses", []) if found else []
        for status in statuses:
            if status["name"] == (container or status["name"]) and "running" in status["state"]:
                return self._containerd.kill_process(
                    status["containerID"].removeprefix("containerd://")
                )
        raise TestbedError(f"no running container {container or ''} in pod {pod}")

    def _build(self) -> list[Path]:
        """All programs and images, before the network is closed."""
        self._builder.ensure(*builds.NODE)
        made = ImageBuilder(self._cache, self._builder, self._progress)
        return [
            made.pause(),
            made.operator(),
            *(made.spark(version) for version in self.spark_versions),
        ]

    def _start_control_plane(self) -> None:
        files = self._builder.ensure(SPARK_OPERATOR_FILES)[SPARK_OPERATOR_FILES]
        self.control_plane = ControlPlane(
            self.run_dir,
            supervisor=self._supervisor,
            ports=self._ports,
            builder=self._builder,
            progress=self._progress,
            crds=[files / "crds", *self._crds],
            address=NODE_ADDRESS,
        )
        self._stack.callback(self.control_plane.stop)
        self.control_plane.start()

    def _start_containerd(self, folder: Path, archives: list[Path]) -> None:
        folder.mkdir(parents=True)
        self._containerd = Containerd(folder, self._supervisor)
        self._stack.callback(self._containerd.stop)
        with self._progress.step("start containerd"):
            self._containerd.start()
        for archive in archives:
            with self._progress.step(f"import {archive.parent.name.rpartition('-')[0]}"):
                self._containerd.import_image(archive)

    def _start_services(self, folder: Path) -> None:
        self._services = NodeServices(self.control_plane, self._builder, folder)
        self._stack.callback(self._services.stop)
        with self._progress.step("start kubelet, kube-proxy, scheduler and DNS"):
            self._services.start()

    def _start_spark_operator(self) -> None:
        submitting = ensure_venv(self.spark_versions[0], self._cache, self._progress)
        self.spark_operator = SparkOperator(
            self.control_plane, spark_home(submitting), ports=self._ports, builder=self._builder
        )
        self._stack.callback(self.spark_operator.stop)
        with self._progress.step("start spark-operator"):
            self.spark_operator.start()
