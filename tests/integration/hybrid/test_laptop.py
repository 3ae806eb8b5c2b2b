"""Parquet files, then Kafka, by ``balanced-source run``: rescaled by edits of the manifest."""

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from integration.hybrid.test_standalone import (
    HISTORY,
    LIVE,
    PARTITIONS,
    archive,
    expected,
    produce,
)
from support.laptop_run import Run, running
from support.story.sink import committed_files, rows
from testbed.kafka import KafkaCluster
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

EXAMPLE = CHECKOUT / "examples" / "hybrid-laptop.yaml"


class Orders:
    """A folder with the example's manifest for a topic and its history.

    Args:
        folder: of the test.
        kafka: has the topic.
        topic: its name.
    """

    def __init__(self, folder: Path, kafka: KafkaCluster, topic: str) -> None:
        self.folder, self.sink = folder, folder / "hybrid-output"
        self._manifest = yaml.safe_load(EXAMPLE.read_text())
        files, live = self._manifest["spec"]["source"]["hybrid"]
        # Small blocks: there is time for a rescale in the history.
        files["files"] |= {"paths": [str(folder / "in")], "splitBytes": 65536, "lookAhead": 1}
        live["kafka"]["clusters"][0]["bootstrapServers"] = kafka.bootstrap
        live["kafka"]["subscription"] = {"topics": [topic]}
        self.rescale(2)

    def rescale(self, readers: int) -> None:
        self._manifest["spec"]["parallelism"] = readers
        (self.folder / "laptop.yaml").write_text(yaml.safe_dump(self._manifest))

    def wait_rows(self, run: Run, count: int) -> None:
        def is_there() -> bool:
            assert run.process.poll() is None, "".join(run.lines)
            return rows(self.sink) >= count

        wait_until(is_there, 240, f"{count} rows", interval=0.2)

    @property
    def delivered(self) -> "Counter[tuple[str, int, int]]":
        tables = (pq.read_table(file).to_pylist() for file in committed_files(self.sink))
        return Counter((r["topic"], r["partition"], r["offset"]) for rows in tables for r in rows)


@pytest.mark.scenario("Q1", "Q2", "Q3")
def test_each_record_once_through_rescales_in_both_parts_and_the_loss_of_the_driver(
    kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    """Local mode: 2, 3 and 1 readers, and a driver that is killed."""
    produce(kafka, topic, range(HISTORY + LIVE))
    archive(tmp_path / "in", topic)
    orders = Orders(tmp_path, kafka, topic)
    with running(tmp_path) as run:
        orders.wait_rows(run, 1)
        orders.rescale(3)
        orders.wait_rows(run, PARTITIONS * (HISTORY + LIVE))
        orders.rescale(1)
        run.wait_for(", 1 reader, ")
        produce(kafka, topic, range(HISTORY + LIVE, HISTORY + 2 * LIVE))
        orders.wait_rows(run, PARTITIONS * (HISTORY + 2 * LIVE))
        run.kill_driver()

    produce(kafka, topic, range(HISTORY + 2 * LIVE, HISTORY + 3 * LIVE))
    with running(tmp_path) as run:
        orders.wait_rows(run, PARTITIONS * (HISTORY + 3 * LIVE))
        assert run.end() == 0, "".join(run.lines)

    assert orders.delivered == expected(topic, HISTORY + 3 * LIVE)
