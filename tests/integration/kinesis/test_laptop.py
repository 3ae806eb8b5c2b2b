"""A stream by ``balanced-source run``: rescaled by edits of the manifest, split, and killed."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from support.key_order import check_order
from support.kinesis import Stream
from support.laptop_run import Run, running
from support.story.sink import rows
from testbed.kinesis import ENVIRONMENT
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1200)]

EXAMPLE = CHECKOUT / "examples" / "kinesis-laptop.yaml"
PATIENCE = 400
"""Seconds."""


class Orders:
    """A folder with the example's manifest for a stream, its Secret, and what it writes."""

    def __init__(self, folder: Path, endpoint: str, stream: Stream) -> None:
        self.folder, self.stream, self.sink = folder, stream, folder / "kinesis-output"
        secret = folder / "kinesis"
        secret.mkdir()
        (secret / "accessKeyId").write_text(ENVIRONMENT["AWS_ACCESS_KEY_ID"])
        (secret / "secretAccessKey").write_text(ENVIRONMENT["AWS_SECRET_ACCESS_KEY"])
        self._manifest: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
        spec = self._manifest["spec"]
        spec["source"]["kinesis"] |= {
            "streams": [stream.name],
            "endpoint": endpoint,
            "region": ENVIRONMENT["AWS_DEFAULT_REGION"],
            "startingPosition": {"type": "TrimHorizon"},
        }
        # The checker wants the files of each micro-batch by themselves.
        spec["application"]["sparkConf"] = {
            "spark.sql.streaming.fileSink.log.compactInterval": "100000"
        }
        self.rescale(2)

    def rescale(self, readers: int) -> None:
        self._manifest["spec"]["parallelism"] = readers
        (self.folder / "laptop.yaml").write_text(yaml.safe_dump(self._manifest))

    def wait_all(self, run: Run) -> None:
        def is_there() -> bool:
            assert run.process.poll() is None, "".join(run.lines)
            return rows(self.sink) >= self.stream.sent

        wait_until(is_there, PATIENCE, "all records", interval=0.2)


@pytest.mark.scenario("P3")
def test_each_record_once_and_in_order_through_a_split_rescales_and_the_loss_of_the_driver(
    kinesis: str, client: Any, tmp_path: Path
) -> None:
    """Then a split of a split and `UpdateShardCount` while nobody reads, and one reader."""
    stream = Stream(client, shards=2)
    orders = Orders(tmp_path, kinesis, stream)
    stream.put(170)
    with running(tmp_path) as run:
        orders.wait_all(run)
        stream.split(stream.open_shards()[0])
        stream.put(170)
        orders.rescale(3)
        run.wait_for(", 3 readers, ")
        orders.wait_all(run)
        stream.put(170)
        run.kill_driver()

    for _ in range(2):
        stream.split(stream.open_shards()[-1])
        stream.put(85)
    stream.rescale(3)
    orders.rescale(1)
    stream.put(170)
    with running(tmp_path) as run:
        orders.wait_all(run)
        assert run.end() == 0, "".join(run.lines)

    found = check_order(orders.sink, stream.sent)
    assert found.is_exact, found
