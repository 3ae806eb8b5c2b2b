"""Blocks of Avro files: each record once, as fastavro's own reader returns it."""

import datetime as dt
import gzip
import io
import itertools
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from fastavro import _read, _read_py
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.connectors.files import File, blocks
from balanced_source_adapters.files import avro
from balanced_source_adapters.files.avro import CODECS, AvroFile
from balanced_source_adapters.files.avro_types import AvroFileError
from balanced_source_spark.files import columnar
from support.avro_files import ID, ROW, headed, record, written


def rows(data: bytes, *bounds: int, names: Sequence[str] = ("id", "text")) -> list[Any]:
    """Return some columns of the records between any two neighbouring bounds; by default all."""
    found: list[Any] = []
    for start, end in itertools.pairwise(bounds or (0, len(data))):
        file = AvroFile(pa.BufferReader(data), len(data))
        for batch in file.batches(start, end, names):
            found += [{}] * batch if isinstance(batch, int) else batch.to_pylist()
    return found


@settings(max_examples=150, deadline=None)
@given(
    texts=st.lists(st.text(max_size=40), max_size=40),
    codec=st.sampled_from(CODECS),
    block=st.integers(1, 200),
    split=st.integers(1, 2000),
    sizes=st.fixed_dictionaries(
        {"_LOOK": st.integers(16, 64), "BATCH": st.integers(1, 500), "ROWS": st.integers(1, 9)}
    ),
)
def test_blocks_of_any_size_have_each_record_once_in_order(
    texts: list[str], codec: str, block: int, split: int, sizes: dict[str, int]
) -> None:
    records = [{"id": number, "text": text} for number, text in enumerate(texts)]
    data = written(records, codec=codec, block=block)
    splits = blocks(File(0, "/a", len(data)), split_bytes=split, is_splittable=True)

    with pytest.MonkeyPatch.context() as patch:
        for name, size in sizes.items():
            patch.setattr(avro, name, size)
        read = rows(data, 0, *(found.stop for found in splits))

    assert read == records


@settings(max_examples=100, deadline=None)
@given(cuts=st.lists(st.integers(0, 2000), max_size=8), codec=st.sampled_from(CODECS))
def test_any_ranges_have_each_record_once(cuts: list[int], codec: str) -> None:
    records = [{"id": number, "text": "x" * (number % 7)} for number in range(60)]
    data = written(records, codec=codec, block=20)

    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})

    assert rows(data, *bounds) == records


NESTED = record(
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 38}},
    {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "kind", "type": {"type": "enum", "name": "a.Kind", "symbols": ["A", "B"]}},
    {"name": "code", "type": {"type": "fixed", "name": "code", "size": 3}},
    {"name": "ratio", "type": ["double", "float"]},
    {"name": "number", "type": ["int", "null", "long"]},
    {"name": "list", "type": {"type": "array", "items": ["null", "a.Kind"]}},
    {
        "name": "inner",
        "type": {
            "type": "record",
            "name": "Inner",
            "namespace": "b",
            "fields": [
                {"name": "flag", "type": "boolean"},
                {"name": "more", "type": {"type": "array", "items": "string"}},
                {"name": "again", "type": ["null", {"type": "fixed", "name": "F", "size": 1}]},
            ],
        },
    },
    {"name": "second", "type": ["null", "b.Inner"]},
    {"name": "third", "type": ["null", "b.F"]},
)
LONGS = st.integers(-(2**62), 2**62)
INNER = st.fixed_dictionaries(
    {
        "flag": st.booleans(),
        "more": st.lists(st.text(max_size=3), max_size=3),
        "again": st.none() | st.binary(min_size=1, max_size=1),
    }
)
RECORDS = st.fixed_dictionaries(
    {
        "price": st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
        "day": st.none() | st.dates(),
        "at": st.datetimes().map(lambda at: at.replace(tzinfo=dt.UTC)),
        "ms": st.datetimes().map(lambda at: at.replace(microsecond=7000, tzinfo=dt.UTC)),
        "local": st.datetimes(),
        "kind": st.sampled_from("AB"),
        "code": st.binary(min_size=3, max_size=3),
        "ratio": st.floats(allow_nan=False),
        "number": st.none() | LONGS,
        "list": st.lists(st.none() | st.sampled_from("AB"), max_size=3),
        "inner": INNER,
        "second": st.none() | INNER,
        "third": st.none() | st.binary(min_size=1, max_size=1),
    }
)


