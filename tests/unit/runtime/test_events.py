"""Events on the resource: the same one is not posted twice in a row."""

import asyncio

import structlog
from structlog.testing import capture_logs

from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.resources.kinds import EVENT
from balanced_source_operator.runtime.events import REPEAT_AFTER, RETRY_AFTER, EventRecorder
from support import virtual_time
from support.builders import UID, identity
from support.fake_kubernetes import FakeKubernetes


class Scene:
    """A recorder of the source `orders`, and the API server."""

    def __init__(self) -> None:
        self.server = FakeKubernetes(clock=virtual_time.clock)
        self.recorder = EventRecorder(self.server.client(), identity(), reporter="operator-1")

    @property
    def posted(self) -> list[str]:
        return [event["message"] for event in self.server.select(EVENT, "default")]


def test_an_event_names_its_source_and_its_writer() -> None:
    async def play() -> None:
        scene = Scene()
        assert await scene.recorder.post("HostLost", "x" * 2000, warning=True)
        assert await scene.recorder.post("Reading", "all is well")
        warning, normal = scene.server.select(EVENT, "default")

        assert (warning["type"], warning["reason"]) == ("Warning", "HostLost")
        assert warning["message"] == "x" * 1024, "the API server accepts no longer one"
        assert (normal["type"], normal["count"]) == ("Normal", 1)
        assert normal["involvedObject"]["uid"] == UID
        assert normal["reportingInstance"] == "operator-1"
        assert normal["metadata"]["name"].startswith("orders.")

    virtual_time.run(play())


def test_the_same_event_is_posted_again_after_a_while_only() -> None:
    async def play() -> None:
        scene = Scene()
        for seconds in (0.0, REPEAT_AFTER - 1, 1.0):
            await asyncio.sleep(seconds)
            assert await scene.recorder.post("HostLost", "lost")

        assert scene.posted == ["lost", "lost"]

    virtual_time.run(play())


def test_an_event_with_another_message_is_another_one() -> None:
    async def play() -> None:
        scene = Scene()
        for message in ("lost", "drained", "lost"):
            await scene.recorder.post("HostLost", message)

        assert scene.posted == ["lost", "drained"]

    virtual_time.run(play())


def test_a_refused_event_is_tried_again_after_a_pause() -> None:
    async def play() -> None:
        scene = Scene()
        allow = scene.server.deny(
            RefusedError("forbidden", status=403), kind=EVENT, verbs=("create",)
        )
        assert not await scene.recorder.post("HostLost", "lost")
        allow()
        assert scene.posted == []

        await asyncio.sleep(RETRY_AFTER - 1)
        assert not await scene.recorder.post("HostLost", "lost"), "it is not posted yet"
        await asyncio.sleep(1)
        assert await scene.recorder.post("HostLost", "lost")
        assert scene.posted == ["lost"]

    virtual_time.run(play())


def test_an_event_is_a_line_of_the_log_too() -> None:
    async def play() -> None:
        scene = Scene()
        structlog.reset_defaults()
        with capture_logs() as logs:
            await scene.recorder.post("HostLost", "lost", warning=True)
            await scene.recorder.post("Reading", "all is well")
            scene.server.deny(RefusedError("forbidden", status=403), kind=EVENT, verbs=("create",))
            await scene.recorder.post("Reading", "again")

        assert [(line["log_level"], line["event"]) for line in logs] == [
            ("warning", "lost"),
            ("info", "all is well"),
            ("info", "again"),
            ("warning", "event not posted"),
        ]

    virtual_time.run(play())
