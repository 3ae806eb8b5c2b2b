"""A source that several applications read.

What its user does and sees, and what its hosts have written.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import yaml

from chaos.checker import broker_log
from demo.scene import EXAMPLE, TOPICS
from support.story.host_sinks import HostSinks, Proof, Split
from support.story.operator_process import OperatorProcess
from support.story.watch import SourceView
from testbed.cache import Cache
from testbed.cluster import ProcessCluster
from testbed.images import spark_image, spark_image_name
from testbed.process_node.images import ProcessImage
from testbed.venvs import ensure_venv
from testbed.versions import SPARK
from testbed.waiting import wait_until

NAME: Final = "orders"
READERS_PER_HOST: Final = 3
SPLITS: Final = sum(TOPICS.values())

IMAGE: Final = spark_image_name(SPARK[0])
NEXT_IMAGE: Final = "balanced-source/spark:next"
BROKEN_IMAGE: Final = "balanced-source/spark:broken"

TRIGGER: Final = 4.0
"""Seconds between micro-batches: three applications share two cores."""

_FOLLOW: Final = {"readersPerHost": READERS_PER_HOST}
"""Hosts follow the number of readers."""

_SLOTS: Final = 5
"""Cores of an executor: a host has slots for the readers of one that is away."""

_QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_RETAINED: Final = "1000000"
_START: Final = 1800.0
"""Seconds that applications may take to start, at most."""


def images() -> dict[str, ProcessImage]:
    """Return the images besides that of the checkout.

    The same under another tag, and one whose driver ends at once.
    """
    cache = Cache()
    same = spark_image(ensure_venv(SPARK[0], cache), cache)
    message = "echo 'this image has no balanced_source_spark' >&2; exit 1"
    return {
        NEXT_IMAGE: same,
        BROKEN_IMAGE: dataclasses.replace(same, entrypoint=("/bin/bash", "-c", message)),
    }


class HostScene:
    """See the module.

    Args:
        cluster: started, with a broker.
        operator: not started yet.
        hosts: ``spec.application.hosts``.
        trigger: seconds between micro-batches.
    """

    def __init__(
        self,
        cluster: ProcessCluster,
        operator: OperatorProcess,
        *,
        hosts: Mapping[str, int] = _FOLLOW,
        trigger: float = TRIGGER,
    ) -> None:
        self.cluster, self.operator = cluster, operator
        self._hosts, self._trigger = hosts, trigger
        self.kubectl = cluster.control_plane.kubectl
        self.source = SourceView(self.kubectl, NAME)
        self._data = cluster.run_dir / "data"
        self._data.mkdir(exist_ok=True)
        self.sinks = HostSinks(self._data / NAME)

    def apply(self, *, readers: int) -> None:
        """``kubectl apply`` of the example, with several hosts."""
        file = self.cluster.run_dir / "orders.yaml"
        file.write_text(yaml.safe_dump(self._manifest(readers), sort_keys=False))
        self.kubectl("apply", "-f", str(file))

    def scale(self, readers: int) -> None:
        """``kubectl scale``."""
        self.kubectl("scale", f"bsrc/{NAME}", f"--replicas={readers}")

    def patch(self, **application: Any) -> None:
        """``kubectl patch`` of ``spec.application``."""
        self.source.patch({"application": application})

    @property
    def hosts(self) -> dict[str, dict[str, Any]]:
        """What the status says of each host."""
        return {host["name"]: host for host in self.source.status.get("hosts", [])}

    def role(self, host: str) -> str:
        """Return the role of a host; empty if there is no such host."""
        return str(self.hosts.get(host, {}).get("role", ""))

    def reads(self, *, hosts: int, readers: int, image: str | None = None) -> bool:
        """Whether so many hosts run, read all splits with so many readers, and have adopted it."""
        status = self.source.status
        found = status.get("hosts", [])
        return (
            len(found) == hosts
            and all(host["state"] == "Running" and host["role"] == "Member" for host in found)
            and all(host["acknowledgedEpoch"] == status["epoch"] for host in found)
            and sum(host["readers"] for host in found) == readers
            and sum(host["splits"] for host in found) == SPLITS
            and all(image in (None, host["image"]) for host in found)
        )

    def wait_reading(self, *, hosts: int, readers: int, image: str | None = None) -> None:
        """Wait until `reads` is true, no host is lost, and each split has had records committed."""

        def is_so() -> bool:
            return self.reads(hosts=hosts, readers=readers, image=image) and not self.condition(
                "Degraded", "HostLost"
            )

        wait_until(is_so, _START, f"{hosts} hosts to read with {readers} readers", interval=2)
        self.wait_read_again()

    def wait_read_again(self, without: frozenset[Split] = frozenset()) -> None:
        """Wait until two further micro-batches of each split have been committed.

        The first one may be a replay.

        Args:
            without: splits that no one reads now.
        """
        before = self._counts()

        def is_read() -> bool:
            now = self._counts()
            return all(now[split] > before[split] + 1 for split in _splits() - without)

        wait_until(is_read, _START, "further micro-batches of all splits", interval=2)

    def _counts(self) -> Counter[Split]:
        return Counter(split for commit in self.sinks.commits() for split in commit.splits)

    def kill_driver(self, host: str) -> None:
        """Kill the driver of a host (SIGKILL)."""
        self.cluster.kill_pod_process(self._driver(host))

    @property
    def image(self) -> str:
        """Image of the spec."""
        return str(self.source.get()["spec"]["application"]["image"])

    def condition(self, kind: str, reason: str) -> str:
        """Return the message of a condition that is true for this reason; empty if it is not."""
        found = self.source.condition(kind)
        return (
            str(found.get("message", ""))
            if (found.get("status"), found.get("reason")) == ("True", reason)
            else ""
        )

    def incarnations(self) -> dict[str, str]:
        """Return the uid of each host's driver pod: a restart changes it."""
        found = {}
        for host, status in self.hosts.items():
            pod = self.cluster.control_plane.get("pods", f"{status['application']}-driver")
            restarts = (
                [one["restartCount"] for one in pod["status"].get("containerStatuses", [])]
                if pod
                else []
            )
            found[host] = f"{pod['metadata']['uid']} {restarts}" if pod else ""
        return found

    def prove(self) -> Proof:
        """Compare the broker's log with all sinks."""
        dump = self.cluster.run_dir / "log.csv"
        broker_log.dump(dump, "main", self.cluster.kafka().bootstrap, TOPICS)
        return self.sinks.prove(dump)

    def _driver(self, host: str) -> str:
        return f"{self.hosts[host]['application']}-driver"

    def _manifest(self, readers: int) -> dict[str, Any]:
        manifest: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
        spec = manifest["spec"]
        spec["parallelism"] = readers
        spec["source"]["kafka"]["clusters"][0]["bootstrapServers"] = self.cluster.kafka().bootstrap
        application = spec["application"]
        application["hosts"] = dict(self._hosts)
        application["hostLossPolicy"] = {"type": "Wait", "after": "1m"}
        application["pipeline"]["trigger"]["processingTime"] = f"{self._trigger:g}s"
        application["sparkConf"] = _conf()
        for role in ("driver", "executor"):
            settings = application[role]
            settings["memory"] = "640m"
            settings["template"]["spec"]["volumes"] = [
                {"name": "data", "hostPath": {"path": str(self._data)}}
            ]
        application["executor"]["cores"] = _SLOTS
        return manifest


def _splits() -> frozenset[Split]:
    """Return all splits, also those that no host has read yet."""
    return frozenset(("main", topic, n) for topic, count in TOPICS.items() for n in range(count))


def _conf() -> Mapping[str, str]:
    return {
        "spark.sql.streaming.fileSink.log.compactInterval": _RETAINED,
        "spark.driver.extraJavaOptions": _QUICK_JVM,
        "spark.executor.extraJavaOptions": _QUICK_JVM,
        "spark.ui.enabled": "false",
    }