@settings(max_examples=100, deadline=None)
@given(records=st.lists(RECORDS, max_size=8), codec=st.sampled_from(CODECS), data=st.data())
def test_values_are_those_that_fastavro_returns(
    records: list[dict[str, Any]], codec: str, data: st.DataObject
) -> None:
    content = written(records, NESTED, codec=codec, block=30)
    columns = [str(field["name"]) for field in NESTED["fields"]]
    names = data.draw(st.lists(st.sampled_from([*columns, "none"]), unique=True))

    expected = [
        {name: row[name] for name in names if name in columns}
        for row in fastavro.reader(io.BytesIO(content))
        if isinstance(row, dict)
    ]

    assert rows(content, names=names) == expected


def test_a_member_of_a_union_is_found_by_its_place_and_not_by_its_value() -> None:
    kinds = {"type": "enum", "name": "kinds", "symbols": ["A", "B"]}
    point = {"type": "record", "name": "point", "fields": [{"name": "x", "type": "int"}]}
    pairs = {"type": "map", "values": "int"}
    schema = record(
        {"name": "u", "type": [kinds, "null", "string", point, "long", pairs, "double"]}
    )
    values = ["A", None, ("string", "A"), ("point", {"x": 1}), 5, {"x": 1}, 2.0]

    read = rows(written([{"u": value} for value in values], schema), names=["u"])

    empty = dict.fromkeys(f"member{number}" for number in range(6))
    assert [row["u"] for row in read] == [
        {**empty, "member0": "A"},
        None,
        {**empty, "member1": "A"},
        {**empty, "member2": {"x": 1}},
        {**empty, "member3": 5},
        {**empty, "member4": [("x", 1)]},
        {**empty, "member5": 2.0},
    ]


def test_logical_types_without_a_column_of_their_own_are_what_they_are_made_of() -> None:
    made_of: dict[str, tuple[Any, dict[str, Any]]] = {
        "time-millis": ("int", {}),
        "time-micros": ("long", {}),
        "timestamp-nanos": ("long", {}),
        "uuid": ("string", {}),
        "decimal": ("bytes", {"precision": 2, "scale": 3}),
        "duration": ("fixed", {"name": "twelve", "size": 12}),
    }
    logical = record(
        *(
            {"name": name[:5], "type": {"type": kind, "logicalType": name, **more}}
            for name, (kind, more) in made_of.items()
        )
    )
    plain = record(
        *({"name": name[:5], "type": {"type": k, **more}} for name, (k, more) in made_of.items())
    )
    logical["fields"][0]["name"] = plain["fields"][0]["name"] = "millis"
    values = {
        "millis": 1000,
        "time-": 2_000_000,
        "times": 3,
        "uuid": str(UUID(int=5)),
        "decim": b"\x05",
        "durat": b"x" * 12,
    }

    assert rows(headed(logical, [values], plain), names=list(values)) == [values]


def test_a_type_that_contains_itself_is_read_past_and_refused_as_a_column() -> None:
    chain = record(ID, {"name": "next", "type": ["null", "row"]})
    records = [{"id": 1, "next": {"id": 2, "next": None}}, {"id": 3, "next": None}]
    data = written(records, chain)

    assert rows(data, names=["id"]) == [{"id": 1}, {"id": 3}]
    with pytest.raises(AvroFileError, match="type of column next is not supported: row contains"):
        rows(data, names=["id", "next"])


def test_a_decimal_that_is_too_long_is_read_past_and_refused_as_a_column() -> None:
    long = {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 1}
    data = written([{"id": 1, "long": Decimal("1.5")}], record(ID, {"name": "long", "type": long}))

    assert rows(data, names=["id"]) == [{"id": 1}]
    with pytest.raises(AvroFileError, match="column long is not supported: a decimal of 39 digits"):
        rows(data, names=["long"])


