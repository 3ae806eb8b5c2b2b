"""What people read of several splits names the first ones, in the order of their ids."""

from typing import Any

import pytest

from balanced_source.api import ReaderInfo, SplitId
from balanced_source.connectors.discovery import Discovered, DiscoveryState, Initialize, recreated
from balanced_source.connectors.discovery.answers import not_started
from balanced_source.connectors.discovery.reported import scopes_held
from balanced_source.connectors.discovery.values import Retained
from balanced_source.connectors.kafka import TopicList
from balanced_source.connectors.kinesis.enumerator import _expired, _recreated
from support.world import kafka_source, partition_split
from unit.connectors.test_discovery_steps import RETENTION, Step, table

SIX: tuple[SplitId, ...] = tuple(("c", "t", number) for number in range(6))
NAMES = "c/t/0, c/t/1, c/t/2 and 3 more"


def listing(step: Step, round_number: int, *split_ids: SplitId) -> None:
    call = step.enumerator.source.discover("c", round_number)
    step.enumerator.handle_discovery(call, Discovered(split_ids=frozenset(split_ids)))


def test_splits_that_come_back_unsubscribed() -> None:
    step = Step(kafka_source(subscriber=TopicList(("u",))))

    step.enumerator.add_splits_back([partition_split(s) for s in reversed(SIX)], 1)

    assert step.sentences == [f"6 splits of reader 1 not subscribed: {NAMES}"]


def test_splits_that_are_reported_and_not_subscribed() -> None:
    step = Step(kafka_source(subscriber=TopicList(("u",))))
    reported = tuple(partition_split(s) for s in reversed(SIX))

    step.registers(ReaderInfo(subtask_id=0, reported_splits=reported, is_first_report=True))

    (sentence,) = step.sentences
    assert sentence.startswith(f"6 splits not subscribed any more after being read: {NAMES}. Pos")


def test_splits_that_are_listed_again() -> None:
    kept = {s: Retained(split=partition_split(s), until=2000.0) for s in SIX}
    state = DiscoveryState(retained=kept, discovered=frozenset({"c"}))
    step = Step(kafka_source("c", retention=RETENTION), state)

    listing(step, 1, *SIX)

    assert f"6 splits continued: {NAMES}" in step.sentences


def test_splits_that_are_not_listed_any_more() -> None:
    step = Step(kafka_source("c"), owners=dict.fromkeys(SIX, 0))

    listing(step, 1)
    listing(step, 2)

    assert f"6 splits not listed any more: {NAMES}" in step.sentences


def test_new_splits_are_looked_up_in_their_order() -> None:
    step = Step(kafka_source("c"))

    listing(step, 1, *SIX)

    ((call, _),) = step.calls(Initialize)
    assert call.split_ids == SIX


def test_splits_without_a_beginning() -> None:
    call: Any = kafka_source("c").initialize("c", SIX, is_first=True)

    found = not_started(call, (), lambda _: True)

    assert str(found).startswith(
        f"c: 6 splits listed, and the beginning is not known: {NAMES}. Discovery looks again"
    )
    assert not_started(call, (), lambda _: False) is None


def test_splits_that_were_recreated() -> None:
    source = kafka_source("c")
    state = DiscoveryState(unassigned=table(*SIX))
    step = Step(source, state)

    found = recreated.refusal("c", frozenset(SIX), state, step.context, source)

    assert str(found).startswith(f"6 splits deleted and recreated, and not read: {NAMES}. What was")


@pytest.mark.parametrize("made", [_expired, _recreated])
def test_shards_that_are_lost(made: Any) -> None:
    shards = frozenset(("s", f"shard-{number}") for number in range(6))

    assert "shard-0, shard-1, shard-2 and 3 more" in str(made("s", shards))


def test_of_readers_with_as_many_splits_the_first_one_stands_in_for_an_absent_one() -> None:
    """Whatever the order is in which they have come."""
    step = Step(kafka_source("c"))
    step.context.set_readers({number: ReaderInfo(subtask_id=number) for number in (1, 0)})

    assert step.enumerator._stand_ins(SIX[:1], {}) == {SIX[0]: 0}
    assert step.enumerator._stand_ins(SIX[:1], {SIX[1]: 0}) == {SIX[0]: 1}


@pytest.mark.parametrize(
    ("adopted", "clusters", "held"),
    [
        ((True, False), ("c",), {"c"}),
        ((False, False), ("c",), set()),
        ((True, True), ("c", "d"), set()),
    ],
)
def test_a_reader_without_splits_that_has_adopted_an_assignment_has_seen_the_only_cluster(
    adopted: tuple[bool, ...], clusters: tuple[str, ...], held: set[str]
) -> None:
    readers: list[ReaderInfo[Any]] = [
        ReaderInfo(subtask_id=number, has_adopted=has) for number, has in enumerate(adopted)
    ]

    assert scopes_held(readers, kafka_source(*clusters)) == held
