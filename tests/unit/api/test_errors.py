"""Errors of other code in the middle of our sentences."""

import pytest

from balanced_source.errors import DiscoveryError, in_short, text_of


class UnspeakableError(Exception):
    """Its text cannot be made."""

    def __str__(self) -> str:
        raise KeyError("text")


@pytest.mark.parametrize(
    ("error", "short"),
    [
        (MemoryError(), "MemoryError"),
        (ValueError("  "), "ValueError"),
        (KeyError("url"), "KeyError: 'url'"),
        (OSError("no answer."), "OSError: no answer"),
        (ValueError("one\n  two\r\n"), "ValueError: one two"),
        (UnspeakableError(), "UnspeakableError: (its text cannot be shown)"),
    ],
)
def test_a_sentence_continues_behind_an_error(error: Exception, short: str) -> None:
    assert in_short(error) == short


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (DiscoveryError(""), "DiscoveryError"),
        (DiscoveryError("no\nanswer"), "no answer"),
        (UnspeakableError(), "(its text cannot be shown)"),
    ],
)
def test_an_error_without_a_text_is_named(error: Exception, text: str) -> None:
    assert text_of(error) == text
