"""One replica serves: the one that holds the Lease. In virtual time, at a Lease in memory."""

import asyncio
import copy
import json
import types
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any

import aiohttp
import pytest
from kubernetes_asyncio.client import V1Lease
from kubernetes_asyncio.client.exceptions import ApiException
from kubernetes_asyncio.leaderelection import leaderelection
from kubernetes_asyncio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes_asyncio.leaderelection.resourcelock import leaselock

from balanced_source_operator import leadership
from balanced_source_operator.leadership import PatientLock, serve_while_leading
from balanced_source_operator.resources.kinds import LEASE_NAME
from support import virtual_time

SILENT = [aiohttp.ClientConnectionError("cut off"), TimeoutError(), ConnectionResetError()]


def refused(status: int) -> ApiException:
    error = ApiException(status=status)
    error.body = json.dumps({"code": status})
    return error


class Leases:
    """One Lease, which is replaced only at its newest revision.

    Attributes:
        lease: as it is stored.
        failure: of all requests from now on.
        delay: seconds until an answer.
        replaced: how often it was.
        on_write: called before it is stored.
    """

    def __init__(self) -> None:
        self.lease: V1Lease | None = None
        self.failure: Exception | None = None
        self.delay = 0.0
        self.replaced = 0
        self.on_write: Callable[[], None] = lambda: None

    @property
    def holder(self) -> str | None:
        assert self.lease is not None
        return str(self.lease.spec.holder_identity)

    async def read_namespaced_lease(self, name: str, namespace: str) -> V1Lease:
        await self._answer(name, namespace)
        if self.lease is None:
            raise refused(404)
        return copy.deepcopy(self.lease)

    async def create_namespaced_lease(self, namespace: str, body: V1Lease, pretty: bool) -> None:
        del pretty
        await self._answer(body.metadata.name, namespace)
        assert self.lease is None
        self._store(body, 1)

    async def replace_namespaced_lease(self, *, name: str, namespace: str, body: V1Lease) -> None:
        await self._answer(name, namespace)
        self.replaced += 1
        assert self.lease is not None
        revision = int(self.lease.metadata.resource_version)
        if body.metadata.resource_version != str(revision):
            raise refused(409)
        self._store(body, revision + 1)

    async def _answer(self, name: str, namespace: str) -> None:
        assert (name, namespace) == (LEASE_NAME, "system")
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.failure is not None:
            raise self.failure

    def _store(self, body: V1Lease, revision: int) -> None:
        self.on_write()
        self.lease = copy.deepcopy(body)
        self.lease.metadata.resource_version = str(revision)
        for field in ("acquire_time", "renew_time"):
            time = getattr(self.lease.spec, field)
            if isinstance(time, str):
                setattr(self.lease.spec, field, datetime.fromisoformat(time))


class NotedGuard:
    """Notes what the guard of a Lease is told."""

    def __init__(self, seconds: float = 0.0, *, end: Callable[[], None] = lambda: None) -> None:
        self.seconds = seconds
        self.renewals: list[float] = []
        self.is_closed = False
        self._end = end

    def renewed(self, at: float) -> None:
        self.renewals.append(at - virtual_time.EPOCH)

    def lost(self) -> None:
        self._end()

    def close(self) -> None:
        self.is_closed = True


class ReplicaScene:
    """Runs replicas of the operator in virtual time.

    Attributes:
        leases: what they ask.
        guards: of the replicas that have begun.
        ended: seconds at which a process was ended.
        served: identities of those that began to serve, with the time.
    """

    def __init__(self) -> None:
        self.leases = Leases()
        self.guards: list[NotedGuard] = []
        self.ended: list[float] = []
        self.served: list[tuple[str, float]] = []

    def guard(self, seconds: float, *, end: Callable[[], None]) -> NotedGuard:
        self.guards.append(NotedGuard(seconds, end=end))
        return self.guards[-1]

    def lock(self, identity: str = "a") -> tuple[PatientLock, NotedGuard]:
        leases: Any = self.leases
        noted = NotedGuard()
        guard: Any = noted
        return PatientLock(LEASE_NAME, "system", identity, leases, guard=guard), noted

    async def replica(
        self,
        serve: Callable[[], Coroutine[Any, Any, None]],
        *,
        identity: str = "a",
        stop: asyncio.Event | None = None,
    ) -> None:
        async def noted() -> None:
            self.served.append((identity, now()))
            await serve()

        leases: Any = self.leases
        await serve_while_leading(
            noted,
            leases,
            namespace="system",
            identity=identity,
            stop=stop or asyncio.Event(),
            end=lambda: self.ended.append(now()),
        )


