"""Where files lie: local disks, mounted volumes and S3-compatible stores; opens all others, too.

Clients are imported when needed.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from errno import ELOOP
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from balanced_source.api import SecretReader
from balanced_source.connectors.files import (
    File,
    Store,
    StoreKind,
    compiled,
    is_visible,
    kind_of,
    place_of,
)
from balanced_source.connectors.files.places import SCHEMES
from balanced_source.errors import (
    DiscoveryError,
    RefusedDiscoveryError,
    TransientDiscoveryError,
)
from balanced_source.names import shown
from balanced_source_adapters.files.azure import azure_store
from balanced_source_adapters.files.cloud import ILLEGAL, RENAME, first_line
from balanced_source_adapters.files.file_store import (
    EVERYTHING,
    FileStore,
    WantedFiles,
    keys_of,
    narrowed,
    not_installed,
    offset_of,
)
from balanced_source_adapters.files.gcs import gcs_store
from balanced_source_adapters.files.hdfs import hdfs_store

if TYPE_CHECKING:
    import pyarrow.fs

_NEEDED: Final = ("accessKeyId", "secretAccessKey")
_UNORDERED: Final = "--x-s3"
"""How the names of directory buckets end (S3 Express One Zone), whose listings have no order."""

_CHUNK: Final = 1000
"""Objects that a request returns."""
_SECOND: Final = 1_000_000_000
"""Nanoseconds.

