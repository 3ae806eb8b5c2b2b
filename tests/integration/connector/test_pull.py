"""A source whose readers ask for splits, on a real Spark.

With local mode, and with nothing but the query itself.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from balanced_source.documents import assignment as assignment_document
from balanced_source.documents.environment import ZONE
from balanced_source_adapters.folder import assignment_path, read_text
from support.builders import spec_json
from support.pull_connector import ASKED, HEARD, KIND, SAID, register
from testbed.versions import CHECKOUT
from testbed.waiting import wait_until

pytestmark = pytest.mark.thorough

COUNT, LENGTH = 30, 150
EXPECTED = Counter((f"list-{name}", number) for name in range(COUNT) for number in range(LENGTH))
HOST = socket.gethostname()
PATIENCE = 300
OPERATOR = "from balanced_source_operator.cli import app; app()"

READ = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id
from balanced_source_spark.data_source import register
from balanced_source_spark import stop_when_finished

out = Path(sys.argv[1])

def write(rows, number):
    found = rows.withColumn("task", spark_partition_id()).collect()
    partial = out / f".{number}"
    partial.write_text(json.dumps([[row.list, row.number, row.task] for row in found]))
    partial.replace(out / f"{number}.json")

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.python.unix.domain.socket.enabled", "true").getOrCreate()
register(spark)
options = dict(option.split("=", 1) for option in sys.argv[2:])
rows = spark.readStream.format("balanced").options(**options).load()
writer = rows.writeStream.foreachBatch(write).trigger(processingTime="100 milliseconds")
query = writer.option("checkpointLocation", str(out / "checkpoint")).start()
stop_when_finished(query)
query.awaitTermination()
"""


