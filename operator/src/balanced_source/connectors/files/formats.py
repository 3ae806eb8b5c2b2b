"""The formats of files, and which of them can be cut into blocks."""

import enum
from typing import Final


class Format(enum.StrEnum):
    """What the bytes of a file mean."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"
    BINARY = "binary"

    @property
    def has_lines(self) -> bool:
        """Whether records are lines of text."""
        return self in (Format.TEXT, Format.JSON, Format.CSV)


COMPRESSIONS: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zstd": "zstd"}
"""End of the name → how a file of lines is compressed."""

UNREADABLE: Final = (
    *(".7z", ".br", ".bzip2", ".deflate", ".gzip", ".lz4", ".lzma", ".lzo", ".rar", ".snappy"),
    *(".tar", ".tar.bz2", ".tar.gz", ".tar.zst", ".tgz", ".xz", ".z", ".zip"),
)
"""Ends of the names of files that are compressed in ways that cannot be read as lines."""


def compression_of(path: str, kind: Format) -> str | None:
    """Return how a file is compressed as a whole; None if it is not."""
    if not kind.has_lines:
        return None
    return next((name for end, name in COMPRESSIONS.items() if path.lower().endswith(end)), None)


def is_splittable(path: str, kind: Format) -> bool:
    """Return whether a file can be read from the middle."""
    return kind is not Format.BINARY and compression_of(path, kind) is None


def is_unreadable(path: str, kind: Format) -> bool:
    """Return whether a file of lines is compressed in a way that cannot be read."""
    return kind.has_lines and path.lower().endswith(UNREADABLE)
