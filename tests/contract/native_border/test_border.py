"""The native reader's border.

Whatever Python passes in, an exception or the right answer comes out, never a crash.

Brokers are librdkafka's mock cluster. The calls are made in a process of their own: a crash is a
failed test.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balanced_source_spark.kafka import native
from support.native_victim import Outcome, Step, Victim

pytestmark = pytest.mark.skipif(
    not native.is_available(), reason="the native reader is not installed"
)

TOPIC: Final = "records"
SIZES: Final = (150, 7, 0, 33)
"""Records of each partition."""


class Scene:
    """A mock cluster with records, and a process to make calls in."""

    def __init__(self) -> None:
        self._mock = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, "log_level": 0})
        for partition, size in enumerate(SIZES):
            for number in range(size):
                self._mock.produce(TOPIC, str(number).encode(), partition=partition)
        assert self._mock.flush(30) == 0
        broker = next(iter(self._mock.list_topics(timeout=30).brokers.values()))
        self._bootstrap = f"{broker.host}:{broker.port}"
        self._victim = Victim(self._bootstrap)

    def do(self, *steps: Step) -> list[Outcome]:
        if not self._victim.is_alive:
            self._victim.close()
            self._victim = Victim(self._bootstrap)
        outcomes = self._victim.do(steps)
        for step, outcome in zip(steps, outcomes, strict=True):
            assert outcome.is_sound, f"{step}: {outcome.error}: {outcome.text}"
        return outcomes

    def close(self) -> None:
        self._victim.close()


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def call(verb: str, **arguments: Any) -> Step:
    return verb, arguments


Asked = tuple[str, int, int, int, int | None]
"""Topic, partition, first offset, end offset, and the leader epoch of the plan."""

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([-1, -2, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63)]),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.lists(st.integers(), max_size=3),
)
positions = st.one_of(st.integers(0, 200), st.integers(-(2**63), 2**63 - 1))
terms = st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1))
ranges = st.tuples(
    st.sampled_from([TOPIC, TOPIC, TOPIC, "", "a\0b", "no such topic"]),
    st.integers(-1, 5),
    positions,
    positions,
    terms,
)
strange_ranges = st.one_of(
    junk, st.lists(st.one_of(ranges, st.tuples(junk, junk, junk, junk, junk), junk), max_size=4)
)
properties = st.dictionaries(
    st.one_of(
        st.text(max_size=12),
        st.sampled_from(
            [
                "fetch.min.bytes",
                "auto.offset.reset",
                "isolation.level",
                "security.protocol",
                "group.id",
            ]
        ),
    ),
    st.text(max_size=12),
    max_size=3,
)


def good_ranges(partitions: list[int], edges: list[tuple[int, int]]) -> list[Asked]:
    """One range of each partition, of records that exist."""
    found = []
    for partition, (first, second) in zip(partitions, edges, strict=False):
        start, end = sorted((min(first, SIZES[partition]), min(second, SIZES[partition])))
        found.append((TOPIC, partition, start, end, 0 if partition % 2 else None))
    return found


valid = st.builds(
    good_ranges,
    st.permutations(range(len(SIZES))),
    st.lists(st.tuples(st.integers(0, 160), st.integers(0, 160)), max_size=len(SIZES)),
)
calm = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@calm
@given(
    changes=st.dictionaries(
        st.sampled_from(["cluster", "columns", "max_rows", "max_bytes", "stall"]),
        junk,
        min_size=1,
        max_size=2,
    )
)
def test_any_arguments_of_a_new_reader(scene: Scene, changes: dict[str, Any]) -> None:
    scene.do(
        call("new", **changes),
        call("begin", ranges=[(TOPIC, 1, 0, 7, None)]),
        call("read"),
        call("close"),
    )


@calm
@given(
    config=st.one_of(
        junk, properties, st.dictionaries(junk.filter(lambda v: not isinstance(v, list)), junk)
    )
)
def test_any_settings_of_the_consumer(scene: Scene, config: Any) -> None:
    scene.do(
        call("new", config=config, stall=0.2),
        call("begin", ranges=[(TOPIC, 1, 0, 7, None)]),
        call("read", batches=3),
    )


@calm
@given(asked=st.lists(strange_ranges, min_size=1, max_size=3), then=valid)
def test_after_any_ranges_valid_ones_are_read_correctly_or_rejected(
    scene: Scene, asked: list[Any], then: Any
) -> None:
    strange = [
        step for each in asked for step in (call("begin", ranges=each), call("read", batches=1))
    ]

    *_, begun, read = scene.do(
        call("new", stall=0.3), *strange, call("begin", ranges=then), call("read")
    )

    if begun.error is None:
        assert_right(read, then)


@calm
@given(asked=st.lists(st.tuples(valid, st.integers(0, 3)), min_size=1, max_size=4))
def test_ranges_that_exist_are_read_exactly_whatever_was_left_unread_before(
    scene: Scene, asked: list[Any]
) -> None:
    """Several uses of one consumer, each given up after a few batches, in any order of offsets."""
    steps = [
        step
        for each, some in asked
        for step in (call("begin", ranges=each), call("read", batches=some))
    ]
    last = asked[-1][0]

    *_, begun, read = scene.do(
        call("new", stall=30.0, max_rows=16), *steps, call("begin", ranges=last), call("read")
    )

    assert (begun.error, read.error, read.ended) == (None, None, True), (begun, read)
    assert_right(read, last)


@pytest.mark.parametrize(
    "bad",
    [
        [(TOPIC, 0, 0, 5, None), (TOPIC, 0, 5, 9, None)],
        [(TOPIC, 0, 0, 5, None), (TOPIC, 0, 3, 9, None)],
        [(TOPIC, 0, -1, 5, None)],
        [(TOPIC, 0, -2, 5, None)],
        [(TOPIC, -1, 0, 5, None)],
    ],
    ids=[
        "two of a partition",
        "overlapping",
        "the end as a start",
        "the beginning as a start",
        "any partition",
    ],
)
def test_ranges_that_no_reader_can_have_are_refused_and_nothing_is_read(
    scene: Scene, bad: Any
) -> None:
    _, begun, read, again, rows = scene.do(
        call("new"),
        call("begin", ranges=bad),
        call("read"),
        call("begin", ranges=[(TOPIC, 0, 0, 5, None)]),
        call("read"),
    )

    assert (begun.error, read.rows, read.ended) == ("ValueError", (), True)
    assert again.error is None
    assert_right(rows, [(TOPIC, 0, 0, 5, None)])


@pytest.mark.parametrize(
    "changes", [{"max_rows": 0}, {"max_bytes": 0}, {"stall": -1.0}, {"stall": float("nan")}]
)
def test_invalid_limits_are_rejected(scene: Scene, changes: dict[str, Any]) -> None:
    (made,) = scene.do(call("new", **changes))

    assert made.error == "ValueError"


uses = st.sampled_from(
    [
        call("begin", ranges=[(TOPIC, 0, 0, 150, None)]),
        call("begin", ranges=[(TOPIC, 3, 5, 20, None), (TOPIC, 1, 0, 7, None)]),
        call("read", batches=2),
        call("counters"),
        call("forget_idle", seconds=0.0),
        call("close"),
    ]
)


@calm
@given(
    steps=st.lists(
        st.one_of(uses, st.builds(lambda s: call("together", steps=s), st.lists(uses, max_size=4)))
    )
)
def test_any_order_of_calls_from_any_thread(scene: Scene, steps: list[Step]) -> None:
    """Use after close, twice closed, ranges given up, partitions forgotten while they are read."""
    scene.do(call("new", stall=0.5), *steps, call("drop"))


@calm
@given(seconds=junk)
def test_any_age_of_idle_partitions(scene: Scene, seconds: Any) -> None:
    scene.do(
        call("new"),
        call("begin", ranges=[(TOPIC, 1, 0, 7, None)]),
        call("forget_idle", seconds=seconds),
    )


@calm
@given(asked=st.lists(valid, min_size=1, max_size=4))
def test_partitions_that_were_forgotten_are_read_again_exactly(
    scene: Scene, asked: list[list[Asked]]
) -> None:
    """What was fetched before is thrown away with the assignment.

    None of it may come later, or hide what comes.
    """
    steps = [
        (call("begin", ranges=each), call("read"), call("forget_idle", seconds=0.0))
        for each in asked
    ]
    outcomes = scene.do(call("new"), *(step for each in steps for step in each))

    for number, each in enumerate(asked):
        read = outcomes[2 + 3 * number]
        assert (read.error, read.ended) == (None, True)
        assert_right(read, each)


def test_rows_outlive_their_reader(scene: Scene) -> None:
    _, begun, outlived = scene.do(
        call("new"), call("begin", ranges=[(TOPIC, 0, 0, 150, None)]), call("batch_outlives")
    )

    assert (begun.error, outlived.error) == (None, None), outlived


def test_a_closed_reader_says_so(scene: Scene) -> None:
    _, closed, again, read = scene.do(call("new"), call("close"), call("close"), call("read"))

    assert (closed.error, again.error, read.error) == (None, None, "NativeReadError")
    assert "closed" in read.text


def assert_right(read: Outcome, asked: list[Asked]) -> None:
    """All rows of the ranges once, or, where reading failed, none twice and no others."""
    wanted = Counter(
        (partition, offset) for _, partition, start, end, _ in asked for offset in range(start, end)
    )
    found = Counter(read.rows)
    if read.ended:
        assert found == wanted
    else:
        assert found <= wanted