Times of objects are cut to seconds: some servers say more when they list than when they are asked.
"""


class LocalStore(FileStore):
    """Files on the disks of this machine, and on volumes that are mounted here."""

    def walk(
        self, base: str, *, after: str = "", wanted: WantedFiles = EVERYTHING
    ) -> Iterator[File]:
        try:
            status = os.stat(base)  # noqa: PTH116 - half the price of a Path, for a million files
        except FileNotFoundError:
            return
        except OSError as error:
            raise _refused(base, error) from error
        if S_ISREG(status.st_mode):
            yield File(status.st_mtime_ns, base, status.st_size)
        elif S_ISDIR(status.st_mode):
            yield from self._below(base, wanted.enters)

    def exists(self, base: str) -> bool:
        return os.path.exists(base)  # noqa: PTH110 - as above

    def stat(self, path: str) -> File | None:
        try:
            status = os.stat(path)  # noqa: PTH116 - as above
        except (FileNotFoundError, NotADirectoryError):
            return None  # a file may have taken the place of its folder
        return File(status.st_mtime_ns, path, status.st_size)

    def open(self, path: str) -> "pyarrow.NativeFile":
        import pyarrow as pa

        return pa.OSFile(path, "rb")

    def _below(self, folder: str, enters: Callable[[str], bool]) -> Iterator[File]:
        """Yield files folder by folder, so that memory stays flat.

        What vanishes meanwhile is not there.
        """
        folders = [folder]
        while folders:
            try:
                with os.scandir(folders.pop()) as entries:
                    for entry in entries:
                        if entry.is_dir():
                            if enters(entry.path):
                                folders.append(entry.path)
                        elif (found := _found(entry)) is not None:
                            yield found
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _refused(folder, error) from error


def _found(entry: "os.DirEntry[str]") -> File | None:
    try:
        status = entry.stat()
    except FileNotFoundError:
        return None
    return File(status.st_mtime_ns, entry.path, status.st_size) if S_ISREG(status.st_mode) else None


def _refused(path: str, error: OSError) -> RefusedDiscoveryError:
    advice = "Give the driver's user the right to read it"
    if error.errno == ELOOP:
        advice = "Remove the link that leads back to where it is"
    return RefusedDiscoveryError(
        f"cannot list {shown(str(error.filename or path))}: {error.strerror or error}. {advice}",
        scope="files",
    )


class S3Store(FileStore):
    """Objects of an S3-compatible store. A path is ``bucket/key``.

    Args:
        filesystem: the client that reads.
        options: of the client that lists, which needs no memory for objects that it has listed.
    """

    is_ordered = True
    has_folders = False

    def __init__(self, filesystem: "pyarrow.fs.FileSystem", options: Mapping[str, Any]) -> None:
        self._filesystem = filesystem
        self._options = options

    def walk(
        self, base: str, *, after: str = "", wanted: WantedFiles = EVERYTHING
    ) -> Iterator[File]:
        base = base.strip("/")
        bucket, _, prefix = base.partition("/")
        try:
            if not wanted.below and (only := self.stat(base)) is not None:
                yield only
                # An empty object may stand for a folder, as some clients of Hadoop mark them.
                if only.size:
                    return
            yield from narrowed(
                lambda start: self._below(bucket, prefix, offset_of(bucket, start) or None),
                self.stat,
                after=after,
                begins=wanted.begins,
                is_ordered=not bucket.endswith(_UNORDERED),
            )
        except OSError as error:  # of a look at one object
            raise _unlistable(base, error) from error

    def _below(self, bucket: str, prefix: str, after: str | None) -> Iterator[File]:
        import obstore
        from obstore.exceptions import BaseError
        from obstore.store import S3Store as Client

        try:
            client = Client(bucket, **self._options)
            for page in obstore.list(client, prefix or None, offset=after, chunk_size=_CHUNK):
                for found in page:
                    modified = int(found["last_modified"].timestamp()) * _SECOND
                    yield File(modified, f"{bucket}/{found['path']}", found["size"])
        except FileNotFoundError:
            return
        except (BaseError, OSError, ValueError) as error:
            raise _unlistable(f"{bucket}/{prefix}", error) from error

    def exists(self, base: str) -> bool:
        from pyarrow.fs import FileType

        return self._filesystem.get_file_info(base.strip("/")).type is not FileType.NotFound

    def stat(self, path: str) -> File | None:
        from pyarrow.fs import FileType

        info = self._filesystem.get_file_info(path)
        return _object(info) if info.type is FileType.File else None

    def open(self, path: str) -> "pyarrow.NativeFile":
        return self._filesystem.open_input_file(path)


def _unlistable(base: str, error: Exception) -> DiscoveryError:
    why = first_line(error) or type(error).__name__
    if ILLEGAL in why:
        return RefusedDiscoveryError(f"cannot list s3://{base}: {why}. {RENAME}", scope="files")
    return TransientDiscoveryError(
        f"cannot list s3://{base}: {why}. Check bucket, region, endpoint and credentials",
        scope="files",
    )


def _object(info: Any) -> File:
    # Cut like the times of a listing, or a file would seem to have changed since it was listed.
    return File((info.mtime_ns or 0) // _SECOND * _SECOND, info.path, info.size)


def inner(path: str) -> str:
    """Return a path in the store's own form: absolute for local files, ``bucket/key`` for objects.

    Raises:
        ValueError: there is no store for it, or it is relative, or names no bucket.
    """
    if kind_of(path) is not StoreKind.VOLUME:
        return place_of(path).path
    if path.startswith("file:"):
        path = unquote(_without_host(path.removeprefix("file:")))
    elif "://" in path:
        raise ValueError(
            f"{shown(path)}: supported are absolute paths, and URLs that begin with file:,"
            f" {', '.join(SCHEMES)}"
        )
    if not path.startswith("/"):
        raise ValueError(f"{shown(path)} is relative: name an absolute path")
    # One spelling, or patterns of two spellings would read a file twice.
    return "/" + "/".join(part for part in path.split("/") if part not in {"", "."})


def selection(paths: Iterable[str]) -> Callable[[str], bool]:
    """Return what tells whether one of some patterns selects a path in the store's own form.

    Raises:
        ValueError: see `inner` and `compiled`.
    """
    patterns = [(compiled(pattern), pattern) for pattern in map(inner, paths)]
    return lambda path: any(
        expression.matches(path) and is_visible(path, pattern) for expression, pattern in patterns
    )


def _without_host(path: str) -> str:
    # Not by urlsplit: a question mark is a wildcard here, and what follows it is part of the path.
    return "/" + path[2:].partition("/")[2] if path.startswith("//") else path


def store_of(store: Store, paths: tuple[str, ...], secrets: SecretReader) -> FileStore:
    """Return what reads some paths, which are all of one kind.

    Raises:
        RefusedDiscoveryError: the Secret is missing, or lacks a key; or the client is not
            installed.
    """
    kinds = {kind_of(path) for path in paths} - {StoreKind.VOLUME} or {StoreKind.VOLUME}
    match kind := min(kinds):
        case StoreKind.VOLUME:
            return LocalStore()
        case StoreKind.S3:
            return _s3_store(store, secrets)
        case StoreKind.GCS:
            return gcs_store(store, secrets)
        case StoreKind.AZURE:
            return azure_store(store, secrets)
        case StoreKind.HDFS:
            return hdfs_store(place_of(next(p for p in paths if kind_of(p) is kind)).server)


def _s3_store(store: Store, secrets: SecretReader) -> S3Store:
    try:
        from pyarrow.fs import S3FileSystem
    except ModuleNotFoundError as error:
        raise not_installed("objects of S3 are listed", "pyarrow", error) from error
    credentials = credentials_of(store.secret, secrets)
    options: dict[str, Any] = dict(credentials)
    if store.region:
        options["region"] = store.region
    if store.endpoint:
        parts = urlsplit(store.endpoint)
        options |= {"endpoint_override": parts.netloc, "scheme": parts.scheme}
    return S3Store(S3FileSystem(**options), _listing(store, credentials))


def _listing(store: Store, credentials: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of the client that lists."""
    found: dict[str, Any] = {}
    if credentials:
        # By a provider: options would be completed by variables of the environment, such as the
        # token of other credentials.
        found["credential_provider"] = lambda: {
            "access_key_id": credentials["access_key"],
            "secret_access_key": credentials["secret_key"],
            "token": credentials.get("session_token"),
            "expires_at": None,
        }
    if store.region:
        found["region"] = store.region
    if store.endpoint:
        found |= {"endpoint": store.endpoint, "client_options": {"allow_http": True}}
    return found


def credentials_of(name: str | None, secrets: SecretReader) -> dict[str, str]:
    """Return the credentials in a Secret, by pyarrow's names; none without a Secret.

    Raises:
        RefusedDiscoveryError: the Secret is missing, or lacks a key.
    """
    if name is None:
        return {}
    found = keys_of(name, secrets)
    if missing := [key for key in _NEEDED if key not in found]:
        raise RefusedDiscoveryError(
            f"Secret {name} has no key {', '.join(missing)}: add it", scope="files"
        )
    token = {"session_token": found["sessionToken"]} if "sessionToken" in found else {}
    return {"access_key": found["accessKeyId"], "secret_key": found["secretAccessKey"], **token}
