"""Answers of drivers travel in pages, and are read only as a whole."""

import base64
import hashlib

import pytest

from balanced_source.documents.calls import cut, joined
from balanced_source.errors import CorruptDocumentError


def test_pages_of_another_answer_are_refused() -> None:
    with pytest.raises(CorruptDocumentError, match="do not belong together"):
        joined(["b25l", "dHdv"], "0" * 32)


@pytest.mark.parametrize(
    "page",
    ["no base64", base64.b64encode(b"not compressed").decode(), f"{cut([1, 2])[1][0]}!"],
    ids=["not base64", "not compressed", "a character more"],
)
def test_an_answer_that_cannot_be_read_is_refused(page: str) -> None:
    digest = hashlib.sha256(page.encode()).hexdigest()[:32]

    with pytest.raises(CorruptDocumentError, match=r"malformed|decompress"):
        joined([page], digest)
