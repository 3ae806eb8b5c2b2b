"""A whole source in one process: pull, events, rescale, crashes.

Each record delivered once by its checkpoint.
"""

import random

import pytest

from balanced_source.documents import assignment as assignment_document
from balanced_source.reader import Threading
from balanced_source.testing.alignment import AlignmentGroup
from balanced_source.testing.local_run import LocalRun
from support.local_scene import Record, Scene, ranges
from support.numbers import NumbersSplit
from support.numbers_source import NumbersSource


@pytest.mark.parametrize("threading", list(Threading))
def test_readers_pull_until_there_is_nothing_left(threading: Threading) -> None:
    scene = Scene(NumbersSource(ranges(), threading))

    scene.run.run(timeout=30)

    scene.check()
    assert set(scene.by_reader) == {0, 1}, "both worked"
    assert scene.run.coordinator.enumerator.is_finished()
    assert "0 asks from localhost" in scene.source.log


def test_enumerator_and_readers_talk() -> None:
    scene = Scene(NumbersSource(ranges()))

    scene.run.run(timeout=30)

    for subtask in (0, 1):
        assert scene.source.log.count(f"{subtask} hears who are you?") == 1
        assert scene.source.log.count(f"{subtask} says reader {subtask}") == 1


def test_a_crash_at_any_step_repeats_nothing_and_loses_nothing() -> None:
    steps = 0
    while True:
        scene = Scene(NumbersSource(ranges(5, 8)))
        for _ in range(steps):
            scene.run.step(limit=3)
        if scene.run.group.is_finished:
            break
        scene.run.group.poll(2)  # emitted, and never committed
        scene.crash()
        scene.run.run(timeout=30)
        scene.check()
        steps += 1
    assert steps > 5


class Unreliable(LocalRun[Record]):
    """Documents are lost, or arrive much later than newer ones, until `mend`."""

    chance = random.Random(0)
    is_mended = False

    def _exchange(self) -> None:
        if self.is_mended or self.chance.random() < 0.5:
            super()._exchange()
        else:
            self.group.report()  # written, and never seen
            if self._assignment is not None and self.chance.random() < 0.5:
                self.group.on_assignment(assignment_document.decode(self._assignment))


@pytest.mark.parametrize("is_reliable", [True, False])
@pytest.mark.parametrize("seed", range(15))
def test_rescaled_and_crashed_at_random(seed: int, is_reliable: bool) -> None:
    chance = random.Random(seed)
    source = NumbersSource(
        ranges(9, 30), chance.choice(list(Threading)), chunk=chance.randint(1, 8)
    )
    scene = Scene(source, made=LocalRun if is_reliable else Unreliable)
    for _ in range(40):
        match chance.randrange(5):
            case 4:
                scene.run.start_coordinator()
            case 0:
                scene.parallelism = chance.randint(1, 5)
                scene.run.rescale(scene.parallelism)
            case 1:
                scene.run.group.poll(chance.randint(1, 9))
                scene.crash()
            case _:
                scene.run.step(limit=chance.randint(1, 9))
    scene.run.is_mended = True  # type: ignore[attr-defined] # of the unreliable one
    scene.run.run(timeout=30)

    scene.check()


def test_a_finished_reader_takes_over_splits_that_others_leave() -> None:
    source = NumbersSource(
        (NumbersSplit(name="short", stop=2), NumbersSplit(name="long", stop=500))
    )
    scene = Scene(source)
    while not (readers := scene.run.group._readers) or not readers[0].has_ended:
        scene.run.step(limit=5)

    scene.run.rescale(1)
    scene.run.run(timeout=30, limit=5)

    scene.check()


def test_a_run_that_does_not_end_says_so() -> None:
    scene = Scene(NumbersSource(ranges()))
    scene.run.step()

    with pytest.raises(TimeoutError, match="not at its end"):
        scene.run.run(timeout=-1)


@pytest.mark.parametrize("threading", [Threading.ONE_READER, Threading.ONE_PER_SPLIT])
def test_splits_of_an_alignment_group_stay_together(threading: Threading) -> None:
    """A split that begins late in event time waits for the others.

    By at most the drift and what one poll brings.
    """
    late = NumbersSplit(name="late", next=500, stop=600)
    source = NumbersSource((NumbersSplit(name="early", stop=550), late), threading, chunk=5)
    scene = Scene(source, parallelism=2)
    scene.run.group.alignment = AlignmentGroup("g", max_drift=100)
    order: list[Record] = []
    scene.run.group.collect = lambda subtask, record, _: (
        order.append(record),
        scene.pending.append((subtask, record)),
    )

    scene.run.run(timeout=30, limit=10)

    scene.check()
    before = order.index(("late", 530))
    assert ("early", 400) in order[:before], (
        "late was paused at once, and went on only when early was near"
    )
