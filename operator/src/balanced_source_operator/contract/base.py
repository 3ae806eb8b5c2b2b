"""What all parts of the custom resource have in common.

camelCase, no unknown fields, documented fields.
"""

from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from balanced_source import durations, names

LINE: Final = r"^[^\x00-\x1f\x7f]*$"
TEXT: Final = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$"
PROPERTY: Final = r"^[A-Za-z][A-Za-z0-9._-]*$"
NUMBER: Final = r"^[0-9]+$"

ClusterName = Annotated[str, Field(min_length=1, max_length=names.MAX_LABEL, pattern=names.LABEL)]
"""Name of a cluster or a group."""

ObjectName = Annotated[str, Field(min_length=1, max_length=names.MAX_OBJECT, pattern=names.OBJECT)]
"""Name of an object in the namespace of the BalancedSource.

It becomes part of a URL and of a path.
"""

MapKey = Annotated[str, Field(min_length=1, max_length=names.MAX_OBJECT, pattern=names.KEY)]
"""Key of a ConfigMap; a file name in local mode."""

Text = Annotated[str, Field(max_length=4096, pattern=TEXT)]
"""A value that is handed on as it is."""


def _bounded(text: str) -> str:
    if not durations.is_duration(text):
        raise PydanticCustomError("duration_too_long", "must be at most ten years (87600h)")
    return text


Duration = Annotated[str, Field(pattern=durations.PATTERN, max_length=32), AfterValidator(_bounded)]
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
