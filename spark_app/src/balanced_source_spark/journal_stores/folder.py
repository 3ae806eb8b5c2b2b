"""Journals in a folder that driver and executors share: a file per record, created by hard link.

A link fails if its name is taken, on local file systems and on NFS; a rename would replace the
file. The content is whole before it has its name, so no reader ever sees half a record. A process
that acts on a record makes its name durable first: a machine that loses power must not forget a
range whose rows were emitted.

Each journal has a folder of its own, with a marker that only the driver writes. No one else makes a
folder: an executor that does not see the driver's folder fails, where it would seal records that
no one reads.
"""

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from balanced_source.documents.journal import JournalRecord, RecordKey, decode, encode
from balanced_source.errors import ForeignJournalError, JournalError
from balanced_source.host.journal import SealResult
from balanced_source_spark.journal_stores.naming import (
    MARKER,
    OFFSETS,
    SUFFIX,
    entries,
    foreign,
    home_of,
    name_of,
    newest_entry,
    number_of,
)

_GRANT: Final = (
    "Grant the user of driver and executors the right to read, write and list the folder"
)
_MOUNT: Final = "Mount it such that driver and executors can write to it"
_ROOM: Final = "Make room on its file system, or raise the quota"

_REMEDIES: Final[Mapping[int, str]] = MappingProxyType(
    {
        errno.EACCES: _GRANT,
        errno.EPERM: _GRANT,
        errno.EROFS: _MOUNT,
        errno.ENOSPC: _ROOM,
        errno.EDQUOT: _ROOM,
    }
)

_CERTAIN: Final = frozenset({*_REMEDIES, errno.ENOENT, errno.ENOTSUP, errno.EMLINK, errno.EXDEV})
"""Answers of the file system: no name was created."""


