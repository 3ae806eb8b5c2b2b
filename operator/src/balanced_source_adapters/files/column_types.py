"""Which types of columns in Parquet, ORC and Avro files fit which types of the schema.

The pairs are much those of Spark's own Parquet reader: types that hold every value of the file's
type. Where values of a pair may not fit (times of nanoseconds, bytes that become text, 32-bit
integers in smaller columns, 64-bit integers in doubles), each value is checked as it is read. Other
pairs are rejected before any row.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyarrow import types

from balanced_source.names import shown

Kind: TypeAlias = Any
"""A type of Arrow."""

Rule: TypeAlias = Callable[[Kind, Kind], bool]

_DIGITS: Final[Mapping[int, int]] = {8: 3, 16: 5, 32: 10, 64: 19}
"""Bits of an integer → digits of the decimals that hold it. Without a sign, 64 bits need 20."""

_EXACT_FLOAT: Final = 16
"""Bits of the longest integers that a float, which has 24 bits, holds exactly."""

_NAMES: Final[Mapping[str, str]] = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "binary": "BINARY",
    "date32[day]": "DATE",
    "time64[ns]": "TIME",
    "duration[us]": "INTERVAL DAY TO SECOND",
}
"""Name of an Arrow type → Spark's type."""


def check_fits(name: str, found: Kind, wanted: Kind) -> None:
    """Check that a column of a file can be read as a type of the schema.

    Args:
        name: of the column.
        found: its type in the file.
        wanted: its type in the schema.

    Raises:
        TypeError: it cannot. Names the column and both types.
    """
    found = plain(found)
    inside = _members(found)
    if found.equals(wanted) or types.is_null(found):
        return
    if not inside or _shape(found) != _shape(wanted):
        if not any(rule(found, wanted) for rule in _RULES):
            raise TypeError(misfit(name, found, wanted) + _hint(found, wanted))
        return
    for member, kind in _members(wanted).items():
        if member in inside:
            check_fits(f"{name}.{member}", inside[member], kind)


def found_names(names: Iterable[str], wanted: Iterable[str]) -> dict[str, str]:
    """Return wanted names → the names that stand for them, as Spark's own sources choose them.

    Case does not count unless one is the same. Names without any are left out.

    Raises:
        TypeError: two names could be meant.
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(name.lower(), []).append(name)
    found = {name: _meant(name, alike.get(name.lower(), [])) for name in wanted}
    return {name: there for name, there in found.items() if there is not None}


def _meant(wanted: str, alike: Sequence[str]) -> str | None:
    found = [name for name in alike if name == wanted] or alike
    if len(found) > 1:
        raise TypeError(
            f"{len(found)} columns of the file could be {shown(wanted)} of the schema:"
            f" {', '.join(map(shown, found))}"
        )
    return found[0] if found else None


def as_named(found: Kind, wanted: Kind) -> Kind:
    """Return a type whose members of structs have the names of the wanted type.

    See `found_names`.

    Raises:
        TypeError: two names could be meant.
    """
    if _shape(found) != _shape(wanted):
        return found
    if types.is_struct(found):
        return _struct_as_named(found, wanted)
    if types.is_map(found):
        item = found.item_field
        named = item.with_type(as_named(item.type, wanted.item_type))
        return found if named == item else pa.map_(found.key_field, named)
    make = _LISTS.get(found.id)
    if make is None or not is_list(wanted):
        return found
    element = found.value_field
    named = element.with_type(as_named(element.type, wanted.value_type))
    return found if named == element else make(found, named)


def _struct_as_named(found: Kind, wanted: Kind) -> Kind:
    into = {field.name: field for field in wanted}
    names = found_names((field.name for field in found), into)
    of_file = {there: into[name] for name, there in names.items()}
    return pa.struct([_field_as_named(field, of_file.get(field.name)) for field in found])


def _field_as_named(field: Any, wanted: Any) -> Any:
    if wanted is None:
        return field
    return field.with_name(wanted.name).with_type(as_named(field.type, wanted.type))


def of_spark(field: Any) -> Kind:
    """Return the type that a column of an ORC file had in Spark.

    ORC has a time without a zone only since 1.7: Spark writes a number, and notes what it is.
    """
    is_time = (field.metadata or {}).get(_SPARK_TYPE) == b"timestamp_ntz"
    return pa.timestamp("us") if is_time and types.is_int64(field.type) else field.type


_SPARK_TYPE: Final = b"spark.sql.catalyst.type"

_LISTS: Final[Mapping[int, Callable[[Kind, Any], Kind]]] = {
    pa.list_(pa.null()).id: lambda _, element: pa.list_(element),
    pa.large_list(pa.null()).id: lambda _, element: pa.large_list(element),
    pa.list_(pa.null(), 1).id: lambda kind, element: pa.list_(element, kind.list_size),
}
"""Id of a type of lists → how it is made of the field of its elements."""


def misfit(name: str, found: Kind, wanted: Kind) -> str:
    """Return the sentence about a column whose type does not fit the schema."""
    return f"column {name} has type {found}, which does not fit {_sql(wanted)} of the schema"


def stored(column: pa.Array) -> pa.Array:
    """Return a column without dictionary and extension, which hide the type of its values."""
    if isinstance(column.type, pa.BaseExtensionType):
        return column.storage
    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def plain(kind: Kind) -> Kind:
    """Return the type of the values that a dictionary or an extension hides."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    return kind.value_type if types.is_dictionary(kind) else kind


