"""Fields of the spec that take effect even while another part of the spec is invalid."""

from collections.abc import Mapping
from typing import Any, Final

from balanced_source.errors import InvalidSpecError
from balanced_source_operator.resources.kinds import PAUSED_ANNOTATION
from balanced_source_operator.spec import BalancedSourceSpec, parse_spec

URGENT_FIELDS: Final = ("suspend", "parallelism")
"""A user who stops or slows a source must not have to repair the rest of its spec first."""


def is_suspended(raw: Any) -> bool:
    """Return whether a spec says ``suspend: true``, however invalid the rest of it is."""
    return isinstance(raw, Mapping) and raw.get("suspend") is True


def is_paused(body: Mapping[str, Any]) -> bool:
    """Return whether the annotation of a source says that its spec must not take effect now."""
    annotations = body["metadata"].get("annotations") or {}
    return annotations.get(PAUSED_ANNOTATION) == "true"


def with_urgent_fields(valid: BalancedSourceSpec, raw: Any) -> BalancedSourceSpec:
    """Return the last valid spec with the urgent fields of the newest one.

    An invalid urgent field is ignored.

    Args:
        valid: the spec that is in effect.
        raw: the newest spec, which is invalid.
    """
    newest = raw if isinstance(raw, Mapping) else {}
    spec = valid
    for name in URGENT_FIELDS:
        candidate = spec.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={name})
        # Left out, the field has its default again, which is as much the user's word as a value.
        if name in newest:
            candidate[name] = newest[name]
        try:
            spec = parse_spec(candidate)
        except InvalidSpecError:
            # One urgent field that is invalid must not keep the other from taking effect.
            continue
    return spec
