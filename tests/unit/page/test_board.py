"""The board: sources come and go, defects stay on the page, and sampling keeps pace."""

import asyncio

import pytest
from structlog.testing import capture_logs

from balanced_source_operator.page.board import StatusBoard
from balanced_source_operator.page.exhibit import Exhibit
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.runtime.audience import SourceMoment
from support.page_scene import put, seen_source

KEY = ("shop", "orders")


def exhibit(board: StatusBoard) -> Exhibit:
    shown = board.get(KEY)
    assert shown is not None
    return shown.exhibit


def test_a_recreated_source_gets_an_empty_history_although_its_predecessor_ends_later() -> None:
    board = StatusBoard()
    put(board, seen_source(), uid="first")
    former = exhibit(board)
    put(board, seen_source(), uid="first")
    assert exhibit(board) is former
    put(board, seen_source(), uid="second")
    assert exhibit(board) is not former

    board.forget(Identity(namespace="shop", name="orders", uid="first"))
    assert board.keys() == [KEY]
    board.forget(Identity(namespace="shop", name="orders", uid="second"))
    assert board.keys() == []
    board.forget(Identity(namespace="shop", name="orders", uid="second"))


def test_a_defect_of_the_page_does_not_reach_the_operator() -> None:
    def broken() -> SourceMoment:
        raise ValueError("defect")

    board = StatusBoard()
    with capture_logs() as logs:
        board.turned(Identity(namespace="shop", name="orders", uid="u"), broken)
        board.sample(KEY)

    assert [entry["event"] for entry in logs] == ["the status page cannot show this source"] * 2


def test_each_change_has_a_version_of_its_own() -> None:
    board = StatusBoard()
    put(board, seen_source())
    put(board, seen_source(), name="bills")
    first, second = board.get(KEY), board.get(("shop", "bills"))
    assert first is not None
    assert second is not None
    assert first.version < second.version == board.version
    board.sample(KEY)
    board.sample(("shop", "gone"))
    changed = board.get(KEY)
    assert changed is not None
    assert changed.version == board.version > second.version


@pytest.mark.asyncio
async def test_all_sources_are_sampled_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("balanced_source_operator.page.board.SPACING", 0.0)
    board = StatusBoard()
    for number in range(50):
        put(board, seen_source(), name=f"source-{number}")
    task = asyncio.create_task(board.sample_for_ever())

    def points() -> list[int]:
        shown = [board.get(key) for key in board.keys()]  # noqa: SIM118 - not a dict
        return [
            len(found.exhibit.detail(seen_source())["series"])
            for found in shown
            if found is not None
        ]

    async with asyncio.timeout(30):
        while min(points()) < 3:  # noqa: ASYNC110 - the board sleeps, too
            await asyncio.sleep(0)
    task.cancel()
    assert len(points()) == 50
