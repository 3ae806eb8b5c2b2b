"""One container over its restarts."""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.process_node.last_words import LastWords
from testbed.process_node.launcher import Launcher
from testbed.process_node.reporter import StatusReporter
from testbed.process_node.status import (
    ContainerStatus,
    exit_code,
    running,
    terminated,
    timestamp,
    waiting,
)

# much shorter than a kubelet's 10 s … 5 min: a test waits for it
_FIRST_BACKOFF, _LAST_BACKOFF = 1.0, 60.0
_STABLE_SECONDS = 60.0  # a run of this length ends the back-off
_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Container:
    """Runs one container, again and again if the restart policy says so.

    Attributes:
        spec: of the container.
        policy: `Always`, `OnFailure` or `Never`.
        is_init: it runs to its end before the others begin, and is not repeated after a success.
        launcher: starts it.
        status: its part of the pod's status.
        reporter: told about each change.
        logs: folder of the pod's logs.
    """

    spec: Mapping[str, Any]
    policy: str
    is_init: bool
    launcher: Launcher
    status: ContainerStatus
    reporter: StatusReporter
    logs: Path
    _process: asyncio.subprocess.Process | None = None
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def runs(self) -> bool:
        """Whether its main process lives."""
        return self._process is not None and self._process.returncode is None

    async def run(self) -> int:
        """Run until it ends for good; returns its last exit code."""
        backoff = _FIRST_BACKOFF
        while True:
            begun = time.monotonic()
            code = await self._run_once()
            if self._stopping.is_set() or not self._again(code):
                return code
            if time.monotonic() - begun > _STABLE_SECONDS:
                backoff = _FIRST_BACKOFF
            await self._pause(backoff)
            if self._stopping.is_set():
                return code
            backoff = min(backoff * 2, _LAST_BACKOFF)

    def terminate(self) -> None:
        """Ask the main process to end, and do not start it again."""
        self._stopping.set()
        if self.runs and self._process:
            self._process.terminate()

    def kill(self) -> None:
        """End the whole process group at once, and do not start it again."""
        self._stopping.set()
        self._kill_group()

    async def wait(self) -> None:
        """Wait until the main process is gone."""
        if self._process:
            await self._process.wait()

    async def _run_once(self) -> int:
        log = self.logs / f"{self.spec['name']}.{self.status.restarts}.log"
        started = timestamp()
        words = LastWords(self.spec, self.launcher.folder, log)
        self._process = await self.launcher.start(self.spec, log, words.binds)
        if self._stopping.is_set():  # asked to stop while it was being started
            self._kill_group()
        _log.info(
            "%s: %s is process %d", self.launcher.pod.name, self.spec["name"], self._process.pid
        )
        self.status.container_id = f"process://{self._process.pid}"
        self._set_state(running(started))
        code = exit_code(await self._process.wait())
        self._kill_group()
        _log.info("%s: %s ended with %d", self.launcher.pod.name, self.spec["name"], code)
        message = words.text(code)
        self._set_state(terminated(code, started, self.status.container_id, message))
        return code

    def _again(self, code: int) -> bool:
        if code == 0 and self.is_init:
            return False
        return self.policy == "Always" or (self.policy == "OnFailure" and code != 0)

    async def _pause(self, seconds: float) -> None:
        self.status.last = self.status.state
        self.status.restarts += 1
        self._set_state(
            waiting("CrashLoopBackOff", f"back-off {seconds:g} s before the next start")
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    def _set_state(self, state: dict[str, Any]) -> None:
        self.status.state = state
        self.reporter.changed()

    def _kill_group(self) -> None:
        # what the main process has left; also when itself is gone
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