def now() -> float:
    return asyncio.get_running_loop().time()


def record(identity: str) -> LeaderElectionRecord:
    """Return what an election writes now; the library cannot read a time without a fraction."""
    time = str(datetime.fromtimestamp(virtual_time.clock() + 0.25))  # noqa: DTZ006 - as the library
    return LeaderElectionRecord(identity, "15", time, time)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> ReplicaScene:
    scene = ReplicaScene()
    monkeypatch.setattr(leaselock.client, "CoordinationV1Api", lambda api_client: api_client)
    monkeypatch.setattr(leadership, "LeaseGuard", scene.guard)
    monkeypatch.setattr(leadership, "time", virtual_time.time_module())
    clock = types.SimpleNamespace(time=lambda: virtual_time.clock() + 0.25)
    monkeypatch.setattr(leaderelection, "time", clock)
    return scene


async def held(scene: ReplicaScene, identity: str) -> PatientLock:
    """Return the lock of a replica that has just got the Lease."""
    lock, _ = scene.lock(identity)
    assert await lock.create(LEASE_NAME, "system", record(identity))
    return lock


async def forever() -> None:
    await asyncio.Event().wait()


async def for_a_minute() -> None:
    await asyncio.sleep(60)


def test_a_lease_tells_who_holds_it(scene: ReplicaScene) -> None:
    async def story() -> None:
        await held(scene, "b")
        is_found, found = await scene.lock()[0].get(LEASE_NAME, "system")
        assert is_found is True
        assert found.holder_identity == "b"

    virtual_time.run(story())


def test_a_lease_that_is_missing_is_the_answer_of_the_api_server(scene: ReplicaScene) -> None:
    async def story() -> None:
        is_found, found = await scene.lock()[0].get(LEASE_NAME, "system")
        assert (is_found, found.status) == (False, 404)

    virtual_time.run(story())


@pytest.mark.parametrize("failure", SILENT)
def test_a_lease_that_is_not_answered_is_asked_for_again(
    scene: ReplicaScene, failure: Exception
) -> None:
    async def story() -> None:
        scene.leases.failure = failure
        is_found, found = await scene.lock()[0].get(LEASE_NAME, "system")
        assert (is_found, type(found), found.status) == (False, ApiException, 0)
        assert type(failure).__name__ in found.reason
        assert json.loads(found.body) == {"code": 0}, "the library reads this"

    virtual_time.run(story())


def test_an_answer_is_awaited_for_4_seconds(scene: ReplicaScene) -> None:
    async def story() -> None:
        lock, guard = scene.lock()
        scene.leases.delay = 100.0
        is_found, _ = await lock.get(LEASE_NAME, "system")
        assert (is_found, now()) == (False, 4.0)
        assert not await lock.create(LEASE_NAME, "system", record("a"))
        assert now() == 8.0
        assert guard.renewals == []

    virtual_time.run(story())


def test_a_renewal_counts_from_before_its_request(scene: ReplicaScene) -> None:
    async def story() -> None:
        lock, guard = scene.lock()
        scene.leases.delay = 3.0
        assert await lock.create(LEASE_NAME, "system", record("a")) is True
        await lock.get(LEASE_NAME, "system")
        assert await lock.update(LEASE_NAME, "system", record("a")) is True
        assert (guard.renewals, now()) == ([0.0, 6.0], 9.0)

    virtual_time.run(story())


@pytest.mark.parametrize("failure", [*SILENT, refused(409), refused(403)])
def test_a_renewal_that_fails_does_not_count(scene: ReplicaScene, failure: Exception) -> None:
    async def story() -> None:
        await held(scene, "b")
        lock, guard = scene.lock()
        await lock.get(LEASE_NAME, "system")
        scene.leases.failure = failure
        assert await lock.update(LEASE_NAME, "system", record("a")) is False
        assert await lock.create(LEASE_NAME, "system", record("a")) is False
        assert guard.renewals == []
        assert scene.leases.holder == "b"

    virtual_time.run(story())


def test_a_lease_is_released_at_its_newest_revision(scene: ReplicaScene) -> None:
    async def story() -> None:
        lock = await held(scene, "a")
        await lock.get(LEASE_NAME, "system")
        assert await lock.update(LEASE_NAME, "system", record("a"))
        await lock.release()
        assert scene.leases.holder == ""

    virtual_time.run(story())


