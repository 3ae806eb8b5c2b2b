"""Columns of Parquet and ORC files, and what they become in rows."""

import datetime as dt
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql.types import LongType, StringType, StructType

from balanced_source.connectors.files import File, FilesSource, Format
from balanced_source.host import SplitRange
from balanced_source_adapters.files.column_types import as_named
from balanced_source_adapters.files.stores import LocalStore
from balanced_source_spark.contract.secrets import QuerySecrets
from balanced_source_spark.files import columnar
from balanced_source_spark.files.options import FileReadOptions, file_read_options
from balanced_source_spark.files.task_reader import FileReadError, FilesTaskReader
from balanced_source_spark.partition import ReaderPartition

UTC = pa.timestamp("us", "UTC")


def parquet(table: pa.Table, *, columns: dict[str, pa.DataType], **how: Any) -> list[Any]:
    file = io.BytesIO()
    pq.write_table(table, file, **how)
    data = pa.BufferReader(file.getvalue())
    found = columnar.parquet(data, 0, data.size(), pa.schema(list(columns.items())))
    return [row for part in found for row in part.to_pylist()]


def read(
    path: Path, options: dict[str, str], schema: StructType, *, start: int = 0
) -> list[dict[str, Any]]:
    """Return the rows of a task that reads a file to its end."""
    settings = FilesSource(paths=("/",), kind_of_file=Format.PARQUET).reader_settings()
    found = path.stat()
    file = File(found.st_mtime_ns, str(path), found.st_size)
    share = SplitRange(
        split_id=("files", str(path), start),
        start=start,
        end=file.size,
        identity=file.identity,
    )
    given = file_read_options({name.lower(): value for name, value in options.items()})
    reader = FilesTaskReader(given, schema, QuerySecrets())
    partition = ReaderPartition(subtask_id=0, ranges=(share,), settings=settings)
    return [row for batch in reader.read(partition) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("name", "content", "remedy"),
    [
        ("a.parquet", b"PAR1 no table PAR1", "Correct the file or the schema"),
        ("a.json", b"{]\n", "Correct the file, the schema or the option mode"),
        (
            "a.json.gz",
            gzip.compress(b'{"n": 1}\n' * 99, mtime=0)[:-9],
            "Check that the file is complete",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_what_to_do(
    tmp_path: Path, name: str, content: bytes, remedy: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    kind = name.split(".")[1]
    how = {"fileFormat": kind, **({"mode": "FailFast"} if kind == "json" else {})}

    with pytest.raises(FileReadError, match=remedy) as caught:
        read(path, how, StructType().add("n", LongType()))

    assert str(path) in str(caught.value)


def test_times_of_96_bits_have_all_years() -> None:
    times = [dt.datetime(year, 12, 31, 1, 2, 3, 456789, tzinfo=dt.UTC) for year in (1, 2024, 9999)]
    table = pa.table({"at": pa.array(times, UTC)})

    found = parquet(table, columns={"at": UTC}, use_deprecated_int96_timestamps=True)

    assert [row["at"] for row in found] == times


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        (("b", "a"), [{"b": "x", "a": 1}, {"b": "y", "a": 2}]),
        (("new", "a"), [{"new": None, "a": 1}, {"new": None, "a": 2}]),
        (("new",), [{"new": None}, {"new": None}]),
    ],
    ids=["another order", "a new column", "none of the file"],
)
def test_columns_of_orc_files_are_found_by_name_and_rows_count(
    names: tuple[str, ...], rows: list[dict[str, Any]]
) -> None:
    types = {"a": pa.int64(), "b": pa.string(), "new": pa.string()}
    file = io.BytesIO()
    orc.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), file)
    data = pa.BufferReader(file.getvalue())
    schema = pa.schema([(name, types[name]) for name in names])

    found = columnar.orc(data, 0, data.size(), data.size(), schema)
    assert [row for part in found for row in part.to_pylist()] == rows


def test_columns_without_names_are_not_left_out_without_a_word() -> None:
    """Spark's own source takes them by their places. Before, all were null."""
    table = pa.table({"_col0": [1], "_col1": ["x"]})

    with pytest.raises(TypeError, match="no names but _col0, _col1, as old versions of Hive"):
        orc_rows(table, pa.schema([("id", pa.int64())]))
    assert orc_rows(table, pa.schema([("_col1", pa.string())])) == [{"_col1": "x"}]
    assert len(orc_rows(table, pa.schema([]))) == 1


def test_times_without_a_zone_that_spark_has_written_to_orc_are_times() -> None:
    """They are numbers in the file, which notes what they are."""
    noted = {"spark.sql.catalyst.type": "timestamp_ntz"}
    fields = [pa.field("at", pa.int64(), metadata=noted), pa.field("other", pa.int64())]
    table = pa.table([[1_000_000, None, -1], [7, 8, 9]], schema=pa.schema(fields))
    times = [dt.datetime(1970, 1, 1, 0, 0, 1), None, dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]  # noqa: DTZ001 - local

    both = pa.schema([("other", pa.int64()), ("AT", pa.timestamp("us"))])
    assert orc_rows(table, both) == [
        {"other": number, "AT": at} for number, at in zip((7, 8, 9), times, strict=True)
    ]
    in_utc = [at and at.replace(tzinfo=dt.UTC) for at in times]
    assert [row["at"] for row in orc_rows(table, pa.schema([("at", UTC)]))] == in_utc
    numbers = orc_rows(table, pa.schema([("at", pa.int64())]))
    assert [row["at"] for row in numbers] == [1_000_000, None, -1]
    with pytest.raises(TypeError, match="does not say the unit of the time"):
        orc_rows(table, pa.schema([("other", pa.timestamp("us"))]))


