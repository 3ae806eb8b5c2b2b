"""``balanced-source infer-schema``: columns of real files, as the reader takes them."""

import gzip
import json
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyarrow import orc
from typer.testing import CliRunner

from balanced_source.connectors.files import Format
from balanced_source_adapters.files import inference
from balanced_source_adapters.files.inference import CsvForm
from balanced_source_adapters.files.stores import LocalStore
from balanced_source_operator.cli import app
from support.builders import spec_json

DECIMAL = {"type": "bytes", "logicalType": "decimal"}


def inferred(folder: Path, source: dict[str, Any]) -> Any:
    file = folder / "orders.yaml"
    file.write_text(yaml.safe_dump({"kind": "BalancedSource", "spec": spec_json(source=source)}))
    return CliRunner().invoke(app, ["infer-schema", "-f", str(file)])


def ddl(folder: Path, name: str, kind: str, **more: Any) -> str:
    result = inferred(folder, {"files": {"paths": [str(folder / name)], "format": kind, **more}})
    assert result.exit_code == 0, result.output
    return str(result.output).strip()


def refusal(folder: Path, source: dict[str, Any]) -> str:
    result = inferred(folder, source)
    assert result.exit_code == 2
    return str(result.output)


TABLE = pa.table(
    {
        "id": pa.array([1], pa.int64()),
        "small": pa.array([1], pa.int8()),
        "unit price": pa.array([1], pa.decimal128(9, 2)),
        "at": pa.array([1], pa.timestamp("us", tz="UTC")),
        "tags": pa.array([["a"]], pa.list_(pa.string())),
        "place": pa.array(
            [{"x": 1.0, "y": None}], pa.struct([("x", pa.float64()), ("y", pa.date32())])
        ),
    }
)
COLUMNS = (
    "id BIGINT, small TINYINT, `unit price` DECIMAL(9,2), at TIMESTAMP, tags ARRAY<STRING>, "
    "place STRUCT<x: DOUBLE, y: DATE>"
)


def test_parquet_and_orc_say_it_themselves(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    orc.write_table(TABLE, tmp_path / "a.orc")

    assert ddl(tmp_path, "a.parquet", "Parquet") == COLUMNS
    assert ddl(tmp_path, "a.orc", "Orc") == COLUMNS


def test_orc_says_which_numbers_are_times(tmp_path: Path) -> None:
    noted = {"spark.sql.catalyst.type": "timestamp_ntz"}
    fields = [pa.field("at", pa.int64(), metadata=noted), pa.field("id", pa.int64())]
    orc.write_table(pa.table([[1], [2]], schema=pa.schema(fields)), tmp_path / "a.orc")

    assert ddl(tmp_path, "a.orc", "Orc") == "at TIMESTAMP, id BIGINT"


UUID = pa.array([b"0123456789abcdef"], pa.binary(16))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        # As DuckDB and polars write them.
        (pa.ExtensionArray.from_storage(pa.uuid(), UUID), "BINARY"),
        (UUID, "BINARY"),
        (pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"])), "STRING"),
        (pa.array([b"a"], pa.binary_view()), "BINARY"),
        (pa.array([[1]], pa.list_view(pa.int32())), "ARRAY<INT>"),
        (pa.array(["a"]).dictionary_encode(), "STRING"),
    ],
    ids=str,
)
def test_a_column_is_read_as_it_is_inferred(tmp_path: Path, column: pa.Array, kind: str) -> None:
    pq.write_table(pa.table({"x": column}), tmp_path / "a.parquet")

    assert ddl(tmp_path, "a.parquet", "Parquet") == f"x {kind}"


