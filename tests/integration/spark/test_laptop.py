"""``balanced-source run``: the whole manifest on one machine, rescaled by an edit of its file."""

from pathlib import Path

import pyarrow.dataset
import pytest
import yaml

from support.laptop_run import running
from testbed.kafka import KafkaCluster
from testbed.versions import CHECKOUT

pytestmark = pytest.mark.integration

ONE_HALF = 200


def test_the_example_runs_on_one_machine_and_is_rescaled(tmp_path: Path, kafka: KafkaCluster, topic: str) -> None:
    manifest = yaml.safe_load((CHECKOUT / "examples" / "laptop.yaml").read_text())
    manifest["spec"]["source"]["kafka"]["clusters"][0]["bootstrapServers"] = kafka.bootstrap
    manifest["spec"]["source"]["kafka"]["subscription"]["topics"] = [topic]
    (tmp_path / "laptop.yaml").write_text(yaml.safe_dump(manifest))
    transform = CHECKOUT / "examples" / "laptop_transform.py"
    (tmp_path / transform.name).write_text(transform.read_text())
    kafka.admin.produce(topic, [f"first-{number}".encode() for number in range(ONE_HALF)])

    with running(tmp_path) as run:
        run.wait_for(f"; {ONE_HALF} rows so far", "2 readers, 4 splits")
        manifest["spec"]["parallelism"] = 4
        (tmp_path / "laptop.yaml").write_text(yaml.safe_dump(manifest))
        run.wait_for("4 readers, 4 splits")
        kafka.admin.produce(topic, [f"second-{number}".encode() for number in range(ONE_HALF)])
        run.wait_for(f"; {2 * ONE_HALF} rows so far")
        assert run.end() == 0, "".join(run.lines)

    values = pyarrow.dataset.dataset(tmp_path / "laptop-output", format="parquet").to_table()["value"].to_pylist()
    expected = [f"{half}-{number}" for half in ("first", "second") for number in range(ONE_HALF)]
    assert sorted(values) == sorted(expected)
