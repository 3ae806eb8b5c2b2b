"""Values of the Helm chart: defaults and comments of values.yaml, types of its schema."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from support.reference.markdown import head, table
from testbed.versions import CHECKOUT

CHART: Final = CHECKOUT / "charts" / "balanced-source"
TEXT: Final = """Values of the chart, with their defaults. `values.schema.json` checks them: a
misspelt name is an error. [Install](../install.md) names the ones to think about first.
"""


_TABLE: Final = re.compile(r"(<!-- values: .*? -->\n).*?(<!-- end of values -->)", re.DOTALL)
_PAGE_OF_DOCS: Final = re.compile(r"\bdocs/([\w/-]+\.md(?:#[\w-]+)?)")


def page() -> str:
    """Return the page."""
    rows = [
        (f"`{path}`", kind, _code(default), _linked(text, ".."))
        for path, kind, default, text in values()
    ]
    return (
        head("Values of the chart", "charts/balanced-source", TEXT)
        + "\n"
        + table(("value", "type", "default", "meaning"), rows)
    )


def readme() -> str:
    """Return the chart's README with its table as the values are.

    Raises:
        ValueError: it has no place for the table, or several.
    """
    rows = [
        (f"`{path}`", _code(default), _linked(text, "../../docs"))
        for path, _, default, text in values()
    ]
    made = table(("value", "default", "meaning"), rows)
    before = (CHART / "README.md").read_text(encoding="utf-8")
    after, count = _TABLE.subn(lambda marks: f"{marks[1]}\n{made}\n{marks[2]}", before)
    if count != 1:
        raise ValueError(f"README.md of the chart has {count} places for the table of values")
    return after


def values() -> list[tuple[str, str, Any, str]]:
    """Return path, type, default and meaning of each value."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    return list(_rows(yaml.compose(text), schema, text.splitlines()))


def _code(default: Any) -> str:
    return f"`{json.dumps(default, ensure_ascii=False)}`"


def _linked(text: str, folder: str) -> str:
    """Make links of the pages that a meaning names."""
    return _PAGE_OF_DOCS.sub(lambda name: f"[{name[0]}]({folder}/{name[1]})", text)


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
