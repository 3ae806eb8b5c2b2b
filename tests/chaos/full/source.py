"""One BalancedSource of the full engine: what its user does, and what its files say."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from chaos.checker import spark_files
from chaos.light.load import Load
from testbed.cluster import ProcessCluster
from testbed.versions import CHECKOUT

DOCUMENTS: Final = ("enumerator", "assignment", "readers")
_RETAINED: Final = "1000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a source is like.

    Attributes:
        name: of the resource.
        topics: Kafka cluster → topic → number of partitions.
        strategy: of its assigner.
        limits: of a micro-batch.
        slots: cores of an executor.
        on_data_loss: `Fail` or `Continue`.
    """

    name: str
    topics: Mapping[str, Mapping[str, int]]
    strategy: str = "RoundRobin"
    limits: Mapping[str, int] = field(default_factory=dict)
    slots: int = 6
    on_data_loss: str = "Continue"

    @property
    def pattern(self) -> str:
        """Regular expression of its topics."""
        return f"{self.name}-.*"


class Source:
    """A source that runs.

    Args:
        plan: what it is like.
        cluster: where it runs.
        bootstraps: Kafka cluster → brokers.
    """

    def __init__(self, plan: Plan, cluster: ProcessCluster, bootstraps: Mapping[str, str]) -> None:
        self.plan = plan
        self.name = plan.name
        self._cluster = cluster
        self.folder = cluster.run_dir / "data" / plan.name
        self.folder.mkdir(parents=True)
        self.kafka = _kafka(plan, bootstraps)
        self.spec: dict[str, Any] = {
            "parallelism": 2,
            "assignment": {"strategy": plan.strategy},
            "suspend": False,
            "rebalanceNonce": 0,
        }
        self.loads: dict[str, Load] = {}
        self.copies: list[dict[str, Any]] = []
        self.dumps = 0

    def apply(self) -> None:
        """Apply the resource as it is to be now."""
        manifest: dict[str, Any] = yaml.safe_load((CHECKOUT / "examples" / "orders.yaml").read_text())
        manifest["metadata"]["name"] = self.name
        spec = {**manifest["spec"], **self.spec, "source": {"kafka": self.kafka}}
        self._set_application(spec["application"])
        self._cluster.control_plane.apply({**manifest, "spec": spec})

    @property
    def driver(self) -> str | None:
        """Name of the driver's pod; None if there is none."""
        selector = f"spark-role=driver,sparkoperator.k8s.io/app-name={self.application}"
        pods = self._cluster.pods(selector) if self.application else []
        return next((str(pod["metadata"]["name"]) for pod in pods), None)

    @property
    def executors(self) -> list[str]:
        """Names of the executors' pods."""
        selector = f"spark-role=executor,sparkoperator.k8s.io/app-name={self.application}"
        return [str(pod["metadata"]["name"]) for pod in self._cluster.pods(selector)] if self.application else []

    @property
    def application(self) -> str:
        """Name of its SparkApplication; empty if there is none."""
        return str(self.status.get("application", {}).get("name", ""))

    @property
    def status(self) -> dict[str, Any]:
        """Status of the resource."""
        found = self._cluster.control_plane.get("bsrc", self.name) or {}
        return dict(found.get("status", {}))

    def committed(self) -> dict[tuple[str, str, int], tuple[str | None, int]]:
        """Return how far the newest committed micro-batch is: split → topic id and next offset."""
        found = spark_files.events(self.folder / "checkpoint")
        done = {event["batch"] for event in found if event["event"] == "committed"}
        reached: dict[tuple[str, str, int], tuple[str | None, int]] = {}
        for event in found:
            if event["event"] == "logged" and event["batch"] in done:
                reached.update({(c, t, p): (i, to) for c, t, p, i, _, to in event["ranges"]})
        return reached

    def keep_copy(self) -> None:
        """Copy the documents, to restore older ones later."""
        found = {name: self._cluster.control_plane.get("configmap", f"{self.name}-{name}") for name in DOCUMENTS}
        self.copies.append({name: value for name, value in found.items() if value is not None})

    def write_logs(self, operator_log: str) -> None:
        """Write everything that the product has said about this source, for the checker."""
        logs = self.folder / "logs"
        logs.mkdir(exist_ok=True)
        (logs / "operator.log").write_text(operator_log)
        files = sorted((self._cluster.node.folder / "logs").glob(f"default_{self.name}-*/*.log"))
        (logs / "pods.log").write_text("".join(file.read_text(errors="replace") for file in files))
        told = [json.dumps(condition) for condition in self.status.get("conditions", [])]
        told += [json.dumps(event.get("message", "")) for event in self._cluster.control_plane.items("events")]
        (logs / "status.log").write_text("\n".join(told))

    def _set_application(self, application: dict[str, Any]) -> None:
        data = self._cluster.run_dir / "data"
        application["pipeline"]["sink"]["options"]["path"] = f"/data/{self.name}/sink"
        application["pipeline"]["checkpointLocation"] = f"/data/{self.name}/checkpoint"
        application["sparkConf"] = {
            "spark.sql.streaming.minBatchesToRetain": _RETAINED,
            "spark.sql.streaming.fileSink.log.compactInterval": _RETAINED,
        }
        for role in ("driver", "executor"):
            application[role]["memory"] = "640m"
            application[role]["template"]["spec"]["volumes"] = [{"name": "data", "hostPath": {"path": str(data)}}]
        application["executor"]["cores"] = self.plan.slots


def _kafka(plan: Plan, bootstraps: Mapping[str, str]) -> dict[str, Any]:
    limits = {"limits": dict(plan.limits)} if plan.limits else {}
    return {
        "clusters": [{"name": name, "bootstrapServers": bootstraps[name]} for name in plan.topics],
        "subscription": {"topicPattern": plan.pattern},
        "discovery": {"interval": "2s"},
        "startingOffsets": {"type": "Earliest"},
        "onDataLoss": plan.on_data_loss,
        **limits,
    }
