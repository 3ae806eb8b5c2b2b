"""What a store of files must offer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from balanced_source.api import SecretReader
from balanced_source.connectors.files import File, base_of, may_hold, start_of
from balanced_source.errors import RefusedDiscoveryError

if TYPE_CHECKING:
    import pyarrow.fs


def everywhere(_: str) -> bool:
    """Return that files below each folder are wanted."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedFiles:
    """Which files of a place are wanted.

    Attributes:
        enters: whether files below a folder are. Stores without folders do not ask.
        begins: with which their paths begin.
        below: whether the place counts as a folder alone. A store of objects may have both.
    """

    enters: Callable[[str], bool] = everywhere
    begins: str = ""
    below: bool = False

    @classmethod
    def by(cls, pattern: str) -> Self:
        """Return which files a pattern wants below its `base_of`."""
        return cls(
            enters=partial(may_hold, pattern=pattern),
            begins=start_of(pattern),
            below=base_of(pattern).rstrip("/") != pattern.rstrip("/"),
        )


EVERYTHING: Final = WantedFiles()
"""All files."""


class FileStore(ABC):
    """Lists and opens files. Paths and patterns are in the store's own form; see `inner`."""

    is_ordered: bool = False
    """Whether `walk` yields files in the order of their paths, and starts anywhere."""

    has_folders: bool = True
    """Whether a folder is there that has no files."""

    @abstractmethod
    def walk(
        self, base: str, *, after: str = "", wanted: WantedFiles = EVERYTHING
    ) -> Iterator[File]:
        """Return the file `base`, or all files below the folder `base`; none if nothing is there.

        Args:
            base: a path.
            after: only files with greater paths; empty unless the store is ordered.
            wanted: which of them; others may be left out.

        Raises:
            DiscoveryError: the store does not answer, or refuses to.
        """

    @abstractmethod
    def exists(self, base: str) -> bool:
        """Return whether a file or folder is there.

        Raises:
            OSError: the store does not answer, or refuses to.
        """

    @abstractmethod
    def stat(self, path: str) -> File | None:
        """Return the file as it is now; None if it is gone.

        Raises:
            OSError: the store does not answer, or refuses to.
        """

    @abstractmethod
    def open(self, path: str) -> "pyarrow.NativeFile":
        """Return the file for reading at any place.

        Raises:
            FileNotFoundError: it is gone.
            OSError: the store does not answer, or refuses to.
        """


def narrowed(
    listed: Callable[[str], Iterator[File]],
    stat: Callable[[str], File | None],
    *,
    after: str,
    begins: str,
    is_ordered: bool,
) -> Iterator[File]:
    """Return the files of a listing of objects whose paths begin with a text.

    Clients take whole parts of names as a prefix. So where a store is ordered, the listing starts
    behind the text, and ends with the first path that is behind all that begin with it.

    Args:
        listed: lists files with paths after a given one.
        stat: looks at one file; None if it is not there.
        after: only files with greater paths.
        begins: the text; empty: all files are wanted.
        is_ordered: whether the store is said to be ordered. A listing that is not is read to its
            end.
    """
    start = after
    if is_ordered and begins > after:
        # A listing starts behind the path that it is given.
        if (only := stat(begins)) is not None:
            yield only
        start = begins
    last = ""
    for file in listed(start if is_ordered else ""):
        is_ordered, last = is_ordered and last < file.path, file.path
        if file.path <= start:
            continue  # not every server takes a start
        if file.path.startswith(begins):
            yield file
        elif is_ordered:
            return


def offset_of(bucket: str, after: str) -> str:
    """Return the key of a bucket after which a listing of greater paths begins; empty: list all.

    Args:
        bucket: that is listed.
        after: a path, perhaps of another bucket, whose key says nothing about this one.
    """
    head = f"{bucket}/"
    return after.removeprefix(head) if after.startswith(head) else ""


def keys_of(name: str, secrets: SecretReader) -> Mapping[str, str]:
    """Return the content of the Secret that a source names.

    Raises:
        RefusedDiscoveryError: the Secret is missing.
    """
    try:
        return secrets.read(name)
    except LookupError as error:
        raise RefusedDiscoveryError(
            f"Secret {name} is missing: create it", scope="files"
        ) from error


def not_installed(what: str, client: str, error: ModuleNotFoundError) -> RefusedDiscoveryError:
    """Return the error of a store whose client is missing.

    Args:
        what: is not possible, with its verb.
        client: that does it.
        error: of the import.
    """
    return RefusedDiscoveryError(
        f"{what} by {client}, which is missing: install balanced-source[spark] ({error})",
        scope="files",
    )
