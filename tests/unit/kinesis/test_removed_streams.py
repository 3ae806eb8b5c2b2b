"""A stream that is taken out of the source, and put back."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import AsyncCall, RebalancePolicy
from balanced_source.assigners import RoundRobinAssigner
from balanced_source.connectors.kinesis import (
    ListShards,
    OnShardLoss,
    Start,
    StartAt,
    discovered,
)
from balanced_source.errors import RefusedDiscoveryError
from balanced_source_operator.contract.half import Common
from balanced_source_operator.kinesis.half import KinesisOperatorHalf
from balanced_source_operator.kinesis.spec import KinesisSpec
from support.shards import STREAM, NoPace
from unit.kinesis.test_starts import Scene

OTHER = "other"
WEEK = 7 * 86_400.0
PARENT = "shardId-000000000000"
STARTS = [Start(), Start(at=StartAt.LATEST)]


def begun(start: Start, on_loss: OnShardLoss = OnShardLoss.FAIL, kept: float = WEEK) -> Scene:
    """A stream was read to its newest record, beside one without shards."""
    scene = Scene()
    scene.start(start, on_loss=on_loss, streams=(STREAM, OTHER))
    scene.source = scene.run.source = replace(scene.source, retention=kept)
    scene.run.start_coordinator()
    alone(scene)
    scene.read(3)
    scene.put()
    scene.read(6)
    return scene


def alone(scene: Scene) -> None:
    execute = scene.run.execute

    def answer(call: AsyncCall) -> Any:
        if isinstance(call, ListShards) and call.scope == OTHER:
            return discovered({}, created="9")
        return execute(call)

    scene.run.execute = answer


def change(scene: Scene, *streams: str, is_live: bool = True, **changes: Any) -> None:
    scene.source = replace(scene.source, streams=streams, **changes)
    if is_live:
        scene.run.source = scene.source
        scene.run.start_coordinator()
    else:
        scene.restart()
        alone(scene)


@pytest.mark.scenario("P14")
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("is_live", [True, False])
def test_a_stream_that_returns_is_read_on(start: Start, *, is_live: bool) -> None:
    """Also what was put, and split, while it was out of the source."""
    scene = begun(start)
    change(scene, OTHER, is_live=is_live)
    scene.read(5)
    scene.put()
    scene.split()
    scene.put()
    assert scene.read(20) == list(range(6)), "it is not read meanwhile"

    change(scene, STREAM, OTHER, is_live=is_live)
    scene.put()

    assert scene.read(60) == list(range(24))
    assert scene.problems == {}


def test_positions_of_a_removed_stream_are_not_kept_for_longer_than_asked_for() -> None:
    scene = begun(Start(), kept=100.0)
    change(scene, OTHER)
    scene.read(120)
    change(scene, STREAM, OTHER)

    assert scene.read(30) == sorted([*range(6), *range(6)]), "it is new"


def returned(on_loss: OnShardLoss) -> Scene:
    """A shard was split, and expired unread, while its stream was out of the source."""
    scene = begun(Start(), on_loss)
    change(scene, OTHER)
    scene.read(10)
    scene.put()
    scene.split()
    scene.put()
    scene.stream.expire(PARENT)
    change(scene, STREAM, OTHER)
    return scene


def test_a_shard_that_expired_while_its_stream_was_out_is_reported() -> None:
    scene = returned(OnShardLoss.FAIL)

    assert scene.read(30) == list(range(6))
    assert "does not retain the unread rest of 1 shard any more" in scene.problems[STREAM]

    change(scene, STREAM, OTHER, on_loss=OnShardLoss.CONTINUE)
    assert scene.read(60) == [*range(6), *range(12, 18)]
    assert scene.problems == {}


def test_a_shard_that_expired_while_its_stream_was_out_is_skipped_with_consent() -> None:
    """Its children do not wait until its position is dropped."""
    scene = returned(OnShardLoss.CONTINUE)

    assert scene.read(30) == [*range(6), *range(12, 18)]
    assert scene.problems == {}


def test_a_shard_that_was_read_to_its_end_before_its_stream_was_taken_out() -> None:
    """It expired since, and nothing of it is lost."""
    scene = begun(Start())
    scene.split()
    execute = scene.run.execute
    scene.run.execute = lambda _: discovered({}, created="9")
    scene.read(2)
    assert scene.run.offset.positions
    change(scene, OTHER)
    scene.run.execute = execute
    scene.read(10)
    scene.put()
    scene.stream.expire(PARENT)
    change(scene, STREAM, OTHER)

    assert scene.read(60) == list(range(12))
    assert scene.problems == {}


def test_a_shard_that_expired_unread_does_not_hold_back_its_children_with_consent() -> None:
    """Its position is kept, as one listing without it may be wrong."""
    scene = begun(Start(), OnShardLoss.CONTINUE)
    scene.put()
    scene.split()
    scene.put()
    scene.stream.expire(PARENT)

    assert scene.read(60) == [*range(6), *range(12, 18)]


def test_records_that_expired_while_a_stream_was_out_are_told() -> None:
    scene = begun(Start())
    scene.stream.retention = 60_000
    change(scene, OTHER)
    scene.read(10)
    scene.put()
    scene.stream.age(61_000)
    scene.put()
    change(scene, STREAM, OTHER, is_live=False, shared=NoPace())

    with pytest.raises(RefusedDiscoveryError, match="may have expired unread"):
        scene.read(30)


@pytest.mark.parametrize(("spec", "expected"), [({}, WEEK), ({"removedStreamRetention": "0"}, 0.0)])
def test_how_long_positions_are_kept(spec: dict[str, str], expected: float) -> None:
    known = KinesisSpec.model_validate({"streams": [STREAM], **spec})
    common = Common(assigner=RoundRobinAssigner(), rebalance_policy=RebalancePolicy())

    assert KinesisOperatorHalf().to_source(known, common, {}, field="source").retention == expected
