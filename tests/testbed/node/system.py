"""What a node changes on the machine, noted before it does, to be taken back after any end."""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from testbed.commands import run
from testbed.errors import CommandError, MissingPrerequisiteError, TestbedError
from testbed.node.network import delete_namespace

STATE = Path("/run/balanced-source-node")
"""Sockets and the record; short, because the path of a socket must be. One node per machine."""

_RECORD = STATE / "record.json"
_LOCK = Path("/run/balanced-source-node.lock")
_CGROUPS = Path("/sys/fs/cgroup")
_PODS_CGROUP = "kubepods"
# the kubelet makes folders there whatever its root folder is
_KUBELET = Path("/var/lib/kubelet")
# those that the kubelet sets
_SYSCTLS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
)
_PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "conntrack": "conntrack",
    "mmdebstrap": "mmdebstrap",
    "buildah": "buildah",
    "ip": "iproute2",
}
_PLUGINS = Path("/usr/lib/cni")


@contextmanager
def only_node() -> Iterator[None]:
    """Hold the right to be the machine's only node; what an earlier one has left is cleaned first.

    Raises:
        TestbedError: there is one already.
    """
    with _LOCK.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TestbedError(f"a node runs on this machine already (lock {_LOCK})") from None
        restore()
        try:
            yield
        finally:
            restore()


def ensure_packages() -> None:
    """Install what is missing of the distribution's parts.

    Raises:
        MissingPrerequisiteError: it cannot be done here; the message says what to install.
    """
    missing = {package for program, package in _PACKAGES.items() if not shutil.which(program)}
    if not (_PLUGINS / "bridge").exists():
        missing.add("containernetworking-plugins")
    if os.geteuid() != 0:
        raise MissingPrerequisiteError("a real node needs root on Linux; CLUSTER=process does not")
    if not missing:
        return
    names = " ".join(sorted(missing))
    if not shutil.which("apt-get"):
        raise MissingPrerequisiteError(
            f"install these, by the names that your distribution has for them: {names}"
        )
    settings = {"DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update", "-q"], env=settings)
    run(
        ["apt-get", "install", "-y", "-q", "--no-install-recommends", *sorted(missing)],
        env=settings,
    )


def record(*, namespace: str, folders: list[Path]) -> None:
    """Write down what must be taken back: before the first change."""
    STATE.mkdir(mode=0o700, parents=True, exist_ok=True)
    document = {
        "namespace": namespace,
        "folders": [str(folder) for folder in (STATE, *folders)],
        "sysctls": {name: _sysctl(name).read_text() for name in _SYSCTLS if _sysctl(name).exists()},
        "cgroups": [str(path) for path in _pod_cgroups()],
        "namespaces": _pod_namespaces(),
        "kubelet": _KUBELET.exists(),
    }
    _RECORD.write_text(json.dumps(document))


def restore() -> None:
    """Take back what the record tells of; nothing happens without one.

    All programs of the node must be gone.
    """
    if not _RECORD.exists():
        shutil.rmtree(STATE, ignore_errors=True)
        return
    before = json.loads(_RECORD.read_text())
    _end_shims()
    _unmount(before["folders"])
    for name in set(_pod_namespaces()) - set(before["namespaces"]):
        delete_namespace(name)
    delete_namespace(before["namespace"])
    _remove_cgroups(before["cgroups"])
    _restore_sysctls(before)
    if not before["kubelet"]:
        shutil.rmtree(_KUBELET, ignore_errors=True)
    shutil.rmtree(STATE)


def left_overs(folder: Path) -> list[str]:
    """Processes and mounts still related to a folder or to the node's sockets; for tests."""
    words = (str(folder), str(STATE))
    lines = [
        " ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])
    ]
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    found = [
        line for line in lines if any(f"{word}/" in line for word in words) and "pytest" not in line
    ]
    return found + [line for line in mounts if any(f" {word}" in line for word in words)]


def _end_shims() -> None:
    """A shim outlives its containerd, and its container with it."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if words and "containerd-shim" in words[0] and any(str(STATE) in word for word in words):
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in [*process.children(recursive=True), process]:
                    child.kill()
                process.wait(10)


def _unmount(folders: list[str]) -> None:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    points = [line.split()[1].encode().decode("unicode_escape") for line in lines]
    inside = {
        point
        for point in points
        if any(point == one or point.startswith(f"{one}/") for one in folders)
    }
    for point in sorted(inside, reverse=True):
        with contextlib.suppress(CommandError):
            run(["umount", "--lazy", point])


def _remove_cgroups(before: list[str]) -> None:
    for top in set(map(str, _pod_cgroups())) - set(before):
        # the deepest first: a group with children cannot be removed, one with files can
        for group in sorted(Path(top).rglob("*/"), reverse=True):
            if group.is_dir():
                with contextlib.suppress(OSError):
                    group.rmdir()
        with contextlib.suppress(OSError):
            Path(top).rmdir()


def _restore_sysctls(before: dict[str, Any]) -> None:
    for name, value in before["sysctls"].items():
        if _sysctl(name).read_text() != value:
            _sysctl(name).write_text(value)


def _pod_cgroups() -> list[Path]:
    return sorted([*_CGROUPS.glob(_PODS_CGROUP), *_CGROUPS.glob(f"*/{_PODS_CGROUP}")])


def _pod_namespaces() -> list[str]:
    return sorted(path.name for path in Path("/run/netns").glob("cni-*"))


def _sysctl(name: str) -> Path:
    return Path("/proc/sys") / name
