"""``balanced-source run``: the whole manifest on one machine, rescaled by an edit of its file."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset
import pytest
import yaml

from testbed.kafka import KafkaCluster
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

pytestmark = pytest.mark.integration

ONE_HALF = 200


class Run:
    """The command in a folder, and what it has printed."""

    def __init__(self, folder: Path) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "balanced_source_operator.command", "run", "-f", "laptop.yaml"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(self.process.stdout)

    def wait_for(self, *parts: str) -> None:
        def is_there() -> bool:
            assert self.process.poll() is None, "".join(self.lines)
            return any(all(part in line for part in parts) for line in list(self.lines))

        wait_until(is_there, 240, f"a line with {parts}", interval=0.1)

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)  # SIGINT is ignored where the tests run in the background
        code = self.process.wait(120)
        self._reader.join()
        return code


@contextmanager
def running(folder: Path) -> Iterator[Run]:
    run = Run(folder)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            run.process.terminate()
            run.process.wait(120)


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
