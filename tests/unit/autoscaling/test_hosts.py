"""Several hosts: their reports are of different times, and so are their micro-batches."""

import pytest

from balanced_source.reasons import Reason
from balanced_source_operator.controller.autoscaling import (
    AutoscalerMemory,
    Sample,
    decide,
    observe,
)
from balanced_source_operator.controller.autoscaling.needs import load_of
from support.batch_query import hosts, policy, run_all
from support.reading_source import POLICY


@pytest.mark.parametrize("number", [1, 2, 3, 6])
@pytest.mark.parametrize("trigger", [10.0, 60.0])
def test_a_steady_load_keeps_its_readers_however_many_hosts_there_are(
    number: int, trigger: float
) -> None:
    group = hosts(
        number,
        load=3000,
        capacity=1000,
        readers=6,
        cost=0.2,
        noise=0.1,
        policy=policy(trigger),
        tick=0.5,
        spacing=2.0,
    )
    first = run_all(group, 3600)
    del first.verdicts[:]

    run_all(group, 1800)

    assert {v.readers for v in first.verdicts} <= {4, 5}
    assert len({v.readers for v in first.verdicts}) == 1
    known = first.memory.capacity
    assert known is not None
    assert 700 <= known.rate <= 1050


def read(
    memory: AutoscalerMemory, host: str, at: float, *, rate: int, unread: int, late: float = 0.0
) -> AutoscalerMemory:
    """Add the report of a host whose two readers have read so many records per second each."""
    first = 2 * int(host)
    splits = [("c", "t", first), ("c", "t", first + 1)]
    sample = Sample(
        at=at + late,
        readers=4,
        unread=unread,
        positions=dict.fromkeys(splits, round(rate * at)),
        owners={split: split[2] for split in splits},
    )
    return observe(POLICY, memory, sample, now=at, host=host)


def two_hosts(seconds: int, *, idle: bool = False, clock: float = 0.0) -> AutoscalerMemory:
    """Two hosts that report in turn, with clocks that differ."""
    memory = AutoscalerMemory()
    for at in range(0, seconds, 10):
        memory = read(memory, "0", at, rate=100, unread=2000)
        rate = 0 if idle else 50
        memory = read(memory, "1", at + 5, rate=rate, unread=0 if idle else 10, late=clock)
    return memory


@pytest.mark.parametrize("clock", [0.0, 300.0, -300.0])
def test_rates_of_hosts_are_added_up_whatever_their_clocks_say(clock: float) -> None:
    steady = two_hosts(60, clock=clock).steady

    assert steady is not None
    assert (steady.rate, steady.arrival, steady.busiest) == (300, 300, 100)
    assert (steady.splits, steady.unread, steady.available) == (4, 2010, 2010)


def test_a_host_that_has_nothing_to_read_hides_nothing_of_the_others() -> None:
    steady = two_hosts(120, idle=True).steady

    assert steady is not None
    assert (steady.rate, steady.busiest) == (200, 100)


def test_what_hosts_do_is_unknown_until_all_of_them_have_told_it() -> None:
    memory = two_hosts(60)
    memory = read(AutoscalerMemory(series=memory.series), "2", 55, rate=100, unread=10)

    assert memory.steady is None
    assert memory.recent(5.0) is None


def test_a_silent_host_is_taken_to_have_as_much_to_do_as_the_others() -> None:
    memory = two_hosts(60)
    both, one = memory.steady, memory.heard_from({"0"}, silent=("1",), share=0.5).steady

    assert both is not None
    assert one is not None
    assert (one.rate, one.busiest, one.splits, one.available) == (400, 100, 4, 4000)


def test_no_reader_is_taken_away_while_a_host_is_silent() -> None:
    memory = two_hosts(60).heard_from({"1"}, silent=("0",), share=0.5)
    for at in range(60, 1200, 10):
        memory = read(memory, "1", at + 5, rate=50, unread=0)
        memory = decide(POLICY, memory, wanted=4, now=at + 5)
        assert memory.verdict is not None
        assert (memory.verdict.readers, memory.verdict.reason) == (4, Reason.LAG_UNKNOWN)

    assert not memory.verdict.is_able
    assert memory.verdict.message.startswith("Host 0 has not reported its lag")
    memory = read(memory.heard_from({"1"}, silent=(), share=1.0), "1", 1205, rate=50, unread=0)
    memory = decide(POLICY, memory, wanted=4, now=1205)
    assert memory.verdict is not None
    assert memory.verdict.readers == 4, "the delay begins when all hosts report"


def test_no_split_stands_out_because_one_host_has_ended_its_micro_batch_first() -> None:
    memory = AutoscalerMemory()
    for at in (0, 6):
        memory = read(memory, "0", at, rate=100, unread=2000)
        memory = read(memory, "1", at + 1, rate=0, unread=2000 + 100 * at)

    load = load_of(POLICY, memory)

    assert load is not None
    assert load.arrival == 300
    assert not load.is_uneven
