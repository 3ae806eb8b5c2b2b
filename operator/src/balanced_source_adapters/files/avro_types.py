"""Types of Avro as types of Arrow, as Spark's own Avro source chooses them.

A schema is rewritten on the way: into one of the same bytes, whose Python values Arrow takes as
they are. Logical types become the numbers that they are made of, maps become arrays of pairs, and
each member of a union becomes a record of one field, which says which member it was.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from balanced_source.names import shown

Kind: TypeAlias = Any
"""Type of a column for Arrow; or why there is none, as a part of a sentence."""

MOST: Final = 10_000
"""Types of a schema.

A few named types that contain each other can stand for many more than a file has bytes.
"""

_PRECISION: Final = 38
_PRIMITIVES: Final[Mapping[str, Any]] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final[Mapping[tuple[str, Any], Any]] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("ms", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
"""Those that Spark knows; values of others are what they are made of."""

_WIDER: Final[Mapping[frozenset[str], Any]] = {
    frozenset({"int", "long"}): pa.int64(),
    frozenset({"float", "double"}): pa.float64(),
}
"""Unions that are one type."""


class AvroFileError(ValueError):
    """A file is not a valid Avro container file, or has something that cannot be read."""


class Rewritten(NamedTuple):
    """A type of Avro.

    Attributes:
        avro: a schema of the same bytes.
        kind: type of the values that a reader with this schema returns.
    """

    avro: Any
    kind: Kind


def rewritten(schema: Any) -> tuple[Any, Mapping[str, Kind]]:
    """Return the schema of the records of a file, rewritten, and the type of each column.

    Raises:
        AvroFileError: the schema is invalid, or not one of records.
    """
    try:
        found = _Rewriting()
        avro, _ = found.of(schema, "")
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AvroFileError(
            f"its Avro schema is invalid: {type(error).__name__} {error}"
        ) from error
    if not isinstance(avro, dict) or avro["type"] != "record":
        raise AvroFileError("its Avro schema is not a record, so it has no columns")
    return avro, found.columns


class _Rewriting:
    """Rewrites one schema. Every use of a named type becomes a type of its own."""

    def __init__(self) -> None:
        self.columns: Mapping[str, Kind] = {}
        self._named: dict[str, tuple[Mapping[str, Any], str]] = {}
        self._unfinished: dict[str, str] = {}
        self._count = 0

    def of(self, schema: Any, namespace: str) -> Rewritten:
        """Return a type that is used inside a namespace."""
        self._count += 1
        if self._count > MOST:
            raise AvroFileError(f"its Avro schema has more than {MOST} types")
        match schema:
            case list():
                return self._union([self.of(member, namespace) for member in schema])
            case {"type": "array", "items": items}:
                item = self.of(items, namespace)
                return Rewritten({"type": "array", "items": item.avro}, _over(pa.list_, item.kind))
            case {"type": "map", "values": values}:
                return self._map(self.of(values, namespace))
            case {"type": "record" | "error" | "enum" | "fixed"}:
                return self._definition(schema, namespace)
            case {"type": str(name)}:
                return self._simple(name, schema, namespace)
            case {"type": inner}:
                return self.of(inner, namespace)
            case str(name):
                return self._simple(name, {}, namespace)
            case _:
                why = f"{shown(str(schema))} is not a type"
                raise AvroFileError(f"its Avro schema is invalid: {why}")

    def _simple(self, name: str, schema: Mapping[str, Any], namespace: str) -> Rewritten:
        if name == "bytes":
            return _decimal_or_bytes({**schema, "type": "bytes"})
        if name in _PRIMITIVES:
            logical = schema.get("logicalType")
            return Rewritten(name, _LOGICAL.get((name, logical), _PRIMITIVES[name]))
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for known in (full, name):
            if known in self._unfinished:
                return Rewritten(self._unfinished[known], f"{known} contains itself")
            if known in self._named:
                return self._definition(*self._named[known])
        raise AvroFileError(f"its Avro schema is invalid: {shown(name)} is not a type")

    def _definition(self, schema: Mapping[str, Any], namespace: str) -> Rewritten:
        name = str(schema["name"])
        if "." not in name and (space := schema.get("namespace", namespace)):
            name = f"{space}.{name}"
        self._named[name] = (schema, namespace)
        match schema["type"]:
            case "enum":
                symbols = {"type": "enum", "symbols": schema["symbols"]}
                return Rewritten({**symbols, "name": self._fresh()}, pa.string())
            case "fixed":
                kept = ("type", "size", "logicalType", "precision", "scale")
                fixed = {key: schema[key] for key in kept if key in schema}
                return _decimal_or_bytes({**fixed, "name": self._fresh()})
            case _:
                return self._record(name, schema["fields"])

    def _record(self, name: str, fields: Sequence[Mapping[str, Any]]) -> Rewritten:
        fresh = self._unfinished[name] = self._fresh()
        space = name.rpartition(".")[0]
        found = {str(field["name"]): self.of(field["type"], space) for field in fields}
        del self._unfinished[name]
        if len(found) < len(fields):
            raise AvroFileError(f"its Avro schema is invalid: {name} has two fields of one name")
        # The outermost record is the last to be complete.
        self.columns = {field: kind for field, (_, kind) in found.items()}
        return _record(fresh, found)

    def _map(self, value: Rewritten) -> Rewritten:
        pair = _record(self._fresh(), {"key": Rewritten("string", pa.string()), "value": value})
        kind = _over(lambda kind: pa.map_(pa.string(), kind), value.kind)
        return Rewritten({"type": "array", "items": pair.avro}, kind)

    def _union(self, members: Sequence[Rewritten]) -> Rewritten:
        """Return null, the only other member, a wider number, or a struct with all members."""
        avro = [member.avro for member in members]
        others = [member for member in members if member.avro != "null"]
        if len(others) < 2:  # noqa: PLR2004 - one, besides null
            return Rewritten(avro, others[0].kind if others else pa.null())
        if all(isinstance(member.avro, str) for member in others) and (
            wider := _WIDER.get(frozenset(member.avro for member in others))
        ):
            return Rewritten(avro, wider)
        fields = {f"member{number}": member for number, member in enumerate(others)}
        wrapped = iter([_record(self._fresh(), {name: fields[name]}).avro for name in fields])
        return Rewritten(
            [member if member == "null" else next(wrapped) for member in avro], _struct(fields)
        )

    def _fresh(self) -> str:
        """Return a new name."""
        self._count += 1
        return f"t{self._count}"


def _record(name: str, fields: Mapping[str, Rewritten]) -> Rewritten:
    members = [{"name": field, "type": avro} for field, (avro, _) in fields.items()]
    return Rewritten({"type": "record", "name": name, "fields": members}, _struct(fields))


def _struct(fields: Mapping[str, Rewritten]) -> Kind:
    def made(*kinds: Any) -> Any:
        return pa.struct(list(zip(fields, kinds, strict=True)))

    return _over(made, *(kind for _, kind in fields.values()))


def _over(make: Callable[..., Any], *kinds: Any) -> Kind:
    """Return a type of other types; the first reason if one of them is missing."""
    return next((kind for kind in kinds if isinstance(kind, str)), None) or make(*kinds)


def _decimal_or_bytes(schema: Mapping[str, Any]) -> Rewritten:
    """Return a decimal; what it is made of, as the format asks for, if its digits are invalid."""
    digits, scale = schema.get("precision"), schema.get("scale", 0)
    plain = {key: schema[key] for key in ("type", "name", "size") if key in schema}
    if not (
        schema.get("logicalType") == "decimal"
        and isinstance(digits, int)
        and isinstance(scale, int)
        and 0 <= scale <= digits
        and digits > 0
    ):
        return Rewritten(plain, pa.binary())
    if digits > _PRECISION:
        return Rewritten(plain, f"a decimal of {digits} digits has more than {_PRECISION}")
    logical = {"logicalType": "decimal", "precision": digits, "scale": scale}
    return Rewritten({**plain, **logical}, pa.decimal128(digits, scale))
