"""Checks the answer to a call that lists a page."""

from typing import Any

from balanced_source.api import AsyncCall, CallFailure
from balanced_source.connectors.answers import WrongAnswer, checked_splits, in_words, refused
from balanced_source.connectors.pull.values import Page


def checked_page(call: AsyncCall, answer: Any) -> Page[Any] | CallFailure:
    """Return the answer, or what is wrong with it."""
    if isinstance(answer, CallFailure):
        return in_words(call, answer)
    if not isinstance(answer, Page):
        return refused(call, WrongAnswer(f"a {type(answer).__name__}", "a Page"))
    found = checked_splits(call, answer.splits)
    return found if isinstance(found, CallFailure) else answer
