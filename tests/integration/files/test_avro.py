"""Avro files on a real Spark: each record once, with the values that were written."""

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

FILES, RECORDS = 4, 500
CODECS = ("null", "deflate", "snappy", "zstandard")
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "kind", "type": {"type": "enum", "name": "kinds", "symbols": ["A", "B"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "either", "type": ["null", "long", "string"]},
        {
            "name": "place",
            "type": {
                "type": "record",
                "name": "place",
                "fields": [{"name": "x", "type": "double"}, {"name": "kind", "type": "kinds"}],
            },
        },
    ],
}


def record_of(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"é{'x' * (number % 50)}" if number % 3 else None,
        "price": Decimal(number).scaleb(-2),
        "day": dt.date(2026, 1, 1) + dt.timedelta(days=number),
        "at": dt.datetime(1969, 12, 31, tzinfo=dt.UTC) + dt.timedelta(minutes=number),
        "kind": "AB"[number % 2],
        "tags": ["t"] * (number % 3),
        "counts": {"a": number, "b": -number},
        "either": (None, number, f"s{number}")[number % 3],
        "place": {"x": number / 4, "kind": "AB"[number % 2]},
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    for number, codec in enumerate(CODECS):
        records = [record_of(number * RECORDS + n) for n in range(RECORDS)]
        with (made / f"{number}.avro").open("wb") as file:
            fastavro.writer(file, SCHEMA, records, codec, sync_interval=700)
    return made


def options(**given: object) -> dict[str, str]:
    fixed = {"connector": "files", "fileFormat": "avro", "parallelism": "2", "splitBytes": "3000"}
    return {**fixed, **{name: str(value) for name, value in given.items()}}


def plain(row: Any) -> dict[str, Any]:
    """Return a row as fastavro returns its record."""
    found: dict[str, Any] = row.asDict(recursive=True)
    either = found.pop("either")
    members = [] if either is None else [v for v in either.values() if v is not None]
    return {
        **found,
        "at": found["at"].astimezone(dt.UTC),
        "either": members[0] if members else None,
    }


def written(folder: Path) -> dict[int, Any]:
    """Return the records of all files as fastavro reads them."""
    found = {}
    for path in folder.iterdir():
        with path.open("rb") as file:
            for record in fastavro.reader(file):
                assert isinstance(record, dict)
                found[record["id"]] = record
    return found


def test_inferred_columns_have_the_values_that_were_written(
    spark: SparkSession, folder: Path
) -> None:
    given = options(inferSchema="true")
    rows = spark.read.format("balanced").options(**given).load(str(folder))

    assert rows.schema["either"].dataType.simpleString() == (
        "struct<member0:bigint,member1:string>"
    )
    found = [plain(row) for row in rows.drop("_path", "_block_offset").drop(*FILE).collect()]
    assert len(found) == FILES * RECORDS
    assert {row["id"]: row for row in found} == written(folder)
    blocks = rows.select("_path", "_block_offset").distinct().count()
    assert blocks > 2 * FILES, "files were cut into blocks"


FILE = ("_modification_time", "_size")


def run(spark: SparkSession, folder: Path, out: Path, **more: object) -> DataFrame:
    """Read all available files with trigger AvailableNow, and return all rows of the sink."""
    given = options(schema="id BIGINT, name STRING, other INT, kind STRING", **more)
    rows = spark.readStream.format("balanced").options(**given).load(str(folder))
    writer = rows.writeStream.format("parquet").option("path", str(out / "rows"))
    query = writer.option("checkpointLocation", str(out / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    return spark.read.parquet(str(out / "rows"))


def test_two_readers_read_each_record_once_and_what_is_new_later(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    more = {"columns": "id,name,other", "metadataColumns": "false"}

    def expected() -> "Counter[tuple[Any, ...]]":
        return Counter((id_, row["name"], None) for id_, row in written(folder).items())

    first = run(spark, folder, tmp_path, **more)
    assert first.columns == ["id", "name", "other"]
    assert Counter(tuple(row) for row in first.collect()) == expected()

    with (folder / "more.avro").open("wb") as file:
        fastavro.writer(file, SCHEMA, [record_of(10_000)], "bzip2")
    second = run(spark, folder, tmp_path, **{**more, "parallelism": 3})
    assert Counter(tuple(row) for row in second.collect()) == expected()


def test_a_query_reads_until_it_is_stopped(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    from testbed.waiting import wait_until

    given = options(schema="id BIGINT", discoveryInterval="200ms", stateDir=tmp_path / "state")
    rows = spark.readStream.format("balanced").options(**given).load(str(folder))
    writer = rows.writeStream.format("memory").queryName("avro_rows")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    def ids() -> list[int]:
        if (error := query.exception()) is not None:
            raise AssertionError(str(error))
        return sorted(row.id for row in spark.table("avro_rows").select("id").collect())

    expected = list(range(FILES * RECORDS))
    wait_until(lambda: ids() == expected, 60, "the records of all files", interval=0.2)
    with (folder / "_later").open("wb") as file:
        fastavro.writer(file, SCHEMA, [record_of(len(expected))], "xz")
    (folder / "_later").rename(folder / "later.avro")
    wait_until(lambda: ids() == [*expected, len(expected)], 60, "a new file", interval=0.2)
    query.stop()


def test_a_file_that_is_not_avro_ends_the_query_with_its_name(
    spark: SparkSession, folder: Path
) -> None:
    (folder / "broken.avro").write_bytes((folder / "0.avro").read_bytes()[:-5])
    rows = spark.read.format("balanced").options(**options(schema="id BIGINT")).load(str(folder))

    with pytest.raises(Exception, match=r"cannot read .*broken\.avro.*damaged or half written"):
        rows.collect()
