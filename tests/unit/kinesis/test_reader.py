"""What a reader does when the service refuses, throttles, forgets, or is another one."""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from balanced_source.api import SplitsAddition
from balanced_source.connectors.kinesis import OnShardLoss, ShardSplit
from balanced_source.errors import RefusedDiscoveryError, TransientDiscoveryError
from balanced_source.reader import SplitOutputs
from balanced_source.testing.inline_fetchers import InlineFetchers
from balanced_source.testing.source_reader import Context
from balanced_source_adapters.kinesis import reader as reader_module
from balanced_source_adapters.kinesis.client import (
    BadPositionError,
    IteratorExpiredError,
    Record,
    Summary,
    ThrottledError,
)
from balanced_source_adapters.kinesis.fetches import FetchedUpTo, Fetches
from balanced_source_adapters.kinesis.reader import KinesisReader, ShardReader, ShardState, threaded
from balanced_source_adapters.kinesis.shared import (
    IDLE,
    INTERVAL,
    ITERATOR_LIFETIME,
    MAX_BACKOFF,
    SharedShards,
)
from balanced_source_adapters.kinesis.summaries import LIFETIME, Summaries
from support.shards import STREAM, NoPace, StreamInMemory
from testbed.waiting import wait_until

SHARD = "shardId-000000000000"


@dataclass
class Scene:
    """A reader of one shard. Its clock continues to the time at which the shard is due."""

    on_loss: OnShardLoss = OnShardLoss.FAIL
    shared: SharedShards = field(default_factory=SharedShards)
    stream: StreamInMemory = field(default_factory=StreamInMemory)
    now: float = 1000.0
    asked: list[float] = field(default_factory=list)
    found: list[int] = field(default_factory=list)
    position: int = 0

    def __post_init__(self) -> None:
        self.reader = self.open()

    def open(self, created: str = "1") -> ShardReader:
        reader = ShardReader(
            self.stream, on_loss=self.on_loss, shared=self.shared, clock=lambda: self.now
        )
        split = ShardSplit(stream=STREAM, shard=SHARD, offset=self.position, created=created)
        reader.handle_splits_changes(SplitsAddition((split,)))
        (known,) = reader._shards.values()
        self.key = known.key
        return reader

    def put(self, count: int) -> None:
        for _ in range(count):
            self.stream.put("key")

    def fetch(self, times: int = 1) -> None:
        for _ in range(times):
            self.now = max(self.now, self.shared.due(self.key))
            self.asked.append(self.now)
            records = self.reader.fetch()
            while records.next_split() is not None:
                while (record := records.next_record_from_split()) is not None:
                    self.found.append(int(record.data))
                    self.position = record.sequence + 1

    def task(self) -> None:
        """Another task continues where the former one has stopped."""
        self.reader.close()
        self.reader = self.open()


def fail_once(error: Exception, at: str = "records") -> Callable[[str], None]:
    errors = [error]

    def before(call: str) -> None:
        if call == at and errors:
            raise errors.pop()

    return before


def test_a_shard_is_read_five_times_a_second_and_less_often_without_new_records() -> None:
    scene = Scene()
    scene.put(7)

    scene.fetch(5)

    gaps = [round(b - a, 3) for a, b in zip(scene.asked, scene.asked[1:], strict=False)]
    assert gaps == [INTERVAL, INTERVAL, INTERVAL, IDLE]
    assert scene.found == list(range(7))


@pytest.mark.scenario("P8")
def test_a_throttled_shard_is_read_more_and_more_slowly_and_then_again_as_before() -> None:
    """Pauses double from 0.4 s to 10 s; after the first answer they are short again."""
    scene = Scene()
    scene.put(2)

    def throttle(_: str) -> None:
        raise ThrottledError("too often", scope=STREAM)

    scene.stream.before = throttle
    scene.fetch(9)
    gaps = [b - a for a, b in zip(scene.asked, scene.asked[1:], strict=False)]
    assert [round(gap, 1) for gap in gaps[:6]] == [0.4, 0.8, 1.6, 3.2, 6.4, 10.0]
    assert gaps[-1] == pytest.approx(MAX_BACKOFF)

    scene.stream.before = lambda _: None
    scene.fetch(3)
    assert scene.found == [0, 1]
    assert scene.asked[-1] - scene.asked[-2] < 1


