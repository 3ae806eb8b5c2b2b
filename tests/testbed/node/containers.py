"""containerd as a process of the testbed, with everything of its own in two folders."""

import contextlib
from pathlib import Path

from testbed.commands import find_program, run
from testbed.errors import CommandError
from testbed.node.network import PODS
from testbed.node.oci import PAUSE
from testbed.node.system import STATE
from testbed.processes import Child, Supervisor

SOCKET = STATE / "containerd.sock"
_START_TIMEOUT = 60.0
_IMPORT_TIMEOUT = 1200.0

_CONFIG = """\
version = 2
root = "{root}"
state = "{state}/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt",
  "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.internal.v1.tracing",
]
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # neither can be had without all of root's rights, as in a container
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{state}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""
_NETWORK = """\
{{"cniVersion": "0.4.0", "name": "testbed", "plugins": [
  {{"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipam": {{
    "type": "host-local", "dataDir": "{state}/ipam",
    "ranges": [[{{"subnet": "{pods}"}}]], "routes": [{{"dst": "0.0.0.0/0"}}]
  }}}},
  {{"type": "portmap", "capabilities": {{"portMappings": true}}}}
]}}
"""


class Containerd:
    """The container runtime.

    Args:
        folder: for images and containers; on a disk, and empty.
        supervisor: runs it.
    """

    def __init__(self, folder: Path, supervisor: Supervisor) -> None:
        self.folder = folder
        self._supervisor = supervisor
        self._child: Child | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        network = STATE / "cni" / "10-testbed.conflist"
        network.parent.mkdir(parents=True, exist_ok=True)
        network.write_text(_NETWORK.format(pods=PODS, state=STATE))
        config = STATE / "containerd.toml"
        config.write_text(_CONFIG.format(root=self.folder, state=STATE, socket=SOCKET, pause=PAUSE))
        program = find_program("containerd", "Install containerd.")
        self._child = self._supervisor.start("containerd", [program, "--config", config])
        self._supervisor.wait_ready(
            self._child, lambda: self.ctr("version"), _START_TIMEOUT, ignoring=(CommandError,)
        )

    def import_image(self, archive: Path) -> None:
        """Take over an image, with its layers unpacked."""
        self.ctr("images", "import", str(archive), timeout=_IMPORT_TIMEOUT)

    def kill_process(self, container: str) -> int:
        """SIGKILL to the main process of a container; returns the process id that it had."""
        lines = (line.split() for line in self.ctr("tasks", "ls").splitlines())
        pid = next(int(words[1]) for words in lines if words[0] == container)
        self.ctr("tasks", "kill", "--signal", "SIGKILL", container)
        return pid

    def stop(self) -> None:
        """End all containers, then it."""
        if self._child is None:
            return
        with contextlib.suppress(CommandError):
            self._end_containers()
        self._supervisor.stop(self._child)
        self._child = None

    def ctr(self, *arguments: str, timeout: float = 60) -> str:
        """Run its command line on Kubernetes' namespace."""
        program = find_program("ctr", "Install containerd.")
        return run(
            [program, "--address", SOCKET, "--namespace", "k8s.io", *arguments], timeout=timeout
        )

    def _end_containers(self) -> None:
        """Shims outlive containerd: a forced removal of its task ends a shim."""
        for task in self.ctr("tasks", "ls", "--quiet").split():
            with contextlib.suppress(CommandError):
                self.ctr("tasks", "rm", "--force", task)
        if containers := self.ctr("containers", "ls", "--quiet").split():
            self.ctr("containers", "rm", *containers)
