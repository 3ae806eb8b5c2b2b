"""Records that expire before a shard is read for the first time, or between two reads."""

from dataclasses import replace

import pytest

from balanced_source.api import SplitsAddition
from balanced_source.connectors.kinesis import OnShardLoss, ShardSplit, Start, StartAt, split_of
from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source_adapters.kinesis.client import Record
from balanced_source_adapters.kinesis.reader import ShardReader
from support.shards import STREAM, NoPace, StreamInMemory
from unit.kinesis.test_starts import Scene

SHARD = "shardId-000000000000"
RETENTION = 60_000


class Task:
    """A reader of the first shard, which was found just now."""

    def __init__(self, on_loss: OnShardLoss = OnShardLoss.FAIL) -> None:
        self.stream, self.shared, self.on_loss = StreamInMemory(), NoPace(), on_loss
        self.stream.retention = RETENTION
        self.split = ShardSplit(stream=STREAM, shard=SHARD, created="1", found=self.stream.now)
        self.found: list[int] = []
        self.again()

    def again(self, *, has_iterators: bool = False) -> None:
        """A task begins, where the former one has stopped."""
        if not has_iterators:
            self.shared = NoPace()
        self.reader = ShardReader(
            self.stream,
            on_loss=self.on_loss,
            shared=self.shared,
            clock=lambda: self.stream.now / 1000,
        )
        self.reader.handle_splits_changes(SplitsAddition((self.split,)))

    def put(self, count: int) -> None:
        for _ in range(count):
            self.stream.put("key")

    def fetch(self) -> list[int]:
        records = self.reader.fetch()
        while records.next_split() is not None:
            while (record := records.next_record_from_split()) is not None:
                self.found.append(int(record.data))
                self.split = self.split.at(record.sequence + 1)
        return self.found


FIRST = (
    rf"stream {STREAM}, shard {SHARD}: it exists since 1970-01-01T00:16:40Z or longer, and nothing"
    " of it was read within the retention .* Set onDataLoss to Continue"
)


@pytest.mark.scenario("P6")
def test_records_that_expired_before_the_first_read_end_the_query() -> None:
    """The error names stream, shard and the time."""
    task = Task()
    task.put(2)
    task.stream.age(RETENTION + 1000)
    task.put(1)

    for _ in range(2):
        with pytest.raises(RefusedDiscoveryError, match=FIRST):
            task.fetch()
        task.again()


@pytest.mark.scenario("P6")
def test_records_that_expired_before_the_first_read_are_skipped_with_consent() -> None:
    """Reading begins at the oldest record."""
    task = Task(OnShardLoss.CONTINUE)
    task.put(2)
    task.stream.age(RETENTION + 1000)
    task.put(1)

    assert task.fetch() == [2]
    task.put(1)
    assert task.fetch() == [2, 3]


def test_a_shard_that_is_read_within_the_retention_has_lost_nothing() -> None:
    task = Task()
    task.put(1)
    task.stream.age(RETENTION - 100)
    task.put(1)

    assert task.fetch() == [0, 1]


def test_a_shard_without_records_has_lost_none() -> None:
    """Until a record comes; the iterator is of no use to the next task, which could not tell."""
    task = Task()
    task.stream.age(RETENTION + 1000)

    assert task.fetch() == []
    task.again(has_iterators=True)
    task.put(1)
    with pytest.raises(RefusedDiscoveryError, match=FIRST):
        task.fetch()


