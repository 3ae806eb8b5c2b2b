"""Files, then Kafka, under the operator: ``python -m demo.hybrid``.

A topic has a history, which Parquet files have as well. One query reads it from the files, and what
comes after it from Kafka, while records are produced all the time. Readers go from 2 to 5 in the
history, to 3 while Kafka follows it, and to 2 afterwards; an executor is killed in the history, and
the driver later. At the end, a checker that shares no code with the product counts the records in
the sink, and compares the order of each key.
"""

import tempfile
import time
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import typer
import yaml
from confluent_kafka import Producer
from rich.console import Console

from demo.acts import Acts
from demo.producing import repeated
from demo.scene import fit_machine, new_cluster
from support.story.operator_process import OperatorProcess
from support.story.sink import rows
from support.switch_order import check_switch
from testbed.cluster import ProcessCluster
from testbed.progress import Progress
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

EXAMPLE: Final = CHECKOUT / "examples" / "hybrid.yaml"
NAME: Final = "orders"
PARTITIONS: Final = 8
KEYS: Final = 10
"""Keys of each partition."""
FILES: Final = 5
"""Files of each partition."""
BLOCK: Final = 20_000
"""Rows of a row group: the smallest block that a reader gets."""
LIVE: Final = 25
"""Live records of a partition, twice a second."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False, soft_wrap=True)


class Topic:
    """A topic, and the Parquet files that have its history.

    Args:
        bootstrap: of the brokers.
        folder: of the files.
        history: records of each partition.
    """

    def __init__(self, bootstrap: str, folder: Path, history: int) -> None:
        self.history, self.ends = history, dict.fromkeys(range(PARTITIONS), 0)
        self._folder, self._start = folder, int(time.time() * 1000) - 3_600_000
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})

    @property
    def produced(self) -> int:
        """Number of records."""
        return sum(self.ends.values())

    def produce(self, count: int) -> None:
        """Produce the next records of each partition."""
        for partition, end in list(self.ends.items()):
            for offset in range(end, end + count):
                self._send(partition, offset)
        if self._producer.flush(120):
            raise RuntimeError("the broker did not take all records in two minutes")
        self.ends = {partition: end + count for partition, end in self.ends.items()}

    def archive(self) -> None:
        """Produce the history, and write it as files."""
        self._folder.mkdir(parents=True)
        for first in range(0, self.history, self.history // FILES):
            self.produce(self.history // FILES)
            for partition in range(PARTITIONS):
                self._write(partition, range(first, first + self.history // FILES))

    def _send(self, partition: int, offset: int) -> None:
        while True:
            try:
                self._producer.produce(
                    NAME,
                    key=_key(partition, offset),
                    value=b"%d" % offset,
                    partition=partition,
                    timestamp=self._start + offset,
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _write(self, partition: int, offsets: range) -> None:
        times = [self._start + offset for offset in offsets]
        columns = {
            "key": pa.array([_key(partition, offset) for offset in offsets]),
            "value": pa.array([b"%d" % offset for offset in offsets]),
            "topic": pa.array([NAME] * len(offsets)),
            "partition": pa.array([partition] * len(offsets), pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array(times, pa.timestamp("ms", tz="UTC")),
        }
        name = f"{partition}-{offsets.start}.parquet"
        pq.write_table(pa.table(columns), self._folder / name, row_group_size=BLOCK)


def _key(partition: int, offset: int) -> bytes:
    return b"%d-%d" % (partition, offset % KEYS)


class HybridScene(Acts):
    """A source of files and a topic.

    Args:
        cluster: started, with a broker.
        operator: started.
        history: records of each partition in the files.
    """

    def __init__(self, cluster: ProcessCluster, operator: OperatorProcess, history: int) -> None:
        self._data = cluster.run_dir / "data"
        super().__init__(cluster, operator, NAME, self._data / NAME)
        cluster.kafka().admin.create_topic(NAME, partitions=PARTITIONS)
        self.topic = Topic(cluster.kafka().bootstrap, self._data / "history", history)

    @property
    def produced(self) -> int:
        return self.topic.produced

    @property
    def history(self) -> int:
        """Number of records that the files have."""
        return self.topic.history * PARTITIONS

    def apply(self) -> None:
        """``kubectl apply``."""
        file = self.cluster.run_dir / "hybrid.yaml"
        file.write_text(yaml.safe_dump(self._manifest()))
        self.cluster.control_plane.kubectl("apply", "-f", str(file))

    def is_in_history(self) -> bool:
        """Whether files are still read."""
        return rows(self.sink) < self.history

    def wait_more(self) -> None:
        """In the history, wait for further rows: all records come much later."""
        found = rows(self.sink)
        if found >= self.history:
            super().wait_more()
            return
        wait_until(lambda: rows(self.sink) > found, 600, "further records", interval=0.2)

    def wait_share(self, share: float) -> None:
        """Wait until so much of the history is read."""
        wait_until(
            lambda: rows(self.sink) >= share * self.history, 600, "the history", interval=0.2
        )

    def _manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
        spec = manifest["spec"]
        files, kafka = spec["source"]["hybrid"]
        del files["files"]["s3"]
        files["files"] |= {"paths": ["/data/history"], "lookAhead": 1, "splitBytes": 65536}
        kafka["kafka"]["clusters"][0]["bootstrapServers"] = self.cluster.kafka().bootstrap
        # The checker wants the files of each micro-batch by themselves.
        spec["application"]["sparkConf"] = {
            "spark.sql.streaming.fileSink.log.compactInterval": "100000"
        }
        fit_machine(spec, self._data)
        return manifest


def play(scene: HybridScene, progress: Progress) -> int:
    """Play all acts; returns how often a rescale restarted something."""
    with progress.step(f"produce {scene.history:,} records, and write them as files"):
        scene.topic.archive()
    restarts = 0
    with repeated(lambda: scene.topic.produce(LIVE), every=0.5):
        with progress.step("apply, driver and executor start, first micro-batches of the history"):
            scene.apply()
            wait_until(lambda: rows(scene.sink) > 0, 600, "the first records", interval=0.2)
        with progress.step("in the history: kubectl patch: 5 readers"):
            restarts += scene.rescale(5)
        with progress.step("in the history: kill -9 an executor"):
            scene.kill_executor()
        console.print(f"still in the history: {scene.is_in_history()}", markup=False)
        with progress.step("while Kafka follows the files: kubectl patch: 3 readers"):
            scene.wait_share(0.95)
            restarts += scene.rescale(3)
        with progress.step("live records: kill -9 the driver"):
            scene.wait_share(1)
            scene.wait_more()
            scene.kill_driver()
        with progress.step("live records: kubectl patch: 2 readers"):
            restarts += scene.rescale(2)
    with progress.step("read the rest"):
        scene.wait_all()
    return restarts


@app.command()
def main(
    folder: Path = typer.Option(None, help="Where everything goes; a temporary folder by default."),
    records: int = typer.Option(5_000_000, help="Records of the history, about."),
) -> None:
    """Play the story; exit code 1 when a record was lost, duplicated or out of order."""
    progress = Progress(console)
    run_dir = folder or Path(tempfile.mkdtemp(prefix="balanced-source-demo-"))
    each = records // (PARTITIONS * FILES) * FILES
    with new_cluster(run_dir / "cluster") as cluster:
        operator = OperatorProcess(cluster.control_plane, spark_conf=cluster.driver_spark_conf)
        with progress.step("start operator"):
            operator.start()
        scene = HybridScene(cluster, operator, each)
        restarts = play(scene, progress)
        found = check_switch(scene.sink, scene.topic.ends, dict.fromkeys(scene.topic.ends, each))
        operator.stop()
    is_ok = found.is_exact and not restarts
    console.print(
        f"last micro-batch of the history: {found.last_of_history};"
        f" first with live records: {found.first_live}",
        markup=False,
    )
    console.print(
        f"demo-hybrid: {'OK' if is_ok else 'FAILED'} produced={scene.produced}"
        f" delivered={found.delivered} lost={found.lost} duplicated={found.duplicated}"
        f" out_of_order={found.out_of_order} restarts_by_rescale={restarts}",
        markup=False,
    )
    raise typer.Exit(0 if is_ok else 1)


if __name__ == "__main__":
    app()
