"""Answers of drivers travel in pages, and are read only as a whole."""

import pytest

from balanced_source.documents.calls import joined
from balanced_source.errors import CorruptDocumentError


def test_pages_of_another_answer_are_refused() -> None:
    with pytest.raises(CorruptDocumentError, match="do not belong together"):
        joined(["b25l", "dHdv"], "0" * 32)