def test_the_lease_of_another_replica_is_not_released(scene: ReplicaScene) -> None:
    async def story() -> None:
        await held(scene, "b")
        await scene.lock("a")[0].release()
        assert (scene.leases.holder, scene.leases.replaced) == ("b", 0)

    virtual_time.run(story())


def test_a_lease_that_does_not_exist_is_not_released(scene: ReplicaScene) -> None:
    async def story() -> None:
        await scene.lock("a")[0].release()
        assert scene.leases.replaced == 0

    virtual_time.run(story())


@pytest.mark.parametrize("failure", [*SILENT, refused(403)])
def test_a_release_that_fails_is_no_error(scene: ReplicaScene, failure: Exception) -> None:
    """The Lease runs out by itself."""

    async def story() -> None:
        lock = await held(scene, "a")
        await lock.get(LEASE_NAME, "system")
        scene.leases.failure = failure
        await lock.release()
        assert scene.leases.holder == "a"

    virtual_time.run(story())


def test_a_replica_that_ends_gives_the_lease_up(scene: ReplicaScene) -> None:
    async def story() -> None:
        await scene.replica(for_a_minute)
        assert (scene.served, now()) == ([("a", 0.0)], 60.0)
        assert scene.leases.holder == ""
        assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing asks for the Lease"

    virtual_time.run(story())
    [guard] = scene.guards
    assert guard.seconds == 12.0
    assert set(guard.renewals) >= set(range(0, 60, 2)), "every 2 seconds"
    assert guard.is_closed
    assert not scene.ended


def test_the_next_replica_waits_until_the_lease_is_given_up(scene: ReplicaScene) -> None:
    async def story() -> None:
        first = asyncio.create_task(scene.replica(for_a_minute))
        await asyncio.sleep(1)
        await scene.replica(for_a_minute, identity="b")
        await first

    virtual_time.run(story())
    [first, (identity, begun)] = scene.served
    assert first == ("a", 0.0)
    assert identity == "b"
    assert 60 <= begun <= 62


def test_a_lease_that_is_not_renewed_runs_out_after_15_seconds(scene: ReplicaScene) -> None:
    async def story() -> None:
        await held(scene, "dead")
        await scene.replica(for_a_minute)

    virtual_time.run(story())
    [(_, begun)] = scene.served
    assert 15 <= begun <= 17


def test_a_replica_that_is_stopped_while_it_waits_never_serves(scene: ReplicaScene) -> None:
    async def story() -> None:
        await held(scene, "b")
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(5, stop.set)
        await scene.replica(forever, stop=stop)
        assert now() == 5.0

    virtual_time.run(story())
    assert (scene.served, scene.leases.holder) == ([], "b")


def test_a_replica_that_is_stopped_as_it_gets_the_lease_never_serves(scene: ReplicaScene) -> None:
    async def story() -> None:
        stop = asyncio.Event()
        scene.leases.on_write = stop.set
        await scene.replica(forever, stop=stop)

    virtual_time.run(story())
    assert (scene.served, scene.leases.holder) == ([], "")


@pytest.mark.parametrize("failure", [SILENT[0], refused(409)])
def test_a_leader_that_cannot_renew_its_lease_is_ended(
    scene: ReplicaScene, failure: Exception
) -> None:
    async def story() -> None:
        async def serve() -> None:
            await asyncio.sleep(60)
            scene.leases.failure = failure
            try:
                await forever()
            finally:
                served_until.append(now())

        await scene.replica(serve)
        await asyncio.sleep(0)
        assert served_until == scene.ended

    served_until: list[float] = []
    virtual_time.run(story())
    [ended] = scene.ended
    assert 70 <= ended <= 72, "10 seconds after the last renewal"


def test_a_failure_of_what_serves_is_that_of_the_replica(scene: ReplicaScene) -> None:
    async def serve() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        virtual_time.run(scene.replica(serve))
    assert scene.guards[0].is_closed
    assert not scene.ended


def test_a_failure_of_the_election_is_that_of_the_replica(
    scene: ReplicaScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: Any) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(leaderelection.LeaderElection, "run", broken)
    with pytest.raises(ValueError, match="broken"):
        virtual_time.run(scene.replica(forever))
    assert scene.served == []
