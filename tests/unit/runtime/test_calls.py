"""Calls of an enumerator: whose identity they use, and what a call that cannot be made becomes."""

import asyncio
import gc
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from balanced_source.api import AsyncCall, CallFailure, DriverOnly, NamedSecrets
from balanced_source.connectors.discovery import Alarm
from balanced_source.coordinator import CallCompleted, ExecuteCall
from balanced_source.errors import RefusedDiscoveryError
from balanced_source.reasons import Reason
from balanced_source_operator.kube.port import RefusedError
from balanced_source_operator.runtime.calls import CallRunner
from support.tapes import ListTapes

pytestmark = pytest.mark.asyncio

CALL = ListTapes(scope="shelf", round=1)


class Pool:
    """Runs calls at once, and notes for whom and on which server."""

    def __init__(self) -> None:
        self.lanes: list[tuple[Any, str]] = []
        self.forgotten: list[Any] = []

    async def run(self, lane: Any, work: Callable[..., Any], call: Any, *, server: str) -> Any:
        self.lanes.append((lane, server))
        return work(call)

    def forget(self, owner: Any) -> None:
        self.forgotten.append(owner)


class Scene:
    """A source whose connector answers with the password of its Secret."""

    def __init__(self, identity: object, *, error: Exception | None = None) -> None:
        self.pool, self.results, self.error = Pool(), list[CallCompleted](), error
        self.password = "first"  # noqa: S105 - of this test
        connector: Any = SimpleNamespace(
            kind="tapes",
            codec=None,
            executor=lambda secrets, **_: lambda _call: secrets.read("library")["password"],
            identity_of=lambda _call: identity,
            server_of=lambda _call: "the library",
        )
        api: Any = SimpleNamespace(get=self._secret)
        pool: Any = self.pool
        self.runner = CallRunner(
            api, "shop", pool, self.results.append, source="orders", connector=connector
        )

    async def _secret(self, *_: object) -> Any:
        if self.error is not None:
            raise self.error
        # Values of Secrets are in base64.
        return {"data": {"password": {"first": "Zmlyc3Q=", "second": "c2Vjb25k"}[self.password]}}

    async def ask(self, call: AsyncCall = CALL) -> Any:
        count = len(self.results)
        self.runner.submit(ExecuteCall(count, call, 0.0))
        async with asyncio.timeout(20):
            while len(self.results) == count:  # noqa: ASYNC110 - nothing to wait for
                await asyncio.sleep(0)
        assert self.results[-1].call_id == count
        return self.results[-1].result

    async def refusal(self) -> RefusedDiscoveryError:
        result = await self.ask()
        assert isinstance(result, CallFailure)
        assert isinstance(result.error, RefusedDiscoveryError)
        return result.error


async def test_a_changed_secret_counts_for_the_next_call() -> None:
    scene = Scene(NamedSecrets(("library",)))

    assert await scene.ask() == "first"
    scene.password = "second"  # noqa: S105 - of this test

    assert await scene.ask() == "second"
    assert scene.pool.lanes == [((("shop", "orders"), "shelf"), "the library")] * 2


async def test_a_secret_that_cannot_be_read_is_named() -> None:
    scene = Scene(NamedSecrets(("library",)), error=RefusedError("forbidden", status=403))

    refusal = await scene.refusal()

    assert str(refusal).startswith("shelf: cannot read its Secrets: ")
    assert (refusal.reason, refusal.scope) == (Reason.SECRET_NOT_READABLE, "shelf")
    assert scene.pool.lanes == []


async def test_the_operator_lends_its_own_identity_to_no_source() -> None:
    scene = Scene(DriverOnly())

    refusal = await scene.refusal()

    assert str(refusal).startswith("shelf can be listed only by a process of its owner: connector")
    assert (refusal.reason, refusal.scope) == (Reason.NEEDS_OWNER, "shelf")
    assert scene.pool.lanes == []


@dataclass(frozen=True, slots=True)
class WithoutScope(AsyncCall):
    """A call about the whole source."""


@pytest.mark.parametrize("identity", [DriverOnly(), NamedSecrets(("library",))])
async def test_a_refused_call_without_a_scope_is_about_the_source(identity: object) -> None:
    scene = Scene(identity, error=RefusedError("forbidden", status=403))

    result = await scene.ask(WithoutScope())

    assert isinstance(result, CallFailure)
    assert str(result.error).startswith("the source")
    assert result.error.scope == ""


async def test_nothing_of_a_finished_call_is_kept() -> None:
    scene = Scene(NamedSecrets(("library",)))

    def tasks() -> int:
        gc.collect()
        return sum(isinstance(found, asyncio.Task) for found in gc.get_objects())

    before = tasks()
    for _ in range(10):
        await scene.ask()
    await asyncio.sleep(0)

    assert tasks() == before


async def test_an_alarm_asks_no_one() -> None:
    scene = Scene(DriverOnly())

    assert await scene.ask(Alarm()) is None
    assert scene.pool.lanes == []


async def test_a_closed_source_gets_no_results() -> None:
    scene = Scene(NamedSecrets(("library",)))
    scene.runner.submit(ExecuteCall(1, CALL, 0.0))

    scene.runner.close()
    for _ in range(10):
        await asyncio.sleep(0)

    assert scene.results == []
    assert scene.pool.forgotten == [("shop", "orders")]
