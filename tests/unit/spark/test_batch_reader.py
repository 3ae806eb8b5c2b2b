"""What Spark is told to run for a batch query."""

from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source_spark import batch_reader
from balanced_source_spark.batch_reader import BalancedBatchReader
from balanced_source_spark.options import parse_options


def test_a_batch_without_records_has_one_task_that_reads_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark would make a partition of its own otherwise, which no task reader knows."""
    calls: list[str] = []
    planner: Any = SimpleNamespace(
        initialOffset=dict,
        prepareForTriggerAvailableNow=lambda: calls.append("prepared"),
        latestOffset=lambda begin, _: begin,
        partitions=lambda *_: [],
        is_pulling=False,
        stop=lambda: calls.append("stopped"),
    )
    monkeypatch.setattr(batch_reader, "planner_of", lambda _: planner)
    options = parse_options({"kafka.bootstrap.servers": "b:9", "subscribe": "t"})

    (partition,) = BalancedBatchReader(options).partitions()
    assert getattr(partition, "ranges", None) == ()
    assert calls == ["prepared", "stopped"]
