"""Group N: the source reader base, in all shapes of threading."""

from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from balanced_source.api import InputStatus, SplitId
from balanced_source.reader import Fetched, RecordsBySplits, Threading
from balanced_source.testing.inline_fetchers import InlineFetchers
from support.local_scene import Scene as LocalScene
from support.local_scene import ranges
from support.numbers import NumbersSplit
from support.numbers_source import NumbersSource
from support.reader_scene import Make, Scene, makers

A, B = NumbersSplit(name="a"), NumbersSplit(name="b", stop=12)


@pytest.fixture(params=makers())
def make(request: pytest.FixtureRequest) -> Make:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.scenario("N1")
def test_n1_poll_raises_the_error_of_a_split_reader(make: Make) -> None:
    """The connector's own error, again at each poll.

    Upstream wraps it ("One or more fetchers…").
    """
    scene = Scene(make, fail_at=0)
    scene.reader.add_splits([A])

    for _ in range(2):
        with pytest.raises(OSError, match="cannot read 0"):
            scene.read_until(lambda: False)
    assert scene.records == []
    assert scene.reader.snapshot_state(1) == (A,), "nothing of it counts as read"
    scene.reader.close()


class Script:
    """`Fetchers` that bring what the test says, when it says."""

    def __init__(self) -> None:
        self.results: deque[Fetched[int]] = deque()
        self.hidden: Fetched[int] | None = None

    def brings(self, records: RecordsBySplits[int], *names: str) -> None:
        self.results.append(self.fetched(records, *names))

    def fetched(self, records: RecordsBySplits[int], *names: str) -> Fetched[int]:
        return Fetched(records, {(name,): 1 for name in names})

    def poll(self) -> Fetched[int] | None:
        if self.results:
            return self.results.popleft()
        if self.hidden is not None:  # arrives just after the reader has looked
            self.results.append(self.hidden)
            self.hidden = None
        return None

    def has_result(self) -> bool:
        return bool(self.results)

    def is_idle(self) -> bool:
        return not self.results

    def add_splits(self, splits: Sequence[NumbersSplit], generation: int) -> None:
        pass

    def remove_splits(self, split_ids: Collection[SplitId]) -> None:
        pass

    def pause_or_resume_splits(
        self, to_pause: Collection[SplitId], to_resume: Collection[SplitId]
    ) -> None:
        pass

    def close(self) -> None:
        pass


class Batch(RecordsBySplits[int]):
    """Knows how often its buffers were given back."""

    recycled = 0

    def recycle(self) -> None:
        self.recycled += 1


def scripted() -> tuple[Scene, Script]:
    script = Script()
    return Scene(lambda _: script), script


@pytest.mark.scenario("N2")
def test_n2_a_batch_is_given_back_when_it_is_empty_and_once() -> None:
    """Not while a record of it is still to come."""
    scene, script = scripted()
    scene.reader.add_splits([A])
    batch = Batch({("a",): [0, 1]})
    script.brings(batch, "a")

    for _ in range(2):
        assert scene.poll() is InputStatus.MORE_AVAILABLE
        assert batch.recycled == 0
    assert scene.poll() is InputStatus.NOTHING_AVAILABLE
    assert (batch.recycled, scene.of("a")) == (1, [0, 1])
    scene.poll()
    assert batch.recycled == 1


@pytest.mark.scenario("N3")
def test_n3_the_end_comes_after_all_splits(make: Make) -> None:
    """Splits of 10 and 12 records: 22 of them, and then the end, which stays."""
    scene = Scene(make)
    scene.reader.add_splits([A, B])
    seen = Counter[InputStatus]()
    scene.reader.notify_no_more_splits()

    def ends() -> bool:
        before = len(scene.records)
        status = scene.poll()
        seen[status] += 1
        assert status is not InputStatus.END_OF_INPUT or before == len(scene.records) == 22
        return status is InputStatus.END_OF_INPUT

    scene.read_until(ends)
    assert seen[InputStatus.END_OF_INPUT] == 1
    assert (scene.of("a"), scene.of("b")) == (list(range(10)), list(range(12)))
    assert scene.poll() is InputStatus.END_OF_INPUT
    scene.reader.close()


@pytest.mark.scenario("N3")
def test_n3_without_no_more_splits_a_reader_does_not_end(make: Make) -> None:
    """All splits are read, and the reader waits for more of them."""
    scene = Scene(make)
    scene.reader.add_splits([A])
    scene.read_until(lambda: bool(scene.reader.finished))

    assert scene.poll() is InputStatus.NOTHING_AVAILABLE
    assert scene.read_to_the_end() == [("a", number) for number in range(10)]


