"""``python -m chaos.light.zygote``.

Imports everything once and forks drivers and operators from there.

Starting a driver from a new interpreter costs seconds of a core, most of a schedule. As
`pyspark.daemon` does for workers, a process without threads imports what they need and forks them.
The child leads a session of its own and dies with the zygote.

Requests arrive on standard input (a socket) as frames: what to run, its arguments, its log. The
answer is a process id.
"""

import contextlib
import importlib
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import psutil

from chaos.children import die_with_parent, environment
from chaos.light.frames import Channel
from testbed.processes import Child

_PRELOAD: Final = (
    "chaos.light.driver",
    "chaos.light.task_worker",
    "balanced_source_operator.cli",
    "balanced_source_operator.local",
    "balanced_source_operator.logs",
    "balanced_source_spark.kafka.native",
    "balanced_source_spark.kafka.range_reader",
    "balanced_source_spark.files.task_reader",
    "balanced_source_adapters.kinesis.reader",
    "pyarrow",
    "confluent_kafka.admin",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a child does.

    Attributes:
        entry: `module:function`, called without arguments.
        arguments: `sys.argv[1:]`.
        log: gets standard output and standard error.
    """

    entry: str
    arguments: Sequence[str]
    log: Path


class Zygote:
    """Starts children; a context manager. May be used by several threads."""

    def __init__(self) -> None:
        ours, its = socket.socketpair()
        self._channel = Channel(ours)
        command = [sys.executable, "-m", "chaos.light.zygote"]
        # Our own
        self._process = subprocess.Popen(command, stdin=its.fileno(), env=environment())  # noqa: S603
        its.close()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()
        self._process.wait(timeout=30)

    def start(self, name: str, request: Request) -> Child:
        """Start a child.

        Args:
            name: of the child.
            request: what it does.

        Raises:
            EOFError: the zygote is gone.
        """
        with self._lock:
            self._channel.send(request)
            pid = int(self._channel.receive())
        return Child(name, pid, _start_time(pid), request.log)


def _start_time(pid: int) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).create_time()
    return 0.0


def main() -> None:
    """Serve requests until the other side is gone."""
    for name in _PRELOAD:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
    channel = Channel(socket.socket(fileno=os.dup(0)))
    with contextlib.suppress(EOFError):
        while True:
            request = channel.receive()
            pid = os.fork()
            if pid == 0:
                channel.close()
                _become(request)
            channel.send(pid)


def _become(request: Request) -> None:
    """Run a request in a child; never returns."""
    code = 1
    try:
        die_with_parent()
        _take_over(request.log)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        sys.argv = [request.entry, *request.arguments]
        module, function = request.entry.split(":")
        getattr(importlib.import_module(module), function)()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - nothing may return into the zygote's loop
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _take_over(log: Path) -> None:
    """Give the child a session, and its own input and output instead of the zygote's."""
    os.setsid()
    nothing, out = (
        os.open(os.devnull, os.O_RDONLY),
        os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
    )
    for source, target in ((nothing, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(out)


if __name__ == "__main__":
    main()
