"""When a shard that is read to its end leaves the state."""

from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.discovery import Discovered, DiscoveryState
from balanced_source.connectors.kinesis import Shard, ShardSplit
from balanced_source.connectors.kinesis.contract import DiscoveredShards
from balanced_source.coordinator import CoordinatorState, HostState
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.documents.report import HostReport
from balanced_source.errors import ContractViolationError
from support.shards import STREAM, ReadableSource, StreamInMemory

PARENT: SplitId = (STREAM, "shardId-000000000000")
CHILD: SplitId = (STREAM, "shardId-000000000001")
SHARDS = {PARENT: Shard(is_open=False), CHILD: Shard((PARENT,))}


@pytest.mark.parametrize(
    ("reported", "left"), [({PARENT}, {PARENT, CHILD}), ({PARENT, CHILD}, {CHILD})]
)
def test_a_finished_shard_is_let_go_of_when_a_checkpoint_holds_its_child(
    reported: set[SplitId], left: set[SplitId]
) -> None:
    """Without the child in a Spark checkpoint, a lost state would let the parent be read again."""
    held = {s: ShardSplit(stream=STREAM, shard=str(s[1])) for s in SHARDS}
    report = HostReport(incarnation=1, positions=dict.fromkeys(reported, 5))
    context: CoordinatorContext[Any] = CoordinatorContext(
        CoordinatorState(
            hosts={"0": HostState(report=report)}, owners=dict.fromkeys(held, 0), splits=held
        )
    )
    source = ReadableSource(streams=(STREAM,), stream=StreamInMemory())
    state = DiscoveryState(finished=frozenset({PARENT}), discovered=frozenset({STREAM}))
    enumerator: Any = source.restore_enumerator(context, state)
    enumerator.start()

    enumerator.handle_discovery(
        context.turn.effects[-1].call,  # type: ignore[union-attr]
        DiscoveredShards(split_ids=frozenset(SHARDS), shards=SHARDS),
    )

    assert context.current_assignments().keys() == left


def test_a_read_shard_without_an_owner_stays_read() -> None:
    """It was given back at its end, and must not be given to another reader."""
    parent, child = (ShardSplit(stream=STREAM, shard=str(s[1])) for s in SHARDS)
    report = HostReport(incarnation=1, positions={CHILD: 5, PARENT: 9})
    context: CoordinatorContext[Any] = CoordinatorContext(
        CoordinatorState(
            hosts={"0": HostState(report=report)}, owners={CHILD: 0}, splits={CHILD: child}
        )
    )
    source = ReadableSource(streams=(STREAM,), stream=StreamInMemory())
    state = DiscoveryState(
        unassigned={PARENT: parent},
        finished=frozenset({PARENT}),
        discovered=frozenset({STREAM}),
    )
    enumerator: Any = source.restore_enumerator(context, state)
    enumerator.start()

    enumerator.handle_discovery(
        context.turn.effects[-1].call,  # type: ignore[union-attr]
        DiscoveredShards(split_ids=frozenset(SHARDS), shards=SHARDS),
    )

    assert enumerator.snapshot_state().finished == {PARENT}


def test_a_listing_of_something_else_is_a_mistake() -> None:
    source = ReadableSource(streams=(STREAM,), stream=StreamInMemory())
    context: CoordinatorContext[Any] = CoordinatorContext(CoordinatorState())
    enumerator: Any = source.create_enumerator(context)
    enumerator.start()
    call = context.turn.effects[-1].call  # type: ignore[union-attr]

    with pytest.raises(ContractViolationError, match="a listing of shards returned Discovered"):
        enumerator.handle_discovery(call, Discovered(split_ids=frozenset()))


def test_nothing_is_kept_of_a_shard_that_was_read_since_the_state_was_stored() -> None:
    """A checkpoint that holds its child and not the shard proves that."""
    other: SplitId = (STREAM, "shardId-000000000002")
    parent, child, apart = (ShardSplit(stream=STREAM, shard=str(s[1])) for s in (*SHARDS, other))
    report = HostReport(incarnation=1, positions={CHILD: 5})
    context: CoordinatorContext[Any] = CoordinatorContext(
        CoordinatorState(
            hosts={"0": HostState(report=report)}, owners={CHILD: 0}, splits={CHILD: child}
        )
    )
    source = ReadableSource(streams=(STREAM,), stream=StreamInMemory())
    state = DiscoveryState(
        unassigned={PARENT: parent, other: apart},
        preferred={PARENT: 1, other: 1},
        discovered=frozenset({STREAM}),
    )
    enumerator: Any = source.restore_enumerator(context, state)
    enumerator.start()
    shards = {**SHARDS, other: Shard()}

    enumerator.handle_discovery(
        context.turn.effects[-1].call,  # type: ignore[union-attr]
        DiscoveredShards(split_ids=frozenset(shards), shards=shards),
    )

    after = enumerator.snapshot_state()
    assert after.unassigned == {other: apart}
    assert after.preferred == {other: 1}
