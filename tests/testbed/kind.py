"""A cluster by kind, with images that an engine builds from the Dockerfile.

Honestly: this provider has never run against an engine, since none was at hand where it was
written. Unit tests check which commands it gives; `make e2e CLUSTER=kind` is what is to be tried
first where there is an engine.

Spark operator and brokers are processes of this machine as in the other kinds of clusters: the
operator reaches the API server at the port that kind publishes, and pods reach the brokers at the
gateway of the engine's network.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from testbed import images
from testbed.builds import SPARK_OPERATOR_FILES, Builder
from testbed.cache import Cache
from testbed.commands import find_program, run
from testbed.errors import TestbedError
from testbed.kafka import KafkaCluster
from testbed.kubectl import Kubectl
from testbed.ports import PortPool
from testbed.processes import Supervisor
from testbed.progress import QUIET, Progress
from testbed.spark_operator import SparkOperator
from testbed.started import Started
from testbed.venvs import ensure_venv, spark_home
from testbed.versions import CHECKOUT, SPARK

NETWORK = "kind"
"""The engine's network, whose gateway is this machine."""

_NODE = "control-plane"
_TIMEOUT = 3600.0

Run = Callable[[Sequence[str | Path]], str]
"""Runs a command to its end and returns what it printed."""


def _run(argv: Sequence[str | Path]) -> str:
    return run(argv, timeout=_TIMEOUT)


class KindApi(Kubectl):
    """The API server of a kind cluster.

    Args:
        run_dir: has the kubeconfig.
        supervisor: of what runs beside the cluster.
        program: `kubectl`.
    """

    def __init__(self, run_dir: Path, supervisor: Supervisor, program: Path) -> None:
        super().__init__(run_dir, supervisor)
        self._program = program
        self._kubeconfig = run_dir / "kubeconfig"

    @property
    def program(self) -> Path:
        return self._program

    @property
    def port(self) -> int:
        config = yaml.safe_load(self._kubeconfig.read_text())
        return int(urlsplit(config["clusters"][0]["cluster"]["server"]).port or 0)

    def kubeconfig(self, user: str = "") -> Path:
        # kind makes one user only, who may do everything
        return self._kubeconfig


