"""What is wrong with a manifest, and where."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from balanced_source.names import shown

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the root of the manifest."""

_MAY_BE_SECRET: Final = frozenset({"properties", "options", "sparkConf"})
"""Maps whose values are never shown."""

_LONGEST: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        path: of the value; that of a missing field ends with the field.
        message: a sentence without the path.
        is_final: whether no other check can say it better. Patterns and bounds are not: the models
            use words.
    """

    path: Path
    message: str
    is_final: bool = True


def path_text(path: Sequence[str | int]) -> str:
    """Return a path as users write it, such as ``spec.source.kafka.clusters[0].name``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif "." in step or not step.isprintable() or not step:
            text += f"[{shown(step)}]"
        else:
            text += f".{step}"
    return text.removeprefix(".")


def parsed_path(text: str) -> Path:
    """Return the path that a text such as ``spec.clusters[0].name`` means, if it is one."""
    steps: list[str | int] = []
    for part in text.replace("[", ".[").split("."):
        inner = part.removeprefix("[").removesuffix("]")
        steps.append(int(inner) if part.startswith("[") and inner.isdecimal() else inner)
    return tuple(step for step in steps if step != "")


def quoted(value: Any, path: Path) -> str:
    """Return a value for a message; its type alone where it may be a secret, or is long."""
    if isinstance(value, str) and not _MAY_BE_SECRET.intersection(path) and len(value) <= _LONGEST:
        return shown(value)
    return (
        f"the number {value}"
        if type(value) in (int, float) and abs(value) < 2**64
        else _type_of(value)
    )


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return "this text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a value of type {type(value).__name__}"
