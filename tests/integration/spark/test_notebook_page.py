"""The blocks of docs/start/notebook.md, executed in turn against a real broker."""

import re

import pytest
from pyspark.sql import SparkSession

from testbed.kafka import KafkaCluster
from testbed.versions import CHECKOUT

pytestmark = pytest.mark.integration


def test_the_page_works_as_it_is_written(
    spark: SparkSession, kafka: KafkaCluster, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (CHECKOUT / "docs" / "start" / "notebook.md").read_text(encoding="utf-8")
    code = "".join(re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    kafka.admin.produce(topic, [b"a"] * 40)
    here = code.replace("localhost:9092", kafka.bootstrap).replace(
        '"subscribe", "orders"', f'"subscribe", "{topic}"'
    )

    exec(compile(here, "notebook.md", "exec"), {})  # noqa: S102 - our own page

    counts = [
        line.split("|")[2]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("|        ")
    ]
    assert sum(map(int, counts)) == 40
    assert spark.table("orders").count() == 40
