"""Takes secrets out of manifests and logs, by the names they go by.

Nothing here reads a Secret. But a manifest may hold one where it should not: in a variable, a
setting, an argument, a URL, or in the copy that a tool keeps in an annotation.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from balanced_source.secret_keys import SHORT, holds_secret, option_name

REDACTED: Final = "[redacted]"

_COPY: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation with the whole manifest as text, secrets included."""

_IN_URL: Final = {*SHORT, "sig"}
"""Names that hold secrets in quotes, or as parameters of a URL."""

_ALSO: Final = re.compile(r"(?i)(?:signature|(?:secret|access|private)[._-]?key[._-]?id)$")
"""Ends of names that belong to secrets, too. They are no reason to refuse a setting."""

_VALUE: Final = re.compile(
    r"""(?x) (?P<escaped>\\+["']).*?(?P=escaped) | \\+["']\S*
        | "(?:[^"\\]|\\.)*(?:"|\Z) | '(?:[^'\\]|\\.)*(?:'|\Z) | [^\s,;}\]"']+"""
)
"""In quotes, in quotes of a text within a text, or without; a log may be cut off within one."""

# Names begin where no part of one is before, and are read at once: long ones cost no more.
_PAIR: Final = re.compile(
    r"""(?x) (?<![\w.-]) (?P<name> [\w.-]++ ) (?P<between> (?: \\* ["'])? \s* [=:] \s* )"""
)
"""A name before its value: in properties, JSON, JAAS, arguments or a URL."""

_SIDE_BY_SIDE: Final = re.compile(
    r"""(?ix) \b name \\* ["']? \s* : \s* \\* ["']? (?P<name> [\w.-]++ )
        (?P<between> \\* ["']? \s* ,? \s* \\* ["']? value \\* ["']? \s* : \s* )"""
)
"""The same in an entry of ``env``, which has its name and its value side by side."""

_LOGIN: Final = re.compile(r"(//)[^/@\s:]*:[^/\s]+@")
_PEM: Final = re.compile(r"-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|\Z)", re.DOTALL)
_BEARER: Final = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")


def redacted_text(text: str) -> str:
    """Return a text without the values of secrets, logins in URLs, keys and certificates.

    Lines of JSON are read as such, because quotes within them are escaped.
    """
    lines = [(_from_json(line), line) for line in _PEM.sub(REDACTED, text).split("\n")]
    clean: list[str] = []
    for is_plain, group in groupby(lines, key=lambda line: line[0] is None):
        if is_plain:
            clean.append(_by_patterns("\n".join(map(itemgetter(1), group))))
        else:
            clean += [_json_line(found, line) for found, line in group]
    return "\n".join(clean)


def redacted(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest without secrets, and without what only the API server needs."""
    clean = {name: _value(name, value) for name, value in manifest.items()}
    metadata = clean.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict):
            annotations.pop(_COPY, None)
    return clean


def _by_patterns(text: str) -> str:
    text = _LOGIN.sub(rf"\1{REDACTED}@", text)
    text = _BEARER.sub(rf"\1 {REDACTED}", text)
    return _without_values(_without_values(text, _SIDE_BY_SIDE), _PAIR)


def _without_values(text: str, heads: re.Pattern[str]) -> str:
    """Return a text without the values that follow names of secrets."""
    parts, kept, at = list[str](), 0, 0
    while (head := heads.search(text, at)) is not None:
        at = head.end()
        if _is_secret(head) and (value := _VALUE.match(text, at)) is not None:
            parts += (text[kept:at], REDACTED)
            kept = at = value.end()
    return "".join((*parts, text[kept:]))


def _is_secret(head: re.Match[str]) -> bool:
    name, at = head["name"], head.start("name")
    if name.lower() in _IN_URL:
        before = head.string[at - 1 : at]
        # Alone, they are words: `PWD=/opt/spark`.
        return before in {"?", "&", ";"} or head["between"][0] in "\\\"'"
    return holds_secret(name.removeprefix("-D")) or _ALSO.search(name) is not None


def _from_json(line: str) -> Any:
    """Return the object or array that a line is; None if it is neither."""
    if line.lstrip()[:1] not in ("{", "["):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def _json_line(found: Any, line: str) -> str:
    clean = _value("", found)
    # What is equal stays as it was written, but a repeated key hides a value from the parser.
    return _by_patterns(line) if clean == found else json.dumps(clean, ensure_ascii=False)


def _value(name: str, value: Any) -> Any:
    match value:
        case str():
            return REDACTED if value and holds_secret(name, value) else redacted_text(value)
        case Mapping():
            return _mapping(value)
        case list():
            return _items(name, value)
        case _:
            return value


def _items(name: str, items: Sequence[Any]) -> list[Any]:
    """In a list of arguments, the name of an option may stand before its value."""
    options = [None, *(option_name(item) for item in items)]
    return [
        _value(name if option is None or option_name(item) is not None else option, item)
        for option, item in zip(options, items, strict=False)
    ]


def _mapping(value: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of ``env`` has its name and its value side by side."""
    clean = {key: _value(key, item) for key, item in value.items()}
    if isinstance(value.get("name"), str) and isinstance(value.get("value"), str):
        clean["value"] = _value(value["name"], value["value"])
    return clean
