"""Spark Connect.

A server that has our package, and a client with a Python of its own and without a JVM.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.java import java_home
from testbed.kafka import KafkaCluster
from testbed.ports import PortPool, answers
from testbed.processes import Supervisor
from testbed.venvs import ensure_connect_client, spark_home
from testbed.versions import CHECKOUT

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

CODE = os.pathsep.join(str(CHECKOUT / part) for part in ("operator/src", "spark_app/src"))


def _libraries(folder: Path) -> Path:
    """Return a folder with what `pyspark[connect]` installs beside PySpark.

    The server needs it for foreachBatch.
    """
    folder.mkdir()
    [packages] = ensure_connect_client().glob("lib/python3*/site-packages")
    for package in packages.iterdir():
        if not package.name.startswith("pyspark"):
            (folder / package.name).symlink_to(package)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a Spark Connect server on loopback, as `start-connect-server.sh` starts it."""
    folder, ports = tmp_path_factory.mktemp("connect"), PortPool()
    port = ports.take()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    home = spark_home(Path(sys.prefix))
    command = [
        home / "bin" / "spark-submit",
        "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer",
    ]
    command += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([CODE, str(_libraries(folder / "libraries"))]),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    supervisor = Supervisor(folder)
    try:
        process = supervisor.start(
            "connect", [*command, "--master", "local[2]"], env=environment, cwd=folder
        )
        supervisor.wait_ready(process, lambda: answers(port), 180)
        yield f"sc://127.0.0.1:{port}"
    finally:
        supervisor.stop_all()
        ports.close()


@pytest.fixture
def client(
    server: str, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> "Iterator[subprocess.Popen[str]]":
    """The program `connect_client`, which has begun to read the topic."""
    kafka.admin.produce(topic, [b"x"] * 40)
    python = ensure_connect_client() / "bin" / "python"
    program = Path(__file__).with_name("connect_client.py")
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [python, program, server, kafka.bootstrap, topic, tmp_path / "batches"],
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": CODE},
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_client_reads_rescales_and_gets_its_mistakes_reported(
    client: "subprocess.Popen[str]", kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    def step() -> dict[str, Any]:
        line = client.stdout.readline() if client.stdout else ""
        assert line, f"the client ended: {(tmp_path / 'errors').read_text()[-4000:]}"
        found: dict[str, Any] = json.loads(line)
        return found

    batch = step()
    assert (batch["rows"], batch["columns"][-1]) == (40, "cluster")
    first_line = step()["text"].splitlines()[0]
    what = f"topic no-such-topic does not exist on the cluster at {kafka.bootstrap}: create it, or"
    assert what in first_line
    assert step() == {"step": "rescaled", "readers": 3}
    assert step() == {"step": "rescaled", "readers": 2}

    kafka.admin.produce(topic, [b"y"] * 60)
    assert client.stdin is not None
    client.stdin.write("100\n")
    client.stdin.flush()
    assert step() == {"step": "stream", "rows": 100, "distinct": 100}
    assert step() == {"step": "foreachBatch", "rows": 100, "distinct": 100}
