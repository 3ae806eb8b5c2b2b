"""Child processes of `make chaos`: they find this package however the parent was started."""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from testbed.versions import CHECKOUT

_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None)


def die_with_parent() -> None:
    """Let the kernel end this process with the one that forked it, also when it is stopped.

    Forks do not inherit it.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def environment() -> Mapping[str, str]:
    """Return the environment of a child that runs Python."""
    path = os.pathsep.join(filter(None, (str(CHECKOUT / "tests"), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


def judge(folder: Path, program: Path) -> dict[str, Any]:
    """Have a folder checked, in a process of its own.

    Raises:
        RuntimeError: the checker failed.
    """
    return _judged("chaos.checker", str(folder), str(program))


def judge_written(checker: str, folder: Path) -> dict[str, Any]:
    """Have a folder of a schedule without brokers checked, in a process of its own.

    Args:
        checker: module of `chaos.checker`.
        folder: of the schedule.

    Raises:
        RuntimeError: the checker failed.
    """
    return _judged(f"chaos.checker.{checker}", str(folder))


def _judged(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", *arguments]
    # Our own
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())  # noqa: S603
    if not done.stdout:
        raise RuntimeError(f"the checker failed: {done.stderr}")
    return {**json.loads(done.stdout), "is_ok": done.returncode == 0}
