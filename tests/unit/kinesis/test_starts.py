"""Where reading starts, how split shards are read, and what is said when shards are gone."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from balanced_source.connectors.kinesis import Lineage, OnShardLoss, Shard, Start, StartAt
from balanced_source.testing.local_run import LocalRun
from balanced_source_adapters.kinesis.client import Record
from support.shards import STREAM, ReadableSource, StreamInMemory

KEYS = [f"key-{number}" for number in range(6)]


@dataclass
class Scene:
    """A stream that was split when it had some records, and a source that may start to read it."""

    stream: StreamInMemory = field(default_factory=StreamInMemory)
    found: list[Record] = field(default_factory=list)
    now: float = 0.0

    def start(
        self,
        start: Start,
        *,
        on_loss: OnShardLoss = OnShardLoss.FAIL,
        streams: tuple[str, ...] = (STREAM,),
    ) -> None:
        self.source = ReadableSource(
            streams=streams,
            stream=self.stream,
            start=start,
            discovery_interval=1.0,
            on_loss=on_loss,
        )
        self.run = self._run()
        self.run.start()

    def restart(self, source: ReadableSource | None = None) -> None:
        """Start the query again, from its newest checkpoint and state."""
        self.source = source or self.source
        former, self.run = self.run, self._run()
        former.close()
        self.run.state, self.run.offset = former.state, former.offset
        self.run.incarnation = former.incarnation
        self.run.start()

    def _run(self) -> LocalRun[Record]:
        source = self.source
        collect = lambda _subtask, record, _time: self.found.append(record)  # noqa: E731
        return LocalRun(
            source, source.create_reader, self.stream.execute, collect, clock=lambda: self.now
        )

    def put(self) -> None:
        for key in KEYS:
            self.stream.put(key)

    def split(self) -> None:
        self.stream.split(self.stream.open()[0])

    def read(self, steps: int = 30) -> list[int]:
        for _ in range(steps):
            self.now += 1.0
            self.run.step(limit=8)
        return sorted(int(record.data) for record in self.found)

    @property
    def problems(self) -> dict[str, Any]:
        return {
            scope: str(error) for scope, error in self.run.coordinator.enumerator.problems().items()
        }


@pytest.fixture
def scene() -> Scene:
    """Records 0 to 5 are in the first shard, 6 to 11 in its children."""
    made = Scene()
    made.put()
    made.split()
    made.put()
    return made


@pytest.mark.scenario("P12")
def test_shards_without_records_hold_nothing_up() -> None:
    """One of four shards has records; each is split, and the children of empty ones are read."""
    scene = Scene(stream=StreamInMemory(shards=4))
    scene.stream.put("key")
    scene.start(Start())
    assert scene.read() == [0]

    for shard in scene.stream.open():
        scene.stream.split(shard)
    scene.put()

    assert scene.read() == list(range(1 + len(KEYS)))


@pytest.mark.scenario("P10")
def test_from_the_oldest_record_everything_is_read(scene: Scene) -> None:
    """Closed shards first, then their children."""
    scene.start(Start())

    assert scene.read() == list(range(12))


@pytest.mark.scenario("P10")
def test_from_now_on_closed_shards_are_not_read(scene: Scene) -> None:
    """LATEST reads open shards from the time of the first discovery, and later children whole."""
    scene.start(Start(at=StartAt.LATEST))
    assert scene.read(5) == [11], (
        "the clock of the server counts in seconds: the record of this moment comes along"
    )
    scene.put()
    scene.split()
    scene.put()

    assert scene.read() == list(range(11, 24))
    assert all(record.shard != "shardId-000000000000" for record in scene.found)


@pytest.mark.scenario("P10")
def test_from_a_time_on_no_child_is_read_from_before_it(scene: Scene) -> None:
    """AT_TIMESTAMP holds for children, too."""
    time = (
        int(
            next(
                r.arrived for s in scene.stream.shards.values() for r in s.records if r.data == b"8"
            )
        )
        // 1000
    )
    scene.start(Start(at=StartAt.AT_TIMESTAMP, time=time))

    assert scene.read() == [8, 9, 10, 11]


@pytest.mark.scenario("P10")
def test_from_a_sequence_number_on_ancestors_are_not_read(scene: Scene) -> None:
    """Ancestors of the named shards are left out; other shards are read whole."""
    (low, high) = scene.stream.open()
    record = scene.stream.shards[high].records[1]
    scene.start(Start(at=StartAt.SEQUENCE_NUMBERS, sequences=((STREAM, high, record.sequence),)))

    found = scene.read()

    before = {int(r.data) for r in scene.stream.shards[high].records[:1]}
    assert found == sorted(set(range(6, 12)) - before)
    assert {r.shard for r in scene.found} == {low, high}


def test_each_shard_starts_at_its_own_sequence_number(scene: Scene) -> None:
    shards = scene.stream.shards
    firsts = {name: shards[name].records[-1] for name in scene.stream.open()}
    scene.start(
        Start(
            at=StartAt.SEQUENCE_NUMBERS,
            sequences=tuple((STREAM, name, record.sequence) for name, record in firsts.items()),
        )
    )

    assert scene.read() == sorted(int(record.data) for record in firsts.values())


def test_a_sequence_number_of_a_shard_that_does_not_exist_is_reported(scene: Scene) -> None:
    """Reading the other shards from their oldest record is not what was asked for."""
    scene.start(Start(at=StartAt.SEQUENCE_NUMBERS, sequences=((STREAM, "shardId-7", 1),)))

    assert scene.read() == []
    assert "does not have the shards shardId-7, whose" in scene.problems[STREAM]


def test_parents_that_are_not_retained_any_more_hold_nothing_up(scene: Scene) -> None:
    scene.stream.expire("shardId-000000000000")
    scene.start(Start())

    assert scene.read() == list(range(6, 12))
    assert scene.problems == {}


def unread_and_expired(on_loss: OnShardLoss) -> Scene:
    scene = Scene()
    scene.start(Start(), on_loss=on_loss)
    scene.read(4)

    def silent(_: str) -> None:
        raise TimeoutError

    scene.put()
    scene.split()
    scene.put()
    scene.stream.expire("shardId-000000000000")
    return scene


@pytest.mark.scenario("P5")
def test_a_shard_that_expired_unread_holds_back_its_children_and_is_reported() -> None:
    """With `onDataLoss: Fail` the problem names the stream and the shards."""
    scene = unread_and_expired(OnShardLoss.FAIL)

    assert scene.read() == []
    assert (
        "does not retain the unread rest of 1 shard any more: shardId-0" in scene.problems[STREAM]
    )
    assert "Set onDataLoss to Continue" in scene.problems[STREAM]


@pytest.mark.scenario("P5")
def test_a_shard_that_expired_unread_is_skipped_if_the_user_accepts_that() -> None:
    """With `Continue` its children are read."""
    scene = unread_and_expired(OnShardLoss.CONTINUE)

    assert scene.read() == list(range(6, 12))
    assert scene.problems == {}


@pytest.mark.scenario("P7")
@pytest.mark.parametrize(
    ("on_loss", "expected"), [(OnShardLoss.FAIL, 6), (OnShardLoss.CONTINUE, 12)]
)
def test_a_stream_that_was_created_again(on_loss: OnShardLoss, expected: int) -> None:
    """With `Fail` nothing of the new stream is read, with `Continue` all of it."""
    scene = Scene()
    scene.put()
    scene.start(Start(), on_loss=on_loss)
    assert scene.read(6) == list(range(6))
    former = dict(scene.stream.shards)
    scene.stream.shards = {
        name: type(shard)(shard.low, shard.high) for name, shard in former.items()
    }
    scene.stream.created = "2"
    scene.put()

    assert len(scene.read()) == expected
    assert ("deleted and recreated" in scene.problems.get(STREAM, "")) == (
        on_loss is OnShardLoss.FAIL
    )


@pytest.mark.scenario("P7")
@pytest.mark.parametrize(
    ("on_loss", "expected"), [(OnShardLoss.FAIL, 12), (OnShardLoss.CONTINUE, 18)]
)
def test_a_stream_that_was_split_and_then_created_again(
    on_loss: OnShardLoss, expected: int
) -> None:
    """Its first shard has an id that no one holds any more; the policy holds for it, too."""
    scene = Scene()
    scene.put()
    scene.start(Start(), on_loss=on_loss)
    scene.split()
    scene.put()
    assert scene.read(60) == list(range(12))
    (name, shard), *_ = scene.stream.shards.items()
    scene.stream.shards = {name: type(shard)(shard.low, shard.high)}
    scene.stream.created = "2"
    scene.put()

    assert len(scene.read(60)) == expected
    found = scene.problems.get(STREAM, "")
    assert ("was deleted and recreated, and is not read" in found) == (on_loss is OnShardLoss.FAIL)


@pytest.mark.scenario("P2")
def test_a_child_of_a_merge_waits_for_both_parents() -> None:
    """It may be read when both are finished."""
    shards = {
        ("s", "a"): Shard(is_open=False),
        ("s", "b"): Shard(is_open=False),
        ("s", "c"): Shard((("s", "a"), ("s", "b"))),
    }
    held = frozenset({("s", "a"), ("s", "b")})

    assert Lineage(shards=shards).readable() == held
    assert Lineage(shards=shards, held=held, finished={("s", "a")}).readable() == held
    assert Lineage(shards=shards, held=held, finished=held).readable() == shards.keys()


@pytest.mark.scenario("P4")
def test_a_finished_shard_is_remembered_until_a_child_was_begun() -> None:
    """Then it is let go of."""
    shards = {
        ("s", "a"): Shard(is_open=False),
        ("s", "b"): Shard((("s", "a"),)),
        ("s", "c"): Shard((("s", "a"),)),
    }
    a, b = ("s", "a"), ("s", "b")

    assert Lineage(shards=shards, held={a}, finished={a}).replaced() == frozenset()
    assert Lineage(shards=shards, held={a, b}, finished={a}).replaced() == {a}
    assert Lineage(shards=shards, held={b}).readable() == {b, ("s", "c")}, (
        "a child that was begun proves it"
    )
