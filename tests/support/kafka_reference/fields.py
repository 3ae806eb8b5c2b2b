"""Walks the models of ``spec.source.kafka``."""

import enum
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from balanced_source_operator.kafka.spec import KafkaSpec

SAME_AS: Final = {
    "clusters[].startingOffsets": "startingOffsets",
    "clusters[].stoppingOffsets": "stoppingOffsets",
    "startingOffsets.topics": "startingOffsets",
    "stoppingOffsets.topics": "stoppingOffsets",
}
"""Fields whose own fields are those of another one; items of `topics` have a `topic` besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A field.

    Attributes:
        path: from ``kafka`` on; ``[]`` for the items of a list.
        kind: type, for people.
        default: as a user would write it; None if it has to be set or is absent.
        meaning: its description.
        info: pydantic's view of it.
    """

    path: str
    kind: str
    default: Any
    meaning: str
    info: FieldInfo

    def check(self, value: Any) -> None:
        """Raise if the value is not one that the field takes."""
        kind: Any = self.info.annotation
        adapter: TypeAdapter[Any] = TypeAdapter(Annotated[kind, "", *self.info.metadata])
        adapter.validate_python(value)


def entries(model: type[BaseModel] = KafkaSpec, prefix: str = "") -> Iterator[Entry]:
    """All fields, parents before children, in the order of the models."""
    for name, info in model.model_fields.items():
        path = f"{prefix}{info.alias or name}"
        inner = _plain(info.annotation)
        yield Entry(
            path=path,
            kind=_kind(inner),
            default=_default(info),
            meaning=" ".join((info.description or "").split()),
            info=info,
        )
        nested = _model(inner)
        if nested is not None and path not in SAME_AS:
            yield from entries(nested, f"{path}{'[]' if get_origin(inner) is list else ''}.")


def _plain(annotation: Any) -> Any:
    """Without ``Annotated`` and without ``| None``."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return _plain(next(option for option in get_args(annotation) if option is not type(None)))
    return annotation


def _model(annotation: Any) -> type[BaseModel] | None:
    if get_origin(annotation) is list:
        return _model(_plain(get_args(annotation)[0]))
    return (
        annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
    )


def _kind(annotation: Any) -> str:
    if get_origin(annotation) is list:
        return f"list of {_kind(_plain(get_args(annotation)[0]))}"
    if get_origin(annotation) is dict:
        key, value = (_kind(_plain(argument)) for argument in get_args(annotation))
        return f"map of {key} to {value}"
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return " \\| ".join(str(item.value) for item in annotation)
    names = {str: "text", int: "number", bool: "true \\| false"}
    return names.get(annotation, "object")


def _default(info: FieldInfo) -> Any:
    default = info.get_default(call_default_factory=True, validated_data={})
    if info.is_required() or default is None or default in ([], {}):
        return None
    if isinstance(default, BaseModel):
        return (
            default.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
            or None
        )
    return default.value if isinstance(default, enum.Enum) else default
