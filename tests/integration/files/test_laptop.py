"""Files by ``balanced-source run``.

Rescaled by edits of the manifest, killed, and read to an end.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
import yaml

from support.laptop_run import Run, running
from support.story.sink import committed_files, rows
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

EXAMPLE = CHECKOUT / "examples" / "files-laptop.yaml"
LINES = 50


class Orders:
    """A folder with the example's manifest, the files that it reads, and what it writes.

    Args:
        folder: of the test.
        files: what differs from the example in ``spec.source.files``; None removes a field.
    """

    def __init__(self, folder: Path, **files: Any) -> None:
        self.folder, self.sink, self._input = folder, folder / "files-output", folder / "in"
        self._input.mkdir()
        self._manifest = yaml.safe_load(EXAMPLE.read_text())
        source = {**self._manifest["spec"]["source"]["files"], "paths": [str(self._input)], **files}
        kept = {name: value for name, value in source.items() if value is not None}
        self._manifest["spec"]["source"]["files"] = kept
        self.written = 0
        self.rescale(2)

    def rescale(self, readers: int) -> None:
        self._manifest["spec"]["parallelism"] = readers
        (self.folder / "laptop.yaml").write_text(yaml.safe_dump(self._manifest))

    def write(self, files: int) -> None:
        for _ in range(files):
            lines = [
                json.dumps({"id": self.written + n, "item": "tea"}) + "\n" for n in range(LINES)
            ]
            hidden = self._input / "_next"
            hidden.write_text("".join(lines))
            hidden.rename(self._input / f"{self.written:06}.json")
            self.written += LINES

    def wait_all(self, run: Run) -> None:
        def is_there() -> bool:
            assert run.process.poll() is None, "".join(run.lines)
            return rows(self.sink) >= self.written

        wait_until(is_there, 240, "all rows", interval=0.2)

    def check(self) -> None:
        found = Counter(
            n for file in committed_files(self.sink) for n in pq.read_table(file)["id"].to_pylist()
        )
        assert found == Counter(range(self.written))


def test_new_files_are_read_once_through_rescales_and_the_loss_of_the_driver(
    tmp_path: Path,
) -> None:
    orders = Orders(tmp_path, discoveryInterval="1s")
    orders.write(20)
    with running(tmp_path) as run:
        orders.wait_all(run)
        for readers in (5, 3):
            orders.rescale(readers)
            orders.write(10)
            run.wait_for(f", {readers} readers, ")
            orders.wait_all(run)
        orders.write(100)
        run.wait_for("rows so far")
        run.kill_driver()
    assert rows(orders.sink) < orders.written, "it was killed in the middle"

    with running(tmp_path) as run:
        orders.write(5)
        orders.wait_all(run)
        assert run.end() == 0, "".join(run.lines)
    orders.check()


def test_spark_ends_with_the_command_whatever_ends_it(tmp_path: Path) -> None:
    """SIGTERM while Spark starts is no error. Spark ends soon when the command is killed."""
    orders = Orders(tmp_path, discoveryInterval="1s")
    orders.write(2)
    with running(tmp_path) as run:
        run.wait_for("Spark is starting")
        assert run.end() == 0
    assert run.lines[-1] == "stopped before the first micro-batch\n"

    with running(tmp_path) as run:
        orders.wait_all(run)
        driver = psutil.Process(run.process.pid).children()[0]
        processes = [driver, *driver.children(recursive=True)]
        run.process.kill()
        run.process.wait(60)
        gone, alive = psutil.wait_procs(processes, timeout=40)
    assert alive == [], gone


def test_a_source_without_an_interval_ends_by_itself(tmp_path: Path) -> None:
    orders = Orders(tmp_path, discoveryInterval=None)
    orders.write(12)
    with running(tmp_path) as run:
        assert run.process.wait(240) == 0, "".join(run.lines)
    orders.check()
