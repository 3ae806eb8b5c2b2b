"""The sources are followed, also where the API server served their kind late or left it out."""

import asyncio
from collections.abc import Iterator

from structlog.testing import capture_logs

from balanced_source_operator.following import LOOK, follow
from balanced_source_operator.health import Health, Role
from balanced_source_operator.kube.port import KubernetesError
from support import virtual_time


class Stand:
    """A follower that was started, and whether it has found the kind."""

    def __init__(self, *, follows: bool) -> None:
        self.follows = follows
        self.was_told_to_leave = False

    async def run(self, leave: asyncio.Event) -> None:
        await leave.wait()
        self.was_told_to_leave = True


class Scene:
    """An operator beside an API server."""

    def __init__(self, *, finds: Iterator[bool]) -> None:
        self.is_served: bool | KubernetesError = True
        self.health, self.stop = Health(), asyncio.Event()
        self.health.role = Role.SERVING
        self.health.note_rights([])
        self.followers: list[Stand] = []
        self._finds = finds
        self.task = asyncio.create_task(
            follow(self._make, is_served=self._ask, health=self.health, stop=self.stop)
        )

    def _make(self) -> Stand:
        self.followers.append(Stand(follows=next(self._finds)))
        return self.followers[-1]

    async def _ask(self) -> bool:
        if isinstance(self.is_served, KubernetesError):
            raise self.is_served
        return self.is_served

    async def end(self) -> None:
        self.stop.set()
        await self.task


def test_a_follower_that_has_found_the_kind_stays_until_the_process_stops() -> None:
    async def play() -> None:
        scene = Scene(finds=iter([True]))
        await asyncio.sleep(10 * LOOK)
        assert not scene.followers[0].was_told_to_leave

        before = virtual_time.clock()
        await scene.end()

        assert scene.followers[0].was_told_to_leave
        assert virtual_time.clock() == before, "stopping waits for no look"

    virtual_time.run(play())


def test_a_follower_that_missed_the_kind_is_replaced() -> None:
    async def play() -> None:
        with capture_logs() as logs:
            scene = Scene(finds=iter([False, False, True]))
            await asyncio.sleep(10 * LOOK)

        assert [follower.was_told_to_leave for follower in scene.followers] == [True, True, False]
        assert len([entry for entry in logs if "not followed" in entry["event"]]) == 2
        await scene.end()

    virtual_time.run(play())


def test_a_follower_may_take_a_moment() -> None:
    async def play() -> None:
        scene = Scene(finds=iter([False]))
        await asyncio.sleep(1.5 * LOOK)
        scene.followers[0].follows = True
        await asyncio.sleep(10 * LOOK)

        assert len(scene.followers) == 1
        await scene.end()

    virtual_time.run(play())


def test_without_the_definition_the_operator_waits_and_is_not_ready() -> None:
    async def play() -> None:
        scene = Scene(finds=iter([True]))
        scene.is_served = False
        await asyncio.sleep(2.5 * LOOK)
        assert scene.followers == []
        assert not scene.health.is_ready
        assert "balancedsources.balancedsource.io is not installed" in scene.health.problem

        scene.is_served = True
        await asyncio.sleep(LOOK)

        assert len(scene.followers) == 1
        assert scene.health.is_ready
        await scene.end()

    virtual_time.run(play())


def test_an_operator_that_waits_for_the_definition_stops_at_once() -> None:
    async def play() -> None:
        scene = Scene(finds=iter([]))
        scene.is_served = False
        await asyncio.sleep(LOOK / 2)
        before = virtual_time.clock()
        await scene.end()
        assert virtual_time.clock() == before

    virtual_time.run(play())


def test_a_definition_that_is_deleted_makes_the_operator_unready_until_it_is_back() -> None:
    async def play() -> None:
        scene = Scene(finds=iter([True, True]))
        await asyncio.sleep(LOOK / 2)
        scene.followers[0].follows, scene.is_served = False, False
        await asyncio.sleep(5 * LOOK)
        assert not scene.health.is_ready
        assert not scene.followers[0].was_told_to_leave, "kopf may hear of it by itself"

        scene.is_served = True
        await asyncio.sleep(3 * LOOK)

        assert scene.health.is_ready
        assert [follower.was_told_to_leave for follower in scene.followers] == [True, False]
        await scene.end()

    virtual_time.run(play())


def test_an_api_server_that_does_not_answer_changes_nothing() -> None:
    async def play() -> None:
        scene = Scene(finds=iter([False]))
        await asyncio.sleep(LOOK / 2)
        scene.is_served = KubernetesError("out")
        await asyncio.sleep(10 * LOOK)

        assert scene.health.is_ready
        assert not scene.followers[0].was_told_to_leave
        await scene.end()

    virtual_time.run(play())


def test_a_follower_that_ends_by_itself_ends_the_operator() -> None:
    class Ending(Stand):
        async def run(self, leave: asyncio.Event) -> None:
            """End at once."""

    async def play() -> None:
        async def is_served() -> bool:
            return True

        await follow(
            lambda: Ending(follows=True),
            is_served=is_served,
            health=Health(),
            stop=asyncio.Event(),
        )

    virtual_time.run(play())
