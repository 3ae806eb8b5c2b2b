"""``balanced-source run``: the whole manifest on one machine, rescaled by an edit of its file."""

import asyncio
from pathlib import Path

import pyarrow.dataset
import pytest
import yaml

from support.laptop_run import running
from support.page_scene import Viewer
from testbed.kafka import KafkaCluster
from testbed.ports import PortPool
from testbed.versions import CHECKOUT

pytestmark = pytest.mark.integration

ONE_HALF = 200


def test_the_example_runs_on_one_machine_and_is_rescaled(
    tmp_path: Path, kafka: KafkaCluster, topic: str
) -> None:
    manifest = yaml.safe_load((CHECKOUT / "examples" / "laptop.yaml").read_text())
    manifest["spec"]["source"]["kafka"]["clusters"][0]["bootstrapServers"] = kafka.bootstrap
    manifest["spec"]["source"]["kafka"]["subscription"]["topics"] = [topic]
    (tmp_path / "laptop.yaml").write_text(yaml.safe_dump(manifest))
    transform = CHECKOUT / "examples" / "laptop_transform.py"
    (tmp_path / transform.name).write_text(transform.read_text())
    kafka.admin.produce(topic, [f"first-{number}".encode() for number in range(ONE_HALF)])

    ports = PortPool()
    port = ports.take()
    with running(tmp_path, "laptop.yaml", "--page", str(port)) as run:
        run.wait_for(f"; {ONE_HALF} rows so far", "2 readers, 4 splits")
        manifest["spec"]["parallelism"] = 4
        (tmp_path / "laptop.yaml").write_text(yaml.safe_dump(manifest))
        run.wait_for("4 readers, 4 splits")
        kafka.admin.produce(topic, [f"second-{number}".encode() for number in range(ONE_HALF)])
        run.wait_for(f"; {2 * ONE_HALF} rows so far")
        asyncio.run(_look_at_the_page(port))
        assert run.end() == 0, "".join(run.lines)
    ports.close()

    values = (
        pyarrow.dataset.dataset(tmp_path / "laptop-output", format="parquet")
        .to_table()["value"]
        .to_pylist()
    )
    expected = [f"{half}-{number}" for half in ("first", "second") for number in range(ONE_HALF)]
    assert sorted(values) == sorted(expected)


async def _look_at_the_page(port: int) -> None:
    """The status page shows what the real driver reports.

    The lag of each split, and the rescale with its reason.
    """
    viewer = Viewer(port)
    async with asyncio.timeout(120), viewer.following("/api/events?name=orders") as events:
        while True:
            source, splits = await events.until("source"), await events.until("splits")
            cells = [cell for row in splits["rows"] for cell in row["cells"]]
            if (
                source["acknowledged"] == source["epoch"]
                and [cell["lag"] for cell in cells] == [0] * 4
            ):
                break
    assert [row["splits"] for row in splits["rows"]] == [1] * 4
    assert "Rescaled from 2 to 4 readers" in [entry["why"] for entry in source["timeline"]]
    assert source["timeline"][0]["adoptedAt"] is not None
    status, plan, _ = await viewer.get("/api/plan?name=orders&readers=2")
    assert (status, plan["moved"], plan["perReader"]["after"]) == (200, 2, [2, 2])
