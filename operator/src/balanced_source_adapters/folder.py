"""Documents as files in a folder: local mode, and tests. Written by rename, so readers never see half of one."""

import os
import threading
from pathlib import Path


def state_path(folder: Path) -> Path:
    """Where the enumerator state lies."""
    return folder / "enumerator.json"


def assignment_path(folder: Path) -> Path:
    """Where the assignment lies."""
    return folder / "assignment.json"


def report_path(folder: Path, host: str) -> Path:
    """Where a host's report lies."""
    return folder / f"readers-{host}.json"


def read_text(path: Path) -> str | None:
    """A document; None if there is none."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


def write_atomically(path: Path, text: str) -> None:
    """Replace a file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    temporary.write_text(text)
    temporary.replace(path)


class FolderWatch:
    """Tells when one of some files has changed."""

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self._stamps: dict[Path, tuple[int, int] | None] = {}

    def changed(self) -> list[Path]:
        """Files that are new, changed or gone since the last call; at the first call all that are there."""
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
    return stat.st_mtime_ns, stat.st_ino
