"""Checks what an operator half returns, where the operator takes it over."""

from collections.abc import Mapping, Sequence
from typing import cast

from balanced_source_operator.contract.half import TextReference


def checked_texts(found: object) -> tuple[TextReference, ...]:
    """Return what `OperatorHalf.texts` has returned.

    Raises:
        TypeError: it is of another type. Says which one, and what was expected.
    """
    _expect("texts returned", found, Sequence, "a tuple of TextReference")
    references = tuple(cast("Sequence[object]", found))
    for each in references:
        _expect("texts returned a tuple with", each, TextReference, "a TextReference")
    return cast("tuple[TextReference, ...]", references)


def checked_table(method: str, found: object) -> Mapping[str, str]:
    """Return a mapping of texts to texts that a method of a half has returned.

    Raises:
        TypeError: it is of another type. Says which one, and what was expected.
    """
    _expect(f"{method} returned", found, Mapping, "a mapping of texts to texts")
    table = cast("Mapping[object, object]", found)
    for text in (*table, *table.values()):
        _expect(f"{method} returned a mapping with", text, str, "a text")
    return cast("Mapping[str, str]", found)


def _expect(what: str, found: object, kind: type, expected: str) -> None:
    if not isinstance(found, kind):
        raise TypeError(f"{what} a {type(found).__name__}, and {expected} was expected")
