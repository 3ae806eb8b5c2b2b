"""Values of the Helm chart: defaults and comments of values.yaml, types of its schema."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from support.reference.markdown import head, table
from testbed.versions import CHECKOUT

CHART: Final = CHECKOUT / "charts" / "balanced-source"
TEXT: Final = """Values of the chart, with their defaults. `values.schema.json` checks them: a
misspelt name is an error. [Install](../install.md) names the ones to think about first.
"""


def page() -> str:
    """Return the page."""
    node = yaml.compose((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    lines = (CHART / "values.yaml").read_text(encoding="utf-8").splitlines()
    rows = [
        (f"`{path}`", kind, f"`{json.dumps(default)}`", text)
        for path, kind, default, text in _rows(node, schema, lines)
    ]
    return (
        head("Values of the chart", "charts/balanced-source", TEXT)
        + "\n"
        + table(("value", "type", "default", "meaning"), rows)
    )


def _rows(
    node: Any, schema: Mapping[str, Any], lines: list[str], at: str = ""
) -> Iterator[tuple[str, str, Any, str]]:
    for key, value in node.value:
        path = f"{at}.{key.value}".lstrip(".")
        field = schema.get("properties", {}).get(key.value, {})
        if isinstance(value, yaml.MappingNode) and value.value and "properties" in field:
            yield from _rows(value, field, lines, path)
        else:
            default = yaml.safe_load(yaml.serialize(value))
            yield (
                path,
                _kind(field),
                default,
                field.get("description") or _comment(lines, key.start_mark.line),
            )


def _kind(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    kind = field.get("type", "anything")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _comment(lines: list[str], number: int) -> str:
    """Return the comment right above a line."""
    found: list[str] = []
    while number > 0 and lines[number - 1].strip().startswith("#"):
        number -= 1
        found.insert(0, lines[number].strip().removeprefix("#").strip())
    return " ".join(found)
