"""Finds malformed lines one by one, at little cost for each, among lines that Arrow rejects.

Arrow takes all lines of a block or none, and needs 60 microseconds for a single line. A test here
says only what is sure: a line that it finds is one that Arrow rejects by itself. Lines that it does
not find may be malformed all the same.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyarrow import types

from balanced_source.connectors.files import Format
from balanced_source.names import shown
from balanced_source_spark.files.lines import BYTE_ORDER_MARK
from balanced_source_spark.files.options import FileReadOptions

Test: TypeAlias = Callable[[bytes], bool]
"""Says of a line whether it is malformed for sure."""

_Value: TypeAlias = Callable[[Any], bool]
_DATE: Final = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_TIME: Final = _DATE + r"([ T][0-2]\d.*)?"
_NUMBER: Final = r"[-+]?\.?\d.*|[-+]?(inf|nan).*"
_INTEGER: Final = r"[-+]?\d+|[-+]?0x[0-9a-f]+"
_BOOLEAN: Final = r"true|false|0|1"

NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")
"""What Spark writes in quotes where a value of JSON is a number otherwise."""


def test_of(read: FileReadOptions, schema: pa.Schema, names: Sequence[str]) -> Test:
    """Return the test for lines of JSON or CSV.

    Args:
        read: options.
        schema: columns that are read.
        names: columns of a line of CSV, in their order; empty: any.
    """
    if read.kind is Format.CSV:
        return _csv_test(read, schema, names)
    misfit = _member_test(schema)

    def is_malformed(line: bytes) -> bool:
        text = line.removeprefix(BYTE_ORDER_MARK)
        if not text.lstrip().startswith(b"{"):
            return True
        try:
            # Each byte as a character: what lies inside of quotes does not matter here.
            found = json.loads(text.decode("latin-1"))
        except json.JSONDecodeError as error:
            # Arrow reads several objects in a line, and knows "Inf".
            return not (error.msg == "Extra data" or b"Inf" in line)
        except (ValueError, RecursionError):
            return False  # numbers of many digits, or lists in lists in lists
        return misfit(found)

    return is_malformed


def quotes_remover(schema: pa.Schema) -> Callable[[bytes], bytes]:
    """Return what removes the quotes of NaN and Infinity in lines of JSON; see `NOT_FINITE`.

    Members of objects alone, by the names of those in a schema that are numbers.
    """
    names = sorted(set(_floats(schema)))
    members = rb"|".join(re.escape(json.dumps(name, ensure_ascii=False).encode()) for name in names)
    form = re.compile(rb'((?:%b)[ \t]*:[ \t]*)"(NaN|-?Infinity)"' % members)

    def remove(lines: bytes) -> bytes:
        is_there = names and (b'NaN"' in lines or b'Infinity"' in lines)
        return form.sub(rb"\1\2", lines) if is_there else lines

    return remove


def _floats(fields: Any) -> Iterator[str]:
    for field in fields:
        kind = field.type
        if types.is_floating(kind):
            yield field.name
        while types.is_list(kind):
            kind = kind.value_type
        if types.is_struct(kind):
            yield from _floats(kind)


def _csv_test(read: FileReadOptions, schema: pa.Schema, names: Sequence[str]) -> Test:
    nulls, split = [null.encode() for null in read.nulls], splitter(read)
    forms = {
        place: form
        for place, name in enumerate(names)
        if name in schema.names and (form := _form(schema.field(name).type)) is not None
    }

    def is_malformed(line: bytes) -> bool:
        values = split(line.removeprefix(BYTE_ORDER_MARK).rstrip(b"\r\n"))
        if values is None:
            return False
        return (bool(names) and len(values) != len(names)) or any(
            values[place] not in nulls and form.fullmatch(values[place].strip()) is None
            for place, form in forms.items()
        )

    return is_malformed


def misplaced(read: FileReadOptions, header: bytes, names: Sequence[str]) -> str | None:
    """Return what is wrong with a header of CSV, as a sentence; None if nothing is for sure.

    Args:
        read: options.
        header: first line of a file.
        names: columns of a line, in their order.
    """
    line = header.removeprefix(BYTE_ORDER_MARK).rstrip(b"\r\n")
    known = {name.lower() for name in names}
    # Other names may be another spelling of the columns.
    for cell, name in zip(splitter(read)(line) or (), names, strict=False):
        found = cell.decode("utf-8", "replace").strip()
        if found.lower() in known - {name.lower()}:
            return f"its header has {shown(found)} in the place of {shown(name)} of the schema"
    return None


def splitter(read: FileReadOptions) -> Callable[[bytes], Sequence[bytes] | None]:
    """Return what splits a line of CSV; None for one in which that is not simple.

    Simple are values with quotes around all of it, or without any.
    """
    separator, quote, escape = (mark.encode() for mark in (read.separator, read.quote, read.escape))
    # A byte that ends lines stands for a quote that is not set: no line has it.
    mark, between = re.escape(quote or b"\n"), re.escape(separator)
    # Quotes are doubled only where no escape character is set.
    doubled = b"" if escape else rb"|%b%b" % (mark, mark)
    bare, within = rb"([^%b%b]*)" % (mark, between), rb"((?:[^%b]%b)*)" % (mark, doubled)
    value = re.compile(rb"(?:%b%b%b|%b)(%b|$)" % (mark, within, mark, bare, between), re.DOTALL)

    def split(line: bytes) -> Sequence[bytes] | None:
        if b"\r" in line or (escape and escape in line):
            return None
        if quote not in line or not quote:
            return line.split(separator)
        values, at = [], 0
        while (found := value.match(line, at)) is not None:
            values.append(found[2] if found[1] is None else found[1])
            at = found.end()
            if not found[3]:
                return values
        return None

    return split


def _form(kind: Any) -> re.Pattern[bytes] | None:
    """Return what each text of a type in CSV matches; not each that matches is one."""
    if types.is_integer(kind):
        form = _INTEGER
    elif types.is_floating(kind) or types.is_decimal(kind):
        form = _NUMBER
    elif types.is_boolean(kind):
        form = _BOOLEAN
    elif types.is_date(kind):
        form = _DATE
    elif types.is_timestamp(kind):
        form = _TIME
    else:
        return None
    return re.compile(form.encode(), re.IGNORECASE | re.DOTALL)


def _member_test(fields: Any) -> _Value:
    """Return whether a value is no object whose members may have the types of some fields."""
    known: Mapping[str, _Value] = {
        # As the bytes of the name are characters in the line.
        field.name.encode().decode("latin-1"): _misfit(field.type)
        for field in fields
    }

    def misfit(found: Any) -> bool:
        if not isinstance(found, dict):
            return True
        return any(
            found[name] is not None and test(found[name])
            for name, test in known.items()
            if name in found
        )

    return misfit


def _misfit(kind: Any) -> _Value:
    """Return whether a value of JSON, other than null, cannot have a type."""
    if types.is_integer(kind):
        most = 1 << (kind.bit_width - 1)
        return lambda found: type(found) is not int or not -most <= found < most
    if types.is_floating(kind):
        return lambda found: type(found) not in (int, float) and found not in NOT_FINITE
    if types.is_boolean(kind):
        return lambda found: type(found) is not bool
    if types.is_timestamp(kind) or types.is_date(kind):
        form = re.compile(_DATE if types.is_date(kind) else _TIME, re.DOTALL).fullmatch
        return lambda found: type(found) is not str or form(found.strip()) is None
    if types.is_string(kind) or types.is_binary(kind):
        return lambda found: type(found) is not str
    if types.is_struct(kind):
        return _member_test(kind)
    if types.is_list(kind):
        member = _misfit(kind.value_type)
        return lambda found: (
            not isinstance(found, list) or any(each is not None and member(each) for each in found)
        )
    return lambda _: False


def lines_of(block: bytes) -> Iterator[bytes]:
    """Yield the lines of a block with their ends."""
    at = 0
    while at < len(block):
        end = block.find(b"\n", at) + 1 or len(block)
        yield block[at:end]
        at = end
