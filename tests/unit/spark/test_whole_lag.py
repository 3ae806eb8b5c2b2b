"""The lag of a source is told only while all that is unread is of splits that readers hold."""

from typing import Any

import pytest

from balanced_source.documents.report import UNREAD
from balanced_source_spark.host_reporter import Progress
from balanced_source_spark.kafka.hooks import KafkaHooks
from support.planned_query import PlannedQuery
from support.world import Broker, kafka_source


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_lag_is_unknown_while_something_else_is_unread(
    monkeypatch: pytest.MonkeyPatch, *, is_whole: bool
) -> None:
    """In the query's progress and in each report, also while a micro-batch runs."""
    monkeypatch.setattr(KafkaHooks, "are_all_unread", lambda *_: is_whole)
    broker = Broker()
    broker.create("c", "t", [0], end=7)
    query = PlannedQuery(source=kafka_source("c"), broker=broker)
    told: list[Progress] = []
    monkeypatch.setattr(query.planner._runtime, "note_progress", told.append)

    query.trigger_until(lambda: query.records.total() == 7, "all to be read")
    query.planner._look_again()
    shown: Any = query.planner._shown
    query.close()

    assert (shown["lag"] is not None) == is_whole
    assert all((progress.lag is not None) == is_whole for progress in told)
    assert all((UNREAD in progress.metrics()) == is_whole for progress in told)
