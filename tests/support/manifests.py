"""How an API server puts manifests together: merge patch and server-side apply."""

from collections.abc import Mapping
from typing import Any


def merged(known: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON merge patch (RFC 7386): null deletes, lists are replaced."""
    result = dict(known)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            below = result.get(key)
            result[key] = merged(below if isinstance(below, Mapping) else {}, value)
        else:
            result[key] = value
    return result


def applied(
    known: Mapping[str, Any], before: Mapping[str, Any], now: Mapping[str, Any]
) -> dict[str, Any]:
    """Server-side apply with atomic lists.

    `now` wins, what only `before` had goes, what others set stays.
    """
    result = {key: value for key, value in known.items() if key in now or key not in before}
    for key, value in now.items():
        below, old = result.get(key), before.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            result[key] = applied(below, old if isinstance(old, Mapping) else {}, value)
        else:
            result[key] = value
    return result
