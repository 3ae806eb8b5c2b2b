"""The examples of the how-to pages, run on one machine.

Only addresses, topics and paths are replaced.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
import yaml
from confluent_kafka import Producer

from support.kafka_records import records_of
from support.laptop_run import running
from testbed.jars import ensure_jars
from testbed.kafka import KafkaCluster
from testbed.versions import CHECKOUT

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

RECORDS = 60


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A broker with the topics of the examples."""
    with KafkaCluster("main", tmp_path_factory.mktemp("kafka")) as cluster:
        for topic in ("orders", "orders-eu", "orders-us", "orders-ap"):
            cluster.admin.create_topic(topic, partitions=4)
            cluster.admin.produce(topic, [b"x"] * RECORDS)
        yield cluster


def here(example: str, kafka: KafkaCluster, folder: Path, **conf: str) -> dict[str, Any]:
    """Write the first source of an example for this machine, and its ConfigMaps as folders."""
    objects = list(yaml.safe_load_all((CHECKOUT / "examples" / f"{example}.yaml").read_text()))
    manifest: dict[str, Any] = next(found for found in objects if found["kind"] == "BalancedSource")
    for found in (found for found in objects if found["kind"] == "ConfigMap"):
        (folder / found["metadata"]["name"]).mkdir()
        for key, text in found["data"].items():
            clusters = yaml.safe_load(text)
            _point_to(kafka, clusters["clusters"])
            (folder / found["metadata"]["name"] / key).write_text(yaml.safe_dump(clusters))
    _point_to(kafka, manifest["spec"]["source"]["kafka"].get("clusters", []))
    application = manifest["spec"]["application"]
    application["sparkConf"] = {**application.get("sparkConf", {}), **conf}
    pipeline = application["pipeline"]
    pipeline["checkpointLocation"] = "checkpoint"
    pipeline.setdefault("sink", {}).setdefault("options", {})["path"] = "output"
    pipeline["trigger"] = {"processingTime": "500ms"}
    (folder / "laptop.yaml").write_text(yaml.safe_dump(manifest))
    return manifest


def _point_to(kafka: KafkaCluster, clusters: list[dict[str, Any]]) -> None:
    for cluster in clusters:
        cluster["bootstrapServers"] = kafka.bootstrap


@pytest.mark.parametrize(
    ("example", "splits", "rows"),
    [
        pytest.param("several-clusters", 8, 2 * RECORDS, id="two clusters"),
        pytest.param("clusters-from", 12, 3 * RECORDS, id="streams of a ConfigMap"),
        pytest.param("alignment", 4, RECORDS, id="alignment"),
        pytest.param("hosts", 4, RECORDS, id="one host, whatever hosts says"),
    ],
)
def test_an_example_reads_everything(
    example: str, splits: int, rows: int, kafka: KafkaCluster, tmp_path: Path
) -> None:
    here(example, kafka, tmp_path)
    with running(tmp_path) as run:
        run.wait_for(f"{splits} splits", f"; {rows} rows so far")
        assert run.end() == 0, "".join(run.lines)

    found = pyarrow.dataset.dataset(tmp_path / "output", format="parquet").to_table().to_pylist()
    assert (
        len({(row["cluster"], row["topic"], row["partition"], row["offset"]) for row in found})
        == len(found)
        == rows
    )


def test_the_page_about_a_laptop_works_as_it_is_written(
    kafka: KafkaCluster, tmp_path: Path
) -> None:
    page = (CHECKOUT / "docs" / "start" / "laptop.md").read_text(encoding="utf-8")
    [manifest] = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "orders.yaml").write_text(manifest.replace("localhost:9092", kafka.bootstrap))
    command = [sys.executable, "-m", "balanced_source_operator.command"]
    for words in re.findall(r"^    balanced-source (validate .*)$", page, re.MULTILINE):
        # Our own program
        subprocess.run([*command, *words.split()], cwd=tmp_path, check=True)  # noqa: S603

    with running(tmp_path, "orders.yaml") as run:
        run.wait_for("2 readers, 4 splits", f"; {RECORDS} rows so far")
        changed = (tmp_path / "orders.yaml").read_text().replace("parallelism: 2", "parallelism: 4")
        (tmp_path / "orders.yaml").write_text(changed)
        run.wait_for("4 readers, 4 splits")
        [top] = re.findall(r"`balanced-source (top .*?)`", page)
        # Our own program
        subprocess.run([*command, *top.split()], cwd=tmp_path, check=True)  # noqa: S603
        assert run.end() == 0, "".join(run.lines)


def test_the_delta_table_has_each_record_once(kafka: KafkaCluster, tmp_path: Path) -> None:
    jars = ",".join(str(jar) for jar in sorted(ensure_jars("delta").glob("*.jar")))
    manifest = here("sink-delta", kafka, tmp_path, **{"spark.jars": jars})
    manifest["spec"]["source"]["kafka"]["subscription"]["topics"] = ["for-delta"]
    (tmp_path / "laptop.yaml").write_text(yaml.safe_dump(manifest))
    kafka.admin.create_topic("for-delta", partitions=4)

    for _ in range(2):  # the second run continues where the first one stopped
        kafka.admin.produce("for-delta", [b"x"] * RECORDS)
        with running(tmp_path) as run:
            run.wait_for("2 readers, 4 splits", f"; {RECORDS} rows so far")
            assert run.end() == 0, "".join(run.lines)

    rows = (
        pyarrow.dataset.dataset(_files_of_delta(tmp_path / "output"), format="parquet")
        .to_table()
        .to_pylist()
    )
    assert len({(row["partition"], row["offset"]) for row in rows}) == len(rows) == 2 * RECORDS


def test_the_kafka_sink_copies_keys_values_and_partitions(
    kafka: KafkaCluster, tmp_path: Path
) -> None:
    jars = ",".join(str(jar) for jar in sorted(ensure_jars("spark-kafka").glob("*.jar")))
    manifest = here("sink-kafka", kafka, tmp_path, **{"spark.jars": jars})
    sink = manifest["spec"]["application"]["pipeline"]["sink"]["options"]
    del sink["path"]  # set for the file sinks of the other examples
    sink["kafka.bootstrap.servers"] = kafka.bootstrap
    manifest["spec"]["source"]["kafka"]["subscription"]["topics"] = ["to-copy"]
    (tmp_path / "laptop.yaml").write_text(yaml.safe_dump(manifest))
    kafka.admin.create_topics({"to-copy": 4, "orders-copy": 4})
    produced = [(f"key-{number}".encode(), f"value-{number}".encode()) for number in range(RECORDS)]
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for key, value in produced:
        producer.produce("to-copy", key=key, value=value)
    assert producer.flush(60) == 0

    with running(tmp_path) as run:
        run.wait_for("2 readers, 4 splits", f"; {RECORDS} rows so far")
        assert run.end() == 0, "".join(run.lines)

    original, copied = (records_of(kafka, topic) for topic in ("to-copy", "orders-copy"))
    assert sorted((key, value) for _, key, value in copied) == sorted(produced)
    assert sorted(copied) == sorted(original), "a record changed its partition"


def _files_of_delta(table: Path) -> list[str]:
    """The files that the table's log has added."""
    lines = (
        line
        for log in sorted((table / "_delta_log").glob("*.json"))
        for line in log.read_text().splitlines()
    )
    actions = [json.loads(line) for line in lines]
    assert not any("remove" in action for action in actions)
    return [str(table / action["add"]["path"]) for action in actions if "add" in action]
