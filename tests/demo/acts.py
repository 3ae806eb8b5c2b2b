"""Acts that demos share.

Rescale a running source, kill its driver or an executor, wait for records to arrive.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.story.operator_process import OperatorProcess
from support.story.sink import rows
from support.story.watch import Batch, SourceView, batches
from testbed.cluster import ProcessCluster
from testbed.errors import DeadlineError
from testbed.waiting import wait_until


class Acts(ABC):
    """A source in a cluster, and what happens to it.

    Args:
        cluster: started.
        operator: not started yet.
        name: of the source.
        sink: folder of its file sink.
    """

    def __init__(
        self, cluster: ProcessCluster, operator: OperatorProcess, name: str, sink: Path
    ) -> None:
        self.cluster, self.operator, self.sink = cluster, operator, sink
        self.source = SourceView(cluster.control_plane.kubectl, name)

    @property
    @abstractmethod
    def produced(self) -> int:
        """Number of records that the source must deliver, so far."""

    def rescale(self, readers: int) -> int:
        """Change the parallelism; returns 1 if that restarted anything."""
        before = self._identity()
        self.source.patch({"parallelism": readers})
        wait_until(
            lambda: self._is_read_by(readers),
            600,
            f"micro-batches with {readers} readers",
            interval=0.5,
        )
        self.wait_more()
        return 0 if self._identity() == before else 1

    def kill_driver(self, *, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Kill the driver, and wait for a successor that delivers.

        Args:
            meanwhile: what happens while no driver runs.
        """
        incarnation = self.source.report.incarnation
        self.cluster.kill_pod_process(self._driver()["metadata"]["name"])
        meanwhile()
        wait_until(
            lambda: self.source.report.incarnation > incarnation,
            600,
            "a new driver to register",
            interval=0.5,
        )
        self.wait_more()

    def kill_executor(self) -> None:
        """Kill an executor, and wait until others have read what its tasks did not finish."""
        running = [
            pod
            for pod in self.cluster.pods("spark-role=executor")
            if pod["status"].get("phase") == "Running"
        ]
        self.cluster.kill_pod_process(running[0]["metadata"]["name"])
        self.wait_more()

    def wait_more(self) -> None:
        """Wait until as many records have arrived as are produced now, and one more."""
        wanted = self.produced
        wait_until(lambda: rows(self.sink) > wanted, 600, "further records to arrive", interval=0.5)

    def wait_all(self) -> None:
        """Wait until everything has arrived; what is missing after that is counted as lost."""
        with contextlib.suppress(DeadlineError):
            wait_until(
                lambda: rows(self.sink) >= self.produced, 180, "all records to arrive", interval=0.5
            )

    def batches(self) -> list[Batch]:
        """Finished micro-batches of the driver that runs now."""
        return list(batches(self.cluster.logs(self._driver()["metadata"]["name"])))

    def _is_read_by(self, readers: int) -> bool:
        done = self.batches()
        return bool(done) and done[-1].parallelism == readers

    def _driver(self) -> dict[str, Any]:
        name = f"{self.source.status['application']['name']}-driver"
        return next(
            pod for pod in self.cluster.pods("spark-role=driver") if pod["metadata"]["name"] == name
        )

    def _identity(self) -> tuple[Any, ...]:
        pod = self._driver()
        restarts = [status["restartCount"] for status in pod["status"].get("containerStatuses", [])]
        return pod["metadata"]["uid"], restarts, self.source.report.incarnation
