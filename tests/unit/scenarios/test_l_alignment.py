"""Group L: alignment of watermarks (FLIP-182, FLIP-217), on a real `ReaderGroup`.

In Flink members report to a coordinator, which tells all readers the limit once a second. Here the
readers of a process share an `AlignmentGroup`, and each poll sees the newest limit: there is no
message that could be late. Spark queries have alignment by admission instead
(`balanced_source.host.alignment`), for which nothing is ever paused.
"""

import random
from typing import Any

import pytest

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK, AsyncCall, InputStatus, SplitReader
from balanced_source.coordinator import SourceCoordinator
from balanced_source.errors import ContractViolationError
from balanced_source.reader import Fetchers, Threading
from balanced_source.testing.alignment import AlignmentGroup
from balanced_source.testing.inline_fetchers import InlineFetchers
from balanced_source_adapters.coordinator_loop import CoordinatorLoop
from balanced_source_adapters.fetchers import ThreadedFetchers
from support.event_time import Readers
from support.local_scene import Scene as LocalScene
from support.numbers import NumbersReader, NumbersSplit
from support.numbers_source import NumbersSource
from support.reader_scene import Scene
from support.world import kafka_source

MAX_DRIFT = 1000


def group(name: str = "g", max_drift: int = MAX_DRIFT) -> AlignmentGroup[object]:
    return AlignmentGroup(name, max_drift)


def allow(aligned: AlignmentGroup[object], limit: int) -> None:
    """Someone in the group is so far behind that no one may go beyond `limit`."""
    aligned.report("slow", limit - aligned.max_drift)


@pytest.mark.scenario("L1")
def test_l1_the_slowest_decides_how_far_all_may_go() -> None:
    """42 allows 1042, 44 beside it changes nothing; with the slowest at 5000, 44 counts."""
    readers = Readers({"a": 0, "b": 1}, group())

    assert readers.says(a=42).limit == 1042
    assert readers.says(b=44).limit == 1042
    assert readers.says(a=5000).limit == 1044
    assert readers.paused == {"a"}


@pytest.mark.scenario("L2")
def test_l2_idle_readers_hold_back_no_other_reader() -> None:
    """1044 without the idle one, 1042 with it.

    No limit while all are idle, and the old ones when they return.
    """
    readers = Readers({"a": 0, "b": 1}, group())

    assert readers.is_idle("a").says(b=44).limit == 1044
    assert readers.says(a=42).limit == 1042
    assert readers.is_idle("a", "b").limit == MAX_WATERMARK
    assert readers.says(a=42).limit == 1042
    assert readers.says(b=46).limit == 1042


@pytest.mark.scenario("L3")
def test_l3_groups_are_separate() -> None:
    """Who is in another group may be anywhere in time."""
    first, second = Readers({"a": 0}, group("g1")), Readers({"a": 0}, group("g2"))
    first.says(a=5000)
    second.says(a=44)

    assert (first.limit, second.limit) == (6000, 1044)
    assert first.poll().paused == set()


@pytest.mark.scenario("L3")
def test_l3_sources_of_one_group_wait_for_each_other() -> None:
    """Two sources whose readers and splits have the same names.

    One that is closed is waited for no more.
    """
    shared = group()
    first, second = Readers({"a": 0}, shared), Readers({"a": 0}, shared)
    first.says(a=5000)
    second.says(a=44)

    assert (first.poll().limit, first.paused) == (1044, {"a"})

    second.group.close()
    assert (first.poll().limit, first.paused) == (6000, set())


@pytest.mark.scenario("L4")
def test_l4_the_aggregate_is_the_minimum_at_every_step() -> None:
    """The values of upstream's aggregator, one after another; idle members do not count."""
    aggregate = group(max_drift=0)

    def after(member: int, watermark: int) -> int:
        aggregate.report(member, watermark, is_idle=watermark == MAX_WATERMARK)
        return aggregate.max_allowed

    assert [after(0, 10), after(1, 12), after(2, 13)] == [10, 10, 10]
    assert [after(1, 9), after(1, MAX_WATERMARK), after(1, 8), after(1, 20)] == [9, 10, 8, 10]
    assert [after(0, 23), after(2, 22)] == [13, 20]


