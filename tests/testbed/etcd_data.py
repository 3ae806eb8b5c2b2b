"""Where etcd keeps its data: in memory if possible, else under the run folder."""

import contextlib
import fcntl
import shutil
import tempfile
import time
from pathlib import Path

_MEMORY = Path("/dev/shm")  # noqa: S108 - the standard place, used through mkdtemp
_PREFIX = "balanced-source-etcd-"
_YOUNG = 600.0  # seconds in which a folder without a database may still be about to get one


class EtcdData:
    """The data folder of one etcd; a link `etcd-data` in the run folder tells where it is.

    Args:
        run_dir: the testbed's folder.
        memory: a memory file system, used if it exists.
    """

    def __init__(self, run_dir: Path, memory: Path = _MEMORY) -> None:
        self._link = run_dir / "etcd-data"
        self._memory = memory

    def create(self) -> Path:
        """Make an empty data folder, and remove those in memory that killed runs have left."""
        self.delete()
        if not self._memory.is_dir():
            self._link.mkdir(parents=True)
            return self._link
        _sweep(self._memory)
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._memory))
        self._link.symlink_to(path)
        return path

    def delete(self) -> None:
        """Remove the data, wherever they are."""
        if self._link.is_symlink():
            shutil.rmtree(self._link.readlink(), ignore_errors=True)
            self._link.unlink()
        elif self._link.exists():
            shutil.rmtree(self._link)


def _sweep(memory: Path) -> None:
    for folder in memory.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's, or being removed by another testbed
            if time.time() - folder.stat().st_mtime > _YOUNG and not _in_use(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _in_use(folder: Path) -> bool:
    """Whether an etcd runs on the folder: it holds a lock on its database as long as it lives."""
    database = folder / "member" / "snap" / "db"
    if not database.exists():
        return False
    with database.open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
