"""Several hosts read a stream that is split and merged: each record once, and keys in order."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from balanced_source.api import AsyncCall
from balanced_source.connectors.kinesis import ListShards
from balanced_source.errors import TransientDiscoveryError
from support.shard_hosts import ShardHosts
from support.shards import STREAM, ReadableSource, StreamInMemory, numbers

KEYS = tuple(f"key-{number}" for number in range(12))
FIRST, SECOND = "shardId-000000000000", "shardId-000000000001"


def reading(stream: StreamInMemory, *, hosts: int, parallelism: int) -> ShardHosts:
    source = ReadableSource(streams=(STREAM,), stream=stream, discovery_interval=1.0)
    return ShardHosts(source, hosts=hosts, parallelism=parallelism)


def put(stream: StreamInMemory) -> None:
    for key in KEYS:
        stream.put(key)


def fail(stream: StreamInMemory, times: int) -> None:
    """Let the next listings fail."""
    execute, errors = stream.execute, [TransientDiscoveryError("no answer", scope=STREAM)] * times

    def answer(call: AsyncCall) -> Any:
        if isinstance(call, ListShards) and errors:
            raise errors.pop()
        return execute(call)

    stream.execute = answer  # type: ignore[method-assign]


def settle(run: ShardHosts, stream: StreamInMemory) -> None:
    """Read until only open shards are held, and a little more."""
    opened = {(STREAM, name) for name in stream.open()}
    for _ in range(300):
        run.step()
        held = set[object]().union(*(offset.positions for offset in run.offsets.values()))
        if len(run.delivered) >= len(stream.sent) and held == opened:
            break
    run.step()


def check(run: ShardHosts, stream: StreamInMemory) -> None:
    found = sorted(int(record.data) for record in run.delivered)
    assert found == list(range(len(stream.sent))), run.coordinator.enumerator.problems()
    for keyed in numbers(run.delivered).values():
        assert keyed == sorted(keyed)


@pytest.mark.scenario("P1")
@pytest.mark.parametrize(("hosts", "failures"), [(1, 0), (2, 0), (2, 5)])
def test_a_shard_that_an_older_state_takes_for_unread_is_not_read_again(
    hosts: int, failures: int
) -> None:
    """A Spark checkpoint holds its child, and none holds the shard: it was read."""
    stream = StreamInMemory()
    run = reading(stream, hosts=hosts, parallelism=hosts)
    put(stream)
    # The state notes with its next change that the host has the shard.
    for parallelism in (hosts, hosts + 1, hosts):
        run.rescale(parallelism)
        for _ in range(4):
            run.step()
    older = run.state
    put(stream)
    stream.split(FIRST)
    put(stream)
    settle(run, stream)
    # Until their next epoch the hosts still retain where the shard ended.
    run.rescale(hosts + 1)
    for _ in range(3):
        run.step()
    assert all((STREAM, FIRST) not in offset.retained for offset in run.offsets.values())

    fail(stream, failures)
    run.start_operator(older)
    put(stream)
    settle(run, stream)

    check(run, stream)
    run.close()


@pytest.mark.scenario("P1")
def test_a_shard_that_a_host_gave_away_is_not_read_again_from_where_it_was() -> None:
    """The host retains that position, and restarts before it hears that the shard was read."""
    stream = StreamInMemory(2)
    run = reading(stream, hosts=2, parallelism=2)
    put(stream)
    for _ in range(6):
        run.step()
    run.rescale(1)
    for _ in range(2):
        run.step("0")
        run.step("1")
    assert (STREAM, SECOND) in run.offsets["1"].retained
    put(stream)
    stream.split(SECOND)
    put(stream)
    for parallelism in (1, 3, 1, 2):
        run.rescale(parallelism)
        for _ in range(10):
            run.step("0")
    held = run.offsets["0"]
    assert (STREAM, SECOND) not in {*held.positions, *held.retained}, "it was read"

    run.start("1")
    put(stream)
    settle(run, stream)

    check(run, stream)
    run.close()


@dataclass
class Life:
    """A random life. Closed shards do not expire in it."""

    seed: int
    older: str | None = None
    stream: StreamInMemory = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.stream = StreamInMemory(self.random.randint(1, 3))
        self.run = reading(
            self.stream, hosts=self.random.randint(1, 3), parallelism=self.random.randint(1, 4)
        )

    def act(self) -> None:
        actions: list[Callable[[], None]] = [
            *[self.put, self.split] * 2,
            self.merge,
            *[self.run.step, self.step_one] * 2,
            lambda: self.run.rescale(self.random.randint(1, 5)),
            lambda: self.run.change_hosts(self.random.randint(1, 3)),
            lambda: self.run.start(self.random.choice(list(self.run.groups))),
            lambda: self.run.start_operator(self.run.state),
            self.lose_state,
            self.keep_state,
            self.restore_older_state,
        ]
        self.random.choice(actions)()

    def put(self) -> None:
        for key in self.random.sample(KEYS, 5):
            self.stream.put(key)

    def split(self) -> None:
        self.stream.split(self.random.choice(self.stream.open()))

    def merge(self) -> None:
        opened = self.stream.open()
        if len(opened) > 1:
            place = self.random.randrange(len(opened) - 1)
            self.stream.merge(opened[place], opened[place + 1])

    def step_one(self) -> None:
        self.run.step(self.random.choice(list(self.run.groups)))

    def lose_state(self) -> None:
        if any(offset.epoch for offset in self.run.offsets.values()):
            self.run.start_operator(None)

    def keep_state(self) -> None:
        self.older = self.run.state

    def restore_older_state(self) -> None:
        if self.older is not None:
            self.run.start_operator(self.older)
            self.older = None


@pytest.mark.scenario("P1")
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_lives_of_several_hosts(first: int) -> None:
    """Rescales, hosts that come, leave and restart, and lost or older states."""
    for seed in range(first, first + 10):
        life = Life(seed)
        for _ in range(60):
            life.act()
        put(life.stream)
        settle(life.run, life.stream)
        check(life.run, life.stream)
        life.run.close()
