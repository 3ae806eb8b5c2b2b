"""Limits of stored documents that are so small that tests need several parts."""

import bz2
import gzip

import pytest

from balanced_source.documents import storage


def shrink_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small, and compressed so badly, that 3,000 characters or ten splits need four parts."""
    monkeypatch.setattr(
        bz2, "compress", lambda raw, **_: gzip.compress(raw, compresslevel=0, mtime=0)
    )
    monkeypatch.setattr(storage, "PLAIN_LIMIT", 300)
    monkeypatch.setattr(storage, "BLOB_LIMIT", 800)
