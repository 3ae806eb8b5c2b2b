"""Free TCP ports on the loopback interface that stay reserved for the life of a process."""

import errno
import random
import socket

from testbed.errors import TestbedError

LOOPBACK = "127.0.0.1"
# Below the range from which the kernel takes the ports of outgoing connections (32768 and up): a
# server that is down for a moment must find its port free when it comes back.
_FIRST, _LAST = 20_000, 32_000
_TRIES = 200


class PortPool:
    """Hands out ports that no other testbed on this machine hands out at the same time.

    Each port is held by a Unix socket with an abstract name until `close` or the process's end: it
    leaves no file behind, is exclusive over all processes, and lives in the network namespace like
    the port itself. So no one else can choose a port between its choice and its use.
    """

    def __init__(self) -> None:
        self._held: dict[int, socket.socket] = {}
        self._random = random.SystemRandom()

    def take(self) -> int:
        """A port that is free now and reserved from now on."""
        for _ in range(_TRIES):
            port = self._random.randrange(_FIRST, _LAST)
            if self._reserve(port):
                if is_free(port):
                    return port
                self._held.pop(port).close()
        raise TestbedError(f"no free port between {_FIRST} and {_LAST} after {_TRIES} tries")

    def close(self) -> None:
        """Give all ports back."""
        for handle in self._held.values():
            handle.close()
        self._held.clear()

    def _reserve(self, port: int) -> bool:
        handle = socket.socket(socket.AF_UNIX)
        try:
            handle.bind(f"\0balanced-source-testbed-port-{port}")
        except OSError as error:
            handle.close()
            if error.errno == errno.EADDRINUSE:
                return False
            raise
        self._held[port] = handle
        return True


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def answers(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server accepts connections on the port now."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0
