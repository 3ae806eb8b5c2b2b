"""Shards that are found after the first discovery: where they begin, and what may be missing."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import AsyncCall, CallFailure, SplitId
from balanced_source.connectors.kinesis import (
    Lineage,
    ListShards,
    OnShardLoss,
    Shard,
    Start,
    StartAt,
    discovered,
)
from balanced_source.connectors.kinesis.later import Later, begun_later
from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from support.shards import FIRST_NUMBER, STREAM
from unit.kinesis.test_starts import KEYS, Scene

RETENTION = 60_000
LOST = "may have expired unread"
PARENT = "shardId-000000000000"


def read_to_its_end(on_loss: OnShardLoss, start: Start | None = None) -> Scene:
    """A shard was read to its end, and the query stopped before its children were listed."""
    scene = Scene()
    scene.stream.retention = RETENTION
    scene.start(start or Start(), on_loss=on_loss)
    scene.put()
    scene.read(4)
    scene.split()

    def silent(_: AsyncCall) -> CallFailure:
        return CallFailure(TransientDiscoveryError("no answer", scope=STREAM))

    scene.run.execute = silent
    scene.read(6)
    scene.run.close()
    return scene


def expire(scene: Scene, millis: int = RETENTION + 1000) -> None:
    """Time passes, and closed shards are not listed any more."""
    closed = [name for name, shard in scene.stream.shards.items() if not shard.is_open]
    scene.stream.age(millis)
    for name in closed:
        scene.stream.expire(name)


@pytest.mark.scenario("P5")
@pytest.mark.parametrize("splits", [0, 1])
@pytest.mark.parametrize("has_state", [True, False])
def test_children_that_waited_for_longer_than_the_retention_end_the_query(
    splits: int, *, has_state: bool
) -> None:
    """Their first records, or shards between them and the one that was read, expired unread."""
    scene = read_to_its_end(OnShardLoss.FAIL)
    scene.put()
    for name in scene.stream.open() * splits:
        scene.stream.split(name)
    expire(scene)
    scene.put()
    scene.run.state = scene.run.state if has_state else None
    scene.restart()

    with pytest.raises(RefusedDiscoveryError, match=rf"exists since .* {LOST}"):
        scene.read(20)


@pytest.mark.parametrize("splits", [0, 1])
def test_children_that_waited_for_longer_than_the_retention_are_gaps_with_consent(
    splits: int, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = read_to_its_end(OnShardLoss.CONTINUE)
    scene.put()
    for name in scene.stream.open() * splits:
        scene.stream.split(name)
    expire(scene)
    scene.put()
    scene.restart()

    assert scene.read(60) == [*range(6), *range(12, 18)]
    assert scene.problems == {}
    late = {record.shard for record in scene.found if int(record.data) > len(KEYS)}
    assert capsys.readouterr().out.count(LOST) == len(late), "once for each shard with records"


def test_children_of_a_listed_shard_have_lost_nothing() -> None:
    """It was closed within the retention, and so its children are not older."""
    scene = read_to_its_end(OnShardLoss.FAIL)
    scene.put()
    scene.stream.age(RETENTION - 1000)
    scene.put()
    scene.restart()

    assert scene.read(60) == list(range(18))


@pytest.mark.parametrize("has_state", [True, False])
def test_a_shard_that_expired_after_its_end_was_read_is_no_loss(*, has_state: bool) -> None:
    """A query without an operator knows its end from the Spark checkpoint alone."""
    scene = read_to_its_end(OnShardLoss.FAIL)
    scene.stream.retention = None
    scene.stream.expire(PARENT)
    scene.run.state = scene.run.state if has_state else None
    scene.put()
    scene.restart()

    problems: list[Any] = []
    for _ in range(30):
        scene.read(1)
        problems.append(scene.problems)
    assert not any(problems)
    assert scene.read(1) == list(range(12))


def test_shards_of_the_first_discovery_begin_where_the_user_says() -> None:
    """Their parents expired before the source was there."""
    scene = Scene()
    scene.stream.retention = RETENTION
    scene.put()
    scene.split()
    expire(scene)
    scene.put()
    scene.start(Start())

    assert scene.read(30) == list(range(6, 12))


def test_a_recreated_stream_is_read_from_its_oldest_record_without_a_gap(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing of the new stream was to be read before."""
    scene = Scene()
    scene.stream.retention = RETENTION
    scene.start(Start(), on_loss=OnShardLoss.CONTINUE)
    scene.put()
    scene.read(10)
    scene.run.close()
    scene.stream.recreate(3)
    for name in scene.stream.open():
        scene.stream.split(name)
    expire(scene)
    scene.put()
    scene.restart()

    assert scene.read(60) == list(range(12))
    assert LOST not in capsys.readouterr().out