@pytest.mark.scenario("P8")
def test_two_tasks_of_a_process_share_the_limit_of_a_shard() -> None:
    """The second task waits until the shard is due."""
    scene = Scene()
    scene.put(20)
    scene.fetch()
    other = scene.open()
    now = scene.now

    records = other.fetch()  # not due yet

    assert records.next_split() is None
    assert scene.shared.due(scene.key) == pytest.approx(now + INTERVAL)


def test_the_next_task_continues_with_the_iterator_of_the_previous_one() -> None:
    scene, iterators = Scene(), list[str]()
    scene.stream.before = lambda call: iterators.append(call) if call == "iterator" else None
    scene.put(5)
    scene.fetch(2)
    scene.task()
    scene.put(2)

    scene.fetch(2)

    assert scene.found == list(range(7))
    assert len(iterators) == 1


@pytest.mark.scenario("P9")
def test_an_old_iterator_is_not_used_again() -> None:
    """A kept iterator that may have expired is replaced, and nothing is lost."""
    scene, iterators = Scene(), list[str]()
    scene.stream.before = lambda call: iterators.append(call) if call == "iterator" else None
    scene.put(2)
    scene.fetch()
    scene.task()
    scene.now += ITERATOR_LIFETIME
    scene.put(2)

    scene.fetch(2)

    assert scene.found == [0, 1, 2, 3]
    assert len(iterators) == 2


@pytest.mark.parametrize(
    "error",
    [
        IteratorExpiredError("expired", scope=STREAM),
        TransientDiscoveryError("away", scope=STREAM),
        ThrottledError("too often", scope=STREAM),
    ],
)
@pytest.mark.parametrize("at", ["records", "iterator"])
def test_a_failure_repeats_and_loses_nothing(error: Exception, at: str) -> None:
    scene = Scene()
    scene.put(4)
    scene.fetch()
    scene.shared.forget(scene.key)
    scene.task()
    scene.put(4)
    scene.stream.before = fail_once(error, at)

    scene.fetch(6)

    assert scene.found == list(range(8))


def test_an_iterator_that_a_former_stream_has_left_is_replaced() -> None:
    """The service does not find its record in the stream of the same name."""
    scene = Scene()
    scene.put(4)
    scene.fetch()
    scene.put(4)
    scene.stream.before = fail_once(BadPositionError("no such number", scope=STREAM))

    scene.fetch(6)

    assert scene.found == list(range(8))


def test_a_refusal_ends_the_task_with_a_sentence() -> None:
    scene = Scene()
    scene.stream.before = fail_once(
        RefusedDiscoveryError("not allowed: correct the rights", scope=STREAM)
    )

    with pytest.raises(RefusedDiscoveryError, match="correct the rights"):
        scene.fetch()


def lost_scene(on_loss: OnShardLoss, *, records: int = 3) -> Scene:
    """So many records were read; the last of them has expired, and the one after it."""
    scene = Scene(on_loss)
    scene.put(records)
    scene.fetch()
    scene.put(records)
    scene.stream.trim(SHARD, records + 1)
    scene.shared.forget(scene.key)
    scene.task()
    return scene


@pytest.mark.scenario("P6")
def test_records_that_expired_unread_end_the_query() -> None:
    """With `onDataLoss: Fail` the error names stream, shard and record."""
    scene = lost_scene(OnShardLoss.FAIL)

    with pytest.raises(
        RefusedDiscoveryError,
        match=r"shard shardId-0+: the record \d+, .* Set onDataLoss to Continue",
    ):
        scene.fetch()


@pytest.mark.scenario("P6")
def test_records_that_expired_unread_are_skipped_if_the_user_accepts_that() -> None:
    """With `Continue` reading continues at the oldest record."""
    scene = lost_scene(OnShardLoss.CONTINUE)

    scene.fetch(2)

    assert scene.found == [0, 1, 2, 4, 5]


def test_nothing_is_lost_while_the_last_read_record_exists() -> None:
    scene = Scene()
    scene.put(3)
    scene.fetch()
    scene.put(3)
    scene.stream.trim(SHARD, 2)
    scene.shared.forget(scene.key)
    scene.task()

    scene.fetch(2)

    assert scene.found == list(range(6))


