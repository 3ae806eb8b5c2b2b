"""A folder through which a program changes the number of readers of a query that assigns by itself.

The program and the planner are different processes on the driver's machine. The query's progress
names the folder, so that a program finds it again after a restart of the query.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from balanced_source.errors import BalancedSourceError
from balanced_source.names import shown
from balanced_source_adapters.lazy_log import get_logger

CONTROL: Final = "control"
"""Key of the folder in the `latestOffset` of a query's progress."""

PARALLELISM: Final = "parallelism"
"""File that holds the wanted number of readers."""

MOST_READERS: Final = 10_000
"""A larger number is a slip of the finger."""

_PREFIX: Final = "balanced-source-"
"""The name of each control folder begins with it."""

_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")

log = get_logger(__name__)


class RescaleError(BalancedSourceError, RuntimeError):
    """The number of readers cannot be changed here; says where it can."""


class Control:
    """The planner's side. Only the user of this process may enter the folder.

    Args:
        rescale: sets the number of readers.
    """

    def __init__(self, rescale: Callable[[int], None]) -> None:
        self._rescale = rescale
        self._seen = ""
        self.folder: Final = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._file = str(self.folder / PARALLELISM)
        self._version: tuple[int, int] | None = None

    def look(self) -> None:
        """Set the number of readers if it was changed. What is no number is said and ignored."""
        # This is asked before each micro-batch, and as a rule no one has ever written the file.
        try:
            found = os.stat(self._file)  # noqa: PTH116 - saves a Path per micro-batch
        except OSError:
            return
        # Writers replace the file: each has a number of its own.
        if (version := (found.st_ino, found.st_mtime_ns)) == self._version:
            return
        try:
            text = Path(self._file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return
        self._version = version
        # The file stays: the same number must not be set again at each look.
        if text == self._seen:
            return
        self._seen = text
        if _NUMBER.fullmatch(text) is None or int(text) > MOST_READERS:
            log.warning(
                "rescale ignored: expected a number of readers from 1",
                found=shown(text),
                most=MOST_READERS,
            )
            return
        log.info("rescaled", parallelism=int(text))
        self._rescale(int(text))

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def request_parallelism(folder: Path, parallelism: int) -> None:
    """Ask the planner that looks into this folder for a number of readers.

    Raises:
        RescaleError: there is no such control folder on this machine.
    """
    try:
        _write(_checked(folder), f"{parallelism}\n")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RescaleError(
            f"the folder {folder} of the query is not on this machine: call rescale where Spark's"
            " driver runs"
        ) from error


def _checked(folder: Path) -> Path:
    # A request from another machine must not write into any folder of this one.
    if not folder.name.startswith(_PREFIX):
        raise FileNotFoundError(folder)
    return folder


def _write(folder: Path, text: str) -> None:
    # A file of its own, because several threads may ask at once.
    handle, name = tempfile.mkstemp(prefix=f".{PARALLELISM}.", dir=folder)
    with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 - it is open already
        file.write(text)
    # By rename: the planner must not read half a number.
    Path(name).replace(folder / PARALLELISM)
