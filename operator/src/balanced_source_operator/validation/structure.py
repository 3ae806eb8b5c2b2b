"""Checks a value against the structural schema of a CRD.

Defaults, types, bounds, unknown fields, CEL rules.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from balanced_source_adapters.suggestions import nearest
from balanced_source_operator.validation.cel_rules import broken_rule, matches
from balanced_source_operator.validation.findings import Finding, Path, quoted

Schema: TypeAlias = Mapping[str, Any]

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_IN_WORDS: Final[Mapping[str, str]] = {
    "object": "an object",
    "array": "a list",
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
}


def with_defaults(value: Any, schema: Schema) -> Any:
    """Return a value as the API server would store it.

    Defaults set, and fields that are null left out.
    """
    if isinstance(value, dict):
        return _object_with_defaults(value, schema)
    if isinstance(value, list):
        return [with_defaults(item, schema.get("items", {})) for item in value]
    return value


def _object_with_defaults(value: dict[str, Any], schema: Schema) -> dict[str, Any]:
    fields: Mapping[str, Schema] = schema.get("properties", {})
    others: Any = schema.get("additionalProperties")
    is_map = isinstance(others, dict)
    found = {
        name: item
        for name, item in value.items()
        if item is not None or not (is_map or name in fields)
    }
    for name, field in fields.items():
        if "default" in field and name not in found:
            found[name] = field["default"]
    default = others if is_map else {}
    return {name: with_defaults(item, fields.get(name, default)) for name, item in found.items()}


def check(value: Any, schema: Schema, path: Path = ()) -> Iterator[Finding]:
    """Yield what the API server would refuse; `value` has its defaults.

    Rules are evaluated where everything below is sound, as in the API server.
    """
    if not _has_type(value, schema):
        yield Finding(
            path=path, message=f"must be {_IN_WORDS[schema['type']]}, not {quoted(value, path)}"
        )
        return
    found = [*_bounds(value, schema, path), *_below(value, schema, path)]
    yield from found
    if not found:
        for rule in schema.get("x-kubernetes-validations", ()):
            if (message := broken_rule(rule, value)) is not None:
                yield Finding(path=path, message=message)


def _has_type(value: Any, schema: Schema) -> bool:
    if (kind := schema.get("type")) is None:
        return True
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind]) and isinstance(value, bool) == (kind == "boolean")


def _below(value: Any, schema: Schema, path: Path) -> Iterator[Finding]:
    if isinstance(value, dict):
        yield from _fields(value, schema, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from check(item, schema.get("items", {}), (*path, index))


def _fields(value: dict[str, Any], schema: Schema, path: Path) -> Iterator[Finding]:
    fields: Mapping[str, Schema] = schema.get("properties", {})
    others: Any = schema.get("additionalProperties")
    for name in schema.get("required", ()):
        if name not in value:
            yield Finding(path=(*path, name), message="required field is missing")
    for name, item in value.items():
        if name in fields:
            yield from check(item, fields[name], (*path, name))
        elif isinstance(others, dict):
            yield from check(item, others, (*path, name))
        elif fields:
            yield Finding(path=(*path, name), message=f"unknown field{_similar(name, fields)}")


def _similar(name: str, fields: Mapping[str, Schema]) -> str:
    near = nearest(str(name), fields)
    return f"; did you mean {near}?" if near else f" (there are: {', '.join(fields)})"


def _bounds(value: Any, schema: Schema, path: Path) -> Iterator[Finding]:
    for message in (*_of_choice(value, schema, path), *_of_size(value, schema)):
        yield Finding(path=path, message=message)
    if isinstance(value, str) and "pattern" in schema and not matches(schema["pattern"], value):
        message = f"must match the pattern {schema['pattern']}, not {quoted(value, path)}"
        yield Finding(path=path, message=message, is_final=False)


def _of_choice(value: Any, schema: Schema, path: Path) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"must be one of {', '.join(map(str, schema['enum']))}, not {quoted(value, path)}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if "minimum" in schema and not value >= schema["minimum"]:
            yield f"must be {schema['minimum']} or more, not {value}"
        if "maximum" in schema and not value <= schema["maximum"]:
            yield f"must be {schema['maximum']} or less, not {value}"


_SIZES: Final = (
    (str, "minLength", "maxLength", "characters"),
    (list, "minItems", "maxItems", "items"),
    (dict, "minProperties", "maxProperties", "keys"),
)


def _of_size(value: Any, schema: Schema) -> Iterator[str]:
    for kind, least, most, what in _SIZES:
        if isinstance(value, kind):
            if len(value) < schema.get(least, 0):
                yield f"must have at least {schema[least]} {what}, not {len(value)}"
            if most in schema and len(value) > schema[most]:
                yield f"must have at most {schema[most]} {what}, not {len(value)}"
