"""What all parts of the custom resource have in common: camelCase, no unknown fields, documented fields."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from balanced_source import durations

Duration = Annotated[str, Field(pattern=durations.PATTERN, max_length=32)]
"""A span of time as text."""


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
