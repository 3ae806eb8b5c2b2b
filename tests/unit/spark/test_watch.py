"""A driver that follows its assignment at an API server with faults.

What it asks, and how long it waits.
"""

import json
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightkube.resources.core_v1 import ConfigMap
from structlog.testing import capture_logs

from balanced_source_spark.channels import watch
from balanced_source_spark.channels.errors import ChannelError
from balanced_source_spark.channels.watch import (
    HELD,
    WATCH_SILENCE,
    Backoff,
    ConfigMapWatch,
    Follower,
)


def listed(revision: str, *objects: str) -> httpx2.Response:
    items = [{"metadata": {"name": "orders-assignment", "resourceVersion": r}} for r in objects]
    return httpx2.Response(200, json={"metadata": {"resourceVersion": revision}, "items": items})


def event(kind: str, revision: str) -> dict[str, Any]:
    return {
        "type": kind,
        "object": {"metadata": {"name": "orders-assignment", "resourceVersion": revision}},
    }


def events(*lines: dict[str, Any]) -> httpx2.Response:
    return httpx2.Response(200, text="".join(json.dumps(line) + "\n" for line in lines))


EXPIRED = {"type": "ERROR", "object": {"code": 410, "message": "too old resource version: 1 (9)"}}


class Waits(threading.Event):
    """A stop signal that records the waits before attempts, and is set after the last answer."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout or 0.0)
        return self.is_set()


class Scene:
    """An API server with prepared answers, in their order."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.timeouts: list[Any] = []
        self.seen: list[str] = []
        self.stop = Waits()
        self.connect()

    def connect(self) -> "Scene":
        http = httpx2.Client(base_url="https://api", transport=httpx2.MockTransport(self._answer))
        self.watch = ConfigMapWatch(http, namespace="shop", name="orders-assignment")
        return self

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        query = request.url.params
        assert query["fieldSelector"] == "metadata.name=orders-assignment"
        self.asked.append(f"watch {query['resourceVersion']}" if "watch" in query else "list")
        self.timeouts.append(request.extensions["timeout"]["read"])
        answer = self.answers.pop(0)
        if not self.answers:
            self.stop.set()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def tell(self, found: ConfigMap) -> None:
        assert found.metadata is not None
        self.seen.append(str(found.metadata.resourceVersion))

    def run(self, tell: Callable[[ConfigMap], None] | None = None) -> "Scene":
        Follower(self.watch, tell or self.tell, self.stop).run()
        return self


def test_a_watch_starts_from_the_revision_of_the_list_and_continues_from_bookmarks() -> None:
    scene = Scene(
        listed("50", "3"), events(event("MODIFIED", "60"), event("BOOKMARK", "75")), events()
    ).run()

    assert scene.asked == ["list", "watch 50", "watch 75"]
    assert scene.seen == ["3", "60"]


def test_only_an_expired_revision_is_listed_again() -> None:
    scene = Scene(
        listed("50", "3"),
        events(EXPIRED),
        listed("90", "80"),
        httpx2.ConnectError("reset"),
        events(),
    ).run()

    assert scene.asked == ["list", "watch 50", "list", "watch 90", "watch 90"]
    assert scene.seen == ["3", "80"]


@pytest.mark.parametrize(
    "ending", [events(), events(EXPIRED), httpx2.ReadError("reset"), httpx2.Response(503)]
)
def test_a_watch_that_does_not_hold_is_tried_again_more_and_more_slowly(
    ending: httpx2.Response | Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene()
    attempts: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        if "watch" not in request.url.params:
            return listed("50", "3")
        attempts.append(request.url.params["resourceVersion"])
        if len(attempts) == 8:
            scene.stop.set()
        if isinstance(ending, Exception):
            raise ending
        return ending

    monkeypatch.setattr(scene, "_answer", answer)
    scene.connect().run()

    assert sum(scene.stop.seconds) > 6, "eight attempts take six seconds at least"
    assert max(scene.stop.seconds) <= 5


def test_a_connection_that_has_fallen_silent_is_given_up() -> None:
    scene = Scene(listed("50"), httpx2.ReadTimeout("silent"), events()).run()

    assert scene.timeouts[1] == WATCH_SILENCE
    assert scene.asked == ["list", "watch 50", "watch 50"]


def test_a_version_that_cannot_be_taken_yet_is_listed_again() -> None:
    told: list[str] = []

    def tell(found: ConfigMap) -> None:
        assert found.metadata is not None
        told.append(str(found.metadata.resourceVersion))
        if len(told) == 1:
            raise ChannelError("the parts of the assignment are being replaced")

    scene = Scene(listed("50", "3"), listed("51", "3"), events()).run(tell)

    assert scene.asked == ["list", "list", "watch 51"]
    assert told == ["3", "3"]


def test_a_lasting_fault_is_logged_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(watch, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    scene = Scene(*[httpx2.ConnectError("refused")] * 50)
    monkeypatch.setattr(scene.stop, "wait", lambda _: clock.__setitem__(0, clock[0] + 5))

    with capture_logs() as logs:
        scene.run()

    assert [line["log_level"] for line in logs] == ["warning"] * 5, "at 0, 60, 120, 180 and 240 s"


def test_a_refusal_names_the_answer_of_the_api_server() -> None:
    refused = httpx2.Response(403, json={"kind": "Status", "message": "configmaps is forbidden"})
    with capture_logs() as logs:
        Scene(refused).run()
        Scene(refused, refused).run()

    assert "the API server answered 403: configmaps is forbidden" in str(logs)


def test_only_the_beginning_of_a_page_in_place_of_an_answer_is_shown() -> None:
    page = "x" * 200 + "y" * 1_000

    with pytest.raises(ChannelError) as caught:
        Scene(httpx2.Response(502, text=page)).watch.list()

    assert str(caught.value) == f"the API server answered 502: {'x' * 200}"


@given(lasted=st.lists(st.floats(0, 2 * HELD), min_size=1, max_size=60))
def test_attempts_that_do_not_hold_never_come_in_a_hurry(lasted: list[float]) -> None:
    backoff = Backoff(spread=lambda: 0.5)
    delays = [backoff.after(seconds) for seconds in lasted]

    for n, delay in enumerate(delays):
        assert 0.1 <= delay <= 2.5
        short = [seconds for seconds in lasted[max(0, n - 5) : n + 1] if seconds < HELD]
        if n >= 5 and len(short) == 6:
            assert delay == 2.5, "the sixth short attempt in a row waits longest"
