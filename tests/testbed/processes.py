"""A small supervisor: starts processes with log and pid files, waits for them, stops them.

Only processes that were started here are ever signalled, by pid and start time, so a pid that the
system has given to someone else meanwhile is left alone. Each process leads a session of its own:
a kill takes its whole group with it.

By default a process dies with the one that started it (`PR_SET_PDEATHSIG`), so that a killed test
run leaves nothing behind. The kernel ties that to the *thread* that started it: start processes
from a thread that lives as long as they should.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import psutil

from testbed.errors import MissingPrerequisiteError, ProcessDiedError, log_tail
from testbed.waiting import wait_until

T = TypeVar("T")
_UNLESS_ORPHANED = '[ "$PPID" = "$0" ] && exec "$@"'
"""A parent that was killed before its child asked to die with it is not noticed by the kernel."""

_SAME_START = 0.05  # seconds; the kernel counts start times in ticks of 10 ms


@dataclass(slots=True)
class Child:
    """A process that a supervisor started, in this run or in an earlier one.

    Attributes:
        name: unique within its supervisor.
        pid: its process id, also its process group.
        started: its start time as seconds since the epoch; together with the pid its identity.
        log: where its output goes.
        stop_signal: what asks it to end.
    """

    name: str
    pid: int
    started: float
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM
    _popen: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        if self._popen is not None:
            return self._popen.poll() is None
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < _SAME_START
            return same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None while it runs, or if another run started it."""
        return self._popen.poll() if self._popen is not None else None

    def check(self) -> None:
        """Do nothing while it runs.

        Raises:
            ProcessDiedError: it ended; the message has the end of its log.
        """
        if not self.alive():
            code = self._popen.returncode if self._popen else "unknown"
            told = f"{self.name} (pid {self.pid}) ended, exit code {code}"
            raise ProcessDiedError(f"{told}; end of {self.log}:\n{log_tail(self.log)}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it; nothing happens if it is gone."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill_group(self) -> None:
        """SIGKILL to it and to all that it started in its group, also when itself is gone."""
        for process in _group_members(self.pid):
            with contextlib.suppress(psutil.NoSuchProcess):
                # its pid may be someone else's by now; who began before it is not of its group
                if process.create_time() >= self.started - _SAME_START:
                    process.kill()


class Supervisor:
    """The processes of one testbed, recorded under `run_dir` so that a later run can stop them.

    Args:
        run_dir: gets `logs/NAME.log` and `pids/NAME.json`.
        detach: let the processes outlive this one; someone must stop them by `adopt` later.
    """

    def __init__(self, run_dir: Path, *, detach: bool = False) -> None:
        self.run_dir = run_dir
        self.logs = run_dir / "logs"
        self._pids = run_dir / "pids"
        self._detach = detach
        self._children: dict[str, Child] = {}
        for folder in (self.logs, self._pids):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def children(self) -> list[Child]:
        """In the order in which they were started."""
        return list(self._children.values())

    def start(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> Child:
        """Start a process; its output is appended to its log.

        Args:
            name: of the process; one that runs under this name already is an error of the caller.
            argv: program and arguments.
            env: its whole environment; this process's own if None.
            cwd: its working directory.
            stop_signal: what `stop` sends first.
        """
        if name in self._children and self._children[name].alive():
            raise ValueError(f"{name} runs already")
        words = [str(word) for word in argv]
        log = self.logs / f"{name}.log"
        with log.open("ab") as output:
            popen = subprocess.Popen(  # noqa: S603 - the testbed runs what it has built itself
                words if self._detach else _die_with_parent(words),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        child = Child(name, popen.pid, _start_time(popen.pid), log, stop_signal, popen)
        self._children[name] = child
        self._record(child)
        return child

    def take_over(self, child: Child) -> Child:
        """Stop a process with the others that something else started.

        It must lead a session of its own.
        """
        self._children[child.name] = child
        self._record(child)
        return child

    def wait_ready(
        self,
        child: Child,
        condition: Callable[[], T],
        timeout: float,
        *,
        ignoring: tuple[type[Exception], ...] = (),
    ) -> T:
        """Wait until a process is ready.

        Args:
            child: the process.
            condition: truthy when it is; see `wait_until`.
            timeout: seconds.
            ignoring: exceptions of the condition that count as "not yet".

        Raises:
            ProcessDiedError: it died meanwhile.
            DeadlineError: it was not ready in time.
        """

        def ready() -> T:
            child.check()
            return condition()

        what = f"{child.name} to be ready (log: {child.log})"
        return wait_until(ready, timeout, what, ignoring=ignoring)

    def stop(self, child: Child, *, grace: float = 10.0) -> None:
        """End a process: its stop signal, `grace` seconds, then SIGKILL to its whole group."""
        self.stop_together([child], grace=grace)

    def stop_together(self, children: Sequence[Child], *, grace: float = 10.0) -> None:
        """End several processes at once, so that they share the grace period."""
        for child in children:
            child.signal(child.stop_signal)
        deadline = time.monotonic() + grace
        while time.monotonic() < deadline and any(child.alive() for child in children):
            time.sleep(0.02)
        for child in children:
            self._end(child)

    def kill(self, child: Child) -> None:
        """End a process and its group at once, as a crash would."""
        self._end(child)

    def stop_all(self, *, grace: float = 10.0) -> None:
        """Stop everything, the youngest first."""
        for child in reversed(self.children):
            self.stop(child, grace=grace)

    def adopt(self) -> list[Child]:
        """Take over the processes that an earlier run recorded here and that still run."""
        records = (json.loads(path.read_text()) for path in self._pids.glob("*.json"))
        for record in sorted(records, key=lambda record: float(record["started"])):
            name = str(record["name"])
            log = self.logs / f"{name}.log"
            stop_signal = signal.Signals(int(record["stop_signal"]))
            child = Child(name, int(record["pid"]), float(record["started"]), log, stop_signal)
            if child.alive():
                self._children.setdefault(name, child)
            else:
                self._pid_file(name).unlink(missing_ok=True)
        return self.children

    def _record(self, child: Child) -> None:
        record = {
            "name": child.name,
            "pid": child.pid,
            "started": child.started,
            "stop_signal": int(child.stop_signal),
        }
        self._pid_file(child.name).write_text(json.dumps(record))

    def _end(self, child: Child) -> None:
        child.kill_group()
        wait_until(
            lambda: not child.alive(),
            10,
            f"{child.name} (pid {child.pid}) to be gone",
            interval=0.01,
        )
        self._children.pop(child.name, None)
        self._pid_file(child.name).unlink(missing_ok=True)

    def _pid_file(self, name: str) -> Path:
        return self._pids / f"{name}.json"


def _die_with_parent(words: list[str]) -> list[str]:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise MissingPrerequisiteError(
            "`setpriv` is missing. It is a part of util-linux 2.33 or newer."
        )
    return [
        setpriv,
        "--pdeathsig",
        "KILL",
        "--",
        "/bin/sh",
        "-c",
        _UNLESS_ORPHANED,
        str(os.getpid()),
        *words,
    ]


def _group_members(group: int) -> list[psutil.Process]:
    members = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getpgid(process.pid) == group:
                members.append(process)
    return members


def _start_time(pid: int) -> float:
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:  # it died at once; no one will find it by this time
        return time.time()
