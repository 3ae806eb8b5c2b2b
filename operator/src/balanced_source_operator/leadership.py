"""One of several replicas serves: the one that holds the Lease."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import aiohttp
import structlog
from kubernetes_asyncio.client import ApiClient
from kubernetes_asyncio.client.exceptions import ApiException
from kubernetes_asyncio.leaderelection.electionconfig import Config
from kubernetes_asyncio.leaderelection.leaderelection import LeaderElection
from kubernetes_asyncio.leaderelection.resourcelock.leaselock import LeaseLock

from balanced_source_operator.ending import End, LeaseGuard, end_now
from balanced_source_operator.resources.kinds import LEASE_NAME

LEASE_SECONDS: Final = 15
RENEW_SECONDS: Final = 10
RETRY_SECONDS: Final = 2

CALL_SECONDS: Final = 4.0
"""Seconds for one request for the Lease: a renewal needs two, and the deadline must leave room for
a second attempt."""

GUARD_SECONDS: Final = 12.0
"""Seconds after the last renewal at which the process ends.

The next leader starts after `LEASE_SECONDS`.
"""

_UNREACHABLE: Final = (aiohttp.ClientError, TimeoutError, OSError)

log = structlog.get_logger(__name__)


class PatientLock(LeaseLock):
    """A Lease that is asked for again when the API server does not answer.

    The deadline decides, not one lost call.

    Args:
        name: of the Lease.
        namespace: of the Lease.
        identity: of this replica.
        client: of the API server.
        guard: is told about each renewal.
    """

    def __init__(
        self, name: str, namespace: str, identity: str, client: ApiClient, *, guard: LeaseGuard
    ) -> None:
        super().__init__(name, namespace, identity, client)
        self._guard = guard

    async def get(self, name: str, namespace: str) -> Any:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await super().get(name, namespace)
        except _UNREACHABLE as error:
            # The library's election takes only this exception, with a body, for "try again".
            failure = ApiException(status=0, reason=repr(error))
            failure.body = b'{"code": 0}'
            return False, failure

    async def create(self, name: str, namespace: str, election_record: Any) -> bool:
        return await self._renew(super().create(name, namespace, election_record))

    async def update(self, name: str, namespace: str, updated_record: Any) -> bool:
        return await self._renew(super().update(name, namespace, updated_record))

    async def _renew(self, request: Coroutine[Any, Any, bool]) -> bool:
        # Counted from before the request: the API server may have stored it at once, and answered
        # late.
        begun, is_renewed = time.monotonic(), False
        with contextlib.suppress(*_UNREACHABLE):
            async with asyncio.timeout(CALL_SECONDS):
                is_renewed = await request
        if is_renewed:
            self._guard.renewed(begun)
        return is_renewed

    async def release(self) -> None:
        """Let the next replica begin at once, instead of when the Lease has run out."""
        await self.get(self.name, self.namespace)  # for its revision: an update does not tell it
        lease = self.lease_reference
        # Another replica leads already: to clear its name would let a third one begin.
        if lease is None or lease.spec.holder_identity != self.identity:
            return
        lease.spec.holder_identity = ""
        with contextlib.suppress(ApiException, *_UNREACHABLE):
            async with asyncio.timeout(CALL_SECONDS):
                await self.api_instance.replace_namespaced_lease(
                    name=self.name, namespace=self.namespace, body=lease
                )


async def serve_while_leading(
    serve: Callable[[], Awaitable[None]],
    client: ApiClient,
    *,
    namespace: str,
    identity: str,
    stop: asyncio.Event,
    end: End = end_now,
) -> None:
    """Wait for the Lease, then serve. A leader that loses it calls `end`, which ends the process.

    It is not shut down cleanly: that could last longer than the Lease, while another replica
    serves already.
    """
    guard = LeaseGuard(GUARD_SECONDS, end=end)
    lock = PatientLock(LEASE_NAME, namespace, identity, client, guard=guard)
    leading = asyncio.Event()
    campaign = asyncio.create_task(_election(lock, leading).run())
    try:
        await _first_of(
            campaign, asyncio.create_task(leading.wait()), asyncio.create_task(stop.wait())
        )
        if leading.is_set() and not stop.is_set():
            await _serve_during(campaign, asyncio.ensure_future(serve()), guard)
    finally:
        guard.close()
        campaign.cancel()
        await asyncio.gather(campaign, return_exceptions=True)
    await lock.release()


def _election(lock: LeaseLock, leading: asyncio.Event) -> LeaderElection:
    async def started() -> None:
        leading.set()

    async def stopped() -> None:
        """The end of the campaign says it all."""

    return LeaderElection(
        Config(
            lock,
            lease_duration=LEASE_SECONDS,
            renew_deadline=RENEW_SECONDS,
            retry_period=RETRY_SECONDS,
            onstarted_leading=started,
            onstopped_leading=stopped,
        )
    )


async def _serve_during(
    campaign: asyncio.Task[None], serving: asyncio.Future[None], guard: LeaseGuard
) -> None:
    """Serve until it ends by itself; its failure, and the end of the campaign, end the process."""
    await asyncio.wait({campaign, serving}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
        return
    # Ends the process here and now: an orderly stop could last into the time of the next leader.
    guard.lost()
    serving.cancel()


async def _first_of(campaign: asyncio.Task[None], *waits: asyncio.Task[Any]) -> None:
    await asyncio.wait({campaign, *waits}, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    if campaign.done():
        campaign.result()
