"""The checker of schedules over keyed records finds what is wrong with a sink."""

import csv
from collections.abc import Iterable
from pathlib import Path

import pytest

from chaos.checker.keyed import judge
from chaos.checker.verdict import Verdict

pytestmark = pytest.mark.unit

RECORDS = (("a", 0), ("b", 1), ("a", 2), ("b", 3))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "written.csv", RECORDS)
    return tmp_path


def write(file: Path, records: Iterable[tuple[str, int]]) -> None:
    with file.open("w", newline="") as out:
        csv.writer(out).writerows(records)


def attempt(folder: Path, batch: int, *tasks: Iterable[tuple[str, int]], name: str = "x") -> None:
    """Write a whole attempt, which becomes the valid one of its micro-batch."""
    made = folder / "sink" / str(batch) / name
    made.mkdir(parents=True)
    for number, task in enumerate(tasks):
        write(made / f"task-{number}.csv", task)
    (made / "complete").touch()
    (made.parent / "valid").write_text(name)


def counts(verdict: Verdict) -> dict[str, int]:
    names = ("lost", "duplicated", "unexpected", "disordered", "replayed")
    return {name: value for name in names if (value := getattr(verdict, name))}


def test_each_record_once_and_keys_in_order(folder: Path) -> None:
    attempt(folder, 0, [("b", 1)], [("a", 0)])
    attempt(folder, 1, [("a", 2)], [("b", 3)])

    assert judge(folder).is_ok
    assert judge(folder).records == 4


def test_a_record_that_is_missing_twice_or_foreign(folder: Path) -> None:
    attempt(folder, 0, [("a", 0), ("b", 1)])
    attempt(folder, 1, [("c", 9), ("b", 3), ("b", 3)])

    assert counts(judge(folder)) == {"lost": 1, "duplicated": 1, "unexpected": 1, "disordered": 1}


@pytest.mark.parametrize(
    "batches",
    [
        ([[("a", 2)]], [[("a", 0)], [("b", 1), ("b", 3)]]),
        ([[("a", 2), ("a", 0)], [("b", 1), ("b", 3)]],),
        ([[("a", 0)], [("a", 2)], [("b", 1), ("b", 3)]],),
    ],
    ids=["in a later micro-batch", "in a task", "in two tasks, which have no order"],
)
def test_a_key_that_is_out_of_order(
    folder: Path, batches: tuple[list[list[tuple[str, int]]], ...]
) -> None:
    for number, tasks in enumerate(batches):
        attempt(folder, number, *tasks)

    assert counts(judge(folder)) == {"disordered": 1}


def test_an_attempt_that_was_replaced_counts_as_a_replay_only(folder: Path) -> None:
    attempt(folder, 0, RECORDS[:3], name="first")
    attempt(folder, 0, RECORDS, name="second")

    assert counts(judge(folder)) == {"replayed": 1}


def test_a_history_has_no_order_but_comes_first(folder: Path) -> None:
    (folder / "history.json").write_text("2")
    attempt(folder, 0, [("b", 1)], [("a", 0)])
    attempt(folder, 1, [("a", 2), ("b", 3)])
    assert judge(folder).is_ok

    write(folder / "written.csv", [*RECORDS, ("a", 1)])
    attempt(folder, 2, [("a", 1)])
    assert counts(judge(folder)) == {"disordered": 1}
