"""Faults of processes that read with a journal.

It runs as `sitecustomize` in every Python process of a query.

A file in the folder FAULTS is a fault that happens once: to one task, or to the process that plans.
This module is copied beside the wheels: it imports nothing of the tests.
"""

import errno
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = os.environ.get("FAULTS", "")

_now = threading.local()
"""What this thread does or did.

The record that it seals, the one whose answer was lost, whether it deletes records, and whether it
is a zombie.
"""


def taken(name: str) -> bool:
    """Whether this process, of all that try, has taken a fault."""
    try:
        (Path(FOLDER) / name).unlink()
    except OSError:
        return False
    return True


def tell(name: str, text: str = "") -> None:
    """Say that something has happened."""
    partial = Path(FOLDER) / f".{name}"
    partial.write_text(text)
    partial.replace(Path(FOLDER) / name)


def hold(name: str, *, until: str = "", text: str = "") -> None:
    """Say that this process stands still here, until it is killed or may continue."""
    tell(name, text)
    while not (until and (Path(FOLDER) / until).exists()):
        time.sleep(0.02)


def die() -> None:
    """End this process as a lost machine would."""
    os.kill(os.getpid(), signal.SIGKILL)


def driver_dies() -> None:
    """End the driver. The process that plans is a child of its JVM."""
    os.kill(os.getppid(), signal.SIGKILL)
    die()


def become_zombie(key: Any) -> None:
    """Stand still until the task's micro-batch is over; names the record of the task."""
    hold("zombie-holds", until="go-on", text=f"{key.number}-{key.reader}.json")
    _now.is_zombie = True


def is_planning() -> bool:
    """Whether this thread asks the journal for the driver."""
    return threading.current_thread().name.startswith("bsrc-journal")


def faulty_seal(seal: Callable[..., Any]) -> Callable[..., Any]:
    """Tasks die, hold and lose answers around the seal of a record with something in it."""

    def call(self: Any, record: Any) -> Any:
        if is_planning():
            result = seal(self, record)
            if taken("kill-driver-within-close"):
                driver_dies()
            return result
        if record.starts and taken("kill-task-before-seal"):
            die()
        if record.starts and taken("hold-task-before-seal"):
            become_zombie(record.key)
        _now.record = record
        try:
            result = seal(self, record)
        finally:
            _now.record = None
        _as_zombie(result.value.lower())
        if record.starts and taken("kill-task-after-seal"):
            die()
        if record.starts and taken("hold-task-after-seal"):
            hold("task-holds")
        return result

    return call


def faulty_read(read: Callable[..., Any]) -> Callable[..., Any]:
    """Tasks become zombies before they look, and the driver dies between two records."""

    def call(self: Any, key: Any) -> Any:
        if is_planning():
            found = read(self, key)
            if found is not None and taken("kill-driver-within-fold"):
                driver_dies()
            return found
        if taken(f"hold-reader-{key.reader}"):
            become_zombie(key)
        found = read(self, key)
        if found is not None and found == getattr(_now, "lost", None):
            tell("answer-was-read-back")
        _as_zombie("found" if found is not None else "found-nothing")
        if found is not None:
            with (Path(FOLDER) / "reads-again").open("a") as log:
                log.write(f"{key.number} {key.reader} {os.getpid()}\n")
        return found

    return call


def _as_zombie(what: str) -> None:
    """Say what a task finds that was held until its micro-batch was over."""
    if getattr(_now, "is_zombie", False):
        tell(f"zombie-{what}")
        # A worker that lives on runs other tasks.
        _now.is_zombie = what not in {"found", "sealed"}


def faulty_create(create: Callable[..., Any]) -> Callable[..., Any]:
    """The driver dies when the journal is there, and no offset names it yet."""

    def call(self: Any, journal: str) -> None:
        create(self, journal)
        if taken("kill-driver-after-create"):
            driver_dies()

    return call


def faulty_delete(delete: Callable[..., Any]) -> Callable[..., Any]:
    """The driver dies when it has deleted one of several records."""

    def call(self: Any, journal: str, number: int) -> None:
        _now.deletes = True
        try:
            delete(self, journal, number)
        finally:
            _now.deletes = False

    return call


def faulty_link(link: Callable[..., Any]) -> Callable[..., Any]:
    """The file system of a task fails, or the task dies, where a record gets its name."""

    def call(source: Any, target: Any, **more: Any) -> None:
        record = getattr(_now, "record", None)
        if record is None or not record.starts:
            link(source, target, **more)
            return
        if taken("kill-task-within-seal"):
            die()
        if taken("lose-seal"):
            raise OSError(errno.EIO, "the request was lost")
        link(source, target, **more)
        if taken("lose-answer-of-seal"):
            _now.lost = record
            raise OSError(errno.EIO, "the answer was lost")

    return call


def faulty_unlink(unlink: Callable[..., Any]) -> Callable[..., Any]:
    """See `faulty_delete`."""

    def call(path: Any, **more: Any) -> None:
        unlink(path, **more)
        if getattr(_now, "deletes", False) and taken("kill-driver-within-delete"):
            driver_dies()

    return call


def install() -> None:
    """Wrap the journal of this process, and what it asks of the file system."""
    from balanced_source_spark.journal_stores.folder import FolderJournal

    for owner, name, wrap in (
        (FolderJournal, "seal", faulty_seal),
        (FolderJournal, "read", faulty_read),
        (FolderJournal, "create", faulty_create),
        (FolderJournal, "delete_below", faulty_delete),
        (os, "link", faulty_link),
        (os, "unlink", faulty_unlink),
    ):
        setattr(owner, name, wrap(getattr(owner, name)))


if FOLDER:
    install()
