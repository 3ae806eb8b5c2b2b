"""When a status is written, held back, or repaired."""

import asyncio
import contextlib
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.resources.kinds import BALANCED_SOURCE, EVENT
from balanced_source_operator.runtime.best_effort import AT_ONCE, BestEffort
from balanced_source_operator.runtime.events import EventRecorder
from balanced_source_operator.runtime.status_writer import (
    LAG_INTERVAL,
    REPAIR_HOLD,
    RIVAL_FORGET,
    RIVAL_HOLD,
    StatusWriter,
)
from balanced_source_operator.spec import Status
from support import virtual_time
from support.builders import identity, source_body
from support.fake_kubernetes import FakeKubernetes, Fault

READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Reading",
    "message": "2 readers",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def status(*, ready: dict[str, str] | None = None, **values: Any) -> Status:
    return Status.model_validate({"conditions": [ready or READY], **values})


class Scene:
    """The source `orders`, and the writer of one operator."""

    def __init__(self) -> None:
        self.server = FakeKubernetes(clock=virtual_time.clock)
        self.server.add(BALANCED_SOURCE, source_body())
        self.client = self.server.client()
        self.best_effort = BestEffort()
        self.writer = self.new_writer()

    def new_writer(self) -> StatusWriter:
        events = EventRecorder(self.client, identity(), reporter="operator-1")
        return StatusWriter(
            self.client, identity(), events, instance="blue", best_effort=self.best_effort
        )

    async def write_without_an_answer(self, wanted: Status) -> None:
        self.client._fault, self.client._at = Fault.LOST_RESPONSE, len(self.client.calls) + 1
        with pytest.raises(KubernetesError):
            await self.writer.write(wanted, seen=self.seen)
        self.client._fault = None

    @property
    def seen(self) -> Any:
        return self.server.find(BALANCED_SOURCE, "default", "orders")

    @property
    def writes(self) -> int:
        return sum(call.startswith("patch status") for call in self.client.calls)

    @property
    def posted(self) -> list[str]:
        return [event["message"] for event in self.server.select(EVENT, "default")]

    async def write(self, wanted: Status) -> float | None:
        return await self.writer.write(wanted, seen=self.seen)


def test_a_status_that_has_not_changed_is_written_once() -> None:
    async def play() -> None:
        scene = Scene()
        for _ in range(3):
            assert await scene.write(status(epoch=1)) is None

        assert scene.writes == 1
        assert scene.seen["status"].items() >= {"acknowledgedEpoch": 0, "servedBy": "blue"}.items()

    virtual_time.run(play())


def test_the_next_operator_writes_nothing_that_is_stored_already() -> None:
    async def play() -> None:
        scene = Scene()
        await scene.write(status(epoch=1))
        scene.writer = scene.new_writer()
        await scene.write(status(epoch=1))

        assert scene.writes == 1
        await scene.write(status(epoch=2))
        assert scene.seen["status"]["epoch"] == 2

    virtual_time.run(play())


def test_a_lag_alone_is_written_every_few_seconds_only() -> None:
    async def play() -> None:
        scene = Scene()
        await scene.write(status(epoch=1, lag=5))
        await asyncio.sleep(LAG_INTERVAL - 0.5)
        held = await scene.write(status(epoch=1, lag=6))
        assert held is not None
        assert 0 < held <= LAG_INTERVAL
        assert scene.seen["status"]["lag"] == 5
        await asyncio.sleep(0.5)
        assert await scene.write(status(epoch=1, lag=7)) is None
        assert scene.seen["status"]["lag"] == 7

        assert await scene.write(status(epoch=2, lag=8)) is None
        assert scene.seen["status"]["lag"] == 8, "something else has changed too"

    virtual_time.run(play())


def test_a_status_that_was_edited_is_restored() -> None:
    async def play() -> None:
        scene = Scene()
        await scene.write(status(epoch=1))
        scene.server.edit(BALANCED_SOURCE, "default", "orders", {"status": {"epoch": 9}})
        structlog.reset_defaults()
        with capture_logs() as logs:
            await scene.write(status(epoch=1))
        assert scene.seen["status"]["epoch"] == 1
        assert [(line["event"], line["source"]) for line in logs] == [
            ("status was edited: restored", "orders")
        ]

        scene.server.edit(BALANCED_SOURCE, "default", "orders", {"spec": {"parallelism": 3}})
        await scene.write(status(epoch=1))
        assert scene.writes == 2, "another spec is no edit of the status"

    virtual_time.run(play())


