"""Receives what tasks have measured, in the planning process."""

import os
import secrets
import socket
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from balanced_source.host import SplitRange
from balanced_source.host.reader_figures import ReaderFigures
from balanced_source_adapters.lazy_log import get_logger
from balanced_source_spark.partition import SampleTarget
from balanced_source_spark.skipped_ranges import decoded_ranges
from balanced_source_spark.task_samples import decoded

log = get_logger(__name__)

_ADDRESSES: Final = ("SPARK_DRIVER_BIND_ADDRESS", "SPARK_LOCAL_IP")
"""Variables that say under which address executors reach the driver; Spark sets the first one in
pods."""

_ROOM: Final = 1 << 20
"""Bytes of datagrams that wait to be taken: those of a few thousand tasks."""

_LARGEST: Final = 4096
"""Bytes of a datagram; what is longer is cut off."""

_MOST_RANGES: Final = 10_000
"""Skipped ranges that wait to be counted."""


class SampleCollector:
    """Adds up the samples of tasks, per reader.

    Datagrams wait in the socket until planning looks: that needs no thread.

    Args:
        environment: variables of the process.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._token = secrets.token_hex(16)
        self._figures: dict[int, ReaderFigures] = {}
        self._skipped: list[SplitRange] = []
        self._socket = _bound(environment)

    @property
    def target(self) -> SampleTarget | None:
        """Where tasks send their samples; None if there is no socket."""
        if self._socket is None:
            return None
        host, port, *_ = self._socket.getsockname()
        return SampleTarget(host=str(host), port=int(port), token=self._token)

    def take(self, readers: Collection[int] | None = None) -> Mapping[int, ReaderFigures]:
        """Take what has arrived, and return the figures of all readers that were heard of.

        Args:
            readers: that there are now; figures of others are forgotten. None: keep all.
        """
        # A copy: what was returned before is read by another thread.
        figures = dict(self._figures)
        while (datagram := self._next()) is not None:
            if (skipped := decoded_ranges(datagram, self._token)) is not None:
                self._skipped = (self._skipped + skipped)[:_MOST_RANGES]
                continue
            sample = decoded(datagram, self._token)
            if sample is not None:
                before = figures.get(sample.reader, ReaderFigures())
                figures[sample.reader] = before.with_task(sample)
        if readers is not None:
            figures = {r: one for r, one in figures.items() if r in readers}
        self._figures = figures
        return MappingProxyType(figures)

    def skipped(self) -> Sequence[SplitRange]:
        """Return what tasks have passed over since the last call; see `tell_skipped`."""
        self.take()
        found, self._skipped = self._skipped, []
        return found

    @property
    def speeds(self) -> Mapping[int, float]:
        """Reader → advance of its positions per second, where it is known."""
        return {r: one.speed for r, one in self._figures.items() if one.speed is not None}

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _next(self) -> bytes | None:
        if self._socket is None:
            return None
        try:
            return self._socket.recv(_LARGEST)
        except OSError:  # nothing is here, or the network is gone
            return None


def _bound(environment: Mapping[str, str]) -> socket.socket | None:
    """Return a socket at the address of the driver; None, with a line in the log, without one."""
    named = next((environment[name] for name in _ADDRESSES if environment.get(name)), "")
    try:
        address = socket.getaddrinfo(named or socket.gethostname(), 0, type=socket.SOCK_DGRAM)[0]
        family, _, _, _, place = address
        made = socket.socket(family, socket.SOCK_DGRAM)
    except OSError as error:
        _tell(error)
        return None
    try:
        made.bind((place[0], 0))
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        made.setblocking(False)
    except OSError as error:
        made.close()
        _tell(error)
        return None
    return made


def _tell(error: OSError) -> None:
    log.warning("tasks cannot tell what they measure: figures of readers stay unknown", error=error)