@pytest.mark.scenario("P7")
def test_a_stream_that_was_created_again_is_not_read() -> None:
    """A reader of the former stream reads nothing of the new one."""
    scene = Scene()
    scene.put(2)
    scene.fetch()
    scene.stream = StreamInMemory()
    scene.stream.created = "2"
    scene.put(2)
    scene.shared.forget(scene.key)
    scene.task()

    scene.fetch(3)

    assert scene.found == [0, 1]


def test_silence_means_nothing_before_the_answer_of_a_slow_server_can_be_polled() -> None:
    """A task that stops reading at the moment in which an answer arrives would never get it."""
    fetches = Fetches()
    scene = Scene()
    scene.put(2)
    reader = ShardReader(scene.stream, shared=NoPace(), fetches=fetches)
    reader.handle_splits_changes(SplitsAddition((ShardSplit(stream=STREAM, shard=SHARD),)))

    reader.fetch()
    assert not fetches.tips, "the answer is on its way to the poll"
    reader.fetch()
    assert fetches.tips == {(STREAM, SHARD)}


@pytest.mark.scenario("P13")
def test_how_far_a_shard_is_behind_counts_what_was_fetched_and_not_emitted() -> None:
    """Records arrive every 10 ms, and an answer has three of them."""
    stream, fetches = StreamInMemory(), Fetches()
    for _ in range(8):
        stream.put("key")
    fetchers = InlineFetchers(lambda: ShardReader(stream, shared=NoPace(), fetches=fetches))
    reader, output = (
        KinesisReader(Context(), fetchers, fetches),
        SplitOutputs[Record](lambda *_: None),
    )
    reader.add_splits([ShardSplit(stream=STREAM, shard=SHARD)])
    assert reader.millis_behind() == {}, "nothing was asked yet"

    seen: list[int | None] = []
    while not seen or seen[-1] != 0:
        reader.poll_next(output)
        found = reader.millis_behind().get((STREAM, SHARD))
        if not seen or found != seen[-1]:
            seen.append(found)

    assert seen == [70, 60, 50, 40, 30, 20, 10, 0]


@pytest.mark.scenario("P13")
def test_how_far_a_shard_is_behind_is_unknown_before_a_record_and_while_it_cannot_be_read() -> None:
    """Neither 0 nor a former number."""
    split = ShardSplit(stream=STREAM, shard=SHARD)
    assert ShardState(split).millis_behind(FetchedUpTo(split.offset + 5, 1000, 0)) is None
    assert ShardState(split).millis_behind(FetchedUpTo(split.offset, None, 0)) == 0

    scene, fetches = Scene(), Fetches()
    scene.put(1)
    reader = ShardReader(scene.stream, shared=NoPace(), fetches=fetches)
    reader.handle_splits_changes(SplitsAddition((split,)))
    reader.fetch()
    assert fetches.newest[STREAM, SHARD].behind == 0
    scene.stream.before = fail_once(ThrottledError("too often", scope=STREAM))
    reader.fetch()
    assert not fetches.newest, "others may have put records since"


def test_a_finished_shard_that_is_paused_ends_when_it_is_resumed() -> None:
    scene = Scene()
    split = ShardSplit(stream=STREAM, shard=SHARD, offset=3, stop=3)
    reader = ShardReader(scene.stream, shared=NoPace())
    reader.handle_splits_changes(SplitsAddition((split,)))
    reader.pause_or_resume_splits([split], [])
    reader.wake_up()
    assert not reader.fetch().finished_splits()

    reader.pause_or_resume_splits([], [split])
    assert reader.fetch().finished_splits() == {split.split_id}


NO_SUCH_NUMBER = BadPositionError("no such sequence number", scope=STREAM)


def test_a_start_that_the_shard_does_not_have_ends_the_query() -> None:
    """Nothing was read yet, so nothing can have expired: the user's own start is wrong."""
    scene = Scene(OnShardLoss.CONTINUE)
    scene.put(2)
    scene.stream.before = fail_once(NO_SUCH_NUMBER, at="iterator")

    with pytest.raises(BadPositionError, match="no such sequence number"):
        scene.fetch()


