"""Executors follow the number of readers, on a cluster of real executor processes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.kafka import KafkaCluster
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

from .conftest import Local


class Driver:
    """The program `support.elastic_driver`."""

    def __init__(
        self, local: Local, folder: Path, produce: Callable[[], None], *, spares: int = 0
    ) -> None:
        self._local = local
        self._produce = produce
        python_path = os.pathsep.join(
            str(CHECKOUT / part) for part in ("tests", "operator/src", "spark_app/src")
        )
        self._output = folder / "output"
        with self._output.open("w") as output, (folder / "errors").open("w") as errors:
            self.process = subprocess.Popen(  # noqa: S603 - our own program
                [
                    sys.executable,
                    "-m",
                    "support.elastic_driver",
                    str(local.folder),
                    str(folder / "ck"),
                    python_path,
                    str(spares),
                ],
                stdout=output,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": python_path},
            )

    def batches(self) -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for line in self._output.read_text().splitlines()
            if line.startswith("{")
        ]

    def reads_with(self, readers: int, executors: int) -> bool:
        """Produce records, and return whether so many readers have read on so many executors."""
        self._local.operator.look()
        assert self.process.poll() is None, "the driver ended"
        self._produce()
        return self.newest(readers).get("executors") == executors

    def newest(self, readers: int) -> dict[str, Any]:
        """The newest micro-batch with so many readers and any rows; nothing if there is none."""
        fitting = [b for b in self.batches() if b["tasks"] == readers and b["rows"]]
        return fitting[-1] if fitting else {}


@pytest.fixture
def driver(
    local: Local, tmp_path: Path, kafka: KafkaCluster, topic: str, request: pytest.FixtureRequest
) -> Iterator[Driver]:
    def produce() -> None:
        kafka.admin.produce(topic, [b"x"] * 40)

    made = Driver(local, tmp_path, produce, spares=getattr(request, "param", 0))
    yield made
    made.process.kill()
    made.process.wait()


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_more_executors_before_more_readers_and_fewer_after_fewer(
    driver: Driver, local: Local
) -> None:
    local.rescale(1)
    wait_until(lambda: driver.reads_with(1, 1), 300, "the first executor", interval=0.5)

    local.rescale(2)
    wait_until(lambda: driver.reads_with(2, 2), 300, "two readers on two executors", interval=0.5)
    first = next(b for b in driver.batches() if b["tasks"] == 2)
    assert first["executors"] == 2, "a reader came before its executor"

    local.rescale(1)
    wait_until(
        lambda: driver.reads_with(1, 1), 300, "the second executor to be given back", interval=0.5
    )


@pytest.mark.slow
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("driver", [1], indirect=True)
def test_a_spare_is_there_before_a_reader_needs_it_and_is_replaced(
    driver: Driver, local: Local
) -> None:
    local.rescale(1)
    wait_until(lambda: driver.reads_with(1, 2), 300, "the first executor and a spare", interval=0.5)

    local.rescale(2)
    wait_until(lambda: driver.reads_with(2, 3), 300, "two readers and a new spare", interval=0.5)

    local.rescale(1)
    wait_until(lambda: driver.reads_with(1, 2), 300, "the surplus to be given back", interval=0.5)
