"""A session cluster.

A job manager, a task manager and the SQL gateway, three JVMs that wait for statements.
"""

import os
from pathlib import Path
from typing import Any

import httpx2

from testbed.flink.install import Flink
from testbed.flink.settings import HEAP, LOGGING, as_text, configuration
from testbed.java import java
from testbed.ports import LOOPBACK, PortPool
from testbed.processes import Child, Supervisor
from testbed.progress import QUIET, Progress
from testbed.started import Started

_START_TIMEOUT = 120.0
_MAIN = "org.apache.flink"


class FlinkCluster(Started):
    """A context manager that starts and stops it.

    Args:
        flink: the installation.
        run_dir: gets `flink/` with configuration and temporary files.
        slots: how many tasks run at once.
        progress: told about the start.

    Attributes:
        jobs: address of the job manager's HTTP interface.
        gateway: address of the SQL gateway's.
    """

    def __init__(
        self, flink: Flink, run_dir: Path, *, slots: int, progress: Progress = QUIET
    ) -> None:
        self._flink = flink
        self._folder = run_dir / "flink"
        self._slots = slots
        self._progress = progress
        self._pool = PortPool()
        self._rest, self._sql = self._pool.take(), self._pool.take()
        self.jobs = f"http://{LOOPBACK}:{self._rest}/v1"
        self.gateway = f"http://{LOOPBACK}:{self._sql}/v1"
        self.supervisor = Supervisor(run_dir)

    @property
    def pids(self) -> frozenset[int]:
        """Its processes."""
        return frozenset(child.pid for child in self.supervisor.children)

    def start(self) -> None:
        with self._progress.step("start Flink"):
            self._start()

    def end(self, error: BaseException | None) -> None:
        self.supervisor.stop_together(self.supervisor.children)
        self._pool.close()

    def _start(self) -> None:
        temporary = self._folder / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        settings = configuration(
            slots=self._slots,
            rpc=self._pool.take(),
            rest=self._rest,
            gateway=self._sql,
            temporary=temporary,
        )
        (self._folder / "config.yaml").write_text(as_text(settings))
        (self._folder / "log4j.properties").write_text(LOGGING)
        own = ["--configDir", str(self._folder)]
        manager = self._launch(
            "jobmanager", f"{_MAIN}.runtime.entrypoint.StandaloneSessionClusterEntrypoint", 512, own
        )
        tasks = self._launch(
            "taskmanager", f"{_MAIN}.runtime.taskexecutor.TaskManagerRunner", HEAP, own
        )
        gateway = self._launch(
            "gateway", f"{_MAIN}.table.gateway.SqlGateway", 512, ["--defaultConfigDir", own[1]]
        )
        self._await(manager, f"{self.jobs}/overview", "jobs-running")
        self._await(tasks, f"{self.jobs}/overview", "slots-total", self._slots)
        self._await(gateway, f"{self.gateway}/info", "version")

    def _launch(self, name: str, main: str, heap: int, arguments: list[str]) -> Child:
        logging = f"-Dlog4j.configurationFile={self._folder / 'log4j.properties'}"
        temporary = f"-Djava.io.tmpdir={self._folder / 'tmp'}"
        flags = [
            *self._flink.jvm_flags(),
            logging,
            temporary,
            f"-Xmx{heap}m",
            "-cp",
            self._flink.class_path,
        ]
        env = {**os.environ, "FLINK_CONF_DIR": str(self._folder)}
        return self.supervisor.start(f"flink-{name}", [java(), *flags, main, *arguments], env=env)

    def _await(self, child: Child, url: str, key: str, value: Any = None) -> None:
        def ready() -> bool:
            told = httpx2.get(url, trust_env=False).raise_for_status().json()
            return key in told and (value is None or told[key] == value)

        self.supervisor.wait_ready(child, ready, _START_TIMEOUT, ignoring=(httpx2.HTTPError,))
