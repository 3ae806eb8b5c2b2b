"""What a restarted operator needs of the last valid spec, as text in the status.

The status is the right place. Everybody who may read it may read the spec as well. Only the
operator may write it: a ConfigMap could be edited to send a source's credentials to other brokers.
A recreated source begins without it.

The application is left out: its arguments and pod templates may hold secrets, and nothing is
started from an old spec.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from balanced_source.errors import InvalidSpecError
from balanced_source.secret_keys import holds_secret
from balanced_source_operator.spec import BalancedSourceSpec, parse_spec

KEPT: Final = {"parallelism", "assignment", "rebalance_nonce", "source"}
"""Fields that decide which splits are read, and by how many readers."""

LIMIT: Final = 65_536
"""Characters; a larger spec is not kept."""

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

_FIXED: Final = "fixed"

_APPLICATION: Final = {"image": "unknown", "sparkVersion": "4.2.0"}
"""Stands for the application, which is not kept."""


def kept_text(
    spec: BalancedSourceSpec, fixed: Mapping[str, str] = NOTHING, secrets: Collection[str] = ()
) -> str:
    """Return what is kept of a valid spec.

    Empty if it is too large, or holds what looks like a secret.

    Args:
        spec: in effect.
        fixed: what must not change, also if it is not in the spec; see `fixed_values`.
        secrets: names of the Secrets that the source is read with. A field such as
            `files.s3.secret` holds such a name, and no secret.
    """
    fields = spec.model_dump(mode="json", by_alias=True, exclude_unset=True, include=KEPT)
    if fixed:
        fields[_FIXED] = dict(fixed)
    text = json.dumps(fields, separators=(",", ":"), sort_keys=True)
    is_secret = any(
        holds_secret(key, value) for key, value in _texts("", fields) if value not in secrets
    )
    return "" if is_secret or len(text) > LIMIT else text


def kept_spec(text: Any) -> BalancedSourceSpec | None:
    """Return the spec that was kept, or None if there is none, or none that this operator accepts.

    Its `application` is a stand-in: never start anything from it.
    """
    try:
        fields = json.loads(text)
        fields.pop(_FIXED, None)
        return parse_spec({**fields, "application": _APPLICATION})
    except (InvalidSpecError, ValueError, TypeError, AttributeError, RecursionError):
        return None


def kept_fixed(text: Any) -> Mapping[str, str]:
    """Return what must not change since the spec was kept; empty if that is unknown."""
    try:
        found = json.loads(text)[_FIXED]
        return {str(name): str(value) for name, value in found.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


def _texts(key: str, value: Any) -> Iterable[tuple[str, str]]:
    """All texts of a document, each with the key that it is found under."""
    match value:
        case str():
            yield key, value
        case Mapping():
            for name, inner in value.items():
                yield from _texts(name, inner)
        case list():
            for inner in value:
                yield from _texts(key, inner)
        case _:
            return
