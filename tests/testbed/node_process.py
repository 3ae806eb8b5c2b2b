"""The process node as a process of the testbed."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from testbed.commands import find_program
from testbed.control_plane import NODE, ControlPlane
from testbed.errors import CommandError
from testbed.ports import LOOPBACK, PortPool
from testbed.process_node.config import NodeConfig
from testbed.process_node.images import ProcessImage
from testbed.process_node.status import timestamp
from testbed.processes import Child

NAME = "process-node"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_START_TIMEOUT = 30.0


class NodeProcess:
    """Runs the program `testbed.process_node`.

    Args:
        control_plane: where the node registers.
        images: image name and what it stands for.
        ports: where a free port comes from.
        mount_namespaces: whether containers get a root of their own; None: if the machine can.

    Attributes:
        folder: of the node: pods, claims and logs.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        images: Mapping[str, ProcessImage],
        *,
        ports: PortPool,
        mount_namespaces: bool | None = None,
    ) -> None:
        find_program("bash", "Install bash; Spark's scripts need it.")
        self.folder = control_plane.run_dir / "node"
        self._control_plane = control_plane
        self._images = images
        self._port = ports.take()
        self._mount_namespaces = mount_namespaces
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        """The node's process, if it runs."""
        return self._child.pid if self._child else None

    def start(self) -> None:
        """Start the node, also after `stop` or `kill`, and wait until it is ready."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "config.json"
        self._config().write(file)
        supervisor = self._control_plane.supervisor
        self._started = timestamp()
        self._child = supervisor.start(
            NAME,
            [sys.executable, "-m", "testbed.process_node", str(file)],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)},
        )
        supervisor.wait_ready(self._child, self._ready, _START_TIMEOUT, ignoring=(CommandError,))

    def stop(self) -> None:
        """End the node and with it all containers."""
        if self._child:
            self._control_plane.supervisor.stop(self._child)
            self._child = None

    def kill(self) -> None:
        """Let the node crash (SIGKILL); the kernel ends its containers."""
        if self._child:
            self._control_plane.supervisor.kill(self._child)
            self._child = None

    def _ready(self) -> bool:
        node = self._control_plane.get("nodes", NAME)
        conditions = node["status"].get("conditions", []) if node else []
        # the heartbeat of an earlier run does not count
        return any(
            entry["type"] == "Ready"
            and entry["status"] == "True"
            and entry["lastHeartbeatTime"] >= self._started
            for entry in conditions
        )

    def _config(self) -> NodeConfig:
        control_plane = self._control_plane
        names = (LOOPBACK, "localhost", NAME)
        certificate, key = control_plane.ca.issue_server(NAME, names).write(self.folder, "server")
        return NodeConfig(
            name=NAME,
            server=control_plane.server,
            token=control_plane.token(NODE),
            ca_file=control_plane.ca_file,
            certificate=certificate,
            key=key,
            port=self._port,
            directory=self.folder,
            path=_PATH,
            images=self._images,
            mount_namespaces=self._mount_namespaces,
        )
