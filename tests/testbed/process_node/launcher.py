"""Starting one container: from its spec to a process."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from testbed.java import jvm_environment
from testbed.pki import kubeconfig, write_private
from testbed.process_node.config import NodeConfig
from testbed.process_node.environment import container_environment
from testbed.process_node.fields import PodFacts, expand
from testbed.process_node.images import ProcessImage, find_image
from testbed.process_node.namespaces import mount_namespace_command
from testbed.process_node.objects import Objects
from testbed.process_node.paths import PathMap
from testbed.process_node.volumes import Volumes

_SANDBOX = Path(__file__).with_name("sandbox.py")
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_PRIVATE_TMP = "/tmp"  # noqa: S108 - the folder that each pod has for itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """Starts the containers of one pod.

    Attributes:
        config: of the node.
        pod: whose containers.
        objects: ConfigMaps and Secrets of its namespace.
        volumes: of the pod.
        folder: of the pod, on the host.
        namespaces: whether containers get a root of their own.
    """

    config: NodeConfig
    pod: PodFacts
    objects: Objects
    volumes: Volumes
    folder: Path
    namespaces: bool

    def path_map(self) -> PathMap:
        """All paths of the pod's containers and the host's folders behind them."""
        folders: dict[str, str] = {}
        for container in _containers(self.pod):
            folders |= find_image(self.config.images, container["image"]).binds
            folders |= {
                mount["mountPath"]: str(self.folder / "volumes" / mount["name"])
                for mount in container.get("volumeMounts", [])
            }
        return PathMap(folders)

    async def environment(self, container: Mapping[str, Any]) -> dict[str, str]:
        """The container's whole environment.

        Raises:
            MissingObjectError: it refers to something that is not there yet.
        """
        image = find_image(self.config.images, container["image"])
        own = await container_environment(container, self.pod, self.objects)
        return self._base_environment(image) | dict(image.env) | own

    async def start(
        self, container: Mapping[str, Any], log: Path, files: Mapping[str, str]
    ) -> asyncio.subprocess.Process:
        """Start the container; its output is appended to the log.

        Args:
            container: its spec.
            log: file for what it prints.
            files: of the node by the path in the container; only shown in a root of its own.
        """
        image = find_image(self.config.images, container["image"])
        env = await self.environment(container)
        argv = [expand(word, env) for word in _command(container, image)]
        cwd = container.get("workingDir") or image.workdir or str(self._home)
        mounts = self.volumes.mounts(container)
        for folder in (self._home, self._tmp):
            folder.mkdir(parents=True, exist_ok=True)
        spec: dict[str, Any] = {"parent": os.getpid()}
        if self.namespaces:
            spec |= self._isolated(image, {**files, **mounts})
        else:
            paths = PathMap({**image.binds, **mounts})
            argv = [paths.rewrite(word) for word in argv]
            env = {
                name: paths.rewrite(value) for name, value in env.items()
            } | self._account_environment(mounts)
            cwd = paths.rewrite(cwd)
        spec |= {"argv": argv, "cwd": cwd}
        return await self._spawn(container["name"], spec, env, log)

    @property
    def _home(self) -> Path:
        return self.folder / "home"

    @property
    def _tmp(self) -> Path:
        return self.folder / "tmp"

    def _base_environment(self, image: ProcessImage) -> dict[str, str]:
        server = urlsplit(self.config.server)
        base = {
            "PATH": os.pathsep.join([*image.path, self.config.path]),
            "HOME": str(self._home),
            "HOSTNAME": self.pod.name,
            "LANG": "C.UTF-8",
            "KUBERNETES_SERVICE_HOST": str(server.hostname),
            "KUBERNETES_SERVICE_PORT": str(server.port),
            # otherwise Spark takes the address of the machine
            "SPARK_LOCAL_IP": self.pod.ip,
        }
        if not self.namespaces:
            return {
                **base,
                "TMPDIR": str(self._tmp),
                **jvm_environment(f"-Djava.io.tmpdir={self._tmp}"),
            }
        return {**base, **jvm_environment()}

    def _isolated(self, image: ProcessImage, mounts: Mapping[str, str]) -> dict[str, Any]:
        """The parts of the sandbox's spec for an own root."""
        root = self.folder / "root"
        root.mkdir(exist_ok=True)
        seen = (str(self._home), *image.visible)
        hidden = {path: path for path in seen if path.startswith(f"{_PRIVATE_TMP}/")}
        binds = {_PRIVATE_TMP: str(self._tmp)} | hidden | dict(image.binds) | dict(mounts)
        make_mount_points(binds, self.config.directory)
        return {"root": str(root), "binds": binds}

    def _account_environment(self, mounts: Mapping[str, str]) -> dict[str, str]:
        """Where clients find the service account without a file at its usual place."""
        folder = mounts.get(_ACCOUNT)
        if folder is None:
            return {}
        text = kubeconfig(
            server=self.config.server,
            ca_file=Path(folder) / "ca.crt",
            user=self.pod.service_account,
            credentials={"tokenFile": f"{folder}/token"},
            namespace=self.pod.namespace,
        )
        write_private(self.folder / "kubeconfig", text)
        return {
            "KUBECONFIG": str(self.folder / "kubeconfig"),
            "KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN": f"{folder}/token",
            "KUBERNETES_CERTS_CA_FILE": f"{folder}/ca.crt",
            "KUBERNETES_AUTH_TRYKUBECONFIG": "false",
        }

    async def _spawn(
        self, name: str, spec: Mapping[str, Any], env: Mapping[str, str], log: Path
    ) -> asyncio.subprocess.Process:
        file = self.folder / f"{name}.sandbox.json"
        write_private(file, json.dumps(spec))
        unshare = (mount_namespace_command() or ()) if self.namespaces else ()
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            return await asyncio.create_subprocess_exec(
                *unshare,
                *(sys.executable, "-I", "-S", str(_SANDBOX), str(file)),
                env=env,
                cwd="/",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )


def make_mount_points(binds: Mapping[str, str], own: Path) -> None:
    """Make the mount points that lie inside other binds, in those folders that are the node's own.

    The sandbox would hide such a folder behind a memory file system, which is right for a folder of
    the host, but containers of a pod would not share what they write there.

    Args:
        binds: path in the container and the host's path.
        own: folder of the node; everything outside is the host's.
    """
    for target, source in binds.items():
        around = [
            path
            for path in binds
            if target.startswith(f"{path}/") and binds[path].startswith(f"{own}/")
        ]
        if not around:
            continue
        innermost = max(around, key=len)
        point = Path(binds[innermost]) / target[len(innermost) + 1 :]
        if Path(source).is_dir():
            point.mkdir(parents=True, exist_ok=True)
        else:
            point.parent.mkdir(parents=True, exist_ok=True)
            point.touch()


def _containers(pod: PodFacts) -> list[Mapping[str, Any]]:
    return [*pod.spec.get("initContainers", []), *pod.spec["containers"]]


def _command(container: Mapping[str, Any], image: ProcessImage) -> list[str]:
    return [*(container.get("command") or image.entrypoint), *(container.get("args") or [])]
