"""``balanced-source run`` as a process, and what it prints."""

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from testbed.waiting import wait_until


class Run:
    """The command in a folder, and what it has printed.

    Args:
        folder: where it runs; it has the manifest.
        manifest: name of the file.
        options: further options of the command.
    """

    def __init__(self, folder: Path, manifest: str = "laptop.yaml", *options: str) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(  # noqa: S603 - our own program
            [
                sys.executable,
                "-m",
                "balanced_source_operator.command",
                "run",
                "-f",
                manifest,
                *options,
            ],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(self.process.stdout)

    def wait_for(self, *parts: str) -> None:
        """Wait for a line with all of these."""

        def is_there() -> bool:
            assert self.process.poll() is None, "".join(self.lines)
            return any(all(part in line for part in parts) for line in list(self.lines))

        wait_until(is_there, 240, f"a line with {parts}", interval=0.1)

    def kill_driver(self) -> None:
        """Kill Spark with all of its processes, as a machine that runs out of memory does.

        The command fails then.
        """
        driver = psutil.Process(self.process.pid).children()[0]
        for process in (driver, *driver.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        assert self.process.wait(120) != 0

    def end(self) -> int:
        """Stop it as a supervisor does; returns the exit code."""
        # SIGINT is ignored where the tests run in the background
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(120)
        self._reader.join()
        return code

    def close(self) -> None:
        """Close the pipe of a command that has ended."""
        self._reader.join(60)
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def running(folder: Path, manifest: str = "laptop.yaml", *options: str) -> Iterator[Run]:
    """Start the command; it is over when the block is."""
    run = Run(folder, manifest, *options)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            run.process.terminate()
            run.process.wait(120)
        run.close()
