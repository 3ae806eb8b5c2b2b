"""Records that expired unread where no further record, or no new position, would show it."""

from collections import Counter
from dataclasses import replace

import pytest

from balanced_source.connectors.kinesis import OnShardLoss, ShardSplit
from balanced_source.errors import RefusedDiscoveryError
from balanced_source_adapters.kinesis.client import (
    BadPositionError,
    NotFoundError,
    Summary,
    ThrottledError,
)
from balanced_source_adapters.kinesis.fetches import Fetches
from balanced_source_adapters.kinesis.summaries import Summaries
from support.shards import STREAM
from unit.kinesis.test_expired import RETENTION, SHARD, Task

LOST = "may have expired unread"


def closed(task: Task, *, read: int, unread: int) -> Task:
    """Records of a shard were read, others were not, and then it was split."""
    task.put(read)
    task.fetch()
    task.put(unread)
    task.stream.split(SHARD)
    return task


@pytest.mark.scenario("P6")
@pytest.mark.parametrize("read", [0, 1])
def test_a_closed_shard_whose_unread_records_expired_ends_the_query(read: int) -> None:
    """No record follows that would show it: the end of the shard must not look like a read one."""
    task = closed(Task(), read=read, unread=2)
    task.stream.age(RETENTION + 1000)

    for _ in range(2):
        task.again()
        with pytest.raises(RefusedDiscoveryError, match=LOST):
            task.fetch()


@pytest.mark.parametrize("read", [0, 1])
def test_a_closed_shard_whose_unread_records_expired_is_a_gap_with_consent(read: int) -> None:
    task = closed(Task(OnShardLoss.CONTINUE), read=read, unread=2)
    task.stream.age(RETENTION + 1000)
    task.again()
    fetches = Fetches()
    task.reader._fetches = fetches

    records = task.reader.fetch()

    assert records.finished_splits() == {(STREAM, SHARD)}
    assert fetches.gaps == {(STREAM, SHARD): 1}


