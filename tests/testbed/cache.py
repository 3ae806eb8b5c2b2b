"""A cache of built things, keyed by the content of what they are built from.

An artefact is a folder `<root>/<name>-<key>`. It is filled under a temporary name and renamed when
it is complete, so a folder with the final name is always whole; a lock file per name keeps two
concurrent runs from building the same thing twice. Nothing depends on the cache having been there
before.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

KEY_LENGTH = 16
"""Hexadecimal digits of a key: 64 bits, plenty for a handful of artefacts."""


def default_root() -> Path:
    """`$BALANCED_SOURCE_CACHE`, else `balanced-source` in the user's cache folder."""
    if own := os.environ.get("BALANCED_SOURCE_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "balanced-source"


def content_key(*parts: str | bytes | Path) -> str:
    """A key over texts, bytes and the content of files; where one part ends matters."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part
        data = data.encode() if isinstance(data, str) else data
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()[:KEY_LENGTH]


class Cache:
    """Artefacts in one folder, shared by all checkouts and runs of a user."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or default_root()

    def find(self, name: str, key: str) -> Path | None:
        """The complete artefact, or None if it has to be made."""
        path = self.root / f"{name}-{key}"
        return path if path.is_dir() else None

    def artefact(self, name: str, key: str, build: Callable[[Path], None]) -> Path:
        """The artefact's folder, made by `build` if it is not there.

        Args:
            name: what it is; artefacts of one name are built one at a time, over all processes.
            key: from `content_key`.
            build: fills the empty folder it is given; if it raises, nothing is kept.
        """
        if found := self.find(name, key):
            return found
        with self.lock(name):
            # another process may have finished it while this one waited for the lock
            return self.find(name, key) or self._make(name, key, build)

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the lock of `name` against other processes; it falls with the process."""
        path = self.root / "locks" / f"{name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _make(self, name: str, key: str, build: Callable[[Path], None]) -> Path:
        final = self.root / f"{name}-{key}"
        # the lock is held, so a left-over of this name is from a run that was killed
        partial = self.root / f".partial-{name}-{key}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            build(partial)
            partial.rename(final)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return final
