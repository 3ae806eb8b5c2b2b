"""The block of docs/how-to/sinks.md that reads what a file sink has completed, without Spark."""

import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from testbed.versions import CHECKOUT

pytestmark = pytest.mark.integration

BATCHES = 12
"""So that one list is compacted."""


def test_files_that_no_complete_micro_batch_names_are_left_out(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    numbers, output = tmp_path / "numbers", tmp_path / "output"
    for _ in range(BATCHES):
        rows = spark.range(10).selectExpr("CAST(id AS STRING) AS value").coalesce(1)
        rows.write.mode("append").text(str(numbers))
    query = (
        spark.readStream.option("maxFilesPerTrigger", 1)
        .text(str(numbers))
        .writeStream.format("parquet")
        .option("path", str(output))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    whole = next(output.glob("*.parquet"))
    shutil.copy(whole, output / f"part-00000-again-{whole.name}")
    (output / "part-00001-empty.snappy.parquet").touch()
    page = (CHECKOUT / "docs" / "how-to" / "sinks.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)

    monkeypatch.chdir(tmp_path)  # after Spark's folders were named
    exec(compile(code, "sinks.md", "exec"), {})  # noqa: S102 - our own page

    assert list((output / "_spark_metadata").glob("*.compact"))
    assert int(capsys.readouterr().out) == 10 * BATCHES
