"""A validation error of pydantic as a sentence for the user."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from balanced_source import durations, names
from balanced_source.errors import InvalidSpecError
from balanced_source_adapters.suggestions import nearest
from balanced_source_operator.contract.base import LINE, NUMBER, PROPERTY, TEXT

_OBJECT: Final = "the name of a Kubernetes object: lower case letters, digits, '-' and '.'"
_IN_WORDS: Final[Mapping[str, str]] = {
    durations.PATTERN: "a duration such as 500ms, 5m or 1h30m",
    names.LABEL: "a name of lower case letters, digits and '-'",
    names.OBJECT: _OBJECT,
    names.KEY: "a key of a ConfigMap: letters, digits, '-', '_' and '.'",
    LINE: "text without control characters",
    NUMBER: "a whole number",
    PROPERTY: "a name of letters, digits, '.', '-' and '_'",
    TEXT: "text without control characters",
}
"""What a pattern asks for. The API server shows the pattern itself."""

_OPEN: Final = frozenset({LINE, TEXT})
"""Patterns of values such as options, which may be secret.

Values of all other patterns are names, and are quoted.
"""


_UNKNOWN: Final = "extra_forbidden"
"""What pydantic calls a field that the model does not have."""


class InvalidConfigError(InvalidSpecError):
    """The model of a connector has refused what a user wrote for it.

    Attributes:
        findings: path below `place`, and what is wrong there, of each offending field.
        place: path of what the user wrote for the connector.
    """

    def __init__(
        self,
        error: ValidationError,
        *,
        place: str,
        words: Mapping[str, str],
        fields: Collection[str],
    ) -> None:
        """Say what is wrong with the most telling field; see `in_words`."""
        inner, message = in_words(error, words, fields)
        super().__init__(message, field=".".join(filter(None, [place, inner])))
        self.place = place
        self.findings = tuple(each_in_words(error, words, fields))


def in_words(
    error: ValidationError, words: Mapping[str, str], fields: Collection[str] = ()
) -> tuple[str, str]:
    """Return the path of the most telling offending field, and what is wrong with it.

    Args:
        error: of a model.
        words: pattern → what it asks for, for patterns of names that the model has besides those of
            `base`.
        fields: of the model, to suggest one for an unknown field at its top.
    """
    found = error.errors(include_url=False)
    # Unknown fields first: a misspelt name explains why another field is missing.
    first, *rest = sorted(found, key=lambda one: one["type"] != _UNKNOWN)
    place = ".".join(_step(step) for step in first["loc"] if step != "[key]")
    more = f" (and {len(rest)} more)" if rest else ""
    if first["type"] == _UNKNOWN:
        return place, f"unknown field{_similar(first['loc'], fields)}{more}"
    return place, f"{_sentence(first, {**_IN_WORDS, **words})}{more}"


def _similar(path: Sequence[str | int], fields: Collection[str]) -> str:
    if len(path) != 1 or not fields:
        return ""
    near = nearest(str(path[0]), fields)
    return f"; did you mean {near}?" if near else f" (there are: {', '.join(fields)})"


def each_in_words(
    error: ValidationError, words: Mapping[str, str], fields: Collection[str] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield path and message of each offending field; the arguments are those of `in_words`."""
    for each in error.errors(include_url=False):
        path = tuple(step for step in each["loc"] if step != "[key]")
        if each["type"] == _UNKNOWN and fields:
            yield path, f"unknown field{_similar(path, fields)}"
        else:
            yield path, _sentence(each, {**_IN_WORDS, **words})


def _sentence(error: Any, words: Mapping[str, str]) -> str:
    pattern = (
        str(error.get("ctx", {}).get("pattern"))
        if error["type"] == "string_pattern_mismatch"
        else ""
    )
    if pattern not in words:
        return _message(error)
    value = f", not {names.shown(str(error['input']))}" if pattern not in _OPEN else ""
    return f"must be {words[pattern]}{value}"


def _message(error: Any) -> str:
    """Return the message on one line; what a validator raises may have no text at all."""
    raised = error.get("ctx", {}).get("error")
    text = str(raised) if isinstance(raised, Exception) else str(error["msg"])
    return " ".join(text.split()) or "is not valid"


def _step(step: str | int) -> str:
    """A key of a map is the user's: it may hold anything."""
    text = str(step)
    return text if names.shown(text) == f"'{text}'" else names.shown(text)
