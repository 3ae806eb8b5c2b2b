"""One BalancedSource of the full engine: what its user does, and what its files say."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import yaml

from chaos.checker import broker_log, spark_files
from chaos.light.load import Load
from testbed.cluster import ProcessCluster
from testbed.images import spark_image_name
from testbed.versions import CHECKOUT, SPARK

DOCUMENTS: Final = ("-enumerator", "-assignment", "-readers")
"""Ends of the names of the ConfigMaps that the protocol uses."""
PYTHON_IMAGE: Final = spark_image_name(SPARK[0])
NATIVE_IMAGE: Final = f"{PYTHON_IMAGE}-native"
"""The same with the native reader, which the option `reader: auto` takes when it is there."""
_RETAINED: Final = "1000000"
_QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Most of a schedule is JVMs that start: they gain nothing from a second compiler."""


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
        image: with the native reader, or without.
        is_bounded: whether it ends at the offsets of its start.
        hosts: number of its applications at the start; None: one, without the field.
    """

    name: str
    topics: Mapping[str, Mapping[str, int]]
    strategy: str = "RoundRobin"
    limits: Mapping[str, int] = field(default_factory=dict)
    slots: int = 6
    on_data_loss: str = "Continue"
    image: str = PYTHON_IMAGE
    is_bounded: bool = False
    hosts: int | None = None

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
        self._bootstraps = bootstraps
        self.folder = cluster.run_dir / "data" / plan.name
        self.folder.mkdir(parents=True)
        self.kafka = _kafka(plan, bootstraps)
        self.spec: dict[str, Any] = {
            "parallelism": 2,
            "assignment": {"strategy": plan.strategy},
            "suspend": False,
            "rebalanceNonce": 0,
        }
        self.hosts = plan.hosts
        self.loads: dict[str, Load] = {}
        self.copies: list[dict[str, Any]] = []
        self.dumps = 0
        self._reached: dict[tuple[str, str, int], tuple[str | None, int]] = {}
        self._next: dict[int, int] = {}
        """Host → number of its first micro-batch that is not in it."""

    def produce(self, *, rate: int, prefill: int) -> None:
        """Create the topics and produce to them.

        A bounded source has all its records from the start.
        """
        for name, topics in self.plan.topics.items():
            load = Load(name, self._bootstraps[name], dict(topics), rate=rate, seed=0)
            load.fill(prefill)
            self.loads[name] = load
            if not self.plan.is_bounded:
                load.start()

    def write_bounds(self, ends: Mapping[tuple[str, str, int], tuple[str, int]]) -> None:
        """Write down for the checker what is expected.

        Everything, or what there is at the start.
        """
        bounds = (
            {f"{c}/{t}/{p}": [i, 0, end] for (c, t, p), (i, end) in ends.items()}
            if self.plan.is_bounded
            else {}
        )
        (self.folder / "bounds.json").write_text(json.dumps(bounds))

    def delete(self) -> None:
        """Delete the resource."""
        self._cluster.control_plane.kubectl(
            "delete", "bsrc", self.name, "--wait=false", "--ignore-not-found"
        )

    @property
    def is_finished(self) -> bool:
        """Whether the resource says that everything was read."""
        return any(
            condition.get("reason") == "Finished" for condition in self.status.get("conditions", [])
        )

    @property
    def has_unreadable_state(self) -> bool:
        """Whether the resource says that someone has to restore or delete the operator's state."""
        return any(
            condition.get("reason") == "StateCorrupt" and condition.get("status") == "True"
            for condition in self.status.get("conditions", [])
        )

    def delete_state(self) -> None:
        """Delete the operator's state, as the condition says."""
        name = f"{self.name}-enumerator"
        self._cluster.control_plane.kubectl("delete", "configmap", name, "--ignore-not-found")

    def apply(self) -> None:
        """Apply the resource as it is to be now."""
        manifest: dict[str, Any] = yaml.safe_load(
            (CHECKOUT / "examples" / "orders.yaml").read_text()
        )
        manifest["metadata"]["name"] = self.name
        spec = {**manifest["spec"], **self.spec, "source": {"kafka": self.kafka}}
        self._set_application(spec["application"])
        self._cluster.control_plane.apply({**manifest, "spec": spec})

    @property
    def drivers(self) -> list[str]:
        """Names of the drivers' pods."""
        return self._pods("driver")

    @property
    def executors(self) -> list[str]:
        """Names of the executors' pods."""
        return self._pods("executor")

    def _pods(self, role: str) -> list[str]:
        names = ",".join(self._applications)
        selector = f"spark-role={role},sparkoperator.k8s.io/app-name in ({names})"
        return (
            sorted(str(pod["metadata"]["name"]) for pod in self._cluster.pods(selector))
            if names
            else []
        )

    @property
    def _applications(self) -> list[str]:
        """Names of the SparkApplications of all hosts."""
        status = self.status
        found = [
            status.get("application", {}).get("name"),
            *(host["application"] for host in status.get("hosts", [])),
        ]
        return sorted({str(name) for name in found if name})

    @property
    def status(self) -> dict[str, Any]:
        """Status of the resource."""
        found = self._cluster.control_plane.get("bsrc", self.name) or {}
        return dict(found.get("status", {}))

    def committed(self) -> dict[tuple[str, str, int], tuple[str | None, int]]:
        """Return how far the newest committed micro-batch is: split → topic id and next offset."""
        for _at, positions in sorted(self._newly_reached(), key=itemgetter(0)):
            self._reached.update(positions)
        return dict(self._reached)

    def _newly_reached(self) -> Iterator[spark_files.Reached]:
        for host, checkpoint in spark_files.checkpoints(self.folder).items():
            while (found := spark_files.reached(checkpoint, self._next.get(host, 0))) is not None:
                yield found
                self._next[host] = self._next.get(host, 0) + 1

    def dump(self, cluster: str, topic: str) -> Path:
        """Keep for the checker what the log holds now; returns the file."""
        self.dumps += 1
        file = self.folder / "dumps" / f"{self.dumps:03}.csv"
        broker_log.dump(file, cluster, self._bootstraps[cluster], [topic])
        return file

    def keep_copy(self) -> None:
        """Copy the documents, to restore older ones later."""
        self.copies.append(self.documents())

    def documents(self) -> dict[str, Any]:
        """Return the ConfigMaps that the protocol uses, of all hosts: name → object."""
        selector = f"balancedsource.io/name={self.name}"
        found = self._cluster.control_plane.items("configmaps", selector=selector)
        named = {str(one["metadata"]["name"]): one for one in found}
        return {name: one for name, one in sorted(named.items()) if name.endswith(DOCUMENTS)}

    def write_logs(self, operator_log: str) -> None:
        """Write everything that the product has said about this source, for the checker."""
        logs = self.folder / "logs"
        logs.mkdir(exist_ok=True)
        (logs / "operator.log").write_text(operator_log)
        files = sorted((self._cluster.node.folder / "logs").glob(f"default_{self.name}-*/*.log"))
        (logs / "pods.log").write_text("".join(file.read_text(errors="replace") for file in files))
        told = [json.dumps(condition) for condition in self.status.get("conditions", [])]
        told += [
            json.dumps(event.get("message", ""))
            for event in self._cluster.control_plane.items("events")
        ]
        (logs / "status.log").write_text("\n".join(told))

    def _set_application(self, application: dict[str, Any]) -> None:
        data = self._cluster.run_dir / "data"
        application["image"] = self.plan.image
        if self.hosts is not None:
            application["hosts"] = {"count": self.hosts}
        application["pipeline"]["sink"]["options"]["path"] = f"/data/{self.name}/sink"
        application["pipeline"]["trigger"]["processingTime"] = "2s"
        application["pipeline"]["checkpointLocation"] = f"/data/{self.name}/checkpoint"
        application["sparkConf"] = {
            "spark.sql.streaming.minBatchesToRetain": _RETAINED,
            "spark.sql.streaming.fileSink.log.compactInterval": _RETAINED,
            "spark.driver.extraJavaOptions": _QUICK_JVM,
            "spark.executor.extraJavaOptions": _QUICK_JVM,
            "spark.ui.enabled": "false",
        }
        for role in ("driver", "executor"):
            application[role]["memory"] = "640m"
            application[role]["template"]["spec"]["volumes"] = [
                {"name": "data", "hostPath": {"path": str(data)}}
            ]
        application["executor"]["cores"] = self.plan.slots


def _kafka(plan: Plan, bootstraps: Mapping[str, str]) -> dict[str, Any]:
    limits = {"limits": dict(plan.limits)} if plan.limits else {}
    ends = {"stoppingOffsets": {"type": "Latest"}} if plan.is_bounded else {}
    return {
        "clusters": [{"name": name, "bootstrapServers": bootstraps[name]} for name in plan.topics],
        "subscription": {"topicPattern": plan.pattern},
        "discovery": {"interval": "0" if plan.is_bounded else "2s"},
        "startingOffsets": {"type": "Earliest"},
        "onDataLoss": plan.on_data_loss,
        **limits,
        **ends,
    }