@pytest.mark.parametrize("on_loss", OnShardLoss)
def test_a_position_that_the_shard_does_not_have_any_more_is_a_loss(on_loss: OnShardLoss) -> None:
    scene = lost_scene(on_loss, records=2)
    scene.stream.before = fail_once(NO_SUCH_NUMBER, at="iterator")

    if on_loss is OnShardLoss.FAIL:
        with pytest.raises(RefusedDiscoveryError, match=r"no such .* Set onDataLoss to Continue"):
            scene.fetch()
    else:
        scene.fetch()
        assert scene.found == [0, 1, 3]


@pytest.mark.parametrize("due_in", [None, 60.0])
def test_a_fetch_returns_soon_when_no_shard_is_due(due_in: float | None) -> None:
    """The task looks for the end of its micro-batch in between."""
    stream, shared = StreamInMemory(), SharedShards()
    reader = ShardReader(stream, shared=shared, clock=lambda: 1000.0)
    if due_in is not None:
        reader.handle_splits_changes(SplitsAddition((ShardSplit(stream=STREAM, shard=SHARD),)))
        (known,) = reader._shards.values()
        shared.has_failed(known.key, now=1000.0 + due_in)
    started = time.monotonic()

    assert reader.fetch().next_split() is None
    assert time.monotonic() - started < 10


def test_a_shard_whose_lag_is_unknown_is_left_out() -> None:
    fetches = Fetches()
    reader = KinesisReader(Context(), InlineFetchers(lambda: Scene().reader), fetches)
    split = ShardSplit(stream=STREAM, shard=SHARD)
    reader.add_splits([split])
    fetches.newest[split.split_id] = FetchedUpTo(split.offset + 5, 1000, 0)

    assert reader.millis_behind() == {}, "nothing was emitted yet"


def test_the_readers_of_a_task_ask_once_for_a_stream_and_again_after_a_failure() -> None:
    """The service describes streams twenty times a second for a whole account."""
    asked: list[str] = []
    now = [0.0]

    def ask(stream: str) -> Summary:
        asked.append(stream)
        return Summary("1", 0)

    known = Summaries(lambda: now[0])
    for stream in ("a", "a", "b", "a"):
        assert known.of(stream, ask) == Summary("1", 0)
    assert asked == ["a", "b"]

    known.doubt("a")
    known.of("a", ask)
    now[0] += LIFETIME + 1.0
    known.of("a", ask)
    assert asked == ["a", "b", "a", "a"]
    assert known._known.keys() == {"a"}, "the other one is asked again, if ever"


def test_readers_that_wait_for_an_answer_get_it_or_its_failure() -> None:
    """A server that does not answer holds them up once, and not one after the other."""
    known, begun, go = Summaries(time.monotonic), threading.Event(), threading.Event()
    errors: queue.Queue[Exception] = queue.Queue()
    asked: list[str] = []

    def ask(stream: str) -> Summary:
        asked.append(stream)
        begun.set()
        assert go.wait(30)
        raise TransientDiscoveryError("no answer")

    def read() -> None:
        try:
            known.of("a", ask)
        except TransientDiscoveryError as error:
            errors.put(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    threads[0].start()
    assert begun.wait(30)
    waiting = known._asking["a"]
    for thread in threads[1:]:
        thread.start()
    wait_until(lambda: len(waiting._condition._waiters) == 2, 30, "two that wait", interval=0.005)  # type: ignore[attr-defined]
    go.set()

    assert {str(errors.get(timeout=30)) for _ in threads} == {"no answer"}
    assert asked == ["a"]
    assert known.of("a", lambda _: Summary("1", 0)) == Summary("1", 0)


def test_shards_share_what_is_known_of_their_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, asked = StreamInMemory(shards=4), list[str]()
    made: list[Callable[[], ShardReader]] = []
    monkeypatch.setattr(reader_module, "ThreadedFetchers", lambda make, *_, **__: made.append(make))
    threaded(Context(), stream, server="", on_loss=OnShardLoss.FAIL)
    summary = stream.summary

    def ask(name: str) -> Summary:
        asked.append(name)
        return summary(name)

    monkeypatch.setattr(stream, "summary", ask)
    for shard in stream.open():
        reader = made[0]()
        split = ShardSplit(stream=STREAM, shard=shard, created="1")
        reader.handle_splits_changes(SplitsAddition((split,)))
        reader._shared = NoPace()
        reader.fetch()

    assert asked == [STREAM]