def test_rows_without_columns_count() -> None:
    """Zero columns have no middle."""
    assert parquet(pa.table({}), columns={"id": pa.int64()}) == []
    assert len(parquet(pa.table({"x": [1, 2]}), columns={"id": pa.int64()})) == 2


def test_a_row_group_whose_first_column_is_the_last_in_the_file_lies_within_the_file() -> None:
    def column(begin: int) -> SimpleNamespace:
        return SimpleNamespace(
            has_dictionary_page=False, data_page_offset=begin, total_compressed_size=100
        )

    columns = [column(204), column(104), column(4)]
    group = SimpleNamespace(num_columns=3, column=lambda n: columns[n])

    assert columnar._middle(SimpleNamespace(row_group=lambda _: group), 0) == 154


def test_a_number_does_not_become_a_time() -> None:
    table = pa.table({"at": pa.array([1704067200])})
    file = io.BytesIO()
    orc.write_table(table, file)
    data = pa.BufferReader(file.getvalue())
    stripes = columnar.orc(data, 0, data.size(), data.size(), pa.schema([("at", UTC)]))

    with pytest.raises(TypeError, match="does not say the unit of the time"):
        parquet(table, columns={"at": UTC})
    with pytest.raises(TypeError, match="does not say the unit of the time"):
        list(stripes)


def test_two_columns_of_one_name_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]), path)

    with pytest.raises(
        FileReadError, match=r"cannot read .*a\.parquet.*2 columns of the file could be 'x'"
    ):
        read(
            path, {"fileFormat": "parquet", "schema": "x BIGINT"}, StructType().add("x", LongType())
        )


def orc_rows(table: pa.Table, schema: pa.Schema) -> list[Any]:
    file = io.BytesIO()
    orc.write_table(table, file)
    data = pa.BufferReader(file.getvalue())
    found = columnar.orc(data, 0, data.size(), data.size(), schema)
    return [row for part in found for row in part.to_pylist()]


def avro_rows(table: pa.Table, schema: pa.Schema) -> list[Any]:
    inner = {"type": "record", "name": "inner", "fields": [{"name": "At", "type": "int"}]}
    fields = [
        {"name": "ID", "type": "int"},
        {"name": "s", "type": inner},
        {"name": "L", "type": {"type": "array", "items": "inner"}},
        {"name": "M", "type": {"type": "map", "values": "inner"}},
    ]
    rows = [{**row, "M": dict(row["M"])} for row in table.to_pylist()]
    file = io.BytesIO()
    fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, rows)
    data = pa.BufferReader(file.getvalue())
    found = columnar.avro(data, 0, data.size(), data.size(), schema)
    return [row for part in found for row in part.to_pylist()]


def parquet_rows(table: pa.Table, schema: pa.Schema) -> list[Any]:
    return parquet(table, columns=dict(zip(schema.names, schema.types, strict=True)))


@pytest.mark.parametrize("read_rows", [parquet_rows, orc_rows, avro_rows])
def test_columns_and_members_are_found_by_names_in_another_case(
    read_rows: Callable[[pa.Table, pa.Schema], list[Any]],
) -> None:
    """As Spark's own sources do. Before, they were null without a word."""

    def columns(names: str, member: str, number: Any) -> pa.Schema:
        inner = pa.struct([(member, number)])
        kinds = (number, inner, pa.list_(inner), pa.map_(pa.string(), inner))
        return pa.schema(list(zip(names.split(), kinds, strict=True)))

    one = {"At": 1}
    row = {"ID": 7, "s": one, "L": [one], "M": [("k", one)]}
    table = pa.Table.from_pylist([row], schema=columns("ID s L M", "At", pa.int32()))
    two = {"aT": 1}

    found = read_rows(table, columns("id s l m", "aT", pa.int64()))

    assert found == [{"id": 7, "s": two, "l": [two], "m": [("k", two)]}]


def test_names_that_are_the_same_come_first_and_others_must_be_clear() -> None:
    table = pa.table({"ID": [1], "id": [2], "Id": [3]})

    assert parquet(table, columns={"id": pa.int64()}) == [{"id": 2}]
    assert parquet(table, columns={"Id": pa.int64(), "new": pa.int64()}) == [{"Id": 3, "new": None}]
    with pytest.raises(TypeError, match=r"2 columns of the file could be 'id' .*: 'ID', 'Id'"):
        parquet(table.select(["ID", "Id"]), columns={"id": pa.int64()})
    with pytest.raises(TypeError, match=r"2 columns of the file could be 'ab' .*: 'AB', 'Ab'"):
        as_named(
            pa.struct([("AB", pa.int64()), ("Ab", pa.int64())]), pa.struct([("ab", pa.int64())])
        )


