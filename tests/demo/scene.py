"""What the demo plays in: a cluster, the operator, a broker with load, and the source."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from support.story.operator_process import OperatorProcess
from support.story.watch import Batch, SourceView, batches
from testbed.cluster import ProcessCluster
from testbed.process_node.images import ProcessImage
from testbed.versions import CHECKOUT

EXAMPLE = CHECKOUT / "examples" / "orders.yaml"
TOPICS = {"orders": 8, "payments": 5}


class Scene:
    """See the module.

    Args:
        cluster: has a broker.
        operator: not started yet.
        slots: cores of an executor, if not those of the example.
    """

    def __init__(
        self, cluster: ProcessCluster, operator: OperatorProcess, *, slots: int | None = None
    ) -> None:
        self._slots = slots
        self.cluster = cluster
        self.operator = operator
        self.kubectl = cluster.control_plane.kubectl
        self.source = SourceView(self.kubectl, "orders")
        self.data = cluster.run_dir / "data"
        self.sink = self.data / "orders"
        self._driver_name = "orders-1-driver"

    @property
    def manifest(self) -> dict[str, Any]:
        """The example, with this machine's broker, a folder for the volume and smaller heaps."""
        manifest: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
        spec = manifest["spec"]
        spec["source"]["kafka"]["clusters"][0]["bootstrapServers"] = self.cluster.kafka().bootstrap
        self.data.mkdir(exist_ok=True)
        fit_machine(spec, self.data)
        if self._slots is not None:
            spec["application"]["executor"]["cores"] = self._slots
        return manifest

    def apply(self) -> None:
        """``kubectl apply`` of the example."""
        file = self.cluster.run_dir / "orders.yaml"
        file.write_text(yaml.safe_dump(self.manifest, sort_keys=False))
        self.kubectl("apply", "-f", str(file))

    @property
    def driver(self) -> str:
        """Name of the driver's pod."""
        self._driver_name = f"{self.source.status['application']['name']}-driver"
        return self._driver_name

    @property
    def driver_pod(self) -> dict[str, Any]:
        """The driver's pod."""
        return next(
            pod
            for pod in self.cluster.pods("spark-role=driver")
            if pod["metadata"]["name"] == self.driver
        )

    def batches(self) -> list[Batch]:
        """Micro-batches of the driver that runs now."""
        return list(batches(self.cluster.logs(self.driver)))

    def has_caught_up(self, rate: int) -> bool:
        """Whether some micro-batches are done, and what is left is less than a second's load."""
        lag = self.source.report.lag
        return len(self.batches()) > 2 and lag is not None and lag < rate

    def batches_on_disk(self) -> list[Batch]:
        """Micro-batches of all drivers of the present application, from the node's files.

        No API server is asked.
        """
        return list(batches(self.cluster.all_logs(self._driver_name)))

    @property
    def expected(self) -> dict[tuple[str, str, int], int]:
        """Records per partition, as the broker counts them."""
        admin = self.cluster.kafka().admin
        return {
            ("main", topic, p): end
            for topic in TOPICS
            for p, (_, end) in admin.offsets(topic).items()
        }


def fit_machine(spec: dict[str, Any], data: Path) -> None:
    """Give the pods of a manifest small heaps, and a folder of this machine as their volume."""
    for role in ("driver", "executor"):
        settings = spec["application"][role]
        settings["memory"] = "768m"
        settings["template"]["spec"]["volumes"] = [
            {"name": "data", "hostPath": {"path": str(data)}}
        ]


def new_cluster(
    run_dir: Path,
    *,
    kafka: Sequence[str] = ("main",),
    images: Mapping[str, ProcessImage] | None = None,
    **options: Any,
) -> ProcessCluster:
    """A cluster with our custom resource.

    With a broker, and the images of the checkout, unless said otherwise.
    """
    return ProcessCluster(
        run_dir, kafka=kafka, crds=[CHECKOUT / "crds"], extra_images=images, **options
    )
