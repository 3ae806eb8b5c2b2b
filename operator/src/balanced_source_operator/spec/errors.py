"""A validation error of pydantic as a sentence for the user."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from balanced_source import durations, names
from balanced_source_operator.spec.application import CONF_KEY, IMAGE, PROGRAM
from balanced_source_operator.spec.base import LINE, NUMBER, PROPERTY, TEXT
from balanced_source_operator.spec.clusters import BROKERS
from balanced_source_operator.spec.offsets import TOPIC
from balanced_source_operator.spec.spark_values import MEMORY, VERSION

_OBJECT: Final = "the name of a Kubernetes object: lower case letters, digits, '-' and '.'"
_IN_WORDS: Final[Mapping[str, str]] = {
    durations.PATTERN: "a duration such as 500ms, 5m or 1h30m",
    names.LABEL: "a name of lower case letters, digits and '-'",
    names.OBJECT: _OBJECT,
    names.KEY: "a key of a ConfigMap: letters, digits, '-', '_' and '.'",
    BROKERS: "host:port, several separated by commas",
    CONF_KEY: "a Spark setting, whose name begins with spark.",
    IMAGE: "the reference of an image, without blanks",
    LINE: "text without control characters",
    MEMORY: "an amount of memory such as 512m or 4g",
    NUMBER: "a whole number",
    PROGRAM: "a path or URL without blanks",
    PROPERTY: "a name of letters, digits, '.', '-' and '_'",
    TEXT: "text without control characters",
    VERSION: "a version such as 4.2.0",
    TOPIC: "the name of a topic: letters, digits, '.', '-' and '_'",
}
"""What a pattern asks for. The API server shows the pattern itself."""

_CLOSED: Final = frozenset(_IN_WORDS) - {LINE, TEXT}
"""Patterns of names. Only names are quoted: other values, e.g. of an option, may be secret."""


def in_words(error: ValidationError) -> tuple[str, str]:
    """Returns the path of the first offending field, and what is wrong with it."""
    first, *rest = error.errors(include_url=False)
    place = ".".join(_step(step) for step in first["loc"] if step != "[key]")
    more = f" (and {len(rest)} more)" if rest else ""
    return place, f"{_sentence(first)}{more}"


def _sentence(error: Any) -> str:
    pattern = str(error.get("ctx", {}).get("pattern")) if error["type"] == "string_pattern_mismatch" else ""
    if pattern not in _IN_WORDS:
        return str(error["msg"])
    value = f", not {names.shown(str(error['input']))}" if pattern in _CLOSED else ""
    return f"must be {_IN_WORDS[pattern]}{value}"


def _step(step: str | int) -> str:
    """A key of a map is the user's: it may hold anything."""
    text = str(step)
    return text if names.shown(text) == f"'{text}'" else names.shown(text)
