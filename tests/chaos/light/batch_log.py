"""Spark's offset log and commit log.

A numbered file per micro-batch, written once and as a whole.
"""

import os
from pathlib import Path


class BatchLog:
    """A write-once log.

    Args:
        folder: gets one file per micro-batch.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def newest(self) -> int | None:
        """Return the number of the last entry; None if the log is empty."""
        return max(
            (int(path.name) for path in self._folder.iterdir() if path.name.isdigit()), default=None
        )

    def read(self, number: int) -> str:
        """Return an entry."""
        return (self._folder / str(number)).read_text()

    def add(self, number: int, text: str) -> None:
        """Write an entry.

        Raises:
            FileExistsError: another query has written it, as two queries on one checkpoint would.
        """
        partial = self._folder / f".{number}.{os.getpid()}"
        partial.write_text(text)
        os.link(partial, self._folder / str(number))
        partial.unlink()
