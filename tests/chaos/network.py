"""A network that can be disturbed without privileges.

A relay in front of each broker, which advertises its port.

A relay forwards bytes between clients and its broker, unless it is told to be a black hole
(connections stay open, nothing passes), to reset (every connection ends by RST), to be slow, or to
look as if packets were lost: TCP repeats them, so that some of what is sent arrives late.
"""

import asyncio
import contextlib
import enum
import random
import socket
import struct
import threading
from concurrent.futures import Future
from typing import Final

from testbed.ports import LOOPBACK, PortPool

_CHUNK: Final = 65536
_DELAY: Final = 0.15
"""Seconds that a slow relay holds up each chunk."""

_LOST: Final = 0.1
"""Share of chunks that look lost."""
_REPEATED: Final = (0.2, 0.6, 1.4)
"""Seconds until TCP has repeated a packet once, twice and three times."""

_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with a time of 0: closing sends RST."""


class Mode(enum.Enum):
    """What a relay does."""

    PASS = "pass"  # noqa: S105 - no password
    HOLE = "hole"
    RESET = "reset"
    SLOW = "slow"
    LOSSY = "lossy"


class Relay:
    """Forwards connections to one port.

    Args:
        port: that it listens on.
        target: that it forwards to.
    """

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self._target = target
        self._mode = Mode.PASS
        self._passes = asyncio.Event()
        self._passes.set()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self) -> None:
        """Listen from now on."""
        self._server = await asyncio.start_server(self._accept, LOOPBACK, self.port)

    def end(self) -> None:
        """Listen no more, and end all connections."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            _reset(writer)

    async def set_mode(self, mode: Mode) -> None:
        """Change what it does; connections that were open are reset, or stand still."""
        self._mode = mode
        if mode is Mode.HOLE:
            self._passes.clear()
        else:
            self._passes.set()
        if mode is Mode.RESET:
            for writer in list(self._writers):
                _reset(writer)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode is Mode.RESET:
            _reset(writer)
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(LOOPBACK, self._target)
        except OSError:
            _reset(writer)
            return
        self._writers |= {writer, far_writer}
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(reader, far_writer))
                both.create_task(self._pump(far_reader, writer))
        except* (OSError, EOFError):
            pass
        finally:
            self._writers -= {writer, far_writer}
            for end in (writer, far_writer):
                end.close()

    def _delay(self) -> float:
        match self._mode:
            case Mode.SLOW:
                return _DELAY
            case Mode.LOSSY if random.random() < _LOST:
                return random.choice(_REPEATED)
            case _:
                return 0.0

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            await self._passes.wait()
            await asyncio.sleep(self._delay())
            writer.write(data)
            await writer.drain()
        raise EOFError("the other side has closed")


class Network:
    """All relays, in a thread of their own; a context manager.

    Args:
        ports: where free ports come from.
    """

    def __init__(self, ports: PortPool | None = None) -> None:
        self._ports = ports or PortPool()
        self._loop = asyncio.new_event_loop()
        self._relays: dict[int, Relay] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Forward nothing any more."""
        self._done(asyncio.run_coroutine_threadsafe(self._end(), self._loop))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._ports.close()

    def relay(self, target: int) -> int:
        """Make a relay to a port; returns its own port."""
        made = Relay(self._ports.take(), target)
        self._relays[made.port] = made
        self._done(asyncio.run_coroutine_threadsafe(made.serve(), self._loop))
        return made.port

    def set_mode(self, port: int, mode: Mode) -> None:
        """Change what the relay on a port does."""
        self._done(asyncio.run_coroutine_threadsafe(self._relays[port].set_mode(mode), self._loop))

    async def _end(self) -> None:
        for relay in self._relays.values():
            relay.end()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    def _done(future: "Future[None]") -> None:
        future.result(timeout=30)


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
