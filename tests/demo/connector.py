"""A connector that the tree does not know, under the operator: ``python -m demo.connector``.

The wheels of the product and of the sample connector are built, and installed beside the
dependencies; operator, driver and executors load both from there. The source is read with 2, 5 and
3 readers; a driver and an executor are killed, and a task between its seal and its first row.
"""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import typer
import yaml
from rich.console import Console

from demo.acts import Acts
from demo.producing import repeated
from demo.scene import EXAMPLE, fit_machine, new_cluster
from support.log_api import Entry, LogApi
from support.story.operator_process import OperatorProcess
from support.story.sink import committed_files
from support.story.watch import owner_table
from support.wheels import SAMPLE, image, install, with_faults
from testbed.cluster import ProcessCluster
from testbed.progress import Progress
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

IMAGE: Final = "balanced-source/spark-httplog:1"
LOGS: Final = tuple(f"log-{number}" for number in range(7))
FAULTS: Final = "faults"
"""Folder of the volume `/data` in which `support.journal_faults` finds what is to go wrong in a
task."""

KILL_TASK: Final = "kill-task-after-seal"
TOKEN: Final = "let-me-in"  # noqa: S105 - of a server that lives as long as the demo

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False, soft_wrap=True)


class Scene(Acts):
    """A cluster, the operator, and a source of the sample connector.

    Args:
        cluster: started.
        operator: not started yet.
        api: what is read.
    """

    def __init__(self, cluster: ProcessCluster, operator: OperatorProcess, api: LogApi) -> None:
        self.api, self.data = api, cluster.run_dir / "data"
        super().__init__(cluster, operator, "orders", self.data / "orders")

    @property
    def produced(self) -> int:
        return self.api.entries.total()

    def apply(self) -> None:
        """Create the Secret and the source."""
        kubectl = self.cluster.control_plane.kubectl
        kubectl("create", "secret", "generic", "api", f"--from-literal=token={TOKEN}")
        file = self.cluster.run_dir / "orders.yaml"
        file.write_text(yaml.safe_dump(self._manifest()))
        kubectl("apply", "-f", str(file))

    def grow(self) -> None:
        """Append some entries to each log."""
        for name in LOGS:
            self.api.append(name, 5)

    def kill_task(self) -> None:
        """Kill a task between its seal and its first row.

        Its next attempt reads the sealed range.
        """
        fault = self.data / FAULTS / KILL_TASK
        fault.touch()
        wait_until(
            lambda: not fault.exists(), 300, "a task to seal its range and die", interval=0.5
        )
        self.wait_more()

    def delivered(self) -> Counter[Entry]:
        """What is in the sink."""
        tables = (pq.read_table(file).to_pylist() for file in committed_files(self.sink))
        return Counter(
            (row["log"], row["number"], row["text"]) for table in tables for row in table
        )

    def _manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
        spec, config = (
            manifest["spec"],
            {"url": self.api.url, "secret": "api", "discoveryInterval": "1s"},
        )
        spec["source"] = {"custom": {"connector": "httplog", "config": config}}
        spec["application"]["image"] = IMAGE
        (self.data / FAULTS).mkdir(parents=True, exist_ok=True)
        fit_machine(spec, self.data)
        return manifest


def play(scene: Scene, progress: Progress) -> int:
    """All acts; returns how often a rescale restarted something."""
    with progress.step("start operator"):
        scene.operator.start()
    with repeated(scene.grow, every=0.1):
        with progress.step("apply, driver and executor start, first micro-batches"):
            scene.apply()
            scene.source.wait_adopted(parallelism=2, splits=len(LOGS), timeout=300)
            scene.wait_more()
        restarts = 0
        for readers in (5, 3):
            with progress.step(f"kubectl patch: {readers} readers"):
                restarts += scene.rescale(readers)
                console.print(owner_table(scene.source.assignment), markup=False)
        with progress.step("kill -9 the driver"):
            scene.kill_driver()
        with progress.step("kill -9 an executor"):
            scene.kill_executor()
        with progress.step("kill -9 a task after its seal"):
            scene.kill_task()
    with progress.step("read the rest"):
        scene.wait_all()
    return restarts


@app.command()
def main(
    folder: Path | None = typer.Option(
        None, help="Where everything goes; a temporary folder by default."
    ),
) -> None:
    """Play the story; exit code 1 when an entry was lost or duplicated."""
    progress = Progress(console)
    run_dir = folder or Path(tempfile.mkdtemp(prefix="balanced-source-demo-"))
    with progress.step("build wheels, and install them"):
        installed = with_faults(
            install(run_dir / "wheels", CHECKOUT, SAMPLE), Path("/data") / FAULTS
        )
    with (
        LogApi() as api,
        new_cluster(run_dir / "cluster", kafka=(), images={IMAGE: image(installed)}) as cluster,
    ):
        for name in LOGS:
            api.append(name, 100)
        operator = OperatorProcess(
            cluster.control_plane,
            spark_conf=cluster.driver_spark_conf,
            environment={"PYTHONPATH": str(installed.site)},
        )
        scene = Scene(cluster, operator, api)
        restarts = play(scene, progress)
        delivered, produced = scene.delivered(), api.entries
        operator.stop()
    lost, more = (produced - delivered).total(), (delivered - produced).total()
    is_ok = not (lost or more or restarts) and api.tokens.keys() == {f"Bearer {TOKEN}"}
    console.print(
        f"demo-connector: {'OK' if is_ok else 'FAILED'} produced={produced.total()}"
        f" delivered={delivered.total()} lost={lost} duplicated={more}"
        f" restarts_by_rescale={restarts}",
        markup=False,
    )
    raise typer.Exit(0 if is_ok else 1)


if __name__ == "__main__":
    app()
