"""Columns of Avro files: types that fit, and files that do not."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

from balanced_source.connectors.files import File, FilesSource, Format
from balanced_source.host import SplitRange
from balanced_source_spark.contract.secrets import QuerySecrets
from balanced_source_spark.files import columnar
from balanced_source_spark.files.options import MODES, FileReadOptions
from balanced_source_spark.files.task_reader import FileReadError, FilesTaskReader
from balanced_source_spark.partition import ReaderPartition
from support.avro_files import ID, record, written


def table(data: bytes, **columns: Any) -> list[Any]:
    size = len(data)
    found = columnar.avro(pa.BufferReader(data), 0, size, size, pa.schema(list(columns.items())))
    return [row for part in found for row in part.to_pylist()]


def test_columns_are_cast_as_those_of_parquet() -> None:
    data = written([{"id": 5, "text": "7"}])

    assert table(data, id=pa.int32()) == [{"id": 5}]
    assert table(data, text=pa.int32(), id=pa.string()) == [{"text": 7, "id": "5"}]
    with pytest.raises(TypeError, match="column id has type int64, which does not fit list<"):
        table(written([{"id": 5, "text": ""}]), id=pa.list_(pa.int64()))
    with pytest.raises(TypeError, match="column text has type string, which does not fit int32"):
        table(written([{"id": 5, "text": "seven"}]), text=pa.int32())
    with pytest.raises(TypeError, match="column id has type int64, which does not fit int8"):
        table(written([{"id": 500, "text": ""}]), id=pa.int8())


def test_members_of_a_struct_are_found_by_name() -> None:
    inner = {**record({"name": "x", "type": "int"}, {"name": "y", "type": "string"}), "name": "i"}
    data = written([{"s": {"x": 1, "y": "a"}}], record({"name": "s", "type": inner}))

    kind = pa.struct([("y", pa.string()), ("z", pa.int64()), ("x", pa.int64())])
    assert table(data, s=kind) == [{"s": {"y": "a", "z": None, "x": 1}}]


@pytest.mark.parametrize(
    ("kind", "wrap"),
    [
        ("long", lambda kind: kind),
        ({"type": "array", "items": "long"}, pa.list_),
        ({"type": "map", "values": "long"}, lambda kind: pa.map_(pa.string(), kind)),
        ({**record(ID), "name": "s"}, lambda kind: pa.struct([("x", pa.int8()), ("id", kind)])),
    ],
)
@pytest.mark.parametrize("time", [pa.timestamp("us", tz="UTC"), pa.time64("ns")])
def test_a_number_without_a_unit_does_not_become_a_time(kind: Any, wrap: Any, time: Any) -> None:
    data = written([], record({"name": "at", "type": kind}))

    with pytest.raises(TypeError, match="does not say the unit of the time"):
        table(data, at=wrap(time))
    assert table(data, at=wrap(pa.int64())) == []


@pytest.mark.parametrize("mode", MODES)
def test_a_file_that_does_not_fit_is_named_whatever_the_mode_is(tmp_path: Path, mode: str) -> None:
    read = FileReadOptions(kind=Format.AVRO, ddl="text BIGINT", mode=mode, has_metadata=False)
    schema = StructType().add("text", LongType())
    settings = FilesSource(paths=("/",), kind_of_file=Format.AVRO).reader_settings()

    def refused(name: str, data: bytes) -> str:
        path = tmp_path / name
        path.write_bytes(data)
        file = File(path.stat().st_mtime_ns, str(path), len(data))
        share = SplitRange(
            split_id=("files", str(path), 0), start=0, end=len(data), identity=file.identity
        )
        reader = FilesTaskReader(read, schema, QuerySecrets())
        with pytest.raises(FileReadError) as raised:
            list(reader.read(ReaderPartition(subtask_id=0, ranges=(share,), settings=settings)))
        assert f"cannot read {path}" in str(raised.value)
        return str(raised.value)

    good = written([{"id": 1, "text": "seven"}])
    assert "column text has type string, which does not fit int64" in refused("a.avro", good)
    assert "damaged or half written" in refused("b.avro", good[:-3])
    assert "compressed as a whole" in refused("c.avro.gz", gzip.compress(good))
    assert "compressed by 'lz4'" in refused("d.avro", good.replace(b"\x08null", b"\x06lz4"))
