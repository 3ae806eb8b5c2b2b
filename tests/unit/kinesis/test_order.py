"""Random lives of a stream and of its source.

Each record once, and those of a key in their order.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balanced_source.connectors.kinesis import END, Start
from balanced_source.testing.local_run import LocalRun
from balanced_source_adapters.kinesis.client import Record
from support.shards import STREAM, ReadableSource, StreamInMemory, numbers

KEYS = tuple(f"key-{number}" for number in range(12))
ACTIONS = (
    "put",
    "split",
    "merge",
    "read",
    "rescale",
    "restart",
    "operator",
    "lose state",
    "older state",
    "expire",
)
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 1000)), max_size=40)


@dataclass
class Life:
    """A stream, and a source that reads it. Each step of reading is a checkpoint."""

    start: Start = field(default_factory=Start)
    shards: int = 2
    now: float = 0.0
    delivered: list[Record] = field(default_factory=list)
    older: str | None = None
    ended: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.stream = StreamInMemory(self.shards)
        self.source = ReadableSource(
            streams=(STREAM,), stream=self.stream, start=self.start, discovery_interval=1.0
        )
        self.run = self._run(None)

    def _run(
        self, former: "LocalRun[Record] | None", *, state: str | None = None
    ) -> LocalRun[Record]:
        made: LocalRun[Record] = LocalRun(
            self.source,
            self.source.create_reader,
            self.stream.execute,
            lambda _subtask, record, _time: self.delivered.append(record),
            parallelism=former.parallelism if former else 2,
            clock=lambda: self.now,
        )
        if former is not None:
            made.offset, made.incarnation, made.state = former.offset, former.incarnation, state
        made.start()
        return made

    def read(self, steps: int = 1) -> None:
        for _ in range(steps):
            self.now += 1.0
            self.run.step(limit=4)
            self.ended |= {
                str(s[1]) for s, position in self.run.offset.positions.items() if position == END
            }

    def restart(self, state: str | None) -> None:
        self.run.close()
        self.run = self._run(self.run, state=state)

    def act(self, action: str, number: int) -> None:
        stream, opened = self.stream, self.stream.open()
        match action:
            case "put":
                for step in range(number % 7):
                    stream.put(KEYS[(number + step * step) % len(KEYS)])
            case "split" if len(opened) < 12:
                stream.split(opened[number % len(opened)])
            case "merge" if len(opened) > 1:
                place = number % (len(opened) - 1)
                stream.merge(opened[place], opened[place + 1])
            case "read":
                self.read(1 + number % 4)
            case "rescale":
                self.run.rescale(1 + number % 4)
            case "restart":
                self.older = self.run.state
                self.restart(self.run.state)
            case "operator":
                self.run.start_coordinator()
            case "lose state" if self.run.offset.epoch:
                self.restart(None)
            case "older state" if self.older is not None and self.run.offset.epoch:
                self.restart(self.older)
            case "expire":
                self.expire()

    def expire(self) -> None:
        """Closed shards that were read to their end are not listed any more, the oldest first.

        One whose end no reader has seen is another case: the policy for lost records decides.
        """
        for name, shard in list(self.stream.shards.items()):
            if name in self.ended and all(
                parent not in self.stream.shards for parent in shard.parents
            ):
                self.stream.expire(name)

    def settle(self, expected: int) -> None:
        for _ in range(400):
            self.read()
            is_read = len(self.delivered) >= expected
            if is_read and set(self.run.offset.positions) == {
                (STREAM, name) for name in self.stream.open()
            }:
                return
        raise AssertionError(
            f"{len(self.delivered)} of {expected} records; held"
            f" {sorted(self.run.offset.positions)}; open {self.stream.open()}; problems"
            f" {self.run.coordinator.enumerator.problems()}"
        )


@pytest.mark.scenario("P1")
@pytest.mark.parametrize("shards", [1, 3])
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_each_key_is_read_once_and_in_order_under_any_faults(
    shards: int, steps: list[tuple[str, int]]
) -> None:
    """Random splits, merges, expiry, rescales, crashes and lost states."""
    life = Life(shards=shards)
    for action, number in steps:
        life.act(action, number)
    for key in KEYS:
        life.stream.put(key)

    life.settle(len(life.stream.sent))

    assert len(life.delivered) == len(life.stream.sent), "nothing is doubled"
    for found in numbers(life.delivered).values():
        assert found == sorted(found)
    life.run.close()
