"""Objects of a cloud's store: listed and read by one client, with the same credentials.

A client may use the identity of its process. So only drivers and executors make one.
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from balanced_source.connectors.files import File
from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source_adapters.files.file_store import (
    EVERYTHING,
    FileStore,
    WantedFiles,
    narrowed,
    not_installed,
    offset_of,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

LEAST: Final = 256 * 1024
"""Bytes that a small read fetches, because the next one often begins where it ends."""

MOST: Final = 8 * 1024 * 1024
"""Bytes that it fetches when many have followed each other."""

PIECE: Final = 32 * 1024 * 1024
"""Bytes of one request, at most: a request has a time limit."""

_CHUNK: Final = 1000
"""Objects that a request returns."""

_SECOND: Final = 1_000_000_000
"""Nanoseconds. Times are cut to seconds, as those of S3 are: a listing says more than a request for
one object."""

_RETRIES: Final = 3
_RETRY: Final = timedelta(seconds=30)
"""Longest time of one request with its retries."""

_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_VOLATILE: Final = re.compile(r"\?\S*| in [\d.]+(?:s|ms|µs|ns)\b|\s*<\?xml.*|\s*\{.*")
"""What an error must not say: queries, which may hold a signature, and what differs each time."""

ILLEGAL: Final = "path segment"
"""In the text of each error about the name of an object."""

RENAME: Final = (
    "Rename this object: no part of its name may be empty, a dot or two dots, or have control"
    " characters"
)

ClientOf = Callable[[str], "ObjectStore"]


class CloudStore(FileStore):
    """Objects of the buckets of one store. A path is ``bucket/key``.

    Args:
        scheme: of URLs, for messages.
        client_of: makes the client of a bucket.
        is_ordered: whether a listing is ordered, and starts anywhere.
    """

    has_folders = False

    def __init__(self, scheme: str, client_of: ClientOf, *, is_ordered: bool) -> None:
        self._scheme, self._client_of = scheme, client_of
        self.is_ordered = is_ordered

    def walk(
        self, base: str, *, after: str = "", wanted: WantedFiles = EVERYTHING
    ) -> Iterator[File]:
        base = base.strip("/")
        try:
            if not wanted.below and (only := self.stat(base)) is not None:
                yield only
                if only.size:
                    return
            # An empty object may stand for a folder, as some clients of Hadoop mark them.
            yield from narrowed(
                lambda start: self._below(base, start),
                self.stat,
                after=after,
                begins=wanted.begins,
                is_ordered=self.is_ordered,
            )
        except FileNotFoundError:
            return
        except OSError as error:
            raise TransientDiscoveryError(str(error), scope="files") from None

    def _below(self, base: str, after: str) -> Iterator[File]:
        bucket, _, prefix = base.partition("/")
        for found in self._listed(base, bucket, prefix, offset_of(bucket, after)):
            yield _file(bucket, found)

    def _listed(
        self, base: str, bucket: str, prefix: str, offset: str = "", chunk: int = _CHUNK
    ) -> Iterator["ObjectMeta"]:
        import obstore

        with self._explained("list", base):
            client = self._client_of(bucket)
            pages = obstore.list(client, prefix or None, offset=offset or None, chunk_size=chunk)
        while True:
            with self._explained("list", base):
                page = next(iter(pages), None)
            if page is None:
                return
            yield from page

    def exists(self, base: str) -> bool:
        base = base.strip("/")
        bucket, _, prefix = base.partition("/")
        if self.stat(base) is not None:
            return True
        try:
            return any(True for _ in self._listed(base, bucket, prefix, chunk=1)) or not prefix
        except FileNotFoundError:
            return False

    def stat(self, path: str) -> File | None:
        import obstore

        bucket, _, key = path.partition("/")
        if not key:
            return None
        try:
            with self._explained("look at", path):
                return _file(bucket, obstore.head(self._client_of(bucket), key))
        except FileNotFoundError:
            return None

    def open(self, path: str) -> "pa.NativeFile":
        import pyarrow as pa

        if (file := self.stat(path)) is None:
            raise FileNotFoundError(f"{self._scheme}{path} does not exist")
        return pa.PythonFile(RangedFile(lambda *span: self._bytes(path, *span), file.size), "r")

    def _bytes(self, path: str, start: int, end: int) -> bytes:
        import obstore

        bucket, _, key = path.partition("/")
        with self._explained("read", path):
            return bytes(obstore.get_range(self._client_of(bucket), key, start=start, end=end))

    def _explained(self, what: str, path: str) -> AbstractContextManager[None]:
        return explained(f"cannot {what} {self._scheme}{path}")


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn errors of the client into an OSError with a sentence; a missing object stays missing.

    Without the client's own error as its cause: that may quote credentials.

    Args:
        what: is not possible, and of which object.
    """
    from obstore.exceptions import BaseError

    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{what}: it does not exist") from None
    except (BaseError, OSError, ValueError) as error:
        reason = _reason(error)
        advice = RENAME if ILLEGAL in reason else "Check bucket, endpoint and credentials"
        raise OSError(f"{what}: {reason}. {advice}") from None


