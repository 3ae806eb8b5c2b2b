"""Spark's own cluster manager, with workers that Spark takes for several machines.

Each has its loopback address.

Spark starts a speculative copy of a task only on another machine than the first attempt, so a local
master, or workers with one address, never show one.
"""

import contextlib
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psutil

from testbed.ports import LOOPBACK, PortPool
from testbed.processes import Child, Supervisor
from testbed.started import Started

_DEPLOY: Final = "org.apache.spark.deploy"
_EXECUTOR: Final = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_MASTER: Final = "master"
_START: Final = 120.0
"""Seconds in which a master must listen."""


class SparkCluster(Started):
    """A master and workers. Usable once.

    Args:
        run_dir: for logs, and the workers' folders.
        python: of an environment with PySpark.
        workers: how many.
        environment: of the workers, and so of their executors.
        slots: tasks that a worker runs at a time.
    """

    def __init__(
        self,
        run_dir: Path,
        python: Path,
        *,
        workers: int,
        environment: Mapping[str, str],
        slots: int = 1,
    ) -> None:
        self._dir = run_dir
        self._home = next((python.parent.parent / "lib").glob("python3.*/site-packages/pyspark"))
        self._workers = workers
        self._slots = slots
        self._environment = {**environment, "SPARK_HOME": str(self._home)}
        self._ports = PortPool()
        self._processes = Supervisor(run_dir)
        self._port = self._ports.take()

    @property
    def url(self) -> str:
        """For ``SparkSession.builder.master``."""
        return f"spark://{LOOPBACK}:{self._port}"

    def start(self) -> None:
        master = self._start(_MASTER, "master.Master", LOOPBACK, "--port", str(self._port))
        self._processes.wait_ready(master, self._listens, _START)
        for number in range(1, self._workers + 1):
            folder = self._dir / f"worker-{number}"
            options = (
                "--cores",
                str(self._slots),
                "--memory",
                "1g",
                "--work-dir",
                str(folder),
                self.url,
            )
            self._start(folder.name, "worker.Worker", f"127.0.0.{number + 1}", *options)

    def kill_executors(self) -> None:
        """SIGKILL to every executor; the workers start others."""
        workers = [child for child in self._processes.children if child.name != _MASTER]
        found = [p for w in workers for p in psutil.Process(w.pid).children(recursive=True)]
        executors = [process for process in found if _is_executor(process)]
        for executor in executors:
            executor.kill()
        psutil.wait_procs(executors, timeout=_START)

    def end(self, error: BaseException | None) -> None:
        self._processes.stop_all()
        self._ports.close()

    def _start(self, name: str, role: str, address: str, *options: str) -> Child:
        program = (
            self._home / "bin" / "spark-class",
            f"{_DEPLOY}.{role}",
            "--host",
            address,
            "--webui-port",
            "0",
        )
        own = {"SPARK_LOCAL_IP": address, "SPARK_LOCAL_HOSTNAME": address}
        return self._processes.start(name, [*program, *options], env={**self._environment, **own})

    def _listens(self) -> bool:
        with (
            contextlib.suppress(OSError),
            socket.create_connection((LOOPBACK, self._port), timeout=1),
        ):
            return True
        return False


def _is_executor(process: psutil.Process) -> bool:
    try:
        return _EXECUTOR in process.cmdline()
    except psutil.Error:  # it has just ended
        return False
