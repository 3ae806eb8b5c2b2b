"""The reports of a query that has nothing to read say nothing new.

The operator takes a turn for each report that does, and one that serves a thousand idle sources
would do nothing else.
"""

import pytest

from balanced_source_spark.host_reporter import Progress
from support.planned_query import PlannedQuery
from support.world import Broker, kafka_source


@pytest.mark.parametrize("has_read", [True, False])
def test_an_idle_query_reports_the_same_again_and_again(
    monkeypatch: pytest.MonkeyPatch, *, has_read: bool
) -> None:
    broker = Broker()
    broker.create("c", "t", [0, 1, 2], end=7 if has_read else 0)
    query = PlannedQuery(source=kafka_source("c"), broker=broker)
    told: list[Progress] = []
    note = query.planner._runtime.note_progress

    def noted(progress: Progress) -> None:
        told.append(progress)
        note(progress)

    monkeypatch.setattr(query.planner._runtime, "note_progress", noted)
    query.trigger_until(lambda: query.records.total() == (21 if has_read else 0), "all to be read")
    for _ in range(3):
        assert not query.trigger()
    begin = len(told)
    for _ in range(5):
        assert not query.trigger()
        query.planner._look_again()
    query.close()
    said = {(progress.lag, str(progress.metrics())) for progress in told[begin:]}
    assert len(said) == 1