@pytest.mark.scenario("L4")
def test_l4_ten_thousand_members_have_the_minimum_that_counting_finds() -> None:
    """Reports, idleness and departures at random."""
    chance, aggregate = random.Random(4), group(max_drift=0)
    model = {member: chance.randrange(10**6) for member in range(10_000)}
    for member, watermark in model.items():
        aggregate.report(member, watermark)
    for _ in range(1000):
        member = (
            min(model, key=model.__getitem__) if chance.random() < 0.5 else chance.randrange(10_000)
        )
        watermark = chance.choice([chance.randrange(10**6), MAX_WATERMARK])
        aggregate.report(member, watermark, is_idle=watermark == MAX_WATERMARK)
        model[member] = watermark
        assert aggregate.max_allowed == min(model.values())


@pytest.mark.scenario("L5")
def test_l5_readers_that_are_not_there_yet_are_no_error() -> None:
    """Polled before there is any reader, then with readers without splits.

    Upstream's message finds no task.
    """
    readers = Readers({}, group(), idle_timeout=1.0)
    readers.group.close()

    readers.poll()
    readers.aligned.report("somebody else", 3)
    readers.assigned({}, readers=2).poll(after=5.0)

    assert (readers.limit, readers.paused) == (1003, set())


@pytest.mark.scenario("L6")
def test_l6_a_coordinator_that_was_closed_before_its_start_does_nothing() -> None:
    """No thread, no call, no document.

    Alignment itself has no periodic task here that could survive.
    """
    done: list[Any] = []

    def execute(call: AsyncCall) -> None:
        done.append(call)

    coordinator = SourceCoordinator(kafka_source(), parallelism=1)
    loop = CoordinatorLoop(coordinator, execute, publish=done.append, persist=done.append)

    loop.close()

    assert loop.start() is None
    assert done == []


def one_by_one(start: int, name: str = "a") -> tuple[LocalScene, AlignmentGroup[object]]:
    """A source that reads one number at a time, from `start` on.

    Its alignment group allows no drift.
    """
    source = NumbersSource(
        (NumbersSplit(name=name, next=start, stop=start + 1000),), Threading.ONE_READER, chunk=1
    )
    scene, aligned = LocalScene(source, parallelism=1), group(max_drift=0)
    scene.run.group.alignment = aligned
    return scene, aligned


def emitted(scene: LocalScene) -> list[int]:
    """What came out so far, after a few steps: enough to read everything that may be read."""
    for _ in range(5):
        scene.run.step(limit=1)
    return sorted(number for _, number in scene.delivered)


@pytest.mark.scenario("L7")
def test_l7_blocked_released_and_blocked_again() -> None:
    """1000 waits while 999 is allowed.

    With 1001 it continues to the first number beyond, and waits again.
    """
    scene, aligned = one_by_one(1000)
    aligned.report("slow", 999)

    assert emitted(scene) == emitted(scene) == [1000]
    aligned.report("slow", 1001)
    assert emitted(scene) == emitted(scene) == [1000, 1001, 1002]


@pytest.mark.scenario("L7")
def test_l7_stopping_does_not_wait_for_the_others() -> None:
    """A blocked split is in the checkpoint at its position.

    It can be taken away, and its reader closed.
    """
    scene, aligned = one_by_one(1000)
    aligned.report("slow", 999)
    emitted(scene)

    assert scene.run.offset.positions == {("a",): 1001}
    (entry,) = scene.run.group._readers.values()
    assert [s.position for s in entry.reader.remove_splits([("a",)])] == [1001]
    scene.run.close()
    assert aligned.max_allowed == 999


