"""What all parts of the custom resource have in common: camelCase, no unknown fields, documented fields."""

import re
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

DURATION_PATTERN: Final = r"^(0|([0-9]+(ms|s|m|h))+)$"
"""``500ms``, ``5m``, ``1h30m``, or ``0``."""

_PART: Final = re.compile(r"([0-9]+)(ms|s|m|h)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

Duration = Annotated[str, Field(pattern=DURATION_PATTERN, max_length=32)]
"""A span of time as text."""


def seconds(duration: str) -> float:
    """A `Duration` in seconds; 0.0 for ``0``."""
    return sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(duration))


def rule(cel: str, message: str, **more: str) -> dict[str, str]:
    """A CEL rule that the API server checks before anything is stored."""
    return {"rule": cel, "message": message, **more}


class Model(BaseModel):
    """Base of every part of the custom resource."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )


def with_rules(*rules: dict[str, str], **extra: Any) -> dict[str, Any]:
    """`json_schema_extra` that carries CEL rules."""
    return {"x-kubernetes-validations": list(rules), **extra}
