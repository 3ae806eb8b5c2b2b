"""Columns of Avro files: types that fit, and files that do not."""

import datetime as dt
import gzip
import sys
from decimal import Decimal
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

    assert table(data, id=pa.decimal128(22, 2)) == [{"id": Decimal("5.00")}]
    assert table(data, text=pa.binary()) == [{"text": b"7"}]
    for wanted, shown in ((pa.list_(pa.int64()), "ARRAY<BIGINT>"), (pa.int32(), "INT")):
        with pytest.raises(TypeError, match=f"column id has type int64, .* fit {shown} of"):
            table(data, id=wanted)
    with pytest.raises(TypeError, match="column text has type string, which does not fit INT of"):
        table(data, text=pa.int32())


@pytest.mark.parametrize("unit", ["milli", "micro"])
def test_a_local_time_is_in_utc_or_without_a_zone(unit: str) -> None:
    local = {"type": "long", "logicalType": f"local-timestamp-{unit}s"}
    at = dt.datetime(2026, 1, 2, 3, 4, 5, 6000)  # noqa: DTZ001 - local
    data = written([{"at": at}], record({"name": "at", "type": local}))

    assert table(data, at=pa.timestamp("us")) == [{"at": at}]
    assert table(data, at=pa.timestamp("us", tz="UTC")) == [{"at": at.replace(tzinfo=dt.UTC)}]


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


SETTINGS = FilesSource(paths=("/",), kind_of_file=Format.AVRO).reader_settings()


def refused(path: Path, data: bytes, mode: str = MODES[0]) -> str:
    """Return the error of a task that reads a file."""
    read = FileReadOptions(kind=Format.AVRO, ddl="text BIGINT", mode=mode, has_metadata=False)
    path.write_bytes(data)
    file = File(path.stat().st_mtime_ns, str(path), len(data))
    share = SplitRange(
        split_id=("files", str(path), 0), start=0, end=len(data), identity=file.identity
    )
    reader = FilesTaskReader(read, StructType().add("text", LongType()), QuerySecrets())
    with pytest.raises(FileReadError) as raised:
        list(reader.read(ReaderPartition(subtask_id=0, ranges=(share,), settings=SETTINGS)))
    assert f"cannot read {path}" in str(raised.value)
    assert "option mode" not in str(raised.value)  # it is about text alone
    return str(raised.value)


@pytest.mark.parametrize("mode", MODES)
def test_a_file_that_does_not_fit_is_named_whatever_the_mode_is(tmp_path: Path, mode: str) -> None:
    good = written([{"text": 7}], record({"name": "text", "type": "long"}))
    text = written([{"id": 1, "text": "seven"}])

    for name, data, reason in (
        ("a.avro", text, "column text has type string, which does not fit BIGINT"),
        ("b.avro", good[:-3], "damaged or half written"),
        ("c.avro.gz", gzip.compress(good, mtime=0), "compressed as a whole"),
        ("d.avro", good.replace(b"\x08null", b"\x06lz4"), "compressed by 'lz4'"),
    ):
        assert reason in refused(tmp_path / name, data, mode)


def test_a_task_without_the_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "balanced_source_adapters.files.avro", raising=False)
    monkeypatch.setitem(sys.modules, "fastavro", None)

    said = refused(tmp_path / "a.avro", written([]))

    assert "fastavro is missing. Install balanced-source[spark] on driver and executors" in said
