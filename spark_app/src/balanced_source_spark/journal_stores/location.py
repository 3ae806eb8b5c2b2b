"""Opens the place where journals are: a folder, or an object store."""

from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from balanced_source.errors import InvalidSpecError
from balanced_source.host.journal import JournalStore
from balanced_source.names import shown
from balanced_source_spark.journal_stores.folder import FolderJournal

OBJECT_STORES: Final = frozenset({"s3", "s3a", "gs", "az", "abfs", "abfss"})
"""Schemes of object stores that put an object only if there is none."""


def journal_store(location: str, *, field: str) -> JournalStore:
    """Return the store of a location; nothing is asked yet.

    Args:
        location: an absolute path, a ``file:`` URI, or the URL of an object store.
        field: what the location is called, for messages.

    Raises:
        InvalidSpecError: it is none of these.
    """
    try:
        parts = urlsplit(location)
    except ValueError as error:  # half of an IPv6 address
        raise InvalidSpecError(f"{shown(location)} is no URL: {error}", field=field) from error
    if parts.scheme in OBJECT_STORES:
        if not parts.netloc:
            raise InvalidSpecError(
                f"{shown(location)} names no bucket: write s3://bucket/prefix", field=field
            )
        return _objects(location, field)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        raise InvalidSpecError(
            f"{shown(location)} is neither a folder nor an object store: a journal must create a"
            " record only if there is none. Name a folder on a file system with hard links (local,"
            " NFS) that the driver and all executors share, or an object store"
            f" ({', '.join(sorted(OBJECT_STORES))})",
            field=field,
        )
    path = Path(unquote(parts.path) if parts.scheme else location)
    if not path.is_absolute():
        raise InvalidSpecError(f"expected an absolute path, not {shown(location)}", field=field)
    return FolderJournal(path)


def _objects(location: str, field: str) -> JournalStore:
    try:
        from balanced_source_spark.journal_stores.objects import ObjectJournal
    except ImportError as error:
        raise InvalidSpecError(
            f"{shown(location)} is an object store, and its client is not installed: pip install"
            " obstore, for the driver and the executors",
            field=field,
        ) from error
    return ObjectJournal(location)