def test_names_are_found_in_their_namespace() -> None:
    def fixed(name: str, size: int, **more: str) -> dict[str, Any]:
        return {"type": "fixed", "name": name, "size": size, **more}

    inner = [{"name": "x", "type": "f"}, {"name": "y", "type": "alone"}]
    kinds = [
        fixed("f", 1, namespace=""),
        fixed("f", 2),
        fixed("other.f", 3),
        fixed("alone", 4, namespace=""),
        "f",
        "other.f",
        "space.f",
        {"type": "record", "name": "r", "fields": inner},
        "r",
    ]
    fields = [{"name": f"c{number}", "type": kind} for number, kind in enumerate(kinds)]
    schema = {"type": "record", "name": "row", "namespace": "space", "fields": fields}
    sizes = [1, 2, 3, 4, 2, 3, 2]
    plain = record(
        *({"name": f"c{n}", "type": fixed(f"f{n}", size)} for n, size in enumerate(sizes)),
        {"name": "c7", "type": {**record(*_plain_inner(fixed)), "name": "r"}},
        {"name": "c8", "type": "r"},
    )
    one = {"x": b"xx", "y": b"yyyy"}
    values = {**{f"c{n}": b"v" * size for n, size in enumerate(sizes)}, "c7": one, "c8": one}

    assert rows(headed(schema, [values], plain), names=list(values)) == [values]


def _plain_inner(fixed: Any) -> list[dict[str, Any]]:
    return [{"name": "x", "type": fixed("x", 2)}, {"name": "y", "type": fixed("y", 4)}]


def test_a_header_that_contains_the_sync_marker_is_not_a_block() -> None:
    mark = b"0123456789abcdef"
    records = [{"id": number, "text": ""} for number in range(5)]
    data = written(
        records, block=1, sync_marker=mark, metadata={"note": mark.decode(), "more": "x" * 100}
    )

    assert rows(data, *range(len(data) + 1)) == records


def test_every_column_of_a_file_may_be_missing() -> None:
    data = written([{"id": number, "text": ""} for number in range(5)])
    schema = pa.schema([("other", pa.int64())])

    (found,) = columnar.avro(pa.BufferReader(data), 0, len(data), len(data), schema)
    (none,) = columnar.avro(pa.BufferReader(data), 0, len(data), len(data), pa.schema([]))

    assert found.to_pylist() == [{"other": None}] * 5
    assert none.num_rows == 5


def test_a_batch_needs_a_part_of_the_file_only() -> None:
    records = [{"id": number, "text": f"{number:0>99}"} for number in range(60_000)]
    data = written(records)

    class Counting(pa.PythonFile):  # type: ignore[misc] # untyped
        def read_at(self, count: int, at: int) -> Any:
            read.append(count)
            return data[at : at + count]

    read: list[int] = []
    counting = Counting(io.BytesIO(data))
    batches = AvroFile(counting, len(data)).batches(0, len(data), ["id"])
    first: Any = next(batches)

    assert first.num_rows == avro.ROWS
    assert sum(read) < len(data) // 5
    assert sum(len(batch) for batch in [first, *batches] if not isinstance(batch, int)) == 60_000


def test_a_batch_of_long_records_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro, "BATCH", 10_000)
    data = written([{"id": number, "text": "x" * 1000} for number in range(100)], block=2000)

    found = list(AvroFile(pa.BufferReader(data), len(data)).batches(0, len(data), ["id"]))

    assert len(found) > 5
    assert max(len(batch) for batch in found if not isinstance(batch, int)) < 20


def test_a_file_that_was_cut_is_reported_unless_the_cut_lies_between_blocks() -> None:
    records = [{"id": number, "text": "x" * number} for number in range(12)]
    data = written(records, block=1)
    mark = data[-16:]
    header = data.index(mark) + 16
    whole = {0}  # no file without bytes is listed

    for size in range(1, len(data)):
        cut = data[:size]
        if size >= header and cut.endswith(mark):
            whole.add(size)
            assert rows(cut) == records[: cut.count(mark) - 1]
        else:
            with pytest.raises(AvroFileError):
                rows(cut)

    assert len(whole) == 13


