"""Executors and the number of readers: who waits for whom."""

from pathlib import Path

import pytest

from balanced_source_spark.executors import AdoptionGate, Board, ExecutorStep, next_step


@pytest.mark.parametrize(
    ("wanted", "adopted", "executors", "expected"),
    [
        (4, 2, 1, ExecutorStep(total=2, ready=2)),
        (4, 2, 2, ExecutorStep(ready=4)),
        (2, 4, 2, ExecutorStep(ready=4)),  # the smaller number is not adopted yet
        (2, 2, 2, ExecutorStep(surplus=1, ready=4)),
        (5, 4, 2, ExecutorStep(total=3, ready=4)),
    ],
)
def test_executors_are_asked_for_before_and_given_back_after(
    wanted: int, adopted: int, executors: int, expected: ExecutorStep
) -> None:
    step = next_step(wanted=wanted, adopted=adopted, executors=executors, slots=2, is_elastic=False)

    assert step == expected


def test_dynamic_allocation_is_left_alone() -> None:
    assert next_step(wanted=9, adopted=1, executors=1, slots=1, is_elastic=True) == ExecutorStep(
        ready=9
    )


def test_a_larger_parallelism_waits_until_executors_are_ready(tmp_path: Path) -> None:
    board = Board(tmp_path)
    gate = AdoptionGate(board)

    assert not gate(adopted=2, wanted=4)
    assert board.read("wanted") == 4
    board.post("ready", 4)
    assert gate(adopted=2, wanted=4)
    gate.note(4)
    assert board.read("adopted") == 4


def test_a_smaller_parallelism_and_the_first_one_do_not_wait(tmp_path: Path) -> None:
    gate = AdoptionGate(Board(tmp_path))

    assert gate(adopted=4, wanted=2)
    assert gate(adopted=0, wanted=4)
    assert AdoptionGate(None)(adopted=1, wanted=9)


def test_waiting_ends(tmp_path: Path) -> None:
    assert AdoptionGate(Board(tmp_path), patience=0)(adopted=1, wanted=9)


def test_the_number_of_readers_is_posted_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted: list[int] = []
    post = Board.post

    def recorded(board: Board, name: str, number: int) -> None:
        posted.append(number)
        post(board, name, number)

    monkeypatch.setattr(Board, "post", recorded)
    gate = AdoptionGate(Board(tmp_path))

    for adopted in (2, 2, 3, 3, 2):
        gate.note(adopted)

    assert posted == [2, 3, 2], "not at each micro-batch"
