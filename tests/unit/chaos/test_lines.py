"""The checker of schedules over files finds what is wrong with a sink."""

import csv
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from chaos.checker.lines import judge
from chaos.checker.verdict import Verdict

pytestmark = pytest.mark.unit

TEXTS = ("one", "two", "three", "four")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    (tmp_path / "in" / "_hidden").write_text("not read\n")
    return tmp_path


def attempt(
    folder: Path, batch: int, texts: Iterable[str], *, name: str = "a", block: int = 0
) -> None:
    """Write a whole attempt with one task, which becomes the valid one of its micro-batch."""
    made = folder / "sink" / str(batch) / name
    made.mkdir(parents=True)
    with (made / "task-0.csv").open("w", newline="") as out:
        csv.writer(out).writerows(
            [folder / "in" / "0.txt", block, hashlib.sha256(text.encode()).hexdigest()[:20]]
            for text in texts
        )
    (made / "complete").touch()
    (made.parent / "valid").write_text(name)


def counts(verdict: Verdict) -> dict[str, int]:
    names = ("lost", "duplicated", "unexpected", "disordered", "replayed")
    return {name: value for name in names if (value := getattr(verdict, name))}


def test_each_line_once(folder: Path) -> None:
    attempt(folder, 0, TEXTS[:2])
    attempt(folder, 1, TEXTS[2:], block=10)

    assert judge(folder) == Verdict(
        records=4, lost=0, duplicated=0, unexpected=0, disordered=0, replayed=0
    )


def test_a_line_that_is_missing_twice_or_foreign(folder: Path) -> None:
    attempt(folder, 0, TEXTS[:2])
    attempt(folder, 1, ("two", "three", "five"), block=10)

    assert counts(judge(folder)) == {"lost": 1, "duplicated": 1, "unexpected": 1, "disordered": 1}


def test_the_newest_attempt_counts_and_must_hold_the_same(folder: Path) -> None:
    attempt(folder, 0, TEXTS, name="a")
    attempt(folder, 0, TEXTS, name="b")
    assert counts(judge(folder)) == {}

    attempt(folder, 0, TEXTS[1:], name="c")

    assert counts(judge(folder)) == {"lost": 1, "replayed": 1}


def test_the_order_within_a_block(folder: Path) -> None:
    attempt(folder, 0, ("three", "four"), block=10)
    attempt(folder, 1, ("two", "one"))

    assert counts(judge(folder)) == {"disordered": 1}


def test_a_micro_batch_that_is_planned_again_differently(folder: Path) -> None:
    attempt(folder, 0, TEXTS)
    logged = [
        {"event": "logged", "batch": 0, "epoch": epoch, "ranges": [], "at": 0, "pid": 1}
        for epoch in (1, 2)
    ]
    (folder / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in logged))

    assert counts(judge(folder)) == {"replayed": 1}


def test_half_an_attempt_does_not_count(folder: Path) -> None:
    attempt(folder, 0, TEXTS)
    (folder / "sink" / "0" / "a" / "complete").unlink()

    assert counts(judge(folder)) == {"lost": 4}
