"""A stream that was deleted, and perhaps created again with other shards."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balanced_source.api import AsyncCall, CallFailure, Problem, discovery_problem
from balanced_source.connectors.kinesis import ListShards, OnShardLoss, Start
from balanced_source.errors import TransientDiscoveryError
from balanced_source_adapters.kinesis import summaries
from balanced_source_adapters.kinesis.client import NotFoundError
from support.shards import STREAM, numbers
from unit.kinesis.test_starts import Scene


@pytest.fixture(autouse=True, scope="module")
def _no_memory() -> Iterator[None]:
    """No time passes here, and streams are not created again within seconds."""
    with patch.object(summaries, "LIFETIME", 0.0):
        yield


SPLITS = st.lists(st.integers(0, 5), max_size=4)


def put_and_split(scene: Scene, splits: list[int]) -> None:
    scene.put()
    for number in splits:
        opened = scene.stream.open()
        scene.stream.split(opened[number % len(opened)])
        scene.put()


@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    former=SPLITS, new=SPLITS, shards=st.integers(1, 3), read=st.integers(0, 40), down=st.booleans()
)
def test_all_of_a_new_stream_is_read_in_order_with_consent(
    former: list[int], new: list[int], shards: int, read: int, down: bool
) -> None:
    """Ids of its shards are those of other shards of the former stream.

    A former shard that was begun says nothing of the ancestors of its namesake.
    """
    scene = Scene()
    scene.start(Start(), on_loss=OnShardLoss.CONTINUE)
    put_and_split(scene, former)
    scene.read(read)
    before = len(scene.stream.sent)
    scene.stream.recreate(shards)
    put_and_split(scene, new)
    if down:
        scene.restart()

    scene.read(120)

    fresh = [record for record in scene.found if int(record.data) >= before]
    assert sorted(int(record.data) for record in fresh) == list(
        range(before, len(scene.stream.sent))
    )
    assert all(found == sorted(found) for found in numbers(fresh).values())


def gone(scene: Scene) -> None:
    """The stream is deleted: the service does not know its name."""
    error = NotFoundError("no such stream", scope=STREAM, is_hopeless=True)
    execute = scene.stream.execute
    scene.run.execute = lambda call: (
        CallFailure(error) if isinstance(call, ListShards) else execute(call)
    )

    def fail(_: str) -> None:
        raise error

    scene.stream.before = fail


def problem(scene: Scene) -> Problem:
    ((scope, error),) = scene.run.coordinator.enumerator.problems().items()
    return discovery_problem(error, scope=scope)


@pytest.mark.parametrize("on_loss", list(OnShardLoss))
def test_a_stream_that_is_deleted_is_told_and_ends_a_query_without_consent(
    on_loss: OnShardLoss,
) -> None:
    scene = Scene()
    scene.put()
    scene.start(Start(), on_loss=on_loss)
    scene.read(6)

    gone(scene)
    scene.read(20)

    found = problem(scene)
    assert found.message.startswith(f"stream {STREAM} was deleted while it was read")
    assert found.is_fatal is (on_loss is OnShardLoss.FAIL)


def test_one_answer_without_the_stream_says_nothing() -> None:
    scene = Scene()
    scene.put()
    scene.start(Start())
    scene.read(6)
    execute = scene.run.execute

    gone(scene)
    scene.read(1)
    scene.run.execute, scene.stream.before = execute, lambda _: None
    scene.put()

    assert scene.read(20) == list(range(12))
    assert scene.problems == {}


def test_a_stream_that_never_existed_was_not_deleted() -> None:
    scene = Scene()
    scene.start(Start())
    gone(scene)

    scene.run.start_coordinator()
    scene.read(20)

    assert problem(scene).message == "no such stream"


@pytest.mark.parametrize("shards", [1, 3])
def test_a_recreated_stream_ends_a_query_without_consent(shards: int) -> None:
    scene = Scene()
    put_and_split(scene, [])
    scene.start(Start())
    scene.read(6)

    scene.stream.recreate(shards)
    scene.read(20)

    assert problem(scene).is_fatal
    assert "recreated" in problem(scene).message


def test_a_shard_that_expired_unread_ends_a_query_without_consent() -> None:
    scene = Scene()
    scene.start(Start())
    scene.read(3)
    scene.put()
    scene.split()
    scene.stream.expire("shardId-000000000000")
    scene.stream.before = _nothing

    scene.read(20)

    assert problem(scene).is_fatal
    assert "does not retain the unread rest of 1 shard any more" in problem(scene).message


def _nothing(_: str) -> None:
    raise TransientDiscoveryError("no answer")


ABSENT = NotFoundError("no such stream", scope=STREAM, is_hopeless=True)
SILENT = TransientDiscoveryError("no answer")


@pytest.mark.parametrize(
    "before",
    [
        [SILENT] * 5,
        [SILENT, ABSENT],
        [ABSENT, ABSENT, SILENT],
        [ABSENT, ABSENT, None, SILENT, SILENT],
    ],
    ids=["silence", "silence before", "silence between", "the stream between"],
)
def test_answers_without_the_stream_count_only_in_a_row(before: list[Exception | None]) -> None:
    scene = Scene()
    scene.put()
    scene.start(Start())
    scene.read(6)
    execute = scene.run.execute
    answers = [*before, ABSENT]

    def fails(call: AsyncCall) -> object:
        error = answers.pop(0) if isinstance(call, ListShards) else None
        return execute(call) if error is None else CallFailure(error)

    scene.run.execute = fails
    while answers:
        scene.read(1)

    found = [str(error) for error in scene.run.coordinator.enumerator.problems().values()]
    assert found == ["no such stream"]
