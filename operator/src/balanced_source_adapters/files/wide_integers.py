"""Columns of lines with integers that need more than 64 bits.

Arrow infers doubles for them, which would cut off digits of identifiers. They are decimals, as
Spark infers them.
"""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from balanced_source_adapters.files.column_types import is_list

if TYPE_CHECKING:
    import pyarrow as pa

Parse: TypeAlias = "Callable[[pa.Schema], pa.Table]"
"""Parses the lines again, with these columns. Raises pyarrow.ArrowInvalid if a value does not fit.
"""

Path: TypeAlias = "tuple[int | None, ...]"
"""Where a part of a type is: numbers of members of structs, and None for elements of arrays."""

DIGITS: Final = (20, 38)
"""Of decimals that are tried. 20 hold integers of 64 bits without a sign."""

_MOST: Final = 2**63 - 1
_LONG: Final = re.compile(rb"\d{19}")
"""Digits of the shortest integer that may need more than 64 bits."""


def widened(schema: "pa.Schema", lines: bytes, parse: Parse) -> "pa.Schema":
    """Return the columns of some lines, with decimals for integers of more than 64 bits.

    Args:
        schema: as Arrow infers it.
        lines: from which it was inferred.
        parse: see `Parse`.
    """
    import pyarrow as pa

    if not _LONG.search(lines):
        return schema
    fields = []
    for field in schema:
        kind = field.type
        for path in _doubles(kind):
            for wider in (_replaced(kind, path, pa.decimal128(digits, 0)) for digits in DIGITS):
                if _needs(field.with_type(wider), path, parse):
                    kind = wider
                    break
        fields.append(field.with_type(kind))
    return pa.schema(fields)


def _needs(field: "pa.Field", path: Path, parse: Parse) -> bool:
    """Return whether a column has integers alone, of which one needs more than 64 bits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        column = parse(pa.schema([field])).column(field.name).combine_chunks()
    except pa.ArrowInvalid:
        return False
    for part in path:
        column = column.flatten() if part is None else pc.struct_field(column, [part])
    found = pc.min_max(column).as_py()
    return bool(max(abs(found["min"] or 0), abs(found["max"] or 0)) > _MOST)


def _doubles(kind: Any) -> Iterator[Path]:
    from pyarrow import types

    if types.is_float64(kind):
        yield ()
    elif types.is_struct(kind):
        for number, field in enumerate(kind):
            yield from ((number, *path) for path in _doubles(field.type))
    elif is_list(kind):
        yield from ((None, *path) for path in _doubles(kind.value_type))


def _replaced(kind: Any, path: Path, leaf: Any) -> Any:
    import pyarrow as pa

    if not path:
        return leaf
    first, rest = path[0], path[1:]
    if first is None:
        return pa.list_(_replaced(kind.value_type, rest, leaf))
    fields = list(kind)
    fields[first] = fields[first].with_type(_replaced(fields[first].type, rest, leaf))
    return pa.struct(fields)