@pytest.mark.scenario("N4")
def test_n4_a_last_record_that_arrives_during_the_check_is_not_lost() -> None:
    """It arrives after the look into the queue and before the question whether all is done.

    More, not the end.
    """
    scene, script = scripted()
    scene.reader.add_splits([NumbersSplit(name="a", next=9)])
    scene.reader.notify_no_more_splits()
    script.hidden = script.fetched(RecordsBySplits({("a",): [9]}, finished=[("a",)]), "a")

    assert scene.poll() is InputStatus.MORE_AVAILABLE
    assert scene.records == []
    assert scene.poll() is InputStatus.MORE_AVAILABLE
    assert scene.records == [("a", 9)]
    assert scene.poll() is InputStatus.END_OF_INPUT


@pytest.mark.scenario("N4")
def test_n4_an_empty_fetch_returns_control() -> None:
    """A split reader with nothing to read does not keep `poll_next` busy: it must not block."""
    scene, script = scripted()
    scene.reader.add_splits([A])
    for _ in range(2):
        script.brings(RecordsBySplits(), "a")

    assert scene.poll() is InputStatus.MORE_AVAILABLE
    assert scene.poll() is InputStatus.NOTHING_AVAILABLE


@pytest.mark.scenario("N5")
def test_n5_the_watermark_waits_for_a_split_that_was_not_read_yet() -> None:
    """Split a at 100, 200, 300 says nothing; b at 150, 250, 350 makes 150, 250, 300."""
    scene, script = scripted()
    scene.reader._emitter = Hundreds()  # type: ignore[assignment]
    scene.reader.add_splits([A, B])
    script.brings(RecordsBySplits({("a",): [100, 200, 300]}), "a")
    for _ in range(4):
        scene.poll()
    assert (len(scene.records), scene.watermarks) == (3, [])

    script.brings(RecordsBySplits({("b",): [150, 250, 350]}), "b")
    for _ in range(4):
        scene.poll()
    assert scene.watermarks == [150, 250, 300]


class Hundreds:
    """A record's number is its time."""

    def emit_record(self, element: int, output: Any, split_state: Any) -> None:
        output.collect((split_state.split.name, element), element)
        output.emit_watermark(element)


@pytest.mark.scenario("N5")
def test_n5_a_removed_unread_split_holds_back_no_other_split() -> None:
    """Added and removed between two polls: it never had an output."""
    scene, script = scripted()
    scene.reader.add_splits([A, B])
    scene.reader.remove_splits([("b",)])
    script.brings(RecordsBySplits({("a",): [0]}), "a")

    scene.poll()

    assert scene.watermarks == [0]


@pytest.mark.scenario("N7")
@pytest.mark.parametrize("shape", [Threading.ONE_READER, Threading.ONE_PER_SPLIT])
def test_n7_a_paused_split_waits_while_the_other_continues(shape: Threading) -> None:
    """Two splits of five.

    After one record of each the first waits, the other one continues, then all ten are there.
    """
    scene = Scene(lambda make: InlineFetchers(make, shape), chunk=1)
    scene.reader.add_splits([NumbersSplit(name="0", stop=5), NumbersSplit(name="1", stop=5)])
    scene.read_until(lambda: len(scene.records) == 2)
    assert scene.records == [("0", 0), ("1", 0)]

    scene.reader.pause_or_resume_splits([("0",)], [])
    scene.read_until(lambda: len(scene.records) == 5)
    assert (scene.of("0"), scene.of("1")) == ([0], [0, 1, 2, 3])

    scene.reader.pause_or_resume_splits([], [("0",)])
    scene.read_to_the_end()
    assert scene.of("0") == scene.of("1") == list(range(5))


def reading(parallelism: int) -> LocalScene:
    """A run that is in the midst of fifteen splits."""
    scene = LocalScene(NumbersSource(ranges(15, 20), chunk=2), parallelism)
    while not scene.delivered:
        scene.run.step(limit=3)
    scene.run.step(limit=3)
    assert 0 < sum(scene.delivered.values()) < 15 * 20
    return scene


def readers_of(scene: LocalScene) -> Mapping[int, Any]:
    return scene.run.group._readers


@pytest.mark.scenario("N8")
@pytest.mark.parametrize(("before", "after"), [(7, 3), (3, 7)])
def test_n8_restored_with_another_number_of_readers(before: int, after: int) -> None:
    """All from the last checkpoint: nothing twice, nothing missing.

    What was emitted after it comes again.
    """
    scene = reading(before)
    assert len(readers_of(scene)) == before
    scene.run.group.poll(2)  # emitted, and never committed

    scene.parallelism = after
    scene.crash()
    scene.run.rescale(after)
    scene.run.run(timeout=30)

    scene.check()
    assert len(readers_of(scene)) == after


@pytest.mark.scenario("N8")
@pytest.mark.parametrize(("before", "after"), [(7, 3), (3, 7)])
def test_n8_changed_while_they_read(before: int, after: int) -> None:
    """Upstream restarts the job for it.

    Here the readers continue, and each record still comes once.
    """
    scene = reading(before)

    scene.run.rescale(after)
    scene.run.run(timeout=30)

    scene.check()
    assert len(readers_of(scene)) == after