class RangedFile:
    """A file that is read by requests for ranges of its bytes; for `pyarrow.PythonFile`.

    Args:
        fetch: returns the bytes from a start up to but without an end.
        size: of the file.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        self._fetch, self._size = fetch, size
        self._at, self._first, self._ahead, self._span = 0, 0, b"", LEAST
        self._lock = threading.Lock()  # pyarrow reads in several threads
        self.closed = False

    def read(self, count: int = -1) -> bytes:
        """Return up to a number of bytes from the current position; all if it is negative."""
        with self._lock:
            end = self._size if count < 0 else min(self._at + count, self._size)
            found = self._between(self._at, end)
            self._at += len(found)
            return found

    def seek(self, offset: int, whence: int = 0) -> int:
        """Change the position, as that of any file; returns it."""
        with self._lock:
            self._at = offset + (0, self._at, self._size)[whence]
            return self._at

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def flush(self) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """Forget what was fetched."""
        self.closed, self._ahead = True, b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return False."""
        return False

    def seekable(self) -> bool:
        """Return True."""
        return True

    def _between(self, start: int, end: int) -> bytes:
        if start >= end:
            return b""
        last = self._first + len(self._ahead)
        if not self._first <= start <= end <= last:
            is_next = bool(self._ahead) and self._first <= start <= last
            self._span = min(2 * self._span, MOST) if is_next else LEAST
            if end - start >= self._span:
                return b"".join(
                    self._fetch(at, min(at + PIECE, end)) for at in range(start, end, PIECE)
                )
            self._first, self._ahead = start, b""
            self._ahead = self._fetch(start, min(start + self._span, self._size))
        return self._ahead[start - self._first : end - self._first]


def client_of(kind: str, options: Mapping[str, str], *, otherwise: str) -> ClientOf:
    """Return what makes the client of a bucket, once in a process.

    Args:
        kind: name of a class of `obstore.store`.
        options: of the client. What they leave out comes from the environment.
        otherwise: the message if the options, or those of the environment, are malformed.

    Raises:
        RefusedDiscoveryError: obstore is not installed.
    """
    try:
        import obstore  # noqa: F401 - only whether it is there
    except ModuleNotFoundError as error:
        raise not_installed("objects are listed and read", "obstore", error) from error
    chosen = tuple(sorted(options.items()))

    def made(bucket: str) -> "ObjectStore":
        from obstore.exceptions import BaseError

        try:
            return _client(kind, bucket, chosen)
        except (BaseError, ValueError):
            # Not the client's own words: they quote what they cannot read.
            raise RefusedDiscoveryError(otherwise, scope="files") from None

    return made


@lru_cache(maxsize=32)
def _client(kind: str, bucket: str, options: tuple[tuple[str, str], ...]) -> "ObjectStore":
    """One client a bucket and process: later tasks use its connections and tokens again."""
    from obstore import store

    is_plain = any(text.startswith("http://") for _, text in options)
    client: dict[str, Any] = {"timeout": "120s", **({"allow_http": True} if is_plain else {})}
    made: ObjectStore = getattr(store, kind)(
        bucket,
        config=dict(options),
        client_options=client,
        retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRY},
    )
    return made


def malformed(secret: str | None, environment: str) -> str:
    """Return the message about credentials that a client cannot read.

    Args:
        secret: that holds them, with the key if there is one; None if the environment does.
        environment: how the names of its variables begin.
    """
    if secret is not None:
        return f"{secret} cannot be used: its content is malformed. Correct it"
    return (
        "the credentials in the environment of this process are missing or malformed: correct the"
        f" variables that begin with {environment}, or name a Secret"
    )


def _file(bucket: str, found: "ObjectMeta") -> File:
    modified = int(found["last_modified"].timestamp()) * _SECOND
    return File(modified, f"{bucket}/{found['path']}", found["size"])


def first_line(error: BaseException) -> str:
    """Return what a client says on one line. The name of an object may have line ends itself."""
    text = str(error).partition("Debug source:")[0].strip()
    return " ".join(text.split()) if ILLEGAL in text else text.partition("\n")[0]


def _reason(error: BaseException) -> str:
    code = _CODE.search(str(error).partition("Debug source:")[0])
    line = _VOLATILE.sub("", first_line(error)).rstrip(". :")
    return f"{line} ({code[1]})" if code else line or type(error).__name__