def test_columns_that_a_former_query_wrote_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    former = {"id": [1], "_corrupt_record": ["{"], "_path": ["/in/a.json"], "_size": [7]}
    pq.write_table(pa.table(former), path)
    schema = StructType().add("id", LongType()).add("_corrupt_record", StringType())
    schema = schema.add("_path", StringType()).add("_size", LongType())
    options = {"fileFormat": "parquet", "metadataColumns": "false"}

    rows = read(path, options, schema)

    assert rows == [{name: values[0] for name, values in former.items()}]


def test_a_store_that_does_not_answer_a_task_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise TimeoutError("curlCode: 28, Timeout was reached.")

    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n")
    monkeypatch.setattr(LocalStore, "stat", refuse)

    with pytest.raises(FileReadError, match=rf"cannot look at {path}: .*reached\. Check that its"):
        read(path, {"fileFormat": "text"}, StructType().add("value", StringType()))


@pytest.mark.parametrize("end", ["lz4", "snappy", "zip", "XZ", "gzip", "tar.gz"])
def test_text_that_cannot_be_decompressed_is_no_text(tmp_path: Path, end: str) -> None:
    path = tmp_path / f"a.txt.{end}"
    path.write_bytes(b"\x04\x22\x4d\x18\n")

    with pytest.raises(FileReadError, match="may be compressed by gzip, bzip2 or zstd only"):
        read(path, {"fileFormat": "text"}, StructType().add("value", StringType()))


def test_a_byte_order_mark_and_blank_lines_before_a_header_are_no_data(tmp_path: Path) -> None:
    path, schema = tmp_path / "a.txt", StructType().add("value", StringType())
    path.write_bytes(b"\xef\xbb\xbf\r\n  \nvalue\none\n\xef\xbb\xbftwo")
    csv = {"fileFormat": "csv", "header": "true", "schema": "value STRING"}

    assert [row["value"] for row in read(path, csv, schema)] == ["one", "\ufefftwo"]
    path.write_bytes(b"\xef\xbb\xbfone\n")
    assert [row["value"] for row in read(path, {"fileFormat": "text"}, schema)] == ["one"]
    assert read(path, csv, schema) == []


@pytest.mark.parametrize("end", [".csv", ".csv.gz"])
def test_a_header_with_columns_in_another_order_is_refused_in_each_block(
    tmp_path: Path, end: str
) -> None:
    path = tmp_path / f"a{end}"
    schema = StructType().add("a", StringType()).add("b", StringType())
    options = {"fileFormat": "csv", "header": "true", "schema": "a STRING, b STRING"}
    packed = gzip.compress if end.endswith("gz") else bytes

    path.write_bytes(packed(b'\n"B",a\n1,2\n3,4\n'))
    for start in (0,) if end.endswith("gz") else (0, 10):
        with pytest.raises(FileReadError, match="header has 'B' in the place of 'a' of the schema"):
            read(path, options, schema, start=start)
    path.write_bytes(packed(b"first,b\n1,2\n"))
    assert read(path, options, schema) == [{"a": "1", "b": "2"}]


def test_a_backtick_in_the_name_of_a_column(tmp_path: Path) -> None:
    path, schema = tmp_path / "a.csv", StructType().add("b", StringType()).add("a`b", StringType())
    path.write_bytes(b"b,a`b\n1,2\n")
    options = {"fileFormat": "csv", "header": "true", "schema": "b STRING, `a``b` STRING"}

    assert read(path, options, schema) == [{"b": "1", "a`b": "2"}]


def test_json_keeps_its_column_of_malformed_records() -> None:
    assert file_read_options({"fileformat": "json"}).corrupt == "_corrupt_record"
    assert file_read_options({"fileformat": "parquet"}) == FileReadOptions(
        kind=Format.PARQUET, corrupt=""
    )


def test_a_null_where_the_query_forbids_it_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"s": {"id": 1}}\n{"s": {}}\n')
    strict = StructType().add("s", StructType().add("id", LongType(), nullable=False))

    with pytest.raises(FileReadError, match=r"a\.json has records without 's\.id'.*nullable"):
        read(path, {"fileFormat": "json", "metadataColumns": "false"}, strict)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("csv", "1,x\nsoon,y\n"),
        ("json", '{"n": 1, "word": "x", "_size": "large"}\n{"n": "soon", "word": "y"}\n'),
    ],
)
def test_columns_that_are_added_are_not_looked_for_in_lines(
    kind: str, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    path.write_text(text)
    schema = StructType().add("_size", LongType()).add("n", LongType())
    schema = schema.add("_corrupt_record", StringType()).add("word", StringType())

    found = read(path, {"fileFormat": kind}, schema)

    size, malformed = path.stat().st_size, text.splitlines()[1]
    assert found == [
        {"_size": size, "n": 1, "_corrupt_record": None, "word": "x"},
        {"_size": size, "n": None, "_corrupt_record": malformed, "word": None},
    ]
