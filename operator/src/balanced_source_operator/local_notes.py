"""What local mode leaves in its folder for ``status`` and ``top``: problems, whether it runs."""

import fcntl
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final

import structlog

from balanced_source.redaction import redacted_text
from balanced_source_adapters.folder import read_text, write_atomically

Notes = Mapping[tuple[str, ...], str]
"""Sentences by what they are about; a sentence that replaces another one has the same key."""

_NONE: Final[Notes] = MappingProxyType({})

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What is known of the newest process that served a folder.

    Attributes:
        is_active: whether it still serves the folder; None if unknown, as for one of an older
            version.
        problems: what was wrong when it last looked.
        ending: how it has ended, such as "stopped after batch 3"; empty if it did not say.
    """

    is_active: bool | None = None
    problems: Notes = field(default_factory=dict)
    ending: str = ""


class LocalNotes:
    """Writes down what is wrong, each change once, and holds a lock as long as the process lives.

    Args:
        folder: of local mode.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: IO[str] | None = None
        self._written = RecordedRun()
        self._has_failed = False

    def begin(self) -> None:
        """Take the lock, which ends with the process however that ends, and forget a former run."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = _lock_path(self._folder).open("w")
            # Shared: one who looks must never be the reason for which this waits for ever.
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        except OSError as error:
            self._warn(error)
        self._write(RecordedRun())

    def note(self, problems: Notes) -> None:
        """Write the problems down if they have changed."""
        if problems != self._written.problems:
            self._write(RecordedRun(problems=problems))

    def end(self, ending: str) -> None:
        """Write down how the run has ended; see `RecordedRun`."""
        self._write(RecordedRun(problems=self._written.problems, ending=ending))

    def close(self) -> None:
        """Give the lock back; the file stays."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _write(self, run: RecordedRun) -> None:
        self._written = run
        content = {
            "problems": [
                {"key": list(key), "message": redacted_text(message)}
                for key, message in run.problems.items()
            ],
            "ending": redacted_text(run.ending),
        }
        try:
            write_atomically(_notes_path(self._folder), json.dumps(content))
        except OSError as error:
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        """Say once that others cannot see the problems; the source is served nevertheless."""
        if not self._has_failed:
            self._has_failed = True
            log.warning(
                "status and top cannot show problems of this folder",
                folder=str(self._folder),
                error=str(error),
            )


def read_run(folder: Path) -> RecordedRun:
    """Return what a folder says of the newest process that served it."""
    try:
        found = json.loads(read_text(_notes_path(folder)) or "{}")
    except (OSError, ValueError):
        found = {}
    problems, ending = _parsed(found)
    return RecordedRun(is_active=_is_active(folder), problems=problems, ending=ending)


def _parsed(found: Any) -> tuple[Notes, str]:
    match found:
        case {"problems": list(problems), "ending": str(ending)}:
            return dict(filter(None, map(_problem, problems))), ending
        case _:
            return _NONE, ""


def _problem(found: Any) -> tuple[tuple[str, ...], str] | None:
    match found:
        case {"key": list(key), "message": str(message)}:
            return tuple(map(str, key)), message
        case _:
            return None


def _is_active(folder: Path) -> bool | None:
    try:
        with _lock_path(folder).open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def _lock_path(folder: Path) -> Path:
    return folder / ".run.lock"


def _notes_path(folder: Path) -> Path:
    return folder / "notes.json"
