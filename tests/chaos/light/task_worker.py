"""Worker processes that run tasks, forked from a process without threads as `pyspark.daemon` does.

A worker takes tasks from a socket, answers there, and ends with the driver, whose end of the socket
closes.
"""

import contextlib
import os
import signal
import socket
from typing import Any

from chaos.children import die_with_parent
from chaos.light.frames import Channel, run


class Daemon:
    """Forks workers on request. Make it before the first thread of the process."""

    def __init__(self) -> None:
        self._socket, its = socket.socketpair()
        if os.fork() == 0:
            self._socket.close()
            _serve(its)
        its.close()

    def worker(self) -> "Worker":
        """Start a worker."""
        ours, its = socket.socketpair()
        socket.send_fds(self._socket, [b"w"], [its.fileno()])
        its.close()
        return Worker(ours)


class Worker:
    """The driver's side of a worker process.

    Args:
        connection: to the process; its first frame is its process id.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._channel = Channel(connection)
        self._handle: int | None = None
        # it is dead already: the first task finds out
        with contextlib.suppress(EOFError, ProcessLookupError):
            self._handle = os.pidfd_open(int(self._channel.receive()))

    def run(self, task: Any) -> Any:
        """Run a task.

        Raises:
            EOFError: the process died.
        """
        self._channel.send(task)
        return self._channel.receive()

    def end(self) -> None:
        """End the process wherever it is."""
        self._channel.close()
        if self._handle is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            os.close(self._handle)
            self._handle = None


def _serve(control: socket.socket) -> None:
    """Fork a worker per message; never returns."""
    die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        message, handles, *_ = socket.recv_fds(control, 1, 1)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            control.close()
            _work(socket.socket(fileno=handles[0]))
        os.close(handles[0])


def _work(connection: socket.socket) -> None:
    """Serve tasks until the driver is gone; never returns."""
    die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    channel = Channel(connection)
    with contextlib.suppress(EOFError):
        channel.send(os.getpid())
        while True:
            channel.send(run(channel.receive()))
    os._exit(0)
