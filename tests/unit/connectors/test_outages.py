"""A source that cannot be listed is asked less and less often, however long that lasts."""

from typing import Any

import pytest

from balanced_source.api import CallFailure
from balanced_source.backoff import backoff
from balanced_source.connectors.discovery import MAX_BACKOFF
from balanced_source.coordinator import CoordinatorState, ExecuteCall
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.errors import TransientDiscoveryError
from support.pull_source import NumberLists
from support.world import kafka_source

A_DAY_OF_FAILURES = 1_500
"""More than the doublings that a float can hold."""


@pytest.mark.parametrize(
    ("failures", "pause"), [(1, 0.5), (2, 1.0), (7, 32.0), (8, 60.0), (10**9, 60.0)]
)
def test_a_pause_doubles_up_to_the_longest(failures: int, pause: float) -> None:
    assert backoff(failures, first=0.5, longest=60.0) == pause


@pytest.mark.parametrize(
    ("source", "handler"),
    [(kafka_source("c"), "handle_discovery"), (NumberLists(), "handle_listing")],
    ids=["discovered", "listed"],
)
def test_an_outage_of_a_day_does_not_end_the_questions(source: Any, handler: str) -> None:
    context: CoordinatorContext[Any] = CoordinatorContext(CoordinatorState())
    enumerator = source.create_enumerator(context)
    enumerator.start()
    failure = CallFailure(TransientDiscoveryError("no route to host", scope="c"))

    for _ in range(A_DAY_OF_FAILURES):
        getattr(enumerator, handler)(context.turn.effects[-1].call, failure)  # type: ignore[union-attr]

    asked = [effect for effect in context.turn.effects if isinstance(effect, ExecuteCall)]
    delays = [effect.delay for effect in asked]
    assert delays[:9] == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, MAX_BACKOFF, MAX_BACKOFF]
    assert (len(delays), delays[-1]) == (A_DAY_OF_FAILURES + 1, MAX_BACKOFF)
