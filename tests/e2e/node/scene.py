"""What the story plays in.

A cluster, the chart in it, and a source that writes to a folder of the host.
"""

from pathlib import Path
from typing import Any, Final

from support.story.watch import SourceView
from testbed.cluster import Cluster
from testbed.helm import Helm
from testbed.versions import CHECKOUT

TOPICS: Final = {"orders": 8, "payments": 5}
SYSTEM: Final = "balanced-source"
JOBS: Final = "jobs"
RELEASE: Final = "balanced-source"
CHART: Final = CHECKOUT / "charts" / "balanced-source"
SPLITS: Final = sum(TOPICS.values())
SLOTS: Final = 2
"""Readers that an executor has room for."""


class Scene:
    """See the module.

    Args:
        cluster: of any kind.
        share: a folder that pods see under the same path as the host.
    """

    def __init__(self, cluster: Cluster, share: Path) -> None:
        self.cluster = cluster
        self.kubectl = cluster.control_plane.kubectl
        self.source = SourceView(self.kubectl, "orders", JOBS)
        self._share = share
        self.sink = share / "sink"

    def prepare(self) -> None:
        """Namespaces, and the folder that drivers and executors may write to."""
        self._share.mkdir(parents=True)
        self._share.chmod(0o777)  # theirs is another user
        for namespace, level in ((SYSTEM, "restricted"), (JOBS, "privileged")):
            labels = {"pod-security.kubernetes.io/enforce": level}
            self.cluster.control_plane.apply(
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": namespace, "labels": labels},
                }
            )

    def install(self) -> str:
        """``helm install`` and ``helm test``; returns what the test said."""
        helm = Helm(self.cluster.run_dir / "helm", control_plane=self.cluster.control_plane)
        values = {
            "image": {"repository": "balanced-source/operator", "tag": "dev"},
            "sparkConf": self.cluster.driver_spark_conf,
            "spark": {"jobNamespaces": [JOBS]},
            "settings": {"resyncSeconds": 5, "saveIntervalSeconds": 5},
            "networkPolicy": self._network_policy,
        }
        file = helm.values("install", values)
        helm(
            "install",
            RELEASE,
            CHART,
            "--namespace",
            SYSTEM,
            "--values",
            file,
            "--wait",
            "--timeout",
            "5m",
        )
        return helm("test", RELEASE, "--namespace", SYSTEM, "--timeout", "3m", "--logs")

    def apply_source(self) -> None:
        """``kubectl apply`` of the BalancedSource."""
        self.cluster.control_plane.apply(
            {
                "apiVersion": "balancedsource.io/v1alpha1",
                "kind": "BalancedSource",
                "metadata": {"name": self.source.name, "namespace": JOBS},
                "spec": {
                    "parallelism": 2,
                    "source": {"kafka": self._kafka},
                    "application": self._application,
                },
            }
        )

    def pods(self, role: str) -> list[dict[str, Any]]:
        """Living pods of Spark's driver or executors."""
        pods = self.cluster.pods(f"spark-role={role}", JOBS)
        return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]

    @property
    def driver(self) -> dict[str, Any]:
        """The driver's pod."""
        (pod,) = self.pods("driver")
        return pod

    @property
    def operator(self) -> dict[str, Any]:
        """The operator's pod."""
        pods = self.cluster.pods("app.kubernetes.io/name=balanced-source", SYSTEM)
        (pod,) = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        return pod

    @property
    def expected(self) -> dict[tuple[str, str, int], int]:
        """Records per partition, as the broker counts them."""
        admin = self.cluster.kafka().admin
        return {
            ("main", topic, p): end
            for topic in TOPICS
            for p, (_, end) in admin.offsets(topic).items()
        }

    @property
    def _network_policy(self) -> dict[str, Any]:
        """As for any cluster whose API server and brokers listen on other ports than most."""
        api_server = self.cluster.control_plane.port
        brokers = self.cluster.kafka().bootstrap.split(",")
        jobs = {"matchLabels": {"kubernetes.io/metadata.name": JOBS}}
        executors = {"matchLabels": {"spark-role": "executor"}}
        return {
            "enabled": True,
            "apiServerPorts": [443, api_server],
            "sourcePorts": [int(address.rpartition(":")[2]) for address in brokers],
            "metricsFrom": [{"namespaceSelector": jobs, "podSelector": executors}],
        }

    @property
    def _kafka(self) -> dict[str, Any]:
        return {
            "clusters": [{"name": "main", "bootstrapServers": self.cluster.kafka().bootstrap}],
            "subscription": {"topics": list(TOPICS)},
            "discovery": {"interval": "5s"},
        }

    @property
    def _application(self) -> dict[str, Any]:
        version = self.cluster.spark_versions[0]
        return {
            "image": self.cluster.image(version),
            "sparkVersion": version,
            "pipeline": {
                "sink": {"format": "parquet", "options": {"path": str(self.sink)}},
                "checkpointLocation": str(self._share / "checkpoint"),
            },
            # a small machine has room for all pods only if they ask for less than they use at times
            "sparkConf": {
                "spark.ui.enabled": "false",
                "spark.kubernetes.driver.request.cores": "100m",
                "spark.kubernetes.executor.request.cores": "100m",
            },
            "driver": {"memory": "768m", "template": self._template("spark-kubernetes-driver")},
            "executor": {
                "cores": SLOTS,
                "memory": "768m",
                "template": self._template("spark-kubernetes-executor"),
            },
        }

    def _template(self, container: str) -> dict[str, Any]:
        mount = {"name": "share", "mountPath": str(self._share)}
        volume = {"name": "share", "hostPath": {"path": str(self._share), "type": "Directory"}}
        return {
            "spec": {
                "containers": [{"name": container, "volumeMounts": [mount]}],
                "volumes": [volume],
            }
        }
