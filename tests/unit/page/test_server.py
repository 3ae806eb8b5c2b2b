"""The server: who gets what, with which headers, and what a stream says."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from balanced_source.errors import BalancedSourceError, StateError
from balanced_source_operator.page import server
from balanced_source_operator.page.access import Access, ConfiguredToken, Everybody, ReviewedToken
from balanced_source_operator.page.board import StatusBoard
from balanced_source_operator.page.server import HEADERS, StatusPage, serving
from balanced_source_operator.resources.identity import Identity
from support.page_scene import Reviewer, Viewer, put, seen_source, with_state
from testbed.ports import LOOPBACK

pytestmark = pytest.mark.asyncio
TOKEN = "0123456789abcdef0123"  # noqa: S105 - of this test
ORDERS = "?namespace=shop&name=orders"


@pytest.fixture(autouse=True)
def _no_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_PACE", 0.0)


@asynccontextmanager
async def page(
    board: StatusBoard, access: Access | None = None, **settings: Any
) -> AsyncIterator[Callable[..., Viewer]]:
    async with serving(StatusPage(board, access or Everybody(), **settings), LOOPBACK, 0) as port:
        yield lambda token="": Viewer(port, token)


async def test_every_answer_has_a_strict_policy() -> None:
    board = StatusBoard()
    put(board, seen_source())
    paths = [
        "/",
        "/page.js",
        "/page.css",
        "/favicon.ico",
        "/nothing",
        f"/api/plan{ORDERS}&readers=3",
    ]
    async with page(board) as viewer:
        for path in paths:
            _, _, headers = await viewer().get(path)
            assert {name: headers.get(name) for name in HEADERS} == HEADERS, path
            assert "Server" not in headers
        async with viewer().following() as events:
            assert (
                events._answer.headers["Content-Security-Policy"]
                == HEADERS["Content-Security-Policy"]
            )
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")


async def test_the_page_names_no_other_host_and_has_no_inline_script_or_style() -> None:
    async with page(StatusBoard()) as viewer:
        for path in ("/", "/page.js", "/page.css"):
            status, text, _ = await viewer().get(path)
            assert status == 200
            assert "//" not in text.replace("http://www.w3.org/2000/svg", "").replace(
                "// ", ""
            ).replace("// -", "")
            assert not [
                bad for bad in ("innerHTML", "eval(", " style=", " onclick") if bad in text
            ], path
        _, html, _ = await viewer().get("/")
    assert html.count("<script") == 1
    assert "<style" not in html


async def test_files_need_no_token_and_data_do(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    board = StatusBoard()
    put(board, seen_source())
    async with page(board, ConfiguredToken(file)) as viewer:
        assert (await viewer().get("/"))[0] == 200
        for token in ("", "wrong"):
            for path in ("/api/events", f"/api/plan{ORDERS}&readers=3", "/api/nothing"):
                status, answer, headers = await viewer(token).get(path)
                assert (status, headers["WWW-Authenticate"], "oken" in answer["error"]) == (
                    401,
                    "Bearer",
                    True,
                )
        assert (await viewer().get("/api/events", Authorization=f"Basic {TOKEN}"))[0] == 401
        assert (await viewer(TOKEN).get("/api/nothing"))[0] == 404
        async with viewer(TOKEN).following() as events:
            assert (await events.next())[0] == "sources"


async def test_a_user_sees_the_sources_of_its_namespaces_only() -> None:
    board = StatusBoard()
    put(board, seen_source())
    put(board, seen_source(), namespace="bank", name="secret")
    async with page(board, ReviewedToken(Reviewer())) as viewer:
        async with viewer("of-ann").following() as events:
            rows = (await events.until("sources"))["changed"]
            assert [row["name"] for row in rows] == ["secret", "orders"]
        async with viewer("of-eve").following() as events:
            assert [row["name"] for row in (await events.until("sources"))["changed"]] == ["orders"]
        for path in (
            "/api/events?namespace=bank&name=secret",
            "/api/plan?namespace=bank&name=secret&readers=2",
        ):
            status, answer, _ = await viewer("of-eve").get(path)
            assert (status, answer["error"].startswith("eve may not get BalancedSources")) == (
                403,
                True,
            )
        status, answer, _ = await viewer("of-eve").get("/api/events?namespace=bank&name=nothing")
        assert status == 403, "whether it exists is nobody's business"


async def test_an_event_stream_sends_each_change_and_the_end_of_a_source() -> None:
    board = StatusBoard()
    put(board, seen_source())
    put(board, seen_source(), name="bills")
    async with page(board) as viewer, viewer().following(f"/api/events{ORDERS}") as events:
        first = await events.until("sources")
        assert ([row["name"] for row in first["changed"]], first["gone"]) == (
            ["bills", "orders"],
            [],
        )
        assert (await events.until("source"))["epoch"] == 4
        assert len((await events.until("splits"))["rows"]) == 2

        put(board, seen_source(readers=3, epoch=5))
        news = await events.until("sources")
        assert [row["name"] for row in news["changed"]] == ["orders"], "only what has changed"
        timeline = (await events.until("source"))["timeline"]
        assert timeline[0]["why"] == "Rescaled from 2 to 3 readers"
        assert len((await events.until("splits"))["rows"]) == 3

        board.forget(Identity(namespace="shop", name="bills", uid="u"))
        assert (await events.until("sources"))["gone"] == [["shop", "bills"]]


async def test_splits_are_kept_only_while_a_viewer_needs_them() -> None:
    board = StatusBoard()
    put(board, seen_source())
    shown = board.get(("shop", "orders"))
    assert shown is not None
    async with page(board) as viewer:
        async with viewer().following() as events:
            await events.until("sources")
            assert not shown.exhibit.keeps_splits
        async with viewer().following(f"/api/events{ORDERS}") as events:
            await events.until("splits")
            assert shown.exhibit.keeps_splits
        async with asyncio.timeout(30):
            while shown.exhibit.keeps_splits:
                put(board, seen_source())  # a write shows that the viewer has gone
                await asyncio.sleep(0.01)


async def test_a_source_appears_on_the_page_when_it_is_created() -> None:
    board = StatusBoard()
    async with page(board) as viewer, viewer().following(f"/api/events{ORDERS}") as events:
        assert (await events.until("sources"))["changed"] == []
        put(board, seen_source())
        assert (await events.until("source"))["name"] == "orders"


async def test_a_right_that_is_taken_away_ends_the_stream() -> None:
    reviewer, board, now = Reviewer(), StatusBoard(), 0.0
    put(board, seen_source())
    access = ReviewedToken(reviewer, lambda: now)
    async with page(board, access) as viewer, viewer("of-ann").following() as events:
        await events.until("sources")
        reviewer.users.clear()
        now = 1000.0
        put(board, seen_source())
        with pytest.raises(EOFError):
            await events.until("sources")


async def test_viewers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_VIEWERS", 1)
    async with page(StatusBoard()) as viewer, viewer().following() as events:
        await events.until("sources")
        status, answer, _ = await viewer().get("/api/events")
        assert (status, answer["error"]) == (
            503,
            "1 people look at this page already: close a tab, or try again later.",
        )


async def test_a_standby_replica_names_the_leader() -> None:
    async with page(StatusBoard(), absence=lambda: "This replica stands by") as viewer:
        assert (await viewer().get("/api/events"))[:2] == (503, {"error": "This replica stands by"})
        assert (await viewer().get("/"))[0] == 200


async def test_another_name_that_leads_here_is_not_answered() -> None:
    async with page(StatusBoard(), hosts=frozenset({"127.0.0.1"})) as viewer:
        assert (await viewer().get("/"))[0] == 200
        for name in ("evil.example:80", "evil.example", "[::1]:80", "127.0.0.1.evil.example"):
            status, answer, _ = await viewer().get("/", Host=name)
            assert (status, "http://localhost" in answer["error"]) == (421, True), name


async def test_a_plan_says_what_a_rescale_would_move_and_changes_nothing() -> None:
    board = StatusBoard()
    seen = with_state(seen_source())
    assert seen.checkpoint is not None
    before = seen.checkpoint()
    put(board, seen)
    async with page(board) as viewer:
        status, plan, _ = await viewer().get(f"/api/plan{ORDERS}&readers=3")
    assert status == 200
    assert (plan["splits"], plan["moved"], plan["placed"]) == (6, 2, 0)
    assert plan["perReader"] == {"before": [3, 3], "after": [2, 2]}
    assert len(plan["moves"]) == 2
    assert seen.checkpoint() == before


async def test_a_plan_counts_the_hosts_that_the_number_of_readers_needs() -> None:
    board = StatusBoard()
    seen = with_state(seen_source())
    put(board, replace(seen, hosts_for=lambda readers: tuple(map(str, range(readers // 2)))))
    async with page(board) as viewer:
        _, plan, _ = await viewer().get(f"/api/plan{ORDERS}&readers=4")
    assert plan["hosts"] == {"before": 1, "after": 2, "movedBetween": 2}


def _no_state() -> Any:
    raise StateError("nothing is stored yet")


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        (f"{ORDERS}&readers=0", 400, "whole number from 1 to 1000"),
        (f"{ORDERS}&readers=1001", 400, "whole number"),
        (f"{ORDERS}&readers=99999", 400, "whole number"),
        (f"{ORDERS}&readers=%C2%B2", 400, "whole number"),
        (f"{ORDERS}&readers=-1", 400, "whole number"),
        (ORDERS, 400, "whole number"),
        ("?readers=3", 400, "Name a source"),
        (
            "?namespace=shop&name=other&readers=3",
            404,
            "There is no BalancedSource other in namespace shop",
        ),
        ("?namespace=shop&name=new&readers=3", 409, "There is no plan yet"),
        ("?namespace=shop&name=lost&readers=3", 409, "nothing is stored yet"),
    ],
)
async def test_an_impossible_plan_is_rejected_with_a_message(
    query: str, status: int, said: str
) -> None:
    board = StatusBoard()
    planned = with_state(seen_source())
    put(board, planned)
    put(board, seen_source(), name="new")
    put(board, replace(planned, checkpoint=_no_state), name="lost")
    async with page(board) as viewer:
        found, answer, _ = await viewer().get(f"/api/plan{query}")

    assert (found, said in answer["error"]) == (status, True), answer


async def test_the_end_of_the_process_ends_all_streams() -> None:
    board = StatusBoard()
    async with contextlib.AsyncExitStack() as stack:
        viewer = await stack.enter_async_context(page(board))
        async with viewer().following() as events:
            await events.until("sources")
            await stack.aclose()
            with pytest.raises(EOFError):
                await events.until("sources")


async def test_a_port_that_is_taken_is_named() -> None:
    async with serving(StatusPage(StatusBoard(), Everybody()), LOOPBACK, 0) as port:
        with pytest.raises(
            BalancedSourceError, match=f"cannot listen on 127.0.0.1:{port}.*Choose another port"
        ):
            async with serving(StatusPage(StatusBoard(), Everybody()), LOOPBACK, port):
                pass
