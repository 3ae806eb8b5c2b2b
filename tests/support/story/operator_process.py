"""The operator as a process of its own that can be killed and started again."""

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence

from testbed.control_plane import ADMIN, ControlPlane
from testbed.processes import Child, Supervisor
from testbed.waiting import wait_until

_PROGRAM = "from balanced_source_operator.cli import app; app()"


class OperatorProcess:
    """Runs ``balanced-source operator``.

    Args:
        control_plane: its API server; its log and its pid file go there too.
        spark_conf: that every application needs in this cluster.
        user: whose rights it has.
        detach: whether it outlives this process.
        prefix: words before its command, such as those that run it as another user.
        name: of its processes, unique within the control plane.
        settings: further ``BALANCED_SOURCE_…`` variables, without that prefix.
        environment: further variables.
        start_timeout: seconds that it may take to serve.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        *,
        spark_conf: Mapping[str, str] | None = None,
        user: str = ADMIN,
        detach: bool = False,
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        name: str = "operator",
        start_timeout: float = 60.0,
    ) -> None:
        self._start_timeout = start_timeout
        self._control_plane = control_plane
        self._variables = {
            "SPARK_CONF": json.dumps(dict(spark_conf or {})),
            "METRICS_PORT": "0",
            # All drivers run on this machine.
            "DRIVER_METRICS_PORT": "0",
            "PROBE_PORT": "0",
            **(settings or {}),
        }
        self._environment = dict(environment or {})
        self._user = user
        self._prefix = prefix
        self._supervisor = Supervisor(control_plane.run_dir, detach=detach)
        self._child: Child | None = None
        self._starts = 0
        self._name = name

    def start(self) -> None:
        """Start it, and wait until it serves."""
        self._starts += 1
        environment = {
            **os.environ,
            "KUBECONFIG": str(self._control_plane.kubeconfig(self._user)),
            **{f"BALANCED_SOURCE_{name}": value for name, value in self._variables.items()},
            **self._environment,
        }
        command = [*self._prefix, sys.executable, "-c", _PROGRAM, "operator"]
        self._child = self._supervisor.start(
            f"{self._name}-{self._starts}", command, env=environment
        )
        self._supervisor.wait_ready(
            self._child, lambda: '"serving"' in self.log, self._start_timeout
        )

    @property
    def log(self) -> str:
        """What the newest run has logged."""
        if self._child is None or not self._child.log.exists():
            return ""
        return self._child.log.read_text()

    @property
    def is_running(self) -> bool:
        """Whether the newest run has not ended."""
        return self._child is not None and self._child.alive()

    @property
    def pid(self) -> int:
        """Process id of the newest run; 0 before the first."""
        return self._child.pid if self._child is not None else 0

    def kill(self) -> None:
        """End it at once, wherever it is."""
        if self._child is not None:
            child = self._child
            self._supervisor.kill(child)
            wait_until(lambda: not child.alive(), 10, "the operator to be gone")

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self._child is not None:
            self._child.signal(number)

    def wait_exit(self, timeout: float) -> int | None:
        """Wait until it has ended by itself; returns its exit code."""
        assert self._child is not None, "it was not started"
        child = self._child
        wait_until(lambda: not child.alive(), timeout, "the operator's process to end")
        return child.exit_code

    def stop(self) -> None:
        """End it, if it still runs."""
        if self._child is not None and self._child.alive():
            self._supervisor.stop(self._child)
