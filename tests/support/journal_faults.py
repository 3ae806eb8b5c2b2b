"""Faults of tasks that read with a journal.

It runs as `sitecustomize` in every Python process of a query.

A file in the folder FAULTS is a fault that happens once. This module is copied beside the wheels:
it imports nothing of the tests.
"""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

FOLDER = os.environ.get("FAULTS", "")


def taken(name: str) -> bool:
    """Whether this process, of all that try, has taken a fault."""
    try:
        (Path(FOLDER) / name).unlink()
    except OSError:
        return False
    return True


def hold(name: str, *, until: str = "") -> None:
    """Say that this process stands still here, until it is killed or may continue."""
    (Path(FOLDER) / name).touch()
    while not (until and (Path(FOLDER) / until).exists()):
        time.sleep(0.02)


def install() -> None:
    """Wrap the journal of this process."""
    from balanced_source_spark.journal_stores.folder import FolderJournal

    seal, read = FolderJournal.seal, FolderJournal.read

    def faulty_seal(self: Any, record: Any) -> Any:
        result = seal(self, record)
        if record.starts and taken("kill-task-after-seal"):
            os.kill(os.getpid(), signal.SIGKILL)
        if record.starts and taken("hold-task-after-seal"):
            hold("task-holds")
        return result

    def faulty_read(self: Any, key: Any) -> Any:
        is_planning = threading.current_thread().name.startswith("bsrc-journal")
        if not is_planning and taken(f"slow-reader-{key.reader}"):
            hold("reader-is-slow", until="go-on")
            (Path(FOLDER) / "zombie-goes-on").touch()
        return read(self, key)

    setattr(FolderJournal, "seal", faulty_seal)  # noqa: B010 - for the type checker
    setattr(FolderJournal, "read", faulty_read)  # noqa: B010


if FOLDER:
    install()
