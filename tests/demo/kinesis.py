"""A Kinesis stream under the operator: ``python -m demo.kinesis``.

Records of some keys are produced all the time, while shards are split and merged, readers go from 2
to 4 to 1, and an executor and the driver are killed. While no driver reads, a shard is split, and a
child of it as well. At the end, a checker that shares no code with the product counts the records
in the sink, and compares the order of each key.
"""

import tempfile
from pathlib import Path
from typing import Any, Final

import typer
import yaml
from rich.console import Console

from demo.acts import Acts
from demo.producing import repeated
from demo.scene import fit_machine, new_cluster
from support.key_order import check_order
from support.kinesis import KEYS, Stream, kinesis_client
from support.story.operator_process import OperatorProcess
from support.story.sink import rows
from support.story.watch import owner_table
from testbed.cluster import ProcessCluster
from testbed.kinesis import ENVIRONMENT, kinesis_server
from testbed.progress import Progress
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

EXAMPLE: Final = CHECKOUT / "examples" / "kinesis.yaml"
NAME: Final = "orders"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False, soft_wrap=True)


class KinesisScene(Acts):
    """A source of one stream.

    Args:
        cluster: started.
        operator: started.
        endpoint: of the Kinesis server.
        stream: what is read.
    """

    def __init__(
        self, cluster: ProcessCluster, operator: OperatorProcess, endpoint: str, stream: Stream
    ) -> None:
        self._data = cluster.run_dir / "data"
        super().__init__(cluster, operator, NAME, self._data / NAME)
        self.stream, self._endpoint = stream, endpoint

    @property
    def produced(self) -> int:
        return self.stream.sent

    def apply(self) -> str:
        """Create the source, and its Secret when a condition asks for it.

        Returns what the condition says.
        """
        kubectl = self.cluster.control_plane.kubectl
        file = self.cluster.run_dir / "kinesis.yaml"
        file.write_text(yaml.safe_dump(self._manifest()))
        kubectl("apply", "-f", str(file))
        complaint = (
            wait_until(self._complaint, 120, "a condition that names the Secret", interval=0.5)
            or ""
        )
        known = {
            "accessKeyId": ENVIRONMENT["AWS_ACCESS_KEY_ID"],
            "secretAccessKey": ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
        }
        kubectl(
            "create",
            "secret",
            "generic",
            "kinesis",
            *(f"--from-literal={k}={v}" for k, v in known.items()),
        )
        return complaint

    def _complaint(self) -> str:
        message = str(self.source.condition("Degraded").get("message", ""))
        return message if "secret kinesis" in message else ""

    def split(self, index: int) -> None:
        """Split the open shard with this place among the hash keys."""
        self.stream.split(self.stream.open_shards()[index])

    def split_twice(self) -> None:
        """Split the first open shard, and then its first child."""
        self.split(0)
        self.split(0)

    def merge(self, index: int) -> None:
        """Merge an open shard with its right neighbour."""
        self.stream.merge(*self.stream.open_shards()[index : index + 2])

    def wait_read(self) -> None:
        """Wait until only open shards are left, and read.

        Their ancestors were read to their end.
        """

        def is_read() -> bool:
            wanted = {(NAME, shard) for shard in self.stream.open_shards()}
            return (
                self.source.report.positions.keys()
                == wanted
                == self.source.assignment.owners.keys()
            )

        wait_until(is_read, 300, "the children to be read", interval=0.5)

    def _manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
        spec = manifest["spec"]
        region = ENVIRONMENT["AWS_DEFAULT_REGION"]
        spec["source"]["kinesis"] |= {
            "endpoint": self._endpoint,
            "region": region,
            "discoveryInterval": "2s",
        }
        # The checker wants the files of each micro-batch by themselves.
        spec["application"]["sparkConf"] = {
            "spark.sql.streaming.fileSink.log.compactInterval": "100000"
        }
        self._data.mkdir(exist_ok=True)
        fit_machine(spec, self._data)
        return manifest


def play(scene: KinesisScene, progress: Progress) -> int:
    """Play all acts; returns how often a rescale restarted something."""
    restarts = 0
    with repeated(lambda: scene.stream.put(2 * len(KEYS)), every=0.2):
        with progress.step("apply, driver and executor start, first micro-batches"):
            console.print(scene.apply(), markup=False)
            wait_until(lambda: rows(scene.sink) > 0, 600, "the first records", interval=0.5)
            scene.wait_more()
        with progress.step("split both shards"):
            scene.split(0)
            scene.split(-1)
            scene.wait_read()
        with progress.step("kubectl patch: 4 readers"):
            restarts += scene.rescale(4)
            console.print(owner_table(scene.source.assignment), markup=False)
        with progress.step("merge two shards"):
            scene.merge(1)
            scene.wait_read()
        with progress.step("kill -9 an executor"):
            scene.kill_executor()
        with progress.step(
            "kill -9 the driver; a split, and a split of its child, while nobody reads"
        ):
            scene.kill_driver(meanwhile=scene.split_twice)
            scene.wait_read()
        with progress.step("kubectl patch: 1 reader"):
            restarts += scene.rescale(1)
        with progress.step("UpdateShardCount: 2 shards"):
            scene.stream.rescale(2)
            scene.wait_read()
            scene.wait_more()
    with progress.step("read the rest"):
        scene.wait_all()
    return restarts


@app.command()
def main(
    folder: Path = typer.Option(None, help="Where everything goes; a temporary folder by default."),
) -> None:
    """Play the story; exit code 1 when a record was lost, duplicated or out of order."""
    progress = Progress(console)
    run_dir = folder or Path(tempfile.mkdtemp(prefix="balanced-source-demo-"))
    with kinesis_server() as endpoint, new_cluster(run_dir / "cluster", kafka=()) as cluster:
        operator = OperatorProcess(cluster.control_plane, spark_conf=cluster.driver_spark_conf)
        with progress.step("start operator"):
            operator.start()
        scene = KinesisScene(
            cluster, operator, endpoint, Stream(kinesis_client(endpoint), shards=2, name=NAME)
        )
        restarts = play(scene, progress)
        found = check_order(scene.sink, scene.produced)
        operator.stop()
    is_ok = found.is_exact and not restarts
    console.print(
        f"demo-kinesis: {'OK' if is_ok else 'FAILED'} produced={scene.produced}"
        f" delivered={found.delivered} lost={found.lost} duplicated={found.duplicated}"
        f" out_of_order={found.out_of_order} restarts_by_rescale={restarts}",
        markup=False,
    )
    raise typer.Exit(0 if is_ok else 1)


if __name__ == "__main__":
    app()
