"""A lag that no one can know is unknown, and not 0."""

from dataclasses import replace

import pytest

from balanced_source.documents.stream_offset import StreamOffset
from support.planned_query import PlannedQuery, all_of
from support.world import Broker, kafka_source


@pytest.mark.parametrize(("undiscovered", "lag"), [({"c0"}, None), (set(), 0)])
def test_without_a_split_the_lag_is_known_only_when_every_cluster_has_answered(
    monkeypatch: pytest.MonkeyPatch, undiscovered: set[str], lag: int | None
) -> None:
    """One with a wrong port has not; a pattern that matches no topic leaves nothing unread."""
    broker = Broker()
    broker.create("c0", "t", range(2), end=7)
    query = PlannedQuery(source=kafka_source("c0", discovery_interval=None), broker=broker)
    query.trigger_until(lambda: query.records == all_of(broker), "all to be read")
    runtime = query.planner._runtime
    seen = runtime.newest_assignment(timeout=20)
    assert seen is not None
    nothing = replace(seen, owners={}, undiscovered=frozenset(undiscovered))
    monkeypatch.setattr(runtime, "newest_assignment", lambda **_: nothing)
    query.planner._is_shown_idle = False
    empty = StreamOffset(epoch=1, parallelism=3, readers=(0, 1, 2))
    query.planner._note(empty, empty, {})
    query.close()

    assert runtime._progress.lag == lag
    assert query.planner._shown["lag"] == lag
