"""Every field of the custom resource, from the CRD."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from balanced_source_operator.spec.crd import custom_resource_definition
from support.reference.markdown import head, table

Row = tuple[str, str, str, str]
ORIGIN: Final = "the models of the custom resource"
TEXT: Final = """All fields of a `BalancedSource` (`balancedsource.io/v1alpha1`). `kubectl explain
bsrc.spec` shows the same descriptions. `[]` stands for an item of a list, `{}` for a value of a
map. [Kafka](../kafka.md) has an example for each field of `spec.source.kafka`. The API server fills
in defaults.
"""


def page() -> str:
    """Return the page."""
    schema = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
        "properties"
    ]
    parts = [head("Fields of a BalancedSource", ORIGIN, TEXT)]
    for part in ("spec", "status"):
        rows = [
            (f"`{path}`", kind, default, meaning)
            for path, kind, default, meaning in rows_of(schema[part], part)
        ]
        parts.append(f"\n## {part}\n\n" + table(("field", "type", "default", "meaning"), rows))
    return "".join(parts)


def rows_of(schema: Mapping[str, Any], at: str) -> Iterator[Row]:
    """Yield path, type, default and meaning of each field below a place."""
    for name, field in schema.get("properties", {}).items():
        path = f"{at}.{name}"
        required = "required" if name in schema.get("required", ()) else ""
        default = f"`{json.dumps(field['default'])}`" if "default" in field else required
        yield path, _kind(field), default, field.get("description", "")
        yield from _below(field, path)


def _below(field: Mapping[str, Any], path: str) -> Iterator[Row]:
    yield from rows_of(field, path)
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        inner = field.get(key)
        if isinstance(inner, Mapping):
            yield from _below(inner, path + mark)


def _kind(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    kind = field.get("type", "anything")
    match kind:
        case "array":
            return f"list of {_kind(field['items'])}"
        case "object" if isinstance(field.get("additionalProperties"), Mapping):
            return f"map of {_kind(field['additionalProperties'])}"
        case "integer" | "number":
            return f"{kind}{_range(field)}"
        case _:
            return str(kind)


def _range(field: Mapping[str, Any]) -> str:
    low, high = field.get("minimum"), field.get("maximum")
    match low, high:
        case None, None:
            return ""
        case _, None:
            return f", {low} or more"
        case None, _:
            return f", {high} or less"
        case _:
            return f", {low} to {high}"