def idle(task: Task, millis: int) -> None:
    """Tasks of a process read on, and no record comes; then a request fails."""
    for _ in range(millis // 10_000):
        task.stream.age(10_000)
        task.again(has_iterators=True)
        task.fetch()

    def fail(_: str) -> None:
        raise TransientDiscoveryError("no answer")

    task.again(has_iterators=True)
    task.stream.before = fail
    task.fetch()
    task.stream.before = lambda _: None
    task.shared.forget(next(iter(task.shared._known)))


@pytest.mark.parametrize("records", [0, 1])
@pytest.mark.parametrize("how", ["the same task", "another task"])
def test_a_shard_that_was_idle_while_it_was_read_has_lost_nothing(how: str, records: int) -> None:
    """A new position is asked for, and all that came before was read."""
    task = Task()
    task.put(records)
    task.fetch()
    idle(task, 3 * RETENTION)
    if how == "another task":
        task.again(has_iterators=True)
    task.put(1)

    assert task.fetch() == list(range(records + 1))


def test_a_position_that_the_service_has_forgotten_while_the_shard_was_idle() -> None:
    task = Task()
    task.put(1)
    task.fetch()
    idle(task, 3 * RETENTION)
    task.put(1)
    task.stream.refuses_positions = True
    task.again(has_iterators=True)

    assert task.fetch() == [0, 1]


@pytest.mark.parametrize("records", [0, 1])
def test_a_shard_that_was_not_read_for_longer_than_the_retention(records: int) -> None:
    """It was idle before that, in the same process."""
    task = Task()
    task.put(records)
    task.fetch()
    idle(task, 3 * RETENTION)
    task.put(1)
    task.stream.age(RETENTION + 1000)
    task.put(1)
    task.again(has_iterators=True)

    with pytest.raises(RefusedDiscoveryError, match="may have expired unread"):
        task.fetch()


@pytest.mark.parametrize("known", ["found", "retention"])
def test_what_is_unknown_is_not_compared(known: str) -> None:
    """A state of an older version does not say when a shard was found."""
    task = Task()
    if known == "found":
        task.split = replace(task.split, found=None)
    task.put(1)
    task.stream.age(RETENTION + 1000)
    task.put(1)
    if known == "retention":
        task.stream.retention = None
    task.again()

    assert task.fetch() == [1]


@pytest.mark.scenario("P6")
@pytest.mark.parametrize("on_loss", list(OnShardLoss))
def test_records_that_expired_between_two_reads(on_loss: OnShardLoss) -> None:
    """The record that was read last does not come again."""
    task = Task(on_loss)
    task.put(1)
    task.fetch()
    task.put(1)
    task.stream.age(RETENTION + 1000)
    task.put(1)
    task.again()

    if on_loss is OnShardLoss.CONTINUE:
        assert task.fetch() == [0, 2]
    else:
        with pytest.raises(RefusedDiscoveryError, match=r"the record \d+, which was read last"):
            task.fetch()


def test_a_split_keeps_when_it_was_found() -> None:
    split = ShardSplit(stream=STREAM, shard=SHARD, found=5)

    assert split_of(split.split_id, 0, split.attributes()) == split
    assert "found" not in ShardSplit(stream=STREAM, shard=SHARD).attributes()


@pytest.mark.parametrize("at", [StartAt.LATEST, StartAt.TRIM_HORIZON])
def test_a_query_that_was_down_for_longer_than_the_retention(at: StartAt) -> None:
    """It was stopped before its first record."""
    scene = Scene()
    scene.stream.retention = RETENTION
    scene.start(Start(at=at))
    scene.read(2)
    scene.put()
    scene.run.close()
    scene.stream.age(RETENTION + 1000)
    scene.put()
    scene.restart()

    with pytest.raises(RefusedDiscoveryError, match="nothing of it was read within"):
        scene.read(5)


def test_a_child_that_waited_for_longer_than_the_retention() -> None:
    scene = Scene()
    scene.stream.retention = RETENTION
    scene.start(Start(), on_loss=OnShardLoss.CONTINUE)
    scene.put()
    scene.read(3)
    scene.split()
    scene.read(4)
    scene.put()
    scene.stream.age(RETENTION + 1000)
    scene.put()

    scene.read(20)

    assert [_number(record) for record in scene.found][:6] == list(range(6))
    assert sorted(_number(record) for record in scene.found)[6:] == list(range(12, 18))


def _number(record: Record) -> int:
    return int(record.data)
