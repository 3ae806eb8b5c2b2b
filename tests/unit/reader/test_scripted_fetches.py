"""What a source reader makes of each fetch, and what it tells the code that fetches."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from balanced_source.api import InputStatus, SplitId
from balanced_source.reader import RecordsBySplits, SplitOutputs
from balanced_source.reader.fetching import Fetched
from support.numbers import NumbersSourceReader, NumbersSplit, State

A, B = NumbersSplit(name="a"), NumbersSplit(name="b")
MORE, NOTHING, END = (
    InputStatus.MORE_AVAILABLE,
    InputStatus.NOTHING_AVAILABLE,
    InputStatus.END_OF_INPUT,
)


@dataclass
class Scripted:
    """Fetchers that return what a test has put in, and note what they are told."""

    results: list[Fetched[int]] = field(default_factory=list)
    instructions: list[Any] = field(default_factory=list)
    is_busy: bool = False

    def add_splits(self, splits: Sequence[NumbersSplit], generation: int) -> None:
        self.instructions.append(("add", [split.name for split in splits], generation))

    def remove_splits(self, split_ids: Collection[SplitId]) -> None:
        self.instructions.append(("remove", list(split_ids)))

    def pause_or_resume_splits(
        self, to_pause: Collection[SplitId], to_resume: Collection[SplitId]
    ) -> None:
        self.instructions.append(("pause", list(to_pause), list(to_resume)))

    def poll(self) -> Fetched[int] | None:
        return self.results.pop(0) if self.results else None

    def has_result(self) -> bool:
        return bool(self.results)

    def is_idle(self) -> bool:
        return not self.is_busy and not self.results

    def close(self) -> None:
        self.instructions.append("close")


class Recycled(RecordsBySplits[int]):
    """Records in a buffer that is used again."""

    def __init__(self, records: Mapping[SplitId, Sequence[int]], log: list[Any]) -> None:
        super().__init__(records)
        self._log = log

    def recycle(self) -> None:
        self._log.append("recycle")


class Quiet(NumbersSourceReader):
    """Counts how often it is told of finished splits."""

    calls = 0

    def on_splits_finished(self, finished: Mapping[SplitId, State]) -> None:
        self.calls += 1
        super().on_splits_finished(finished)


class Scene:
    """A reader with the splits A and B, and what comes out of it."""

    def __init__(self) -> None:
        self.fetchers, self.log = Scripted(), list[Any]()
        self.reader = Quiet(self.fetchers)
        self.output: SplitOutputs[tuple[str, int]] = SplitOutputs(
            lambda record, _: self.log.append(record),
            on_release=lambda split_id: self.log.append(("released", *split_id)),
            on_flush=lambda: self.log.append("flush"),
        )
        self.reader.start()
        self.reader.add_splits([A, B])

    def fetch(
        self, records: RecordsBySplits[int], *split_ids: SplitId, generation: int = 1
    ) -> None:
        """A fetch that was begun for these splits."""
        known = dict.fromkeys(split_ids or (A.split_id, B.split_id), generation)
        self.fetchers.results.append(Fetched(records, known))

    def poll(self) -> InputStatus:
        return self.reader.poll_next(self.output)

    def outputs(self) -> set[SplitId]:
        return set(self.output.split_watermarks())


def test_an_empty_fetch_before_another_one_is_not_the_end_of_input() -> None:
    scene = Scene()
    scene.fetch(RecordsBySplits())
    scene.fetch(RecordsBySplits({A.split_id: [0]}))

    assert scene.reader.is_available()
    assert [scene.poll() for _ in range(3)] == [MORE, MORE, NOTHING]
    assert scene.log == [("a", 0)]
    assert not scene.reader.is_available()


def test_a_fetch_is_available_until_all_of_it_was_emitted() -> None:
    scene = Scene()
    scene.fetch(RecordsBySplits({A.split_id: [0, 1], B.split_id: [0]}))

    found = [(scene.poll(), scene.reader.is_available()) for _ in range(4)]

    assert found == [(MORE, True), (MORE, True), (MORE, True), (NOTHING, False)]
    assert scene.log == [("a", 0), ("a", 1), ("b", 0)]


def test_the_input_ends_when_no_split_is_left_and_none_will_come() -> None:
    scene = Scene()
    scene.reader.notify_no_more_splits()
    assert scene.poll() is NOTHING, "two splits are left"

    scene.reader.remove_splits([A.split_id, B.split_id])
    scene.fetchers.is_busy = True
    assert scene.poll() is NOTHING, "a fetch is on its way"

    scene.fetchers.is_busy = False
    assert scene.poll() is END


def test_without_the_word_that_no_more_come_the_input_does_not_end() -> None:
    scene = Scene()
    scene.reader.remove_splits([A.split_id, B.split_id])

    assert scene.poll() is NOTHING


def test_outputs_are_made_before_anything_is_read_of_their_splits() -> None:
    """The watermark must wait for them; a split that has left holds no one back."""
    scene = Scene()
    assert scene.outputs() == set()
    scene.reader.remove_splits([B.split_id])

    scene.poll()
    assert scene.outputs() == {A.split_id}
    scene.output.release_output_for_split(A.split_id)
    scene.poll()
    assert scene.outputs() == set(), "it is made once"


def test_the_end_of_a_split_releases_its_output_before_its_reader_is_told() -> None:
    scene = Scene()
    scene.fetch(RecordsBySplits({A.split_id: [0]}, finished=[A.split_id]))
    scene.fetch(RecordsBySplits({B.split_id: [0]}))

    while scene.poll() is MORE:
        pass

    assert scene.log == [("a", 0), ("released", "a"), ("b", 0)]
    assert (scene.reader.finished, scene.reader.calls) == ([A.split_id], 1)
    assert scene.reader.snapshot_split(A.split_id) is None
    assert scene.reader.snapshot_split(B.split_id) == B.at(1)


def test_records_are_flushed_before_their_buffer_is_used_again() -> None:
    scene = Scene()
    scene.fetch(Recycled({A.split_id: [0]}, scene.log))
    scene.fetch(RecordsBySplits({B.split_id: [0]}))

    while scene.poll() is MORE:
        pass

    assert scene.log == [("a", 0), "flush", "recycle", ("b", 0)], "no flush without a buffer"


def test_a_split_is_drained_once_a_fetch_of_it_brought_nothing() -> None:
    scene = Scene()
    drained = []
    for records in ({A.split_id: [0]}, {B.split_id: [0]}, {A.split_id: [1], B.split_id: [1]}):
        scene.fetch(RecordsBySplits(records))
        while scene.poll() is MORE:
            pass
        drained.append([scene.reader.is_drained(s.split_id) for s in (A, B)])

    assert drained == [[False, True], [True, False], [False, False]]


def test_a_fetch_says_nothing_of_splits_that_it_was_not_begun_for() -> None:
    scene = Scene()
    scene.fetch(RecordsBySplits({A.split_id: [0]}), A.split_id)

    while scene.poll() is MORE:
        pass

    assert not scene.reader.is_drained(B.split_id)


def test_what_was_fetched_for_a_former_addition_is_dropped() -> None:
    scene = Scene()
    scene.fetch(RecordsBySplits(), A.split_id)
    scene.poll()
    assert scene.reader.is_drained(A.split_id)
    scene.reader.remove_splits([A.split_id])
    scene.reader.add_splits([A.at(5)])
    assert not scene.reader.is_drained(A.split_id), "it is another addition"

    scene.fetch(RecordsBySplits({A.split_id: [0]}, finished=[A.split_id]), A.split_id)
    scene.poll()
    assert (scene.log, scene.reader.finished) == ([], [])
    assert not scene.reader.is_drained(A.split_id)

    scene.fetch(RecordsBySplits({A.split_id: [5]}), A.split_id, generation=2)
    scene.poll()
    assert scene.log == [("a", 5)]


def test_fetchers_are_told_of_known_splits_alone() -> None:
    scene = Scene()
    gone = ("gone",)

    scene.reader.pause_or_resume_splits([A.split_id, gone], [gone, B.split_id])
    moved = scene.reader.remove_splits([gone, B.split_id])
    scene.reader.add_splits([B])
    scene.reader.close()

    assert moved == (B,)
    assert scene.fetchers.instructions == [
        ("add", ["a", "b"], 1),
        ("pause", [A.split_id], [B.split_id]),
        ("remove", [B.split_id]),
        ("add", ["b"], 2),
        "close",
    ]


@pytest.mark.parametrize("first", [A, B])
def test_a_snapshot_has_the_splits_in_the_order_of_their_addition(first: NumbersSplit) -> None:
    reader = NumbersSourceReader(Scripted())
    reader.add_splits([first])
    reader.add_splits([split for split in (A, B) if split is not first])

    assert reader.snapshot_state(1)[0].name == first.name
    assert reader.snapshot_split(first.split_id) == first
