"""The program that decides whether a history of epochs and deliveries is linearisable."""

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.checker.epochs import check
from testbed.builds import Builder

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def program() -> Path:
    return Builder().ensure("linearisable")["linearisable"]


def batch(number: int, begin: int, end: int, *, epoch: int = 1) -> list[dict[str, Any]]:
    common = {"batch": number, "pid": 1}
    ranges = [["main", "orders", 0, "id", begin, end]]
    return [
        {**common, "event": "logged", "at": 2.0 * number + 1, "epoch": epoch, "ranges": ranges},
        {**common, "event": "committed", "at": 2.0 * number + 2},
    ]


def problem(tmp_path: Path, program: Path, *batches: list[dict[str, Any]]) -> str | None:
    history = tmp_path / "history.jsonl"
    history.write_text("".join(json.dumps(event) + "\n" for events in batches for event in events))
    return check(tmp_path, program)


def test_ranges_without_gap_in_growing_epochs(tmp_path: Path, program: Path) -> None:
    assert (
        problem(tmp_path, program, batch(0, 0, 5), batch(1, 5, 9), batch(2, 9, 12, epoch=2)) is None
    )


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(batch(1, 4, 9), id="a record is read again"),
        pytest.param(batch(1, 6, 9), id="a record is skipped"),
        pytest.param(batch(1, 5, 3), id="backwards"),
    ],
)
def test_histories_that_no_order_explains(
    tmp_path: Path, program: Path, second: list[dict[str, Any]]
) -> None:
    found = problem(tmp_path, program, batch(0, 0, 5), second)

    assert found == "no order of steps explains the history of split main/orders/0/id"


def test_an_older_epoch_never_comes_back(tmp_path: Path, program: Path) -> None:
    assert problem(tmp_path, program, batch(0, 0, 5, epoch=2), batch(1, 5, 9, epoch=1)) is not None
