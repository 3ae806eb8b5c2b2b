"""Evaluates CEL rules as the API server does."""

import functools
from typing import Any, Final

import cel

from balanced_source.names import one_line

_OLD: Final = "oldSelf"
"""Rules about a change need the stored object: only an API server can check them."""

_ADVICE: Final = ". Check function arguments and their types."
"""What the library adds to each error, for authors of rules."""


def broken_rule(rule: dict[str, str], value: Any) -> str | None:
    """Return the message of a rule that a value does not keep; None if it keeps it."""
    if _OLD in rule["rule"]:
        return None
    try:
        kept = _program(rule["rule"]).execute({"self": value})
    except Exception as error:  # noqa: BLE001
        # The library raises several types; the API server refuses, too
        # The cause comes last, after the rule and the value.
        cause = str(error).removesuffix(_ADVICE).rpartition("error: ")[2]
        return f"{rule['message']}: {one_line(cause)}"
    return None if kept is True else rule["message"]


@functools.cache
def _program(text: str) -> Any:
    return cel.compile(text)


def matches(pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern of the schema, by RE2's syntax, not Python's."""
    found: bool = _program(f"self.matches({_literal(pattern)})").execute({"self": text})
    return found


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