class KindCluster(Started):
    """See the module; a context manager.

    Args:
        run_dir: where everything goes; made if missing.
        share: a folder of the host that pods can mount under the same path.
        name: of the kind cluster.
        kafka: names of Kafka clusters of one node to start.
        spark_versions: those with an image; the first one's spark-submit is used.
        cache: where built parts are.
        progress: told about each step.
        run_command: runs kind and docker.
    """

    def __init__(
        self,
        run_dir: Path,
        *,
        share: Path,
        name: str = "balanced-source",
        kafka: Iterable[str] = (),
        spark_versions: tuple[str, ...] = SPARK[:1],
        cache: Cache | None = None,
        progress: Progress = QUIET,
        run_command: Run = _run,
    ) -> None:
        self.run_dir = run_dir.resolve()
        self.spark_versions = spark_versions
        self._share = share.resolve()
        self._name = name
        self._kafka_names = tuple(kafka)
        self._kafka: dict[str, KafkaCluster] = {}
        self._cache = cache or Cache()
        self._progress = progress
        self._run = run_command
        self._builder = Builder(self._cache, progress)
        self._ports = PortPool()
        self._supervisor = Supervisor(self.run_dir)

    def end(self, error: BaseException | None) -> None:
        self.stop()

    def start(self) -> None:
        """Build the images, make the cluster, load the images, start what runs beside it."""
        with self._progress.step("build images"):
            self.build_images()
        with self._progress.step("kind create cluster"):
            self.create()
        kubectl = self._builder.ensure("kubectl")["kubectl"]
        self.control_plane = KindApi(self.run_dir, self._supervisor, kubectl)
        files = self._builder.ensure(SPARK_OPERATOR_FILES)[SPARK_OPERATOR_FILES]
        self.control_plane.apply(files / "crds")
        submitting = ensure_venv(self.spark_versions[0], self._cache, self._progress)
        self.spark_operator = SparkOperator(
            self.control_plane, spark_home(submitting), ports=self._ports, builder=self._builder
        )
        with self._progress.step("start spark-operator"):
            self.spark_operator.start()
        for name in self._kafka_names:
            self.add_kafka(name)

    def stop(self) -> None:
        """Delete the cluster, and end what runs beside it."""
        self._kafka.clear()
        self._supervisor.stop_all()
        self._run([_kind(), "delete", "cluster", "--name", self._name])
        self._ports.close()

    def build_images(self) -> None:
        """Both images by `docker build`; layers are the engine's business."""
        self._docker_build("operator", images.OPERATOR)
        for version in self.spark_versions:
            self._docker_build(
                "spark", images.spark_image_name(version), f"SPARK_VERSION={version}"
            )

    def create(self) -> None:
        """The cluster with its images; the share is mounted into its node under the same path."""
        self._share.mkdir(parents=True, exist_ok=True)
        config = self.run_dir / "kind.yaml"
        config.write_text(yaml.safe_dump(self.config()))
        kubeconfig = str(self.run_dir / "kubeconfig")
        self._run(
            [
                _kind(),
                "create",
                "cluster",
                "--name",
                self._name,
                "--config",
                config,
                "--kubeconfig",
                kubeconfig,
            ]
        )
        self._run([_kind(), "load", "docker-image", "--name", self._name, *self.image_names()])

    def config(self) -> dict[str, Any]:
        """What kind is told about the cluster."""
        mount = {"hostPath": str(self._share), "containerPath": str(self._share)}
        return {
            "kind": "Cluster",
            "apiVersion": "kind.x-k8s.io/v1alpha4",
            "nodes": [{"role": _NODE, "extraMounts": [mount]}],
        }

    def image_names(self) -> list[str]:
        """Those that are built and loaded."""
        return [
            images.OPERATOR,
            *(images.spark_image_name(version) for version in self.spark_versions),
        ]

    def gateway(self) -> str:
        """The address of this machine as pods see it.

        Raises:
            TestbedError: the engine's network has none.
        """
        told = json.loads(self._run([_docker(), "network", "inspect", NETWORK]))
        for entry in told[0]["IPAM"]["Config"]:
            if "." in entry.get("Gateway", ""):
                return str(entry["Gateway"])
        raise TestbedError(
            f"the engine's network {NETWORK} has no IPv4 gateway, by which pods would reach brokers"
        )

    def add_kafka(self, name: str = "main", **options: Any) -> KafkaCluster:
        """Start a Kafka cluster on this machine, which pods can reach."""
        cluster = KafkaCluster(
            name,
            self.run_dir,
            supervisor=self._supervisor,
            ports=self._ports,
            cache=self._cache,
            progress=self._progress,
            host=self.gateway(),
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
        """The log of the present run; earlier ones are the node's business."""
        return self.logs(pod, namespace)

    def kill_pod_process(self, pod: str, namespace: str = "default", container: str = "") -> int:
        """Let a container crash (SIGKILL); returns the process id that it had, in the node."""
        found = self.control_plane.get("pods", pod, namespace) or {}
        for status in found.get("status", {}).get("containerStatuses", []):
            if status["name"] == (container or status["name"]) and "running" in status["state"]:
                return self._kill(status["containerID"].removeprefix("containerd://"))
        raise TestbedError(f"no running container {container or ''} in pod {pod}")

    def _kill(self, container: str) -> int:
        ctr = [_docker(), "exec", f"{self._name}-{_NODE}", "ctr", "--namespace", "k8s.io", "tasks"]
        lines = (line.split() for line in self._run([*ctr, "ls"]).splitlines())
        pid = next(int(words[1]) for words in lines if words[0] == container)
        self._run([*ctr, "kill", "--signal", "SIGKILL", container])
        return pid

    def _docker_build(self, target: str, name: str, *settings: str) -> None:
        arguments = [f"--build-arg={setting}" for setting in settings]
        self._run([_docker(), "build", "--target", target, "--tag", name, *arguments, CHECKOUT])


def _kind() -> str:
    return str(find_program("kind", "Install kind; CLUSTER=node and CLUSTER=process need none."))


def _docker() -> str:
    return str(
        find_program(
            "docker", "Install an engine with the docker command; CLUSTER=node needs none."
        )
    )