@pytest.mark.scenario("P10")
@pytest.mark.parametrize("before", [Start(), Start(at=StartAt.AT_TIMESTAMP, time=1_000_000)])
@pytest.mark.parametrize("has_state", [True, False])
def test_another_start_time_is_not_for_children_of_shards_that_were_read(
    before: Start, *, has_state: bool
) -> None:
    """What they have is unread, whatever new streams start with."""
    scene = read_to_its_end(OnShardLoss.FAIL, before)
    scene.put()
    scene.stream.now += 1000
    after = Start(at=StartAt.AT_TIMESTAMP, time=scene.stream.now)
    scene.put()
    scene.run.state = scene.run.state if has_state else None
    scene.restart(replace(scene.source, start=after))

    assert scene.read(60) == list(range(18))


IDS: tuple[SplitId, ...] = tuple((STREAM, name) for name in "abcd")
A, B, C, D = IDS
SHARDS: dict[SplitId, Shard] = {
    A: Shard(is_open=False),
    B: Shard(is_open=False),
    C: Shard((A, B)),
    D: Shard((A,)),
}


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, [None, None]),
        ({A: 5, B: 7}, [5, 5]),
        ({A: 5, B: None}, [None, 5]),
        ({B: 7}, [7, 7]),
        ({A: None, B: None}, [None, None]),
    ],
)
def test_a_child_begins_where_its_parents_were_started(
    known: dict[Any, int | None], expected: list[int | None]
) -> None:
    """Without one of them, where other shards of the stream were."""
    attributes = {s: {} if time is None else {"time": time} for s, time in known.items()}

    found = begun_later((C, D), Lineage(shards=SHARDS), attributes)

    times = {split_id: later.time for later, group in found.items() for split_id in group}
    assert [times[C], times[D]] == expected


def test_a_child_of_a_merge_is_overdue_if_one_parent_is_not_listed() -> None:
    lineage = Lineage(shards={B: SHARDS[B], C: SHARDS[C], D: SHARDS[D]})

    assert begun_later((C, D), lineage, {B: {}}) == {Later(is_overdue=True): [C, D]}
    assert begun_later((C, D), lineage, {}) == {Later(): [C, D]}, "nothing was begun"
    assert begun_later((C,), Lineage(shards=SHARDS), {B: {}}) == {Later(): [C]}


@pytest.mark.scenario("P10")
def test_sequence_numbers_of_a_shard_and_of_its_ancestor_are_refused() -> None:
    """Either all of the descendant is read after the ancestor, or the ancestor is not read."""
    scene = Scene()
    scene.put()
    scene.split()
    scene.put()
    child = scene.stream.open()[0]
    scene.stream.split(child)
    scene.put()
    grandchild = scene.stream.open()[0]
    sequences = tuple((STREAM, name, FIRST_NUMBER) for name in (PARENT, grandchild))
    scene.start(Start(at=StartAt.SEQUENCE_NUMBERS, sequences=sequences))

    assert scene.read(10) == []
    assert (
        f"has the shard {grandchild} and its ancestor {PARENT}, and starting sequence numbers are"
        f" given of both" in scene.problems[STREAM]
    )


def blind(scene: Scene, times: int) -> None:
    """Let so many listings show no shard."""
    execute, left = scene.run.execute, [times]

    def answer(call: AsyncCall) -> Any:
        if isinstance(call, ListShards) and left[0]:
            left[0] -= 1
            return discovered({}, created=scene.stream.created)
        return execute(call)

    scene.run.execute = answer


def test_one_listing_without_a_shard_says_nothing() -> None:
    """A query without an operator would end."""
    scene = Scene()
    scene.put()
    scene.start(Start())
    scene.read(6)
    blind(scene, 1)

    for _ in range(20):
        scene.read(1)
        assert scene.problems == {}
    scene.put()
    assert scene.read(10) == list(range(2 * len(KEYS)))


def test_a_shard_that_is_missing_again_and_again_stays_told() -> None:
    scene = Scene()
    scene.put()
    scene.start(Start())
    scene.read(6)
    blind(scene, 100)
    scene.read(10)

    for _ in range(30):
        scene.read(1)
        assert "does not retain the unread rest of 1 shard any more" in scene.problems[STREAM]
