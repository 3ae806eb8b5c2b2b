"""Checks what an operator half returns, where the operator takes it over."""

from collections.abc import Mapping, Sequence
from typing import cast

from balanced_source_adapters.mistakes import expect
from balanced_source_operator.contract.half import TextReference


def checked_texts(found: object) -> tuple[TextReference, ...]:
    """Return what `OperatorHalf.texts` has returned.

    Raises:
        TypeError: it is of another type. Says which one, and what was expected.
    """
    expect(found, Sequence, "a tuple of TextReference", who="texts")
    references = tuple(cast("Sequence[object]", found))
    for each in references:
        expect(each, TextReference, "a TextReference", "returned a tuple with", "texts")
    return cast("tuple[TextReference, ...]", references)


def checked_table(method: str, found: object) -> Mapping[str, str]:
    """Return a mapping of texts to texts that a method of a half has returned.

    Raises:
        TypeError: it is of another type. Says which one, and what was expected.
    """
    expect(found, Mapping, "a mapping of texts to texts", who=method)
    table = cast("Mapping[object, object]", found)
    for text in (*table, *table.values()):
        expect(text, str, "a text", "returned a mapping with", method)
    return cast("Mapping[str, str]", found)
