"""A journal in a folder: a file per record, created by hard link.

A link fails if its name is taken, on local file systems and on NFS; a rename would replace the file. The content is
whole before it has its name, so no reader ever sees half a record.
"""

import contextlib
import os
import uuid
from pathlib import Path
from typing import Final

from balanced_source.documents.journal import JournalRecord, RecordKey, decode, encode
from balanced_source.errors import JournalError
from balanced_source.host.journal import SealResult
from balanced_source.names import checked_label

_SUFFIX: Final = ".json"


class FolderJournal:
    """See `balanced_source.host.journal.Journal`.

    Args:
        folder: where the journals are; a folder per journal is made in it.
        source: uid of the source, or another name that tells it from others.

    Raises:
        JournalError: the folder cannot be written to, or does not support hard links.
    """

    def __init__(self, folder: Path, *, source: str) -> None:
        self._folder = folder
        self._source = source
        self._prove()

    def read(self, key: RecordKey) -> JournalRecord | None:
        """See `Journal`; raises CorruptDocumentError for a file that is no record of this source."""
        try:
            text = self._path(key).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error) from error
        return decode(text, source=self._source, key=key)

    def seal(self, record: JournalRecord) -> SealResult:
        """See `Journal`."""
        path = self._path(record.key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            is_created = self._link(path, encode(record, source=self._source))
        except OSError:
            return SealResult.UNKNOWN
        return SealResult.SEALED if is_created else SealResult.TAKEN

    def delete_below(self, journal: str, number: int) -> None:
        """See `Journal`; what cannot be deleted is left for the next time."""
        for path in self._home(journal).glob(f"*{_SUFFIX}"):
            if int(path.name.split("-", 1)[0]) < number:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _prove(self) -> None:
        """Create a file twice: a folder on which that works twice would let two attempts emit different records."""
        probe = self._folder / f".probe-{uuid.uuid4().hex}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            outcomes = [self._link(probe, text) for text in ("first", "second")]
            content = probe.read_text(encoding="utf-8")
            probe.unlink()
        except OSError as error:
            raise self._unusable(error) from error
        if outcomes != [True, False] or content != "first":
            raise JournalError(
                f"journal {self._folder} cannot create a file only if there is none: use a folder on a file "
                "system with hard links"
            )

    @staticmethod
    def _link(path: Path, text: str) -> bool:
        """Create a file unless there is one; returns whether it was created."""
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            with temporary.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def _path(self, key: RecordKey) -> Path:
        return self._home(key.journal) / f"{key.number}-{key.reader}{_SUFFIX}"

    def _home(self, journal: str) -> Path:
        return self._folder / checked_label(journal, field="journal")

    def _unusable(self, error: OSError) -> JournalError:
        return JournalError(f"journal {self._folder} cannot be used: {error}. Check the folder and its rights")
