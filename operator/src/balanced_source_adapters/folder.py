"""Documents as files in a folder: local mode, and tests.

Written by rename, so readers never see half of one.
"""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from balanced_source.errors import StateConflictError, StateError
from balanced_source.names import checked_label


def state_path(folder: Path) -> Path:
    """Where the enumerator state lies."""
    return folder / "enumerator.json"


def fixed_path(folder: Path) -> Path:
    """Where local mode keeps what must not change while the source lives."""
    return folder / "fixed.json"


def source_path(folder: Path) -> Path:
    """Where local mode keeps the name of the source."""
    return folder / "source.json"


def assignment_path(folder: Path) -> Path:
    """Where the assignment lies."""
    return folder / "assignment.json"


def report_path(folder: Path, host: str) -> Path:
    """Returns the path of a host's report.

    Raises:
        InvalidSpecError: the name of the host would lead out of the folder.
    """
    return folder / f"readers-{checked_label(host, field='host')}.json"


def read_text(path: Path) -> str | None:
    """A document; None if there is none."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


def write_atomically(path: Path, text: str) -> None:
    """Replace a file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, as a rename is one step only within a file system; one per thread, so that
    # two writers do not share it.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    temporary.write_text(text)
    temporary.replace(path)


class FolderStore:
    """A document with compare-and-swap: a writer has seen what it replaces.

    One object per process.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: str | None = None

    @property
    def path(self) -> Path:
        """Where the document lies."""
        return self._path

    def read(self) -> str | None:
        """What is stored; None if nothing is.

        Raises:
            StateError: it cannot be read.
        """
        try:
            self._known = read_text(self._path)
        except OSError as error:
            raise _unusable(self._path, error) from error
        return self._known

    def swap(self, text: str) -> None:
        """Store, if no one else has stored since.

        Raises:
            StateConflictError: someone has.
            StateError: it cannot be stored.
        """
        try:
            self._swap(text)
        except OSError as error:
            raise _unusable(self._path, error) from error

    def _swap(self, text: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self._path):
            if read_text(self._path) != self._known:
                raise StateConflictError(
                    f"{self._path} was written by another process: stop one of the two"
                )
            write_atomically(self._path, text)
            self._known = text


def _unusable(path: Path, error: OSError) -> StateError:
    return StateError(
        f"the stored state {path} cannot be used: {error.strerror or error}. Name a folder that"
        " this process may write into, and that has room"
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; the lock goes with the process."""
    # A file of its own: the document is replaced by a rename, and a lock on it would go with it.
    with path.with_name(f".{path.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class FolderWatch:
    """Tells when one of some files has changed."""

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self._stamps: dict[Path, tuple[int, int] | None] = {}

    def follow(self, *paths: Path) -> None:
        """Watch these files instead.

        `changed` tells of those that are there and were not watched before.
        """
        self._paths = paths
        self._stamps = {path: stamp for path, stamp in self._stamps.items() if path in paths}

    def changed(self) -> list[Path]:
        """Files that are new, changed or gone since the last call.

        At the first call all that are there.
        """
        found = []
        for path in self._paths:
            stamp = _stamp(path)
            if stamp != self._stamps.get(path):
                self._stamps[path] = stamp
                found.append(path)
        return found


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    # The inode too: two renames within one tick of the clock leave the same time.
    return stat.st_mtime_ns, stat.st_ino
