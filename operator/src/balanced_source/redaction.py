"""Takes secrets out of manifests and logs, by the names they go by.

Nothing here reads a Secret. But a manifest may hold one where it should not: in a variable, a
setting, an argument, a URL, or in the copy that `kubectl apply` keeps in an annotation.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from balanced_source.secret_keys import holds_secret

REDACTED: Final = "[redacted]"

_COPY: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation with the whole manifest as text, secrets included."""

_PAIR: Final = re.compile(
    r"""(?ix) (?P<name> [\w.-]* (?: passw(?:or)?d | passphrase | secret | token | credentials?
        | signature | (?<=[?&;])sig
        | (?:api|shared|encryption)[._-]?key
        | (?:secret|access|private)[._-]?key (?:[._-]?id)?
        | account[._-]?key (?:\.[\w.-]+)? | fs\.azure\.sas\.[\w.-]+ ) )
        (?P<between> ["']? \s* [=:] \s* )
        (?P<value> "[^"]*" | '[^']*' | [^\s,;}\]"']+ )"""
)
"""A name that holds secrets, and its value: in properties, JSON, JAAS, arguments or a URL."""

_LOGIN: Final = re.compile(r"(?i)(//)[^/@\s:]+:[^/@\s]+@")
_PEM: Final = re.compile(r"-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|\Z)", re.DOTALL)
_BEARER: Final = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")


def redacted_text(text: str) -> str:
    """Return a text without the values of secrets, logins in URLs, keys and certificates."""
    text = _PEM.sub(REDACTED, text)
    text = _LOGIN.sub(rf"\1{REDACTED}@", text)
    text = _BEARER.sub(rf"\1 {REDACTED}", text)
    return _PAIR.sub(lambda found: f"{found['name']}{found['between']}{REDACTED}", text)


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


def _value(name: str, value: Any) -> Any:
    match value:
        case str():
            return REDACTED if value and holds_secret(name, value) else redacted_text(value)
        case Mapping():
            return _mapping(value)
        case list():
            return [_value(name, item) for item in value]
        case _:
            return value


def _mapping(value: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of ``env`` has its name and its value side by side."""
    clean = {key: _value(key, item) for key, item in value.items()}
    if isinstance(value.get("name"), str) and isinstance(value.get("value"), str):
        clean["value"] = _value(value["name"], value["value"])
    return clean