@pytest.mark.parametrize(
    ("module", "reason"), [(_read, "damaged"), (_read_py, "ends within a block, which begins at")]
)
def test_a_file_that_was_cut_in_the_number_of_a_block_is_reported(
    module: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # fastavro without its C part says nothing itself.
    monkeypatch.setattr(fastavro, "block_reader", module.block_reader)
    data = written([{"id": number, "text": ""} for number in range(100)])
    header = data.index(data[-16:]) + 16

    with pytest.raises(AvroFileError, match=reason):
        rows(data[: header + 1])


def test_lengths_that_are_wrong_are_reported_and_ask_for_no_memory() -> None:
    header = written([])
    mark = header[-16:]

    class Checked(pa.PythonFile):  # type: ignore[misc] # untyped
        def read_at(self, count: int, at: int) -> Any:
            assert count <= len(data)
            return data[at : at + count]

    for block, reason in (
        (b"\x01\x02x", "has -1 records"),
        (b"\x02\x01", "a length in it is negative: -1"),
        (b"\x02\xfe\xff\xff\xff\xff\xff\xff\x7fx", "damaged or half written"),
    ):
        data = header + block + mark
        file = AvroFile(Checked(io.BytesIO(data)), len(data))
        with pytest.raises(AvroFileError, match=reason):
            list(file.batches(0, len(data), ["id"]))


@pytest.mark.parametrize("codec", CODECS)
def test_a_block_that_was_cut_says_so(codec: str) -> None:
    data = written([{"id": 1, "text": "x" * 500}], codec=codec)

    for missing in (1, 17, 20):
        with pytest.raises((AvroFileError, OSError)) as raised:  # bzip2's error is an OSError
            rows(data[:-missing])
        assert "it is damaged" in str(raised.value) or isinstance(raised.value, OSError)


@settings(max_examples=300, deadline=None)
@given(at=st.integers(0, 399), byte=st.integers(0, 255), codec=st.sampled_from(CODECS))
def test_any_damage_is_a_sentence_or_other_records(at: int, byte: int, codec: str) -> None:
    data = bytearray(written([{"id": n, "text": "xy" * n} for n in range(9)], codec=codec, block=9))
    data[at % len(data)] = byte

    with suppress(AvroFileError, OSError):
        assert len(rows(bytes(data))) < 1000


def test_what_cannot_be_read_is_named() -> None:
    def refused(data: bytes) -> str:
        with pytest.raises(AvroFileError) as raised:
            AvroFile(pa.BufferReader(data), len(data)).schema()
        return str(raised.value)

    good = written([{"id": 1, "text": ""}])
    assert "compressed as a whole" in refused(gzip.compress(good))
    assert "not an Avro container file" in refused(b"Ob")
    assert "compressed by 'lz4': supported are null" in refused(
        good.replace(b"\x08null", b"\x06lz4")
    )
    assert "is not a record" in refused(written([1], "long"))
    assert "is not a record" in refused(written([{"id": 1, "text": ""}], [ROW, "null"]))
    assert "is damaged or half written" in refused(good[:40])
    assert "'lang' is not a type" in refused(good.replace(b'"long"', b'"lang"'))
    assert "'7' is not a type" in refused(good.replace(b'"long"', b"     7"))
    assert "two fields of one name" in refused(good.replace(b'"text"', b'"id"  '))


def test_a_small_schema_that_stands_for_very_many_types_is_refused() -> None:
    kind: Any = {"type": "record", "name": "r0", "fields": []}
    for number in range(1, 30):
        again = [{"name": "a", "type": kind}, {"name": "b", "type": f"r{number - 1}"}]
        kind = {"type": "record", "name": f"r{number}", "fields": again}
    data = written([], kind)

    with pytest.raises(AvroFileError, match="more than 10000 types"):
        AvroFile(pa.BufferReader(data), len(data))


def test_a_type_may_be_wrapped_in_a_type() -> None:
    wrapped = {"name": "id", "type": {"type": {"type": ["null", "long"]}}}
    data = headed(
        record(wrapped), [{"id": 7}, {"id": None}], record({"name": "id", "type": ["null", "long"]})
    )
    assert rows(data, names=["id"]) == [{"id": 7}, {"id": None}]
