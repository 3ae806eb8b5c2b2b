"""`SourceReaderBase` in its three shapes, with threads and without."""

import itertools
import re
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from balanced_source.api import InputStatus, SourceEvent
from balanced_source.errors import ContractViolationError
from balanced_source.reader import FetcherSet, RecordsBySplits, Threading
from balanced_source.testing.inline_fetchers import InlineFetchers
from balanced_source.testing.source_reader import Context
from balanced_source_adapters.fetchers import ThreadedFetchers
from support.numbers import NumbersReader, NumbersSourceReader, NumbersSplit
from support.reader_scene import Make, Scene, makers
from testbed.waiting import wait_until

A, B, C = (NumbersSplit(name=name) for name in "abc")


@pytest.fixture(params=makers())
def make(request: pytest.FixtureRequest) -> Make:
    return request.param  # type: ignore[no-any-return]


def test_all_records_of_all_splits_in_their_order(make: Make) -> None:
    scene = Scene(make)
    scene.reader.add_splits([A, B])
    scene.reader.add_splits([C.at(4)])

    scene.read_to_the_end()

    assert (scene.of("a"), scene.of("b"), scene.of("c")) == (
        list(range(10)),
        list(range(10)),
        list(range(4, 10)),
    )
    assert sorted(scene.reader.finished) == [("a",), ("b",), ("c",)]
    assert scene.reader.snapshot_state(1) == ()
    assert all(reader.is_closed for reader in scene.split_readers)


def test_without_splits_it_waits_for_some(make: Make) -> None:
    scene = Scene(make)

    assert scene.poll() is InputStatus.NOTHING_AVAILABLE

    assert scene.read_to_the_end() == []


def test_a_snapshot_holds_emitted_and_not_fetched_positions(make: Make) -> None:
    scene = Scene(make)
    scene.reader.add_splits([A])

    scene.read_until(lambda: len(scene.records) == 4)

    assert scene.reader.snapshot_state(1) == (A.at(4),)
    scene.reader.close()


def test_a_split_that_is_taken_away_goes_where_it_stopped(make: Make) -> None:
    """Also what was fetched already comes from its next reader, and from no one else."""
    first, second = Scene(make), Scene(make)
    first.reader.add_splits([A, B])
    first.read_until(lambda: len(first.of("a")) == 2)

    moved = first.reader.remove_splits([("a",), ("unknown",)])
    second.reader.add_splits(moved)

    assert moved == (A.at(2),)
    first.read_to_the_end()
    second.read_to_the_end()
    assert first.of("a") + second.of("a") == list(range(10))
    assert first.of("b") == list(range(10))


def test_a_returned_split_is_not_confused_with_the_removed_one(make: Make) -> None:
    scene = Scene(make)
    scene.reader.add_splits([A])
    scene.read_until(lambda: len(scene.records) == 2)
    scene.reader.remove_splits([("a",)])

    scene.reader.add_splits([A.at(7)])

    scene.read_to_the_end()
    assert scene.of("a") == [0, 1, 7, 8, 9]


def test_a_fetch_without_records_of_a_removed_split_says_nothing_of_the_returned_one() -> None:
    """A split counts as read to its end after a fetch that brought nothing of it."""
    numbers = itertools.count()

    class Quiet(NumbersReader):
        def fetch(self) -> RecordsBySplits[int]:
            return RecordsBySplits({("b",): [next(numbers), next(numbers)]})

    scene = Scene(lambda _: InlineFetchers(Quiet))
    scene.reader.add_splits([A, B])
    scene.poll()
    scene.reader.remove_splits([("a",)])
    scene.reader.add_splits([A])

    scene.read_until(lambda: len(scene.records) == 3)
    assert not scene.reader.is_drained(("a",))
    scene.read_until(lambda: len(scene.records) == 5)
    assert scene.reader.is_drained(("a",))


