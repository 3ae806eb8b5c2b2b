"""A source on the status page, and guests of it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp

from balanced_source.documents.assignment import Assignment
from balanced_source.documents.lags import to_metrics
from balanced_source.documents.report import HostReport
from balanced_source_operator.kube.port import KubernetesError
from balanced_source_operator.kube.reviews import User
from balanced_source_operator.page.board import StatusBoard
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.runtime.audience import SourceMoment
from support.stage import Stage
from testbed.ports import LOOPBACK


class Reviewer:
    """An API server that knows two users, and counts questions."""

    def __init__(self) -> None:
        self.users = {"of-ann": User(name="ann"), "of-eve": User(name="eve")}
        self.rights = {("ann", ""), ("eve", "shop")}
        self.asked: list[tuple[str, ...]] = []
        self.is_down = False

    async def user_of(self, token: str) -> User | None:
        self.asked.append((token,))
        if self.is_down:
            raise KubernetesError("the API server does not answer")
        return self.users.get(token)

    async def may_get_sources(self, user: User, namespace: str) -> bool:
        self.asked.append((user.name, namespace))
        return (user.name, namespace) in self.rights


def seen_source(
    *, readers: int = 2, splits: int = 6, epoch: int = 4, topic: str = "orders", **changes: Any
) -> SourceMoment:
    """A source that reads; its lag differs from split to split, and the last one's is unknown."""
    ids = [("main", topic, number) for number in range(splits)]
    owners = {split: number % readers for number, split in enumerate(ids)}
    lags: dict[Any, int | None] = {
        split: 10**number % 999_983 - 1 for number, split in enumerate(ids)
    }
    lags[ids[-1]] = None
    report = HostReport(
        incarnation=1,
        instance="i",
        epoch=epoch,
        parallelism=readers,
        owners=owners,
        positions={split: 100 * number for number, split in enumerate(ids)},
        heartbeat=1_800_000_000.0,
        metrics=to_metrics(lags, {}),
    )
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Reading",
        "message": f"{readers} readers",
    }
    status = {
        "conditions": [ready],
        "readers": readers,
        "acknowledgedEpoch": epoch,
        "pendingSplits": 0,
        "lag": None,
    }
    assignment = Assignment(epoch=epoch, parallelism=readers, incarnations={"0": 1}, owners=owners)
    seen = SourceMoment(
        desired=readers, status=status, assignment=assignment, reports={"0": report}
    )
    return replace(seen, **changes)


def with_state(seen: SourceMoment) -> SourceMoment:
    """The same with a source and a state, so that it has plans."""
    stage = Stage(readers=2).topic("orders", 6).operator_starts().registers(0).discovers()
    coordinator = stage.operator.coordinator
    return replace(seen, source=coordinator.source, checkpoint=coordinator.checkpoint)


def put(
    board: StatusBoard,
    seen: SourceMoment,
    *,
    namespace: str = "shop",
    name: str = "orders",
    uid: str = "u",
) -> None:
    """A turn of a source."""
    board.turned(Identity(namespace=namespace, name=name, uid=uid), lambda: seen)


class Viewer:
    """Someone who looks, without a browser."""

    def __init__(self, port: int, token: str = "") -> None:
        self._address = f"http://{LOOPBACK}:{port}"
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def get(self, path: str, **headers: str) -> tuple[int, Any, Any]:
        """Return status, JSON (or text) and headers of an answer."""
        async with (
            aiohttp.ClientSession(headers={**self._headers, **headers}) as session,
            session.get(self._address + path) as answer,
        ):
            is_json = answer.content_type == "application/json"
            return (
                answer.status,
                await answer.json() if is_json else await answer.text(),
                answer.headers,
            )

    @asynccontextmanager
    async def following(self, path: str = "/api/events") -> AsyncIterator["Events"]:
        """Open the stream."""
        async with (
            aiohttp.ClientSession(headers=self._headers) as session,
            session.get(self._address + path) as answer,
        ):
            assert answer.status == 200, await answer.text()
            yield Events(answer)


class Events:
    """Events as they arrive."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def next(self) -> tuple[str, Any]:
        """Return the next event's name and data; the name is empty for a sign of life.

        Raises:
            EOFError: the stream has ended.
        """
        text = (await self._answer.content.readuntil(b"\n\n")).decode().strip()
        if not text:
            raise EOFError
        if text.startswith(":"):
            return "", None
        name, data = text.split("\n")
        return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))

    async def until(self, name: str) -> Any:
        """Return the data of the next event of that name."""
        while True:
            found, data = await self.next()
            if found == name:
                return data
