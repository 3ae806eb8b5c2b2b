"""Calls to brokers: clusters that do not answer delay no other one."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from balanced_source.errors import ContractViolationError
from balanced_source_operator.runtime.call_pool import PROMPT, LanePool

pytestmark = pytest.mark.asyncio

OWNER = ("shop", "orders")


class Brokers:
    """Clusters that answer at once, or not before `answer_all`."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.running: set[str] = set()
        self.most = 0
        self._lock = threading.Lock()

    def silent(self, name: str) -> str:
        with self._lock:
            self.running.add(name)
            self.most = max(self.most, len(self.running))
        assert self.answers.wait(20), "the test forgot to let the brokers answer"
        with self._lock:
            self.running.discard(name)
        return name

    def prompt(self, name: str) -> str:
        return name


@pytest.fixture
async def brokers() -> AsyncIterator[Brokers]:
    made = Brokers()
    yield made
    made.answers.set()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - threads have no event of the loop
            await asyncio.sleep(0.005)


async def test_clusters_that_do_not_answer_delay_no_other_one(brokers: Brokers) -> None:
    pool = LanePool(slow_after=0.05)
    calls = [
        asyncio.ensure_future(pool.run((OWNER, n), brokers.silent, str(n)))
        for n in range(3 * PROMPT)
    ]

    async with asyncio.timeout(20):
        assert await pool.run((OWNER, "healthy"), brokers.prompt, "healthy") == "healthy"

    assert not any(call.done() for call in calls)
    brokers.answers.set()
    assert await asyncio.gather(*calls) == [str(n) for n in range(3 * PROMPT)]


async def test_a_silent_cluster_has_one_thread_however_much_is_asked_of_it(
    brokers: Brokers,
) -> None:
    pool = LanePool(slow_after=0.01)
    calls = [
        asyncio.ensure_future(pool.run((OWNER, "dead"), brokers.silent, str(n))) for n in range(5)
    ]
    await until(lambda: len(brokers.running) == 1)
    await pool.run((OWNER, "healthy"), brokers.prompt, "healthy")

    brokers.answers.set()
    assert await asyncio.gather(*calls) == ["0", "1", "2", "3", "4"]
    assert brokers.most == 1


async def test_slow_clusters_take_no_place_of_prompt_ones(brokers: Brokers) -> None:
    pool = LanePool(prompt=1, slow=2, slow_after=0.02)
    first = [asyncio.ensure_future(pool.run((OWNER, n), brokers.silent, str(n))) for n in range(2)]
    await until(
        lambda: len(pool._lanes) == 2 and all(lane.is_slow for lane in pool._lanes.values())
    )
    brokers.answers.set()
    await asyncio.gather(*first)
    brokers.answers.clear()

    await until(lambda: all(not lane.is_running for lane in pool._lanes.values()))
    pool._slow_after = 1000.0  # from now on no call gives up its place
    again = [asyncio.ensure_future(pool.run((OWNER, n), brokers.silent, str(n))) for n in range(2)]
    await until(lambda: len(brokers.running) == 2)
    assert await pool.run((OWNER, "healthy"), brokers.prompt, "healthy") == "healthy"

    brokers.answers.set()
    await asyncio.gather(*again)


async def test_a_place_that_was_given_up_is_one_place(brokers: Brokers) -> None:
    pool = LanePool(prompt=1, slow_after=0.02)
    calls = [asyncio.ensure_future(pool.run((OWNER, "dead"), brokers.silent, "dead"))]
    await until(lambda: any(lane.is_slow for lane in pool._lanes.values()))
    pool._slow_after = 1000.0  # from now on no call gives up its place

    calls += [asyncio.ensure_future(pool.run((OWNER, n), brokers.silent, n)) for n in "ab"]
    await until(lambda: len(pool._lanes) == 3)
    assert sum(lane.is_running for lane in pool._lanes.values()) == 2
    assert pool._free == {False: 0, True: 127}

    brokers.answers.set()
    await asyncio.gather(*calls)
    await until(lambda: pool._free == {False: 1, True: 128})


async def test_no_more_calls_run_than_there_are_places(brokers: Brokers) -> None:
    pool = LanePool(prompt=3, slow_after=1000.0)
    calls = [asyncio.ensure_future(pool.run((OWNER, n), brokers.silent, str(n))) for n in range(9)]
    await until(lambda: len(brokers.running) == 3)
    assert pool._free[False] == 0
    brokers.answers.set()
    await asyncio.gather(*calls)
    await until(lambda: not pool._lanes)
    assert brokers.most == 3
    assert pool._free == {False: 3, True: 128}


async def test_an_error_reaches_the_caller_and_frees_the_place() -> None:
    pool = LanePool(prompt=1)

    def fail(name: str) -> None:
        raise ValueError(name)

    for name in ("a", "b"):
        with pytest.raises(ValueError, match=name):
            await pool.run((OWNER, name), fail, name)
    await until(lambda: not pool._lanes)


async def test_a_cancelled_call_keeps_its_thread_and_its_lane(brokers: Brokers) -> None:
    pool = LanePool(slow_after=0.01)
    call = asyncio.ensure_future(pool.run((OWNER, "dead"), brokers.silent, "first"))
    await until(lambda: len(brokers.running) == 1)
    call.cancel()
    pool.forget(OWNER)
    second = asyncio.ensure_future(pool.run((OWNER, "dead"), brokers.silent, "second"))
    await pool.run((OWNER, "healthy"), brokers.prompt, "healthy")
    assert brokers.running == {"first"}

    brokers.answers.set()
    assert await second == "second"
    assert brokers.most == 1


async def test_lanes_of_a_source_that_is_gone_are_forgotten(brokers: Brokers) -> None:
    pool = LanePool(slow_after=0.0)
    brokers.answers.set()
    await pool.run((OWNER, "dead"), brokers.silent, "slow")
    await until(lambda: all(not lane.is_running for lane in pool._lanes.values()))
    assert len(pool._lanes) == 1
    pool.forget(OWNER)
    assert not pool._lanes


async def test_a_silent_server_is_known_to_all_of_its_lanes(
    brokers: Brokers,
) -> None:
    """A thousand sources on a silent cluster must not hold up the others a second each."""
    pool = LanePool(prompt=1, slow=2, slow_after=0.02)
    silent = [
        asyncio.ensure_future(
            pool.run((("shop", n), "main"), brokers.silent, str(n), server="dead:9092")
        )
        for n in range(5)
    ]
    await until(lambda: len(brokers.running) == 2)  # the one that has learnt it, and one more
    pool._slow_after = 1000.0  # from now on no call gives up its place
    healthy = (("shop", "healthy"), "main")
    async with asyncio.timeout(20):
        assert await pool.run(healthy, brokers.prompt, "healthy", server="fine:9092") == "healthy"

    brokers.answers.set()
    await asyncio.gather(*silent)
    await until(lambda: not pool._slow_servers)
    assert brokers.most <= 2


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), StopIteration(), GeneratorExit()]
)
async def test_code_of_a_connector_cannot_end_the_operator(error: BaseException) -> None:
    """What is no `Exception` would pass through the event loop, which serves all sources."""

    def fail(_: str) -> None:
        raise error

    with pytest.raises(ContractViolationError, match=type(error).__name__):
        await LanePool().run((OWNER, "a"), fail, "call")