def test_a_closed_shard_that_was_read_up_to_its_newest_record_ends_without_a_word() -> None:
    """It had nothing more within the retention, by what the checkpoint says."""
    task = closed(Task(), read=1, unread=0)
    task.stream.age(RETENTION + 1000)
    task.split = replace(task.split, read_up_to=task.stream.now - RETENTION // 2)
    task.again()

    assert task.reader.fetch().finished_splits() == {(STREAM, SHARD)}


@pytest.mark.parametrize("records", [0, 1])
def test_a_machine_that_slept_for_longer_than_the_retention(records: int) -> None:
    """Its monotonic clock stood still: that the shard had nothing more is as old as the records."""
    task = Task()
    task.reader._clock = lambda: 1000.0
    task.put(records)
    task.fetch()
    task.fetch()
    task.put(1)
    task.stream.age(RETENTION + 1000)
    task.put(1)
    task.shared.forget(next(iter(task.shared._known)))
    task.again(has_iterators=True)
    task.reader._clock = lambda: 1000.0

    with pytest.raises(RefusedDiscoveryError, match=LOST):
        task.fetch()


def outrun(on_loss: OnShardLoss) -> Task:
    """A task that lags: what it has not read expires while it reads."""
    task = Task(on_loss)
    task.put(9)
    task.stream.age(RETENTION * 9 // 10)
    task.put(1)
    assert task.fetch() == [0, 1, 2]
    task.stream.age(RETENTION // 5)
    return task


@pytest.mark.scenario("P6")
def test_records_that_expire_just_before_a_slow_reader_end_the_query() -> None:
    """An iterator that goes on would skip them without a word."""
    task = outrun(OnShardLoss.FAIL)

    with pytest.raises(RefusedDiscoveryError, match="which was read last, is not retained"):
        task.fetch()


def test_records_that_expire_just_before_a_slow_reader_are_a_gap_with_consent() -> None:
    task = outrun(OnShardLoss.CONTINUE)

    assert task.fetch() == [0, 1, 2, 9]
    assert task.reader._fetches.gaps == {(STREAM, SHARD): 1}


def iterators_of(task: Task) -> Counter[str]:
    """Count the requests of a task from now on."""
    asked: Counter[str] = Counter()
    task.stream.before = lambda call: asked.update((call,))
    return asked


@pytest.mark.parametrize(
    ("retention", "positions", "records"), [(RETENTION, 3, 7), (100 * RETENTION, 1, 9)]
)
def test_a_reader_that_lags_asks_for_positions_only_near_the_retention(
    retention: int, positions: int, records: int
) -> None:
    """Each new position costs a request, and begins with a record that was read before."""
    task = Task()
    task.put(9)
    task.stream.age(RETENTION * 9 // 10)
    task.put(3)
    task.stream.retention = retention
    asked = iterators_of(task)

    for _ in range(3):
        task.fetch()

    assert task.found == list(range(records))
    assert asked["iterator"] == positions


def test_a_long_gap_near_the_retention_is_crossed() -> None:
    """The service answers without records in between: each answer leads a little further."""
    task = Task()
    task.put(1)
    task.fetch()
    task.put(1)
    task.stream.age(RETENTION * 9 // 10)
    task.put(1)
    records = task.stream.records

    def sparse(stream: str, shard: str, iterator: str, limit: int) -> object:
        name, _, rest = iterator.partition(" ")
        step, _, rest = rest.partition("/") if "/" in rest else ("0", "", rest)
        if int(step) < 5:
            batch = records(stream, shard, f"{name} {rest}", limit)
            return batch._replace(records=(), behind=1, iterator=f"{name} {int(step) + 1}/{rest}")
        return records(stream, shard, f"{name} {rest}", limit)

    task.stream.records = sparse  # type: ignore[method-assign,assignment]

    for _ in range(6):
        task.fetch()

    assert task.found == [0, 1, 2]


def test_a_throttled_shard_asks_neither_for_its_stream_nor_for_its_position_again() -> None:
    """An account has twenty descriptions of streams a second."""
    task, described = Task(), list[str]()
    task.put(2)
    summary = task.stream.summary

    def describe(stream: str) -> Summary:
        described.append(stream)
        return summary(stream)

    task.stream.summary = describe  # type: ignore[method-assign]
    asked: Counter[str] = Counter()

    def throttle(call: str) -> None:
        asked[call] += 1
        if call == "records" and asked["records"] <= 5:
            raise ThrottledError("too often", scope=STREAM)

    task.stream.before = throttle
    for _ in range(6):
        task.fetch()

    assert task.found == [0, 1]
    assert (asked["iterator"], len(described)) == (1, 1)


def refuse_positions(task: Task) -> None:
    """Let the service refuse the position of a task that begins anew."""
    task.put(2)
    task.fetch()
    task.again()
    ask = task.stream.iterator

    def iterator(split: ShardSplit) -> str:
        if split.offset:
            raise BadPositionError("no such record", scope=STREAM)
        return ask(split)

    task.stream.iterator = iterator  # type: ignore[method-assign]


def test_a_refused_position_of_a_stream_that_was_just_recreated() -> None:
    """What was known of the stream seconds ago is asked again before anything of it is read."""
    task = Task(OnShardLoss.CONTINUE)
    refuse_positions(task)
    summaries = Summaries(lambda: 0.0)
    summaries.of(STREAM, task.stream.summary)
    task.reader._summaries = summaries
    task.stream.recreate()
    task.put(2)

    with pytest.raises(NotFoundError, match="was deleted and created again"):
        task.reader._get_iterator(next(iter(task.reader._shards.values())))
    assert task.fetch() == [0, 1]


def test_records_before_a_refused_position_are_not_read_again() -> None:
    task = Task(OnShardLoss.CONTINUE)
    refuse_positions(task)
    task.put(1)

    assert task.fetch() == [0, 1, 2]


def test_a_start_between_two_seconds() -> None:
    """Clients of some versions send whole seconds."""
    task = Task()
    task.put(3)
    task.split = replace(task.split, time=task.stream.now - 5)
    ask = task.stream.iterator
    task.stream.iterator = lambda split: ask(  # type: ignore[method-assign]
        replace(split, time=(split.time or 0) // 1000 * 1000)
    )
    task.again()

    assert task.fetch() == [2]
