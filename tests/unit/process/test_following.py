"""The sources are followed, also where the API server served their kind late or left it out."""

import asyncio
from collections.abc import Callable, Iterator

from structlog.testing import capture_logs

from balanced_source_operator.following import END, LOOK, MISSED, Following
from balanced_source_operator.health import Health, Role
from balanced_source_operator.kube.port import KubernetesError
from support import virtual_time


class Stand:
    """A follower that was started, and whether it has found the kind."""

    def __init__(self, *, follows: bool) -> None:
        self.has_found = follows
        self.was_told_to_leave = False

    def follows(self) -> bool:
        return self.has_found

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
        self.make: Callable[[], Stand] = self._make
        self.has_ended_the_process = False
        following = Following(
            self._made,
            is_served=self._ask,
            health=self.health,
            stop=self.stop,
            end=self._end,
        )
        self.task = asyncio.create_task(following.run())

    def _made(self) -> Stand:
        return self.make()

    def _end(self) -> None:
        self.has_ended_the_process = True

    def _make(self) -> Stand:
        self.followers.append(Stand(follows=next(self._finds)))
        return self.followers[-1]

    async def _ask(self) -> bool:
        if isinstance(self.is_served, KubernetesError):
            raise self.is_served
        return self.is_served

    def is_ready(self) -> bool:
        return self.health.is_ready

    def was_ended(self) -> bool:
        return self.has_ended_the_process

    def told_to_leave(self) -> list[bool]:
        """Say for each follower, in the order of their starts, whether it was told to leave."""
        return [follower.was_told_to_leave for follower in self.followers]

    async def end(self) -> None:
        self.stop.set()
        await self.task


def test_a_follower_that_has_found_the_kind_stays_until_the_process_stops() -> None:
    async def play() -> None:
        scene = Scene(finds=iter([True]))
        await asyncio.sleep(10 * LOOK)
        assert scene.told_to_leave() == [False]

        before = virtual_time.clock()
        await scene.end()

        assert scene.told_to_leave() == [True]
        assert virtual_time.clock() == before, "stopping waits for no look"

    virtual_time.run(play())


def test_a_follower_that_missed_the_kind_is_replaced() -> None:
    async def play() -> None:
        with capture_logs() as logs:
            scene = Scene(finds=iter([False, False, True]))
            await asyncio.sleep(10 * LOOK)

        assert scene.told_to_leave() == [True, True, False]
        assert len([entry for entry in logs if "not followed" in entry["event"]]) == 2
        await scene.end()

    virtual_time.run(play())


def test_a_follower_may_take_a_moment() -> None:
    async def play() -> None:
        scene = Scene(finds=iter([False]))
        await asyncio.sleep(1.5 * LOOK)
        scene.followers[0].has_found = True
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
        assert not scene.is_ready()
        assert "balancedsources.balancedsource.io is not installed" in scene.health.problem

        scene.is_served = True
        await asyncio.sleep(LOOK)

        assert len(scene.followers) == 1
        assert scene.is_ready()
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
        scene.followers[0].has_found, scene.is_served = False, False
        await asyncio.sleep(5 * LOOK)
        assert not scene.is_ready()
        assert scene.told_to_leave() == [False], "kopf may hear of it by itself"

        scene.is_served = True
        await asyncio.sleep(3 * LOOK)

        assert scene.is_ready()
        assert scene.told_to_leave() == [True, False]
        await scene.end()

    virtual_time.run(play())


def test_an_api_server_that_does_not_answer_changes_nothing() -> None:
    async def play() -> None:
        scene = Scene(finds=iter([False]))
        await asyncio.sleep(LOOK / 2)
        scene.is_served = KubernetesError("out")
        await asyncio.sleep(10 * LOOK)

        assert scene.is_ready()
        assert scene.told_to_leave() == [False]
        await scene.end()

    virtual_time.run(play())


def test_a_follower_that_does_not_end_ends_the_process() -> None:
    class Hanging(Stand):
        async def run(self, leave: asyncio.Event) -> None:
            await asyncio.Event().wait()

    async def play() -> None:
        scene = Scene(finds=iter([]))
        scene.followers.append(Hanging(follows=False))
        scene.make = lambda: scene.followers[0]
        await asyncio.sleep(MISSED * LOOK + 0.9 * END)
        assert not scene.was_ended()
        await asyncio.sleep(0.2 * END)

        assert scene.was_ended()
        scene.task.cancel()

    virtual_time.run(play())


def test_a_follower_that_ends_by_itself_ends_the_operator() -> None:
    class Ending(Stand):
        async def run(self, leave: asyncio.Event) -> None:
            """End at once."""

    async def play() -> None:
        async def is_served() -> bool:
            return True

        ending = Ending(follows=True)
        await Following(
            lambda: ending, is_served=is_served, health=Health(), stop=asyncio.Event()
        ).run()

    virtual_time.run(play())


def test_an_api_server_that_does_not_say_what_it_serves_is_asked_again() -> None:
    async def play() -> None:
        scene = Scene(finds=iter([True]))
        scene.is_served = KubernetesError("out")
        await asyncio.sleep(2.5 * LOOK)
        assert scene.followers == []
        assert scene.health.problem == "The API server does not say which kinds it serves: out"

        scene.is_served = True
        await asyncio.sleep(LOOK)

        assert len(scene.followers) == 1
        assert scene.health.problem == ""
        await scene.end()

    virtual_time.run(play())
