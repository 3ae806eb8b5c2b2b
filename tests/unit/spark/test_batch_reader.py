"""What Spark is told to run for a batch query."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from balanced_source.api import STOP
from balanced_source.documents import stream_offset
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import InvalidSpecError
from balanced_source_spark import batch_reader
from balanced_source_spark.batch_reader import BalancedBatchReader
from balanced_source_spark.options import parse_options
from balanced_source_spark.short_splits import tell_absent, tell_short


def test_a_batch_without_records_has_one_task_that_reads_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark would make a partition of its own otherwise, which no task reader knows."""
    calls: list[str] = []
    planner: Any = SimpleNamespace(
        initialOffset=lambda: stream_offset.to_json(StreamOffset()),
        prepareForTriggerAvailableNow=lambda: calls.append("prepared"),
        check_named=lambda: calls.append("checked"),
        latestOffset=lambda begin, _: begin,
        partitions=lambda *_: [],
        is_pulling=False,
        stop=lambda: calls.append("stopped"),
    )
    monkeypatch.setattr(batch_reader, "planner_of", lambda _: planner)
    options = parse_options({"kafka.bootstrap.servers": "b:9", "subscribe": "t"})

    (partition,) = BalancedBatchReader(options).partitions()
    assert getattr(partition, "ranges", None) == ()
    assert calls == ["prepared", "checked", "stopped"]


def test_a_batch_that_reads_less_than_its_end_asks_for_says_so() -> None:
    """Nothing comes back for the rest, and a row count does not show it."""
    a, b = ("c", "t", 0), ("c", "t", 1)
    attributes: Any = {a: {STOP: 100}, b: {STOP: 7}}

    with capture_logs() as logs:
        tell_short(StreamOffset(positions={a: 80, b: 7}, attributes=attributes))
        tell_short(StreamOffset(positions={a: 100, b: None}))

    (line,) = logs
    assert line["splits"] == "1 split, c/t/0 (ends at 80, and the query at 100)"
    assert "nothing reads the rest" in line["event"]


def test_a_batch_of_a_source_that_is_assigned_elsewhere_is_refused() -> None:
    """It is no host of the source, and must not take the place of one."""
    options = parse_options({"kafka.bootstrap.servers": "b:9", "subscribe": "t"})

    with pytest.raises(InvalidSpecError, match="a batch query enumerates by itself") as caught:
        BalancedBatchReader(replace(options, embedded=None))

    assert caught.value.field == "options"


def test_splits_that_a_query_leaves_out_are_told_in_order() -> None:
    with capture_logs() as logs:
        tell_absent(())
        tell_absent([("c", "t", 1), ("c", "t", 0)])

    (line,) = logs
    assert (line["splits"], line["count"]) == ("c/t/0, c/t/1", 2)
    assert "do not exist any more" in line["event"]
