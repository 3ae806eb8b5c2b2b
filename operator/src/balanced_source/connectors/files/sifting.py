"""The first files of a long listing, in bounded memory. Pure."""

from balanced_source.connectors.files.split import File


class Nearest:
    """The first of many files in their order (time of change, path).

    Args:
        keep: files that are kept.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._files: list[File] = []
        self._last: File | None = None
        self._newest: int | None = None
        self._lowest: str | None = None

    @property
    def files(self) -> list[File]:
        """The first files, in their order; all of them unless there are more than are kept."""
        self._shorten()
        return list(self._files)

    @property
    def newest(self) -> int:
        """Time of the newest of all files, also of those that are not kept.

        Before all times if there is none.
        """
        return -(2**63) if self._newest is None else self._newest

    @property
    def lowest(self) -> str | None:
        """The lowest path of all files, also of those that are not kept; None if there is none."""
        return self._lowest

    def add(self, file: File) -> None:
        """Take note of a file."""
        if self._newest is None or file.modified > self._newest:
            self._newest = file.modified
        if self._lowest is None or file.path < self._lowest:
            self._lowest = file.path
        if self._last is None or file < self._last:
            self._files.append(file)
            if len(self._files) >= 2 * self._keep:  # rarely, so a file costs little
                self._shorten()

    def _shorten(self) -> None:
        self._files.sort()
        if len(self._files) > self._keep:
            del self._files[self._keep :]
            self._last = self._files[-1]