@dataclass(frozen=True, slots=True)
class FolderJournal:
    """See `balanced_source.host.journal.JournalStore`.

    Attributes:
        folder: where the journals are.
    """

    folder: Path

    @property
    def location(self) -> str:
        return str(self.folder)

    def create(self, journal: str) -> None:
        home = self._home(journal)
        try:
            home.mkdir(parents=True, exist_ok=True)
            self._prove(home)
            self._link(home / MARKER, f"journal {journal} of Balanced Source\n")
            # The names of new folders must survive a loss of power as the marker in them does.
            for folder in (self.folder, self.folder.parent):
                _make_durable(folder)
        except OSError as error:
            raise self._unusable(error) from error

    def check(self, journal: str) -> None:
        try:
            is_here = (self._home(journal) / MARKER).exists()
        except OSError as error:
            raise self._unusable(error) from error
        if not is_here:
            raise foreign(journal, self.location)

    def newest(self, journal: str) -> int:
        try:
            return max((number for number, _ in self._records(journal)), default=0)
        except OSError as error:
            raise self._unusable(error) from error

    def newest_offsets(self) -> str | None:
        log = self.folder.parent / OFFSETS
        try:
            newest = newest_entry(path.name for path in log.iterdir())
            return None if newest is None else (log / newest).read_text(encoding="utf-8")
        except (OSError, UnicodeError):
            return None

    def logged_batches(self) -> int:
        try:
            return entries(path.name for path in (self.folder.parent / OFFSETS).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return 0
        except OSError as error:
            raise self._unusable(error) from error

    def read(self, key: RecordKey) -> JournalRecord | None:
        """See `Journal`.

        Raises CorruptDocumentError for a file that is not a record of this journal.
        """
        path = self._path(key)
        try:
            text = path.read_text(encoding="utf-8")
            _make_durable(path.parent)  # whoever sealed it may have died before that
        except FileNotFoundError:
            self._check_reachable(key.journal)
            return None
        except OSError as error:
            raise self._unusable(error) from error
        return decode(text, source=key.journal, key=key)

    def seal(self, record: JournalRecord) -> SealResult:
        """See `Journal`."""
        path, text = self._path(record.key), encode(record, source=record.key.journal)
        try:
            with self._written(path, text) as temporary:
                # The content is whole before it has its name, so no reader sees half a record.
                return self._linked(temporary, path)
        except OSError as error:
            raise self._unusable(error) from error

    def delete_below(self, journal: str, number: int) -> None:
        """See `Journal`; what cannot be deleted is left for the next time."""
        with contextlib.suppress(OSError):
            for found, path in [*self._records(journal), *self._leftovers(journal)]:
                if found < number:
                    path.unlink(missing_ok=True)

    def delete_made_before(self, prefix: str, time: float) -> None:
        """See `JournalStore`.

        The marker goes first: without it, no task begins a range that others have emitted.
        """
        with contextlib.suppress(OSError):
            for home in [path for path in self.folder.glob(f"{prefix}*") if _made(path) < time]:
                (home / MARKER).unlink(missing_ok=True)
                shutil.rmtree(home, ignore_errors=True)

    def _records(self, journal: str) -> Iterator[tuple[int, Path]]:
        for path in self._home(journal).glob(f"[0-9]*{SUFFIX}"):
            yield number_of(path.name), path

    def _leftovers(self, journal: str) -> Iterator[tuple[int, Path]]:
        """Temporary files of tasks that died before they could delete them."""
        for path in self._home(journal).glob(f".[0-9]*{SUFFIX}.*"):
            yield number_of(path.name.removeprefix(".")), path

    def _check_reachable(self, journal: str) -> None:
        """No record, or no folder: a record that is not seen may exist."""
        try:
            self.check(journal)
        except ForeignJournalError as error:
            raise JournalError(
                f"journal {journal} is not in {self.folder}: journalLocation must be a folder that"
                " the driver and all executors share. Mount it in all pods. The journal of a batch"
                " query is deleted after a week: read its source again"
            ) from error

    def _prove(self, home: Path) -> None:
        """Create a file twice.

        Where that works twice, two attempts would emit different records.
        """
        probe = home / f".probe-{uuid.uuid4().hex}"
        outcomes = [self._link(probe, text) for text in ("first", "second")]
        content = probe.read_text(encoding="utf-8")
        probe.unlink()
        if outcomes != [True, False] or content != "first":
            raise JournalError(
                f"journal {self.folder} cannot create a file only if there is none: use a folder on"
                " a file system with hard links"
            )

    def _link(self, path: Path, text: str) -> bool:
        """Create a file unless there is one; returns whether it was created."""
        with self._written(path, text) as temporary:
            try:
                os.link(temporary, path)
                _make_durable(path.parent)
            except FileExistsError:
                return False
        return True

    def _linked(self, temporary: Path, path: Path) -> SealResult:
        try:
            os.link(temporary, path)
        except FileExistsError:
            return SealResult.TAKEN
        except OSError as error:
            # The file system has refused: nothing was created, so there is nothing to read back.
            if error.errno in _CERTAIN:
                raise
            # The link may have been made all the same: reading it back tells.
            return SealResult.UNKNOWN
        try:
            _make_durable(path.parent)
        except OSError:
            # The link is there, perhaps not on the disk yet: reading it back tries again.
            return SealResult.UNKNOWN
        return SealResult.SEALED

    @staticmethod
    @contextlib.contextmanager
    def _written(path: Path, text: str) -> Iterator[Path]:
        """A file beside `path` with this content, for as long as it is needed."""
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            with temporary.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                # Before the link: a name that survives a loss of power must have its content.
                os.fsync(file.fileno())
            yield temporary
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _path(self, key: RecordKey) -> Path:
        return self._home(key.journal) / name_of(key)

    def _home(self, journal: str) -> Path:
        return self.folder / home_of(journal)

    def _unusable(self, error: OSError) -> JournalError:
        remedy = _REMEDIES.get(error.errno or 0, "Check the folder and its rights")
        return JournalError(f"journal {self.folder} cannot be used: {error}. {remedy}")


def _make_durable(folder: Path) -> None:
    """Write the names of a folder's files to the disk.

    File systems that cannot do that do it at once (NFS).
    """
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(number)


def _made(home: Path) -> float:
    """Return when a journal was made; one without a marker was deleted in part."""
    marker = home / MARKER
    return (marker if marker.exists() else home).stat().st_mtime
