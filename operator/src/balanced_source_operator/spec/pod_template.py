"""Checks pod templates before anything is made from them.

The Spark operator decodes every SparkApplication of the cluster into Go's types. One value of the
wrong type, e.g. ``cpu: lots``, stops its watch for all namespaces. The schema is that of
Kubernetes, as an API server publishes it; fields that it does not know are left to the API server,
which may be newer.
"""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pydantic_core import PydanticCustomError

from balanced_source.names import shown

SCHEMA_FILE: Final = Path(__file__).with_name("pod_template.json")
"""Type → field → kind of value, see `tests/support/pod_schema.py`."""

ROOT: Final = "PodTemplateSpec"
MAX_DEPTH: Final = 32
"""Levels of a template; that of Kubernetes has fewer."""

_QUANTITY: Final = re.compile(
    r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,3})?", re.ASCII
)
_INT_BITS: Final = {"int32": 31, "int64": 63}

_IN_WORDS: Final[Mapping[str, str]] = {
    "string": "text",
    "boolean": "true or false",
    "quantity": "a quantity such as 500m, 2 or 1Gi",
    "intOrString": "a number or a text",
    "time": "a time such as 2026-01-31T12:00:00Z",
    "int32": "a whole number of 32 bits",
    "int64": "a whole number of 64 bits",
}


@functools.cache
def schema() -> Mapping[str, Mapping[str, str]]:
    """Returns the published schema."""
    found: Mapping[str, Mapping[str, str]] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return found


def checked_template(template: dict[str, Any]) -> dict[str, Any]:
    """Returns the template without fields that are null, which Kubernetes takes for absent.

    Raises:
        PydanticCustomError: a value has the wrong type; names its place and what is expected.
    """
    for place, expected, value in wrong(template, ROOT, ""):
        raise PydanticCustomError(
            "wrong_template",
            "{place} must be {expected}, not {value}: the Spark operator could not read the"
            " application",
            {"place": place, "expected": expected, "value": value},
        )
    found: dict[str, Any] = _without_null(template)
    return found


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    return [_without_null(item) for item in value] if isinstance(value, list) else value


def wrong(value: Any, kind: str, place: str, depth: int = 0) -> Iterator[tuple[str, str, str]]:
    """Yields place, expectation and value of all that Kubernetes could not decode in a template."""
    if value is None:
        if place.endswith("]"):
            yield place, "set", "null"
        return
    if depth > MAX_DEPTH:
        yield place, f"at most {MAX_DEPTH} levels deep", "deeper"
    elif kind.startswith("["):
        yield from _wrong_list(value, kind[1:-1], place, depth)
    elif kind.startswith("{"):
        yield from _wrong_map(value, kind[1:-1], place, depth)
    elif kind in schema():
        yield from _wrong_object(value, schema()[kind], place, depth)
    elif not _is(value, kind):
        yield place, _IN_WORDS[kind], _quoted(value)


def _wrong_list(value: Any, kind: str, place: str, depth: int) -> Iterator[tuple[str, str, str]]:
    if not isinstance(value, list):
        yield place, "a list", _quoted(value)
        return
    for index, item in enumerate(value):
        yield from wrong(item, kind, f"{place}[{index}]", depth + 1)


def _wrong_map(value: Any, kind: str, place: str, depth: int) -> Iterator[tuple[str, str, str]]:
    if not isinstance(value, dict):
        yield place, "a map", _quoted(value)
        return
    for key, item in value.items():
        yield from wrong(item, kind, f"{place}.{_step(key)}".lstrip("."), depth + 1)


def _wrong_object(
    value: Any, fields: Mapping[str, str], place: str, depth: int
) -> Iterator[tuple[str, str, str]]:
    if not isinstance(value, dict):
        yield place, "an object", _quoted(value)
        return
    for key, item in value.items():
        if key in fields:
            yield from wrong(item, fields[key], f"{place}.{key}".lstrip("."), depth + 1)


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "int32" | "int64":
            return _is_int(value, kind)
        case "quantity":
            return _is_quantity(value)
        case "intOrString":
            return isinstance(value, str) or _is_int(value, "int32")
        case "time":
            return isinstance(value, str) and _is_time(value)
        case _:
            return True


def _is_int(value: Any, kind: str) -> bool:
    return (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2 ** _INT_BITS[kind]
    )


def _is_quantity(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (is_number or isinstance(value, str)) and _QUANTITY.fullmatch(str(value)) is not None


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _quoted(value: Any) -> str:
    """A list or an object is named, not shown."""
    match value:
        case str():
            return shown(value)
        case dict():
            return "an object"
        case list():
            return "a list"
        case _:
            return shown(json.dumps(value)).strip("'")


def _step(key: Any) -> str:
    text = str(key)
    return text if shown(text) == f"'{text}'" else shown(text)