def test_integers_beyond_64_bits_are_decimals(tmp_path: Path) -> None:
    """A double would cut off digits, such as those of identifiers."""
    most = 2**64 - 1
    rows = [
        {"id": most, "f": 1.5, "big": -(10**37), "s": {"t": most, "u": 1.0}, "l": [{"t": most}]},
        {"id": 1, "f": most, "s": {"u": 2.5}, "n": 2**63 - 1},
    ]
    (tmp_path / "a.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "b.json").write_text('{"id": 1, "s": {"t": 2}}\n')
    (tmp_path / "a.csv").write_text(f"{most},1.5,{10**30},x\n1,2,3,{most}\n,,,\n")

    assert ddl(tmp_path, "*.json", "Json") == (
        "id DECIMAL(20,0), f DOUBLE, big DECIMAL(38,0), s STRUCT<t: DECIMAL(20,0), u: DOUBLE>,"
        " l ARRAY<STRUCT<t: DECIMAL(20,0)>>, n BIGINT"
    )
    assert (
        ddl(tmp_path, "a.csv", "Csv") == "f0 DECIMAL(20,0), f1 DOUBLE, f2 DECIMAL(38,0), f3 STRING"
    )


def test_files_of_blank_lines_have_no_columns(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("\n\n")

    assert "has no file with content to infer from" in refusal(
        tmp_path, {"files": {"paths": [str(tmp_path / "a.json")], "format": "Json"}}
    )


def write_avro(path: Path, fields: list[dict[str, Any]], records: list[Any]) -> None:
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, records)


def test_avro_says_it_as_spark_reads_it(tmp_path: Path) -> None:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {**DECIMAL, "precision": 9, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "since", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "kind", "type": {"type": "enum", "name": "kinds", "symbols": ["A", "B"]}},
        {"name": "code", "type": {"type": "fixed", "name": "codes", "size": 2}},
        {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "kinds"}}},
        {"name": "either", "type": ["string", "null", "long"]},
    ]
    write_avro(tmp_path / "a.avro", fields, [])
    write_avro(tmp_path / "b.avro", [{"name": "more", "type": "boolean"}], [])

    assert ddl(tmp_path, "*.avro", "Avro") == (
        "id BIGINT, price DECIMAL(9,2), day DATE, at TIMESTAMP, since BIGINT, key STRING, "
        "kind STRING, code BINARY, tags MAP<STRING, ARRAY<STRING>>, "
        "either STRUCT<member0: STRING, member1: BIGINT>, more BOOLEAN"
    )


def test_avro_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_avro(tmp_path / "a.avro", [{"name": "id", "type": "long"}], [])
    monkeypatch.delitem(sys.modules, "balanced_source_adapters.files.avro", raising=False)
    monkeypatch.setitem(sys.modules, "fastavro", None)

    said = refusal(tmp_path, {"files": {"paths": [str(tmp_path / "a.avro")], "format": "Avro"}})

    assert "fastavro is missing: install balanced-source[spark]" in " ".join(said.split())


def test_json_lines_of_several_files_are_put_together(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"id": 1, "name": None}) + "\n")
    with gzip.open(tmp_path / "b.json.gz", "wt") as file:
        file.write(json.dumps({"id": 2.5, "name": "tea", "at": "2026-01-01T00:00:00Z"}) + "\n")

    assert ddl(tmp_path, "*.json*", "Json") == "id DOUBLE, name STRING, at TIMESTAMP"


def test_malformed_nulls_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbfnull\n  null\n{"id": null}\n{"id": 1}\nnull')

    assert ddl(tmp_path, "a.json", "Json") == "id BIGINT"


def test_csv_with_and_without_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;name\n1;tea\n")

    assert (
        ddl(tmp_path, "a.csv", "Csv", records={"header": True, "separator": ";"})
        == "id BIGINT, name STRING"
    )
    (tmp_path / "c.csv").write_text("'1;2';12:30:00;3\n'a\\'b';13:00:00;none\n")
    form = {"separator": ";", "quote": "'", "escape": "\\", "nullValue": "none"}
    assert ddl(tmp_path, "c.csv", "Csv", records=form) == "f0 STRING, f1 STRING, f2 BIGINT"
    (tmp_path / "b.csv").write_text("1,tea")
    assert ddl(tmp_path, "b.csv", "Csv") == "f0 BIGINT, f1 STRING"


