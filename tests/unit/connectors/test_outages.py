"""When a source is asked again that did not answer, or whose answer is not certain."""

from typing import Any

import pytest

from balanced_source.api import CallFailure
from balanced_source.backoff import backoff
from balanced_source.connectors.discovery import CONFIRMATION_DELAY, MAX_BACKOFF, Discovered
from balanced_source.connectors.kafka import (
    DiscoverKafka,
    InitializeKafka,
    KafkaPartitionSplit,
    OnDataLoss,
)
from balanced_source.coordinator import CoordinatorState, ExecuteCall, HostState
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
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


def delay_after(answer: Discovered, interval: float | None) -> float:
    """Seconds after which the scope is asked again, when it has answered this."""
    context: CoordinatorContext[Any] = CoordinatorContext(CoordinatorState())
    enumerator = kafka_source("c", discovery_interval=interval).create_enumerator(context)
    enumerator.start()
    (asked,) = [effect for effect in context.turn.effects if isinstance(effect, ExecuteCall)]
    enumerator.handle_discovery(asked.call, answer)  # type: ignore[arg-type]
    return next(
        effect.delay
        for effect in reversed(context.turn.effects)
        if isinstance(effect, ExecuteCall) and isinstance(effect.call, DiscoverKafka)
    )


@pytest.mark.parametrize(
    ("interval", "delay"), [(60.0, CONFIRMATION_DELAY), (1.0, 1.0), (None, CONFIRMATION_DELAY)]
)
def test_an_uncertain_listing_is_repeated_soon(interval: float | None, delay: float) -> None:
    split_ids = frozenset({("c", "t", 0)})
    missing = RefusedDiscoveryError("topic u does not exist", scope="c")

    assert delay_after(Discovered(split_ids=split_ids, problem=missing), interval) == delay
    if interval is not None:
        assert delay_after(Discovered(split_ids=split_ids), interval) == interval


@pytest.mark.parametrize("interval", [None, 30.0])
def test_a_split_without_a_start_is_looked_for_again(interval: float | None) -> None:
    """Left out of the answer, it was never read if there is one discovery only."""
    context: CoordinatorContext[Any] = CoordinatorContext(CoordinatorState())
    enumerator = kafka_source("c", discovery_interval=interval).create_enumerator(context)
    enumerator.start()

    def newest(kind: type) -> Any:
        effects = [e for e in context.turn.effects if isinstance(e, ExecuteCall)]
        return next(e for e in reversed(effects) if isinstance(e.call, kind))

    found = Discovered(split_ids=frozenset({("c", "t", 0), ("c", "t", 1)}))
    started = [KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=7)]
    for failures in (1, 2, 3):
        enumerator.handle_discovery(newest(DiscoverKafka).call, found)
        enumerator.handle_initialized(newest(InitializeKafka).call, started)

        assert newest(DiscoverKafka).delay == 2.0 ** (failures - 1), "soon, and ever later"
        assert enumerator.undiscovered() == {"c"}, "a query that ends by itself waits"
        assert enumerator.pending_splits() == 1, "the other one is not held up"
        started = []
    assert "1 split listed, and the beginning is not known: c/t/1" in str(
        enumerator.problems()["c"]
    )

    gone = Discovered(split_ids=frozenset({("c", "t", 0)}))
    enumerator.handle_discovery(newest(DiscoverKafka).call, gone)
    assert not enumerator.undiscovered()
    assert not enumerator.problems()


def test_a_split_that_comes_back_is_not_started_by_a_look_up_that_is_under_way() -> None:
    """A reader has read it before the start position is known."""
    split_id = ("c", "t", 0)
    partition = KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=7)
    context: CoordinatorContext[Any] = CoordinatorContext(CoordinatorState())
    enumerator = kafka_source("c").create_enumerator(context)
    enumerator.start()
    calls = [effect.call for effect in context.turn.effects if isinstance(effect, ExecuteCall)]
    enumerator.handle_discovery(calls[0], Discovered(split_ids=frozenset({split_id})))  # type: ignore[arg-type]
    look_up: Any = next(
        effect.call
        for effect in context.turn.effects
        if isinstance(effect, ExecuteCall) and not isinstance(effect.call, DiscoverKafka)
    )
    before = len(context.turn.effects)

    enumerator.add_splits_back([partition], 0)
    enumerator.handle_initialized(look_up, [partition.at(100)])

    assert enumerator.snapshot_state().unassigned[split_id].offset == 7
    asked = [
        effect.call for effect in context.turn.effects[before:] if isinstance(effect, ExecuteCall)
    ]
    assert [type(call) for call in asked] == [DiscoverKafka], "the cluster is asked again"


@pytest.mark.parametrize("policy", list(OnDataLoss))
def test_a_recreated_split_is_read_if_nothing_of_the_former_one_is_left(policy: OnDataLoss) -> None:
    """Before, the user had to agree to a loss that there was none of."""
    read, unread = ("c", "t", 0), ("c", "u", 0)
    former = {
        s: KafkaPartitionSplit(
            cluster="c",
            topic=s[1],
            partition=0,
            offset=offset,
            stopping_offset=7,
            topic_id="former",
        )
        for s, offset in ((read, 7), (unread, 3))
    }
    state: CoordinatorState[Any] = CoordinatorState(
        splits=former,
        owners=dict.fromkeys(former, 0),
        parallelism=1,
        hosts={"0": HostState()},
    )
    context: CoordinatorContext[Any] = CoordinatorContext(state)
    enumerator = kafka_source("c", on_data_loss=policy).create_enumerator(context)
    enumerator.start()
    (asked,) = [effect for effect in context.turn.effects if isinstance(effect, ExecuteCall)]

    enumerator.handle_discovery(
        asked.call,  # type: ignore[arg-type]
        Discovered(split_ids=frozenset(former), identities=dict.fromkeys((read, unread), "new")),
    )

    begun = {read} if policy is OnDataLoss.FAIL else {read, unread}
    assert set(former) - set(context.current_assignments()) == begun
    problem = str(enumerator.problems().get("c", ""))
    assert ("c/u/0" in problem) == (policy is OnDataLoss.FAIL)
    assert "c/t/0" not in problem
