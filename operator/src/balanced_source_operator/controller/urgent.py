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
    """Return the spec in effect, with the urgent fields that the newest one states.

    An urgent field that is missing or invalid stays as it is. A missing field does not mean its
    default here: the field may be misspelt, and a file without a spec may be half saved.

    Args:
        valid: the spec that is in effect.
        raw: the newest spec, which is invalid; None if there is none.
    """
    newest = raw if isinstance(raw, Mapping) else {}
    spec = valid
    for name in URGENT_FIELDS:
        if name not in newest:
            continue
        others = spec.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={name})
        try:
            spec = parse_spec({**others, name: newest[name]})
        except InvalidSpecError:
            # One urgent field that is invalid must not keep the other from taking effect.
            continue
    return spec
