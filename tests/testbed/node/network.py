"""A network namespace without a link to the outside, which a program enters with all it starts."""

import contextlib
import ctypes
import os
from pathlib import Path

from testbed.commands import find_program, run
from testbed.errors import CommandError

NODE_ADDRESS = "10.99.0.1"
"""Of the node, on the namespace's loopback interface."""

PODS = "10.88.0.0/16"
SERVICES = "10.96.0.0/16"
_NAMESPACES = Path("/run/netns")
_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


class ClosedNetwork:
    """One namespace.

    A thread is in a namespace, not a process: `enter` moves the calling thread, and every thread
    and process that this one starts from then on. So enter from the main thread, before anything
    that shall be inside is started.

    Args:
        name: of the namespace, for `ip netns`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._ip = find_program("ip", "Install iproute2.")
        self._outside: int | None = None

    def create(self) -> None:
        """Make it, with the node's address and with a way for packets to Services."""
        run([self._ip, "netns", "add", self.name])
        self._inside("link", "set", "lo", "up")
        self._inside("addr", "replace", f"{NODE_ADDRESS}/32", "dev", "lo")
        # kube-proxy turns the addresses of Services into those of pods, but only of packets that
        # are on their way
        self._inside("route", "replace", SERVICES, "dev", "lo")

    def enter(self) -> None:
        """Move into it."""
        self._outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        inside = os.open(_NAMESPACES / self.name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _set_namespace(inside)
        finally:
            os.close(inside)
        for setting in ("ipv4/ip_forward", "bridge/bridge-nf-call-iptables"):
            # the second one is there only with a module that not all kernels have
            with contextlib.suppress(OSError):
                Path("/proc/sys/net", setting).write_text("1")

    def leave(self) -> None:
        """Move back."""
        if self._outside is not None:
            _set_namespace(self._outside)
            os.close(self._outside)
            self._outside = None

    def _inside(self, *arguments: str) -> None:
        run([self._ip, "-n", self.name, *arguments])


def delete_namespace(name: str) -> None:
    """Delete a namespace, if it is there; interfaces in it go with it."""
    with contextlib.suppress(CommandError):
        run([find_program("ip", "Install iproute2."), "netns", "delete", name])


def _set_namespace(handle: int) -> None:
    if _LIBC.setns(handle, _CLONE_NEWNET):
        code = ctypes.get_errno()
        raise OSError(code, f"cannot enter the network namespace: {os.strerror(code)}")
