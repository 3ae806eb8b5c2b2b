"""An address of its own for each pod, all on loopback.

Linux answers on all of 127.0.0.0/8 without any set-up. Every node takes one network of 254
addresses from 127.64.0.0 up that no other node on the machine has, so that several testbeds do not
clash.
"""

import errno
import socket

_SECOND = range(64, 128)
_THIRD = range(256)
_LAST = 254


class AddressPool:
    """The addresses of one node.

    A used one comes back last, so that old connections are forgotten.
    """

    def __init__(self) -> None:
        self._lock, network = _take_network()
        self._free = [f"{network}.{number}" for number in range(2, _LAST + 1)]

    def take(self) -> str:
        """A free address.

        Raises:
            IndexError: all are in use.
        """
        return self._free.pop(0)

    def give_back(self, address: str) -> None:
        """No one uses the address any more."""
        self._free.append(address)

    def close(self) -> None:
        """Give the whole network back."""
        self._lock.close()


def _take_network() -> tuple[socket.socket, str]:
    """Reserve a network by a Unix socket with an abstract name, which falls with the process."""
    for second in _SECOND:
        for third in _THIRD:
            lock = socket.socket(socket.AF_UNIX)
            try:
                lock.bind(f"\0balanced-source-testbed-network-{second}.{third}")
            except OSError as error:
                lock.close()
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return lock, f"127.{second}.{third}"
    raise OSError(errno.EADDRNOTAVAIL, "all networks are in use")
