"""Local files on a real Spark, in a query of its own.

Formats, blocks, rescaling, restarts, and an end.
"""

import gzip
import json
import os
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

FILES, LINES = 7, 400


def text_of(name: int) -> list[str]:
    return [f"{name}-{line}-é{'x' * (line % 13)}" for line in range(LINES)]


EXPECTED = Counter(line for name in range(FILES) for line in text_of(name))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    for name in range(FILES):
        write(made / f"{name}.txt", text_of(name))
    return made


def write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n")


def options(**given: object) -> dict[str, str]:
    return {
        "connector": "files",
        "parallelism": "2",
        **{name: str(value) for name, value in given.items()},
    }


def values(rows: DataFrame) -> "Counter[str]":
    return Counter(row.value for row in rows.select("value").collect())


def run(spark: SparkSession, out: Path, **given: object) -> None:
    """Read all that is there, with trigger AvailableNow, into Parquet files."""
    rows = spark.readStream.format("balanced").options(**options(**given)).load()
    writer = rows.writeStream.format("parquet").option("path", str(out / "rows"))
    query = (
        writer.option("checkpointLocation", str(out / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def test_a_batch_query_reads_each_line_once_whatever_the_blocks(
    spark: SparkSession, folder: Path
) -> None:
    rows = spark.read.format("balanced").options(**options(splitBytes=1000)).load(str(folder))

    assert values(rows) == EXPECTED
    found = rows.select("_path", "_block_offset", "_size").distinct().collect()
    assert {row._path for row in found} == {str(path) for path in folder.iterdir()}
    assert len(found) > 3 * FILES, "files were cut into blocks"
    assert {row._size for row in found} == {path.stat().st_size for path in folder.iterdir()}


def test_formats_have_the_same_records(spark: SparkSession, tmp_path: Path) -> None:
    records = [
        {"id": n, "name": f"name-{n}", "at": f"2024-01-01T00:00:{n % 60:02}Z"} for n in range(500)
    ]
    table = pa.table({"id": [r["id"] for r in records], "name": [r["name"] for r in records]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=50)
    pa.orc.write_table(table, tmp_path / "a.orc")
    (tmp_path / "a.json").write_text("".join(json.dumps(r) + "\n" for r in records))
    (tmp_path / "a.csv").write_text(
        "id,name\n" + "".join(f'{r["id"]},"{r["name"]}"\n' for r in records)
    )
    with gzip.open(tmp_path / "b.json.gz", "wt") as file:
        file.write("".join(json.dumps(r) + "\n" for r in records))

    def ids(name: str, kind: str, **more: object) -> list[int]:
        given = options(fileFormat=kind, schema="id BIGINT, name STRING", splitBytes=700, **more)
        rows = spark.read.format("balanced").options(**given).load(str(tmp_path / name)).collect()
        assert all(row.name == f"name-{row.id}" for row in rows)
        return sorted(row.id for row in rows)

    expected = list(range(500))
    assert ids("a.parquet", "parquet") == expected
    assert ids("a.orc", "orc") == expected
    assert ids("a.json", "json") == expected
    assert ids("b.json.gz", "json") == expected
    assert ids("a.csv", "csv", header="true") == expected
    rows = (
        spark.read.format("balanced")
        .options(**options(fileFormat="binary"))
        .load(str(tmp_path / "a.csv"))
        .collect()
    )
    assert [bytes(row.content) for row in rows] == [(tmp_path / "a.csv").read_bytes()]


def test_corrupt_records_by_mode(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}\n{"id": "two"}\n{"id": 3}\nno json\n{"id": 5}\n')

    def rows(mode: str) -> list[tuple[Any, ...]]:
        given = options(fileFormat="json", schema="id BIGINT, _corrupt_record STRING", mode=mode)
        found = spark.read.format("balanced").options(**given).load(str(tmp_path)).collect()
        return [(row.id, row._corrupt_record) for row in found]

    assert rows("PERMISSIVE") == [
        (1, None),
        (None, '{"id": "two"}'),
        (3, None),
        (None, "no json"),
        (5, None),
    ]
    assert rows("DROPMALFORMED") == [(1, None), (3, None), (5, None)]
    with pytest.raises(Exception, match="does not fit the schema"):
        rows("FAILFAST")


def test_available_now_reads_new_records_and_none_twice(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    run(spark, tmp_path, path=folder, splitBytes=2000, parallelism=3)
    assert values(spark.read.parquet(str(tmp_path / "rows"))) == EXPECTED
    write(folder / "more.txt", ["one more"])

    run(spark, tmp_path, path=folder, splitBytes=2000, parallelism=1)

    assert values(spark.read.parquet(str(tmp_path / "rows"))) == EXPECTED + Counter(["one more"])


def test_the_progress_says_what_reading_took(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    rows = spark.readStream.format("balanced").options(**options(splitBytes=1500)).load(str(folder))
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()

    shown = [source.latestOffset for p in query.recentProgress for source in p.sources]
    readers = json.loads(shown[-1])["readers"]
    assert readers.keys() == {"0", "1"}
    for reader in readers.values():
        assert reader["recordsRead"] > 0
        assert reader["bytesRead"] > reader["recordsRead"]
        assert 0 < reader["firstRecordsSeconds"] <= reader["sourceSeconds"]
        assert reader["downstreamSeconds"] > 0
    told = sum(reader["recordsRead"] for reader in readers.values())
    # All micro-batches but the last: its tasks end when no one asks for a further one.
    assert told in accumulate(p.numInputRows for p in query.recentProgress)


def test_a_missing_folder_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="does not exist"):
        spark.read.format("balanced").options(**options()).load(str(tmp_path / "nowhere")).collect()


def test_an_empty_folder_gives_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    assert spark.read.format("balanced").options(**options()).load(str(tmp_path)).collect() == []


def test_a_file_that_vanishes_fails_or_is_skipped(spark: SparkSession, folder: Path) -> None:
    def rows(policy: str) -> DataFrame:
        given = options(onLoss=policy, path=folder)
        return spark.read.format("balanced").options(**given).load()

    for policy in ("Skip", "Fail"):
        planned = rows(policy)
        planned.rdd.getNumPartitions()  # plans
        (folder / "0.txt").rename(folder / "_hidden")
        if policy == "Fail":
            with pytest.raises(Exception, match=r"0\.txt was deleted"):
                planned.collect()
        else:
            assert values(planned) == Counter(line for n in range(1, FILES) for line in text_of(n))
        (folder / "_hidden").rename(folder / "0.txt")


def test_continuous_discovery_survives_restarts_with_a_small_state(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    given = {
        "path": folder,
        "discoveryInterval": "200ms",
        "stateDir": tmp_path / "state",
        "splitBytes": 2000,
    }
    expected = Counter(EXPECTED)
    for parallelism in (2, 3):
        rows = (
            spark.readStream.format("balanced")
            .options(**options(**{**given, "parallelism": parallelism}))
            .load()
        )
        writer = rows.writeStream.format("parquet").option("path", str(tmp_path / "rows"))
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        _await_rows(spark, tmp_path / "rows", expected, query)
        late = folder / f"late-{parallelism}.txt"
        write(late, [f"late {parallelism}"])
        newest = max(path.stat().st_mtime_ns for path in folder.iterdir())
        os.utime(late, ns=(newest - 5_000_000_000, newest - 5_000_000_000))
        expected[f"late {parallelism}"] += 1
        _await_rows(spark, tmp_path / "rows", expected, query)
        query.stop()

    offsets = sorted((tmp_path / "checkpoint" / "offsets").iterdir(), key=lambda path: path.name)
    newest_offset = max(
        (path for path in offsets if path.name.isdigit()), key=lambda path: int(path.name)
    )
    assert len(newest_offset.read_text()) < 4000, "blocks that were read have left the offset"


def test_inferred_columns_stay_as_they_were_over_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, state = tmp_path / "in", tmp_path / "state"
    folder.mkdir()
    given = {
        "path": folder,
        "fileFormat": "json",
        "inferSchema": "true",
        "metadataColumns": "false",
        "stateDir": state,
    }
    for number, record in enumerate(({"id": 1}, {"id": 2, "more": "text"})):
        (folder / f"{number}.json").write_text(json.dumps(record) + "\n")
        run(spark, tmp_path, **given)

    found = spark.read.parquet(str(tmp_path / "rows"))
    assert found.columns == ["id"]
    assert sorted(row.id for row in found.collect()) == [1, 2]


def _await_rows(spark: SparkSession, out: Path, expected: "Counter[str]", query: Any) -> None:
    from testbed.waiting import wait_until

    def is_there() -> bool:
        if (error := query.exception()) is not None:
            raise AssertionError(str(error))
        if not (out / "_spark_metadata").exists():
            return False
        return values(spark.read.schema("value STRING").parquet(str(out))) == expected

    wait_until(is_there, 60, "all rows, each once", interval=0.2)
