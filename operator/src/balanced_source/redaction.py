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

from balanced_source.secret_keys import holds_secret

REDACTED: Final = "[redacted]"

_COPY: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation with the whole manifest as text, secrets included."""

_SHORT: Final = re.compile(r"(?i)(^|[._-])pass$|[._-]pwd$")
"""Ends of names that hold secrets, too. They are no reason to refuse a setting."""

_NAMES: Final = r"""(?: passw(?:or)?d | passphrase | secret | token | credentials?
        | (?<=[._-])pass | (?<=[._-])pwd
        | signature | (?<=[?&;])sig
        | (?:api|shared|encryption)[._-]?key
        | (?:secret|access|private)[._-]?key (?:[._-]?id)?
        | account[._-]?key (?:\.[\w.-]+)? | fs\.azure\.sas\.[\w.-]+ )"""

_VALUES: Final = r"""(?: (?P<escaped>\\+["']).*?(?P=escaped) | \\+["']\S*
        | "(?:[^"\\]|\\.)*(?:"|\Z) | '(?:[^'\\]|\\.)*(?:'|\Z) | [^\s,;}\]"']+ )"""
"""In quotes, in quotes of a text within a text, or without; a log may be cut off within one."""

_PAIR: Final = re.compile(
    rf"""(?ix) (?P<name> [\w.-]* {_NAMES} )
        (?P<between> (?: \\* ["'])? \s* [=:] \s* )
        (?P<value> {_VALUES} )"""
)
"""A name that holds secrets, and its value: in properties, JSON, JAAS, arguments or a URL."""

_SIDE_BY_SIDE: Final = re.compile(
    rf"""(?ix) (?P<before> \b name \\* ["']? \s* : \s* \\* ["']? [\w.-]* {_NAMES}
        \\* ["']? \s* ,? \s* \\* ["']? value \\* ["']? \s* : \s* )
        (?P<value> {_VALUES} )"""
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
    text = _SIDE_BY_SIDE.sub(lambda found: f"{found['before']}{REDACTED}", text)
    return _PAIR.sub(lambda found: f"{found['name']}{found['between']}{REDACTED}", text)


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
            return REDACTED if value and _is_secret(name, value) else redacted_text(value)
        case Mapping():
            return _mapping(value)
        case list():
            return _items(name, value)
        case _:
            return value


def _is_secret(name: str, value: str) -> bool:
    return holds_secret(name, value) or _SHORT.search(name) is not None


def _items(name: str, items: Sequence[Any]) -> list[Any]:
    """In a list of arguments, the name of an option may stand before its value."""
    options = [None, *(_option(item) for item in items)]
    return [
        _value(name if option is None or _option(item) is not None else option, item)
        for option, item in zip(options, items, strict=False)
    ]


def _option(item: Any) -> str | None:
    """Return the name of the option that an argument is, without its value."""
    is_option = isinstance(item, str) and item.startswith("-") and "=" not in item
    return item.lstrip("-") if is_option else None


def _mapping(value: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of ``env`` has its name and its value side by side."""
    clean = {key: _value(key, item) for key, item in value.items()}
    if isinstance(value.get("name"), str) and isinstance(value.get("value"), str):
        clean["value"] = _value(value["name"], value["value"])
    return clean