@pytest.mark.parametrize(
    ("fetched", "says"),
    [
        (None, "fetch of Careless returned a NoneType, and RecordsBySplits"),
        (RecordsBySplits({("a",): [0], ("typo",): [1]}), "records of split ('typo',), which"),
    ],
)
def test_a_split_reader_that_returns_something_else_is_said(fetched: object, says: str) -> None:
    """Records of a split that the reader was never given would be lost in silence."""

    class Careless(NumbersReader):
        def fetch(self) -> RecordsBySplits[int]:
            return fetched  # type: ignore[return-value]

    scene = Scene(lambda _: InlineFetchers(Careless))
    scene.reader.add_splits([A])

    with pytest.raises(ContractViolationError, match=re.escape(says)):
        scene.read_to_the_end()


@pytest.mark.scenario("H8", "H9")
def test_a_paused_split_waits_and_continues(make: Make) -> None:
    """Only the other one's records until it is resumed.

    A pause of what is not assigned does nothing.
    """
    scene = Scene(make)
    scene.reader.pause_or_resume_splits([("a",), ("nobody",)], [])
    scene.reader.add_splits([A, B])
    scene.reader.pause_or_resume_splits([("b",)], [])
    scene.read_until(lambda: len(scene.of("a")) == 10)
    behind = len(scene.of("b"))

    assert behind <= 9, "at most what was fetched before"

    scene.reader.pause_or_resume_splits([], [("b",)])
    scene.read_to_the_end()
    assert scene.of("b") == list(range(10))


def test_poll_raises_a_failure_after_the_records_read_before_it(make: Make) -> None:
    scene = Scene(make, fail_at=7)
    scene.reader.add_splits([A])

    with pytest.raises(OSError, match="cannot read 7"):
        scene.read_until(lambda: False)

    assert scene.of("a") == list(range(6))
    assert scene.reader.snapshot_state(1) == (A.at(6),)
    scene.reader.close()
    assert all(reader.is_closed for reader in scene.split_readers)


def test_the_same_split_twice_is_a_mistake(make: Make) -> None:
    scene = Scene(make)
    scene.reader.add_splits([A])

    with pytest.raises(ContractViolationError, match="has split"):
        scene.reader.add_splits([A.at(3)])

    scene.reader.close()


@pytest.mark.parametrize("threading", Threading)
def test_fetchers_refuse_a_split_that_they_read_already(threading: Threading) -> None:
    """Two readers of one split would bring its records twice."""
    fetchers: FetcherSet[int, NumbersSplit] = FetcherSet(NumbersReader, threading)
    fetchers.add_splits([A, B], 1)
    with pytest.raises(ContractViolationError, match="was added twice"):
        fetchers.add_splits([A.at(3)], 2)
    for fetcher in fetchers.fetchers:
        fetcher.begin()

    with pytest.raises(ContractViolationError, match="was added twice"):
        fetchers.add_splits([A.at(3)], 2)


def test_the_watermark_is_that_of_the_slowest_split_and_never_goes_back(make: Make) -> None:
    scene = Scene(make)
    scene.reader.add_splits([A, NumbersSplit(name="b", next=5, stop=20)])

    scene.read_to_the_end()

    assert scene.watermarks == sorted(set(scene.watermarks))


@settings(deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("poll"), st.integers(1, 6)),
            st.tuples(st.sampled_from(["remove", "add", "pause", "resume"]), st.integers(0, 3)),
        ),
        max_size=40,
    ),
    shape=st.sampled_from(list(Threading)),
    chunk=st.integers(1, 5),
    is_threaded=st.booleans(),
)
def test_each_record_is_delivered_once_under_any_calls(
    steps: list[tuple[str, int]], shape: Threading, chunk: int, is_threaded: bool
) -> None:
    scene = Scene(
        lambda make: (ThreadedFetchers if is_threaded else InlineFetchers)(make, shape), chunk=chunk
    )
    aside = {number: NumbersSplit(name=str(number), stop=12) for number in range(4)}
    for step, number in steps:
        split_id = (str(number),)
        match step:
            case "poll":
                for _ in range(number):
                    scene.poll()
            case "remove":
                aside.update(
                    (int(split.name), split) for split in scene.reader.remove_splits([split_id])
                )
            case "add" if number in aside:
                scene.reader.add_splits([aside.pop(number)])
            case "pause":
                scene.reader.pause_or_resume_splits([split_id], [])
            case "resume":
                scene.reader.pause_or_resume_splits([], [split_id])
            case _:
                pass
    scene.reader.pause_or_resume_splits([], [(str(number),) for number in range(4)])
    scene.reader.add_splits(list(aside.values()))
    scene.read_to_the_end()

    for number in range(4):
        assert scene.of(str(number)) == list(range(12))