@pytest.mark.scenario("L7")
def test_l7_a_blocked_split_that_returns_is_read_until_it_is_ahead_again() -> None:
    """It is read again until it is ahead, and told to wait once more."""
    readers = Readers({"a": 0, "b": 0}, group(max_drift=0)).says(a=9, b=1)
    assert readers.poll().paused == {"a"}

    readers.assigned({"b": 0}).assigned({"a": 0, "b": 0})

    assert readers.paused == set()
    assert readers.says(a=9).paused == {"a"}


@pytest.mark.scenario("L8")
def test_l8_a_reader_without_splits_says_nothing() -> None:
    """No limit while no one has a watermark.

    Then that of the reader which has a split (FLINK-32414).
    """
    readers = Readers({"a": 0}, group()).assigned({"a": 0}, readers=3)

    assert readers.poll().limit == MAX_WATERMARK
    assert readers.says(a=42).poll().limit == 1042


@pytest.mark.scenario("L8")
def test_l8_a_reader_that_lost_its_splits_or_ended_is_not_waited_for() -> None:
    """Its last watermark goes with it when splits move, the reader ends or readers decrease."""
    readers = Readers({"a": 0, "b": 1}, group()).says(a=42, b=5000)
    assert readers.limit == 1042

    readers.assigned({"a": 0, "b": 1}, no_more=[0]).finishes("a")
    assert readers.poll().limit == 6000

    readers.assigned({"a": 0, "b": 0}).says(b=7000)
    assert readers.poll().limit == 8000


@pytest.mark.scenario("L10")
def test_l10_a_record_ends_idleness_with_the_old_watermark() -> None:
    """No limit while idle; a record that moves no watermark brings the old one back."""
    readers = Readers({"a": 0}, group()).says(a=42)

    assert readers.is_idle("a").limit == MAX_WATERMARK
    assert readers.gets_record("a").limit == 1042


@pytest.mark.scenario("L11")
def test_l11_splits_that_are_ahead_are_paused_one_by_one() -> None:
    """Limit 4, then 5, for splits at 5 and 3; then at 11 and 3; then at 11 and 12."""
    aligned = group()
    readers = Readers({"s0": 0, "s1": 0}, aligned).says(s0=5, s1=3).poll()

    allow(aligned, 4)
    assert readers.poll().paused == {"s0"}
    allow(aligned, 5)
    assert readers.poll().paused == set()
    assert readers.says(s0=11).paused == {"s0"}
    assert readers.says(s1=12).paused == {"s0", "s1"}


@pytest.mark.scenario("L12")
def test_l12_a_finished_split_is_never_paused() -> None:
    """Not when it finishes ahead of the others, and not when it finishes while it waits."""
    readers = Readers({"a": 0, "b": 0, "c": 1}, group(max_drift=0)).says(a=5, b=3, c=1)
    assert readers.poll().paused == {"a", "b"}
    readers.reader("a").paused.discard(("a",))  # it knows by itself that it ended

    assert readers.finishes("a").poll().paused == {"b"}
    assert readers.says(c=3).poll().paused == set()


@pytest.mark.scenario("L12")
@pytest.mark.parametrize("shape", list(Threading))
def test_l12_a_split_whose_last_records_wait_is_not_paused(shape: Threading) -> None:
    """Its split reader has finished it.

    What was fetched comes out, and a later split by that name does not wait.
    """
    scene = Scene(lambda make: InlineFetchers(make, shape), chunk=10)
    scene.reader.add_splits([NumbersSplit(name="a")])
    scene.read_until(lambda: len(scene.records) == 1)

    scene.reader.pause_or_resume_splits([("a",)], [])

    scene.read_until(lambda: scene.of("a") == list(range(10)) and scene.reader.finished == [("a",)])
    scene.reader.add_splits([NumbersSplit(name="a", next=10, stop=15)])
    assert len(scene.read_to_the_end()) == 15
    assert scene.split_readers[0].paused == set()