def test_a_client_that_undoes_each_repair_at_once_is_followed_slowly() -> None:
    async def play() -> None:
        scene, wanted = Scene(), status(epoch=1)
        await scene.write(wanted)

        async def edited() -> float | None:
            edit = {"status": {"epoch": 7}}
            scene.server.edit(BALANCED_SOURCE, "default", "orders", edit)
            return await scene.write(wanted)

        assert (await edited(), scene.writes) == (None, 2)
        assert (await edited(), scene.writes) == (REPAIR_HOLD, 2)
        assert scene.seen["status"]["epoch"] == 7
        await asyncio.sleep(REPAIR_HOLD - 1)
        assert (await edited(), scene.writes) == (1.0, 2)
        await scene.write(status(epoch=2))
        assert (scene.seen["status"]["epoch"], scene.writes) == (2, 3), "a change is no repair"
        scene.server.edit(BALANCED_SOURCE, "default", "orders", {"status": {"epoch": 7}})
        await asyncio.sleep(1)
        await scene.write(status(epoch=2))
        assert (scene.seen["status"]["epoch"], scene.writes) == (2, 4)

    virtual_time.run(play())


def test_what_was_seen_before_the_own_write_is_no_edit() -> None:
    async def play() -> None:
        scene = Scene()
        old = scene.seen
        await scene.write(status(epoch=1))
        await scene.writer.write(status(epoch=1), seen=old)

        assert scene.writes == 1

    virtual_time.run(play())


def test_while_another_installation_writes_too_the_status_is_written_once_a_minute() -> None:
    async def play() -> None:
        scene = Scene()
        await scene.write(status(epoch=1))
        assert scene.writer.rival(scene.seen) == ""
        scene.server.edit(
            BALANCED_SOURCE, "default", "orders", {"status": {"servedBy": "green", "epoch": 9}}
        )
        await asyncio.sleep(RIVAL_HOLD - 0.5)
        assert await scene.write(status(epoch=1)) == 0.5
        assert scene.writer.rival(scene.seen) == "green"
        await asyncio.sleep(0.5)
        assert await scene.write(status(epoch=1)) is None
        assert scene.seen["status"]["epoch"] == 1

        await asyncio.sleep(RIVAL_FORGET - 1)
        assert scene.writer.rival(scene.seen) == "green"
        await asyncio.sleep(1)
        assert scene.writer.rival(scene.seen) == ""

    virtual_time.run(play())


def test_an_event_says_when_a_source_becomes_ready() -> None:
    async def play() -> None:
        scene = Scene()
        waits = {**READY, "status": "False", "reason": "Starting"}
        degraded = {**READY, "type": "Degraded", "reason": "HostLost"}
        for ready in (waits, READY, {**READY, "message": "3 readers"}, degraded):
            await scene.write(status(ready=ready))

        assert scene.posted == ["2 readers"]

    virtual_time.run(play())


def test_it_is_said_whatever_conditions_come_first() -> None:
    async def play() -> None:
        scene = Scene()
        well = {**READY, "type": "Degraded", "status": "False", "reason": "NothingWrong"}
        await scene.write(Status.model_validate({"conditions": [well, READY]}))

        assert scene.posted == ["2 readers"]

    virtual_time.run(play())


def test_a_status_that_was_stored_without_an_answer_is_no_edit() -> None:
    async def play() -> None:
        scene = Scene()
        await scene.writer.write(status(readers=2), seen=scene.seen)
        await scene.write_without_an_answer(status(readers=3))

        with capture_logs() as logs:
            await scene.writer.write(status(readers=3), seen=scene.seen)

        assert logs == []
        assert scene.seen["status"]["readers"] == 3
        assert await scene.writer.write(status(readers=3), seen=scene.seen) is None

    virtual_time.run(play())


def test_a_status_that_was_stored_without_an_answer_does_not_outlive_what_it_says() -> None:
    """What was written before it holds again."""

    async def play() -> None:
        scene = Scene()
        await scene.writer.write(status(readers=2), seen=scene.seen)
        await scene.write_without_an_answer(status(readers=3))

        await asyncio.sleep(LAG_INTERVAL)
        await scene.writer.write(status(readers=2), seen=scene.seen)

        assert scene.seen["status"]["readers"] == 2

    virtual_time.run(play())


def test_of_many_sources_only_a_few_write_their_lag_at_once() -> None:
    """What a user waits for would wait for them, where the API server is slow."""

    async def play() -> None:
        scene = Scene()
        writer, best_effort = scene.writer, scene.best_effort
        await writer.write(status(lag=1), seen=scene.seen)
        await asyncio.sleep(LAG_INTERVAL)
        before = scene.writes

        with contextlib.ExitStack() as others:
            for _ in range(AT_ONCE):
                others.enter_context(best_effort.write())
            assert await writer.write(status(lag=2), seen=scene.seen) == LAG_INTERVAL
            assert scene.writes == before
            assert await writer.write(status(lag=2, readers=3), seen=scene.seen) is None
            assert scene.writes == before + 1, "more than the lag has changed"

        await asyncio.sleep(LAG_INTERVAL)
        assert await writer.write(status(lag=3, readers=3), seen=scene.seen) is None
        assert best_effort.is_free

    virtual_time.run(play())
