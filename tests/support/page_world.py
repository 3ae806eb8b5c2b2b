"""The cluster that the commands of the pages are about.

The release `balanced-source` in the namespace of its name, and the source `orders` in `jobs`.
"""

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from support.story.watch import SourceView
from testbed.cluster import ProcessCluster
from testbed.helm import Helm
from testbed.ports import LOOPBACK, PortPool
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

RELEASE: Final = "balanced-source"
NAMESPACE: Final = "jobs"
NAME: Final = "orders"
PARTITIONS: Final = 4
CHART: Final = CHECKOUT / "charts" / "balanced-source"
_APPLICATIONS: Final = "sparkapplications.sparkoperator.k8s.io"
_OPERATOR_PROGRAM: Final = "balanced_source_operator.command"


class PageWorld:
    """See the module.

    Args:
        cluster: with a broker that has the topic `orders`.
        ports: all pods of the process node listen on the same addresses.
        image: of the driver.
    """

    def __init__(self, cluster: ProcessCluster, ports: PortPool, image: str) -> None:
        self.cluster, self._image = cluster, image
        self.kubectl = cluster.control_plane.kubectl
        self.source = SourceView(self.kubectl, NAME, NAMESPACE)
        self.metrics_port = ports.take()
        self._helm = Helm(cluster.run_dir / "helm", control_plane=cluster.control_plane)
        self._values = {
            "image": {"repository": "balanced-source/operator", "tag": "dev"},
            "sparkConf": cluster.driver_spark_conf,
            "spark": {"jobNamespaces": [NAMESPACE]},
            "metrics": {"port": ports.take(), "drivers": {"port": self.metrics_port}},
            "probes": {"port": ports.take()},
        }

    def start(self) -> None:
        """Install the chart, create the source, and wait until it is read."""
        for namespace in (NAMESPACE, "payments"):
            self.kubectl("create", "namespace", namespace)
        self._helm(
            *("install", RELEASE, CHART, "--namespace", RELEASE, "--create-namespace"),
            *("--values", self._helm.values("pages", self._values)),
        )
        self.cluster.control_plane.apply(self.manifest)
        self.wait_ready()

    @property
    def manifest(self) -> dict[str, Any]:
        """The source."""
        data = self.cluster.run_dir / "data"
        kafka = {
            "clusters": [{"name": "main", "bootstrapServers": self.cluster.kafka().bootstrap}],
            "subscription": {"topics": ["orders"]},
        }
        pipeline = {
            "sink": {"format": "parquet", "options": {"path": str(data / "sink")}},
            "checkpointLocation": str(data / "checkpoint"),
            "trigger": {"processingTime": "500ms"},
        }
        application = {
            "image": self._image,
            "sparkVersion": self.cluster.spark_versions[0],
            "pipeline": pipeline,
            "sparkConf": {"spark.ui.enabled": "false"},
            "driver": {"memory": "512m", "template": _with_folder("driver", data)},
            "executor": {"memory": "512m", "template": _with_folder("executor", data)},
        }
        return {
            "apiVersion": "balancedsource.io/v1alpha1",
            "kind": "BalancedSource",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {"parallelism": 2, "source": {"kafka": kafka}, "application": application},
        }

    def wait_ready(self, after: int = 0) -> None:
        """Wait until a driver of a later incarnation has taken over the newest epoch."""

        def is_ready() -> bool:
            status = self.source.status
            return (
                self.source.condition("Ready").get("status") == "True"
                and self.source.condition("Progressing").get("status") == "False"
                and status.get("splits") == PARTITIONS
                and self.source.report.incarnation > after
            )

        wait_until(is_ready, 240, f"the source to be ready: {self.source.status}", interval=0.2)

    @property
    def application_uid(self) -> str:
        """Uid of the SparkApplication that runs now; its successor may get its name."""
        name = self.source.status["application"]["name"]
        found = self.cluster.control_plane.get(_APPLICATIONS, name, NAMESPACE) or {}
        return str(found["metadata"]["uid"])

    def shell(self, folder: Path) -> Mapping[str, str]:
        """Return the environment of a shell in `folder` that has the programs of the pages."""
        programs = folder / "bin"
        programs.mkdir()
        ours = f"{shlex.quote(sys.executable)} -m {_OPERATOR_PROGRAM}"
        for name, command in {
            "kubectl": str(self.cluster.control_plane.program),
            "helm": str(self._helm.program),
            "balanced-source": ours,
            "kubectl-bsrc": ours,
        }.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            (programs / name).chmod(0o755)
        (folder / "orders.yaml").write_text(json.dumps(self.manifest))
        return {
            "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "KUBECONFIG": str(self._kubeconfig(folder)),
            "KUBECACHEDIR": str(self.cluster.run_dir / "kube-cache"),
            "PYTHONPATH": os.pathsep.join(
                str(CHECKOUT / part / "src") for part in ("operator", "spark_app")
            ),
            "NO_PROXY": LOOPBACK,
        }

    def _kubeconfig(self, folder: Path) -> Path:
        """Write a kubeconfig whose current namespace is that of the source."""
        config = yaml.safe_load(self.cluster.control_plane.kubeconfig().read_text())
        for context in config["contexts"]:
            context["context"]["namespace"] = NAMESPACE
        file = folder / "kubeconfig"
        file.write_text(yaml.safe_dump(config))
        return file


def _with_folder(role: str, folder: Path) -> dict[str, Any]:
    """Return a pod template that has a folder of the machine at its own path."""
    mount = {"name": "data", "mountPath": str(folder)}
    volume = {"name": "data", "hostPath": {"path": str(folder), "type": "DirectoryOrCreate"}}
    container = {"name": f"spark-kubernetes-{role}", "volumeMounts": [mount]}
    return {"spec": {"containers": [container], "volumes": [volume]}}
