"""How often fewer readers are tried, and that what was found out stays known."""

from itertools import pairwise

import pytest

from balanced_source.reasons import Reason
from support.batch_query import Query, policy


def decreases(query: Query) -> int:
    """Return how often readers were taken away."""
    return sum(after.readers < before.readers for before, after in pairwise(query.verdicts))


@pytest.mark.parametrize(("trigger", "cost"), [(1.0, 0.2), (10.0, 1.0), (60.0, 1.0)])
@pytest.mark.parametrize("load", [10_200, 11_000])
def test_the_most_readers_are_taken_away_once_to_see_whether_fewer_do(
    load: int, trigger: float, cost: float
) -> None:
    """The load is above the target and below what so many readers can do."""
    query = Query(
        load=load, capacity=1000, readers=12, cost=cost, noise=0.1, policy=policy(trigger)
    )
    query.tick, query.spacing = 0.25, 2.0

    query.run(5 * 3600)

    assert decreases(query) <= 1
    assert query.readers == 12
    assert not any(
        verdict.reason is Reason.SCALE_DOWN_DELAYED and "unknown" in verdict.message
        for verdict in query.verdicts[-100:]
    )
