"""Pieces of Markdown for generated references."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Row = tuple[str, str, str, str]


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table."""
    names = list(columns)
    lines = [_line(names), "|" + "---|" * len(names), *(_line(row) for row in rows)]
    return "\n".join(lines) + "\n"


def field_table(schema: Mapping[str, Any], at: str) -> str:
    """Return the table of all fields below a place of a structural schema."""
    rows = [(f"`{path}`", kind, default, text) for path, kind, default, text in rows_of(schema, at)]
    return table(("field", "type", "default", "meaning"), rows)


def rows_of(schema: Mapping[str, Any], at: str) -> Iterator[Row]:
    """Yield path, type, default and meaning of each field below a place."""
    for name, field in schema.get("properties", {}).items():
        path = f"{at}.{name}"
        required = "required" if name in schema.get("required", ()) else ""
        default = f"`{json.dumps(field['default'])}`" if "default" in field else required
        yield path, _kind(field), default, field.get("description", "")
        yield from _below(field, path)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


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