def test_a_long_file_is_cut_after_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("balanced_source_adapters.files.inference.SAMPLE", 100)
    (tmp_path / "a.json").write_text('{"id": 1}\n' * 1000)

    assert ddl(tmp_path, "a.json", "Json") == "id BIGINT"


def test_a_schema_that_cannot_be_inferred_is_reported(tmp_path: Path) -> None:
    def files(name: str, kind: str) -> dict[str, Any]:
        return {"files": {"paths": [str(tmp_path / name)], "format": kind}}

    (tmp_path / "a.json").write_text("no json\n")
    (tmp_path / "x").mkdir()
    assert "a.json cannot be inferred" in refusal(tmp_path, files("a.json", "Json"))
    assert "have one column" in refusal(tmp_path, files("a.json", "Text"))
    pq.write_table(pa.table({"at": pa.array([1], pa.time64("us"))}), tmp_path / "t.parquet")
    assert "column at has the type time64[us], which Spark does not have" in " ".join(
        refusal(tmp_path, files("t.parquet", "Parquet")).split()
    )
    assert "no file with content" in refusal(tmp_path, files("x", "Parquet"))
    assert "does not exist" in refusal(tmp_path, files("nowhere", "Parquet"))
    kafka = {
        "clusters": [{"name": "a", "bootstrapServers": "a:1"}],
        "subscription": {"topics": ["t"]},
    }
    assert "has no schema" in refusal(tmp_path, {"kafka": kafka})


def test_columns_cannot_be_inferred_without_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}')
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    said = refusal(tmp_path, {"files": {"paths": [str(tmp_path)], "format": "Json"}})

    assert "pyarrow is missing: install balanced-source[spark]" in " ".join(said.split())


@pytest.mark.parametrize("other", ["b,a\n1,2\n", "a,c\n1,2\n", "a,b,c\n1,2,3\n"])
def test_files_of_csv_with_other_columns_are_refused(tmp_path: Path, other: str) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "b.csv").write_text(other)

    files = {"paths": [f"{tmp_path}/*.csv"], "format": "Csv", "records": {"header": True}}
    said = " ".join(refusal(tmp_path, {"files": files}).split())

    names = other.partition("\n")[0].replace(",", ", ")
    assert f"it has the columns {names}, and another file has a, b" in said


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (pa.array([1]), pa.array([1.5]), "x DOUBLE"),  # as pandas writes whole numbers with gaps
        (pa.array([1], pa.uint8()), pa.array([1.5], pa.float16()), "x FLOAT"),
        (pa.array([1]), pa.array([1], pa.uint64()), "column x has type uint64, .* fit BIGINT"),
        (pa.array([1.5]), pa.array([Decimal("1.5")]), r"column x has type decimal128.* fit DOUBLE"),
        (
            pa.array([Decimal("0.01")], pa.decimal128(38, 2)),
            pa.array([Decimal(1)], pa.decimal128(38, 0)),
            "column x needs 40 digits, more than 38",
        ),
    ],
    ids=str,
)
def test_columns_of_several_files_are_those_that_the_reader_takes(
    tmp_path: Path, first: pa.Array, second: pa.Array, expected: str
) -> None:
    for name, column in (("a", first), ("b", second)):
        pq.write_table(pa.table({"x": column}), tmp_path / f"{name}.parquet")

    source = {"files": {"paths": [f"{tmp_path}/*.parquet"], "format": "Parquet"}}
    found = inferred(tmp_path, source)

    assert found.exit_code == (0 if expected.startswith("x ") else 2)
    assert re.search(expected, " ".join(str(found.output).split()))


@pytest.mark.parametrize("kind", [Format.TEXT, Format.BINARY])
def test_files_that_are_one_column_say_nothing_more(tmp_path: Path, kind: Format) -> None:
    (tmp_path / "a").write_bytes(b"x")
    store = LocalStore()
    file = store.stat(str(tmp_path / "a"))
    assert file is not None
    with pytest.raises(ValueError, match=f"{kind.value} has one column"):
        inference._schema(store, file, kind, CsvForm())