@pytest.mark.scenario("L14")
def test_l14_a_reader_that_waits_for_its_sink_is_not_idle() -> None:
    """Ten timeouts of backpressure are no silence.

    One without is, and the watermark stays at 44.
    """
    readers = Readers({"a": 0}, group(), idle_timeout=10.0).says(a=44)

    for _ in range(10):
        assert readers.poll(after=10.0, is_held_up=True).idle == set()
    assert readers.limit == 1044

    assert readers.poll(after=10.0).idle == {"a"}
    assert readers.limit == MAX_WATERMARK
    assert readers.gets_record("a").limit == 1044


@pytest.mark.scenario("L15")
def test_l15_active_paused_active_idle_paused_active() -> None:
    """A split at 8 with limit 7 waits, idle or not; time does not make it idle while it waits."""
    aligned = group()
    readers = Readers({"a": 0}, aligned, idle_timeout=10.0).says(a=8)
    assert (readers.paused, readers.idle) == (set(), set())

    allow(aligned, 7)
    assert readers.poll().paused == {"a"}
    assert readers.poll(after=30.0).idle == set()

    allow(aligned, 8)
    assert (readers.poll().paused, readers.idle) == (set(), set())
    assert readers.poll(after=10.0).idle == {"a"}

    allow(aligned, 7)
    assert (readers.poll().paused, readers.idle) == ({"a"}, {"a"})
    allow(aligned, 10)
    assert readers.poll().paused == set()
    assert readers.says(a=10).idle == set()


@pytest.mark.scenario("L16")
def test_l16_a_paused_split_that_is_idle_continues_when_it_may() -> None:
    """Upstream forgot the watermark of idle splits, and never resumed them (FLINK-40093)."""
    readers = Readers({"a": 0, "b": 1}, group(max_drift=0)).says(a=8, b=7)
    assert readers.poll().paused == {"a"}

    assert readers.is_idle("a").poll().paused == {"a"}
    assert readers.says(b=8).poll().paused == set()
    assert readers.idle == {"a"}


class CannotPause(NumbersReader):
    """As a connector that never heard of alignment."""

    pause_or_resume_splits = SplitReader.pause_or_resume_splits  # type: ignore[assignment]


def unpausable(kind: type[Any], *, may_drift: bool) -> Fetchers[int, NumbersSplit]:
    return kind(lambda: CannotPause(chunk=1), may_drift=may_drift)  # type: ignore[no-any-return]


@pytest.mark.scenario("L17")
@pytest.mark.parametrize("kind", [InlineFetchers, ThreadedFetchers])
def test_l17_a_reader_that_cannot_pause_drifts_where_that_is_allowed(kind: type[Any]) -> None:
    """All ten records come, although the split was told to wait."""
    scene = Scene(lambda _: unpausable(kind, may_drift=True))
    scene.reader.add_splits([NumbersSplit(name="a")])
    assert not CannotPause().can_pause

    scene.reader.pause_or_resume_splits([("a",)], [])

    scene.read_to_the_end()
    assert scene.of("a") == list(range(10))


@pytest.mark.scenario("L17")
@pytest.mark.parametrize("kind", [InlineFetchers, ThreadedFetchers])
def test_l17_a_reader_that_cannot_pause_is_an_error_otherwise(kind: type[Any]) -> None:
    """The error names the class that must learn it.

    Upstream raises `UnsupportedOperationException`.
    """
    scene = Scene(lambda _: unpausable(kind, may_drift=False))
    scene.reader.add_splits([NumbersSplit(name="a"), NumbersSplit(name="b")])

    scene.reader.pause_or_resume_splits([("a",)], [])

    with pytest.raises(ContractViolationError, match="CannotPause cannot pause splits"):
        scene.read_until(lambda: scene.poll() is InputStatus.END_OF_INPUT)
    scene.reader.close()


def test_a_limit_never_overflows() -> None:
    """A member at the end of time allows everything; one without a time is not counted."""
    aligned = group()
    aligned.report("a", MAX_WATERMARK - 1)
    aligned.report("b", MIN_WATERMARK)

    assert aligned.max_allowed == MAX_WATERMARK