def test_sequential_reading_reads_one_split_at_a_time() -> None:
    scene = Scene(lambda make: InlineFetchers(make, Threading.ONE_AFTER_ANOTHER))
    scene.reader.add_splits([A, B])

    scene.read_to_the_end()

    assert scene.records == [("a", n) for n in range(10)] + [("b", n) for n in range(10)]
    assert len(scene.split_readers) == 1


def test_one_reader_takes_turns() -> None:
    scene = Scene(lambda make: InlineFetchers(make, Threading.ONE_READER))
    scene.reader.add_splits([A, B])

    scene.read_to_the_end()

    assert scene.records[:6] == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2)]
    assert len(scene.split_readers) == 1


def test_one_per_split_is_closed_with_its_split() -> None:
    scene = Scene(lambda make: InlineFetchers(make, Threading.ONE_PER_SPLIT))
    scene.reader.add_splits([A, NumbersSplit(name="b", stop=40)])
    scene.read_until(lambda: scene.reader.finished == [("a",)])

    assert [reader.is_closed for reader in scene.split_readers] == [True, False]
    assert len(scene.split_readers) == 2
    scene.reader.remove_splits([("b",)])
    scene.poll()
    assert scene.split_readers[1].is_closed


def test_a_fetch_that_blocks_is_woken_up_by_a_new_split_and_by_the_end() -> None:
    gate = threading.Event()
    scene = Scene(ThreadedFetchers, gate=gate)
    scene.reader.add_splits([A])
    wait_until(
        lambda: scene.split_readers[0].calls == ["add a", "fetch"],
        20,
        "a fetch that blocks",
        interval=0.001,
    )

    scene.reader.add_splits([B])

    wait_until(lambda: "add b" in scene.split_readers[0].calls, 20, "the news of b", interval=0.001)
    scene.reader.close()
    assert scene.split_readers[0].is_closed
    assert scene.records == []


def test_a_waiting_reader_is_notified() -> None:
    gate, context = threading.Event(), Context()
    reader = NumbersSourceReader(
        ThreadedFetchers(lambda: NumbersReader(gate=gate), notify=context.notify_available), context
    )
    reader.add_splits([A])
    assert not reader.is_available()

    gate.set()

    wait_until(
        lambda: context.available.is_set() and reader.is_available(),
        20,
        "availability",
        interval=0.001,
    )
    reader.close()


def test_nothing_can_be_added_to_a_closed_reader() -> None:
    scene = Scene(ThreadedFetchers)
    scene.reader.close()

    with pytest.raises(ContractViolationError, match="closed"):
        scene.reader.add_splits([A])


def test_an_unexpected_event_is_an_error(make: Make) -> None:
    scene = Scene(make)

    with pytest.raises(ContractViolationError, match="does not know event hello"):
        scene.reader.handle_source_event(SourceEvent(name="hello"))


def test_records_are_taken_split_by_split() -> None:
    records = RecordsBySplits({("a",): [1, 2], ("b",): [3]}, finished=[("b",)])

    with pytest.raises(ContractViolationError, match="call next_split first"):
        records.next_record_from_split()
    assert records.next_split() == ("a",)
    assert records.next_record_from_split() == 1
    assert records.next_split() == ("b",)
    assert [records.next_record_from_split() for _ in range(2)] == [3, None]
    assert records.next_split() is None
    assert records.finished_splits() == {("b",)}


def test_splits_that_end_together_end_in_the_order_of_their_ids() -> None:
    """A connector may ask for work for each of them, and every process must ask for the same."""
    scene = Scene(lambda make: InlineFetchers(make, Threading.ONE_READER))
    splits = [NumbersSplit(name=f"split-{number}", stop=2) for number in range(20)]
    scene.reader.add_splits(splits)

    scene.read_to_the_end()

    assert scene.split_readers[0].calls.count("fetch") == 1
    assert scene.reader.finished == sorted(split.split_id for split in splits)