def has_inner_dictionary(kind: Kind) -> bool:
    """Return whether a struct, an array or a map has values that a dictionary hides."""
    members = _members(kind).values()
    return any(types.is_dictionary(member) or has_inner_dictionary(member) for member in members)


def _sql(kind: Kind) -> str:
    """Return Spark's name of a type of the schema."""
    if types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{field.name}: {_sql(field.type)}' for field in kind)}>"
    if types.is_map(kind):
        return f"MAP<{_sql(kind.key_type)}, {_sql(kind.item_type)}>"
    if is_list(kind):
        return f"ARRAY<{_sql(kind.value_type)}>"
    if types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if types.is_timestamp(kind):
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
    return _NAMES.get(str(kind), str(kind))


def _hint(found: Kind, wanted: Kind) -> str:
    is_time = types.is_timestamp(wanted) or types.is_time(wanted)
    if is_time and types.is_integer(found):
        return ": the file does not say the unit of the time"
    return ""


def _shape(kind: Kind) -> str:
    if types.is_struct(kind):
        return "struct"
    if types.is_map(kind):
        return "map"
    return "list" if is_list(kind) else ""


def is_list(kind: Kind) -> bool:
    """Return whether a type is one of Arrow's lists."""
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )


def _members(kind: Kind) -> Mapping[str, Kind]:
    """Return the types that a type is made of, by name."""
    match _shape(kind):
        case "struct":
            return {field.name: field.type for field in kind}
        case "map":
            return {"key": kind.key_type, "value": kind.item_type}
        case "list":
            return {"element": kind.value_type}
        case _:
            return {}


def _is_text(kind: Kind) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_bytes(kind: Kind) -> bool:
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def _text_or_bytes(found: Kind, wanted: Kind) -> bool:
    if types.is_fixed_size_binary(found):
        return bool(types.is_binary(wanted))
    # Old writers of Parquet do not mark text as such: bytes that are no UTF-8 are an error later.
    return (_is_text(found) or _is_bytes(found)) and (
        types.is_string(wanted) or types.is_binary(wanted)
    )


def _integers(found: Kind, wanted: Kind) -> bool:
    if not (types.is_integer(found) and types.is_signed_integer(wanted)):
        return False
    if types.is_unsigned_integer(found):
        return bool(found.bit_width < wanted.bit_width)
    # Old writers of Parquet do not mark short integers as such: each value is checked.
    is_unmarked = found.bit_width == 32  # noqa: PLR2004 - bits
    return is_unmarked or bool(found.bit_width <= wanted.bit_width)


def _integer_otherwise(found: Kind, wanted: Kind) -> bool:
    if not types.is_integer(found):
        return False
    if types.is_decimal(wanted):
        digits = _DIGITS[found.bit_width] + int(types.is_uint64(found))
        return bool(wanted.precision - wanted.scale >= digits)
    if types.is_float64(wanted):
        return True  # longer integers than a double holds exactly are an error later
    if types.is_float32(wanted):
        return bool(found.bit_width <= _EXACT_FLOAT)
    if types.is_date32(wanted):
        return bool(types.is_int32(found))  # days, as in Spark
    return bool(types.is_duration(wanted) and types.is_int64(found))


def _floats(found: Kind, wanted: Kind) -> bool:
    return (
        types.is_floating(found)
        and types.is_floating(wanted)
        and bool(found.bit_width <= wanted.bit_width)
    )


def _decimals(found: Kind, wanted: Kind) -> bool:
    return (
        types.is_decimal(found)
        and types.is_decimal(wanted)
        and wanted.scale >= found.scale
        and bool(wanted.precision - wanted.scale >= found.precision - found.scale)
    )


def _times(found: Kind, wanted: Kind) -> bool:
    if types.is_timestamp(wanted):
        # Nanoseconds that microseconds cannot hold are an error later.
        return bool(types.is_timestamp(found) or (types.is_date(found) and wanted.tz is None))
    if types.is_time(found):
        return types.is_time(wanted) or (
            types.is_signed_integer(wanted) and bool(found.bit_width <= wanted.bit_width)
        )
    if types.is_duration(found):
        return bool(types.is_duration(wanted) or types.is_int64(wanted))
    return bool(types.is_date(found) and types.is_date(wanted))


_RULES: Final[tuple[Rule, ...]] = (
    _text_or_bytes,
    _integers,
    _integer_otherwise,
    _floats,
    _decimals,
    _times,
)