class Scene:
    """Programs that may be killed, and what they leave behind."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out, self.documents = folder, folder / "out", folder / "documents"
        self.events = folder / "events"
        self.out.mkdir()
        register(folder / "installed")
        paths = (
            folder / "installed",
            CHECKOUT / "tests",
            CHECKOUT / "operator/src",
            CHECKOUT / "spark_app/src",
        )
        self._environment = {
            **os.environ,
            "PYTHONPATH": ":".join(map(str, paths)),
            "PYSPARK_PYTHON": sys.executable,
            ASKED: str(folder / "asked"),
        }
        self._log = (folder / "programs.log").open("a")
        self._programs: list[subprocess.Popen[bytes]] = []

    def scale(self, parallelism: int) -> None:
        custom = {"connector": KIND, "config": {"count": COUNT, "length": LENGTH}}
        partial = self.folder / ".source.yaml"
        partial.write_text(
            yaml.safe_dump({"spec": spec_json(parallelism=parallelism, source={"custom": custom})})
        )
        partial.replace(self.folder / "source.yaml")

    def serve(self) -> subprocess.Popen[bytes]:
        """Start local mode."""
        return self._start(
            "-c",
            OPERATOR,
            "local",
            "-f",
            str(self.folder / "source.yaml"),
            "--dir",
            str(self.documents),
        )

    def drive(self, *options: str) -> subprocess.Popen[bytes]:
        """Start the query."""
        return self._start(
            "-c", READ, str(self.out), f"connector={KIND}", f"eventLog={self.events}", *options
        )

    def kill(self, program: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(program.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
        program.kill()
        program.wait(60)

    def rows(self) -> list[list[Any]]:
        files = sorted(self.out.glob("*.json"), key=lambda path: int(path.stem))
        return [row for path in files for row in json.loads(path.read_text())]

    def lists_read(self) -> int:
        """Lists of which all numbers are delivered."""
        return sum(count == LENGTH for count in Counter(name for name, *_ in self.rows()).values())

    def wait(self, condition: Any, what: str) -> None:
        try:
            wait_until(condition, PATIENCE, what, interval=0.1)
        except Exception as error:
            raise AssertionError(
                f"{error}: {(self.folder / 'programs.log').read_text()[-4000:]}"
            ) from error

    def wait_end(self, query: subprocess.Popen[bytes]) -> None:
        """Wait until the query has ended by itself, because everything is read."""
        self.wait(lambda: query.poll() is not None, "the query to end")
        assert query.returncode == 0, (self.folder / "programs.log").read_text()[-4000:]

    def said(self, name: str) -> dict[str, list[int]]:
        """Process → numbers of the events, in their order."""
        found: dict[str, list[int]] = {}
        for line in self.events.read_text().splitlines():
            kind, pid, number = line.split()
            if kind == name:
                found.setdefault(pid, []).append(int(number))
        return found

    def asked(self) -> dict[str, set[tuple[str, str]]]:
        """Reader → host and zone of its requests, as the enumerator got them."""
        found: dict[str, set[tuple[str, str]]] = {}
        for line in (self.folder / "asked").read_text().splitlines():
            reader, host, zone = line.split(" ")
            found.setdefault(reader, set()).add((host, zone))
        return found

    def is_in_zone(self, zone: str) -> None:
        """Let programs that are started from now on run in a zone, as in a pod."""
        self._environment[ZONE] = zone

    def close(self) -> None:
        for program in self._programs:
            self.kill(program)
        self._log.close()

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        program = subprocess.Popen(  # noqa: S603 - our own programs
            [sys.executable, *arguments], env=self._environment, stdout=self._log, stderr=self._log
        )
        self._programs.append(program)
        return program


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


@pytest.mark.timeout(900)
def test_every_number_once_through_rescales_a_killed_driver_and_a_killed_operator(
    scene: Scene,
) -> None:
    scene.scale(2)
    operator = scene.serve()
    options = (f"assignmentDir={scene.documents}",)
    first = scene.drive(*options, "zone=zone-a")
    scene.wait(lambda: scene.lists_read() >= 3, "the first lists")
    scene.scale(4)
    scene.wait(lambda: {task for *_, task in scene.rows()} >= {2, 3}, "four readers")

    scene.kill(operator)
    scene.kill(first)
    assert scene.lists_read() < COUNT, "there is nothing left to lose"
    scene.serve()
    scene.is_in_zone("zone-b")
    second = scene.drive(*options)
    before = scene.lists_read()
    scene.wait(lambda: scene.lists_read() >= before + 2, "further lists")
    scene.scale(1)
    scene.wait_end(second)

    assert Counter((name, number) for name, number, _ in scene.rows()) == EXPECTED
    text = read_text(assignment_path(scene.documents))
    assert text is not None
    assert assignment_document.decode(text).owners == {}, "what was read has left the state"
    heard = scene.said(HEARD)
    assert heard.keys() == scene.said(SAID).keys(), "both drivers got answers"
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in heard.values()), (
        "each once, in order"
    )
    zones = {(HOST, "zone-a"), (HOST, "zone-b")}
    asked = scene.asked()
    assert asked.keys() == set("0123")
    assert asked.pop("0") == zones, "it has asked for splits on both drivers"
    assert all(where <= zones for where in asked.values()), "nobody asked from elsewhere"


@pytest.mark.timeout(900)
def test_without_an_operator_a_killed_query_continues_exactly_once(scene: Scene) -> None:
    """Its coordinator dies with it, and nothing but Spark's checkpoint remembers what was read."""
    options = (f"count={COUNT}", f"length={LENGTH}", "parallelism=2")
    scene.is_in_zone("zone-a")
    first = scene.drive(*options)
    scene.wait(lambda: scene.lists_read() >= 5, "the first lists")
    scene.kill(first)
    assert scene.lists_read() < COUNT, "there is nothing left to lose"

    scene.wait_end(scene.drive(*options, "parallelism=3", "zone=zone-b"))

    assert Counter((name, number) for name, number, _ in scene.rows()) == EXPECTED
    zones = {(HOST, "zone-a"), (HOST, "zone-b")}
    assert scene.asked() == {"0": zones, "1": zones, "2": {(HOST, "zone-b")}}
