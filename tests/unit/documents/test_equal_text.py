"""Documents of equal content are equal texts: they are compared and published as texts."""

import bz2
import gzip
from collections.abc import Callable

import pytest

from balanced_source.documents import assignment, report, storage
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.errors import CorruptDocumentError

MANY = (8, 0, 16, 1)
"""Numbers whose order in a set is not that of their sizes."""


def test_readers_that_get_no_further_split_are_named_in_order() -> None:
    made = assignment.to_json(Assignment(epoch=1, parallelism=17, no_more_splits=frozenset(MANY)))

    assert made["noMoreSplits"] == sorted(MANY)


def test_requests_are_named_in_the_order_of_the_readers() -> None:
    made = report.to_json(HostReport(incarnation=1, requests=dict.fromkeys(MANY, 2)))

    assert made["requests"] == [[reader, 2] for reader in sorted(MANY)]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
def test_a_small_file_that_becomes_far_too_large_is_refused(
    monkeypatch: pytest.MonkeyPatch, compress: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(storage, "MAX_DOCUMENT", 1000)

    assert storage.decompress(compress(b"x" * 1000)) == "x" * 1000
    with pytest.raises(CorruptDocumentError, match="more than 1000 bytes"):
        storage.decompress(compress(b"x" * 1001))
