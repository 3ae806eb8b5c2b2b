"""Admission: never too much, never nothing, and no one starves beside a huge split."""

from collections.abc import Mapping
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import SplitId
from balanced_source.connectors.kafka.limits import (
    ASSUMED_RECORD_BYTES,
    ReadLimits,
    admit,
    fair_shares,
)

Backlog = Mapping[SplitId, int]

backlogs = st.dictionaries(
    st.tuples(st.just("c"), st.sampled_from(["a", "b"]), st.integers(0, 40)),
    st.integers(0, 10**6),
    max_size=30,
)
caps = st.none() | st.integers(1, 10**6)


def ids(*counts: int) -> dict[SplitId, int]:
    return {("c", "t", p): n for p, n in enumerate(counts)}


def test_without_limits_everything_is_read() -> None:
    assert admit(ids(5, 0, 10**9), ReadLimits(), waited=0) == ids(5, 0, 10**9)


def test_a_small_split_beside_a_huge_one_is_read_to_its_end_at_once() -> None:
    assert admit(ids(10**9, 7, 30), ReadLimits(max_records=100), waited=0) == ids(63, 7, 30)


def test_a_split_gets_one_record_at_least_even_if_that_exceeds_the_limit() -> None:
    """As Spark's own source does."""
    assert admit(ids(9, 9, 9, 0), ReadLimits(max_records=2), waited=0) == ids(1, 1, 1, 0)


def test_the_limit_of_a_split_comes_before_the_sharing() -> None:
    assert admit(
        ids(100, 100, 2), ReadLimits(max_records=90, max_records_per_split=20), waited=0
    ) == ids(20, 20, 2)


def test_bytes_are_shared_evenly_not_records() -> None:
    sizes = {("c", "t", 0): 1000.0, ("c", "t", 1): 10.0}

    shares = admit(ids(10**6, 10**6), ReadLimits(max_bytes=100_000), waited=0, record_bytes=sizes)

    assert shares == ids(50, 5000)


def test_sizes_that_are_not_known_count_as_the_mean_of_the_others() -> None:
    limits = ReadLimits(max_bytes=4000)

    assert admit(ids(99, 99), limits, waited=0, record_bytes={("c", "t", 0): 100.0}) == ids(20, 20)
    assert admit(ids(99), limits, waited=0) == ids(int(4000 // ASSUMED_RECORD_BYTES))


def test_too_few_records_wait_until_the_delay_is_over() -> None:
    limits = ReadLimits(min_records=10, max_delay=60)

    assert admit(ids(4, 5), limits, waited=59.9) == ids(0, 0)
    assert admit(ids(5, 5), limits, waited=0) == ids(5, 5)
    assert admit(ids(4, 5), limits, waited=60) == ids(4, 5)


def test_splits_without_new_records_do_not_count_towards_the_minimum() -> None:
    """A log that was cut ends before the position: its backlog is negative."""
    limits = ReadLimits(min_records=10)

    assert admit(ids(5, 4, 0, -7), limits, waited=0) == ids(0, 0, 0, 0)
    assert admit(ids(5, 5, 0, -7), limits, waited=0) == ids(5, 5, 0, 0)


def test_records_without_bytes_count_as_one_byte_each() -> None:
    """A record may have neither a key nor a value."""
    limits, empty = ReadLimits(max_bytes=10), {("c", "t", 0): 0.0}

    assert admit(ids(99), limits, waited=0, record_bytes=empty) == ids(10)
    assert admit(ids(99, 99), limits, waited=0, record_bytes=empty) == ids(5, 5)


def test_bytes_are_shared_by_what_other_limits_left() -> None:
    limits = ReadLimits(max_records_per_split=10, max_bytes=1500)
    sizes = {("c", "t", 0): 50.0, ("c", "t", 1): 200.0}

    assert admit(ids(100, 100), limits, waited=0, record_bytes=sizes) == ids(10, 5)


def test_only_limits_that_are_set_are_written() -> None:
    assert ReadLimits().to_json() == {}
    assert ReadLimits(max_records=1).to_json() == {"maxRecords": 1}
    assert ReadLimits(min_records=2, max_delay=3).to_json() == {"minRecords": 2, "maxDelay": 3}
    assert ReadLimits.from_json({"minRecords": 2}).max_delay == 900


def test_limits_survive_their_way_to_the_readers() -> None:
    for limits in (
        ReadLimits(),
        ReadLimits(max_records=1, max_bytes=2, max_records_per_split=3, min_records=4),
    ):
        assert ReadLimits.from_json(limits.to_json()) == limits


@given(backlogs, caps, caps, caps)
def test_never_more_than_there_is_nor_than_allowed(
    backlog: Backlog, total: int | None, each: int | None, size: int | None
) -> None:
    limits = ReadLimits(max_records=total, max_records_per_split=each, max_bytes=size)

    shares = admit(backlog, limits, waited=0, record_bytes=dict.fromkeys(backlog, 10.0))

    waiting = sum(n > 0 for n in backlog.values())
    assert shares.keys() == backlog.keys()
    for split_id, share in shares.items():
        assert min(1, backlog[split_id]) <= share <= backlog[split_id], (
            "nobody starves, nobody gets what is not there"
        )
        assert each is None or share <= each
    assert total is None or sum(shares.values()) <= max(total, waiting)
    assert size is None or sum(shares.values()) * 10 <= max(size, 10 * waiting)


@given(backlogs, st.integers(30, 10**6))
def test_the_whole_limit_is_used_while_there_is_demand(backlog: Backlog, total: int) -> None:
    assert sum(fair_shares(backlog, total).values()) == min(total, sum(backlog.values()))


@given(backlogs, st.integers(1, 10**6))
def test_a_split_with_less_than_another_has_all_it_needs(backlog: Backlog, total: int) -> None:
    shares = fair_shares(backlog, total)

    for split_id, share in shares.items():
        if share < backlog[split_id]:
            assert max(shares.values()) <= share + 1, "max-min fair"


@given(backlogs, st.integers(1, 10**6), st.randoms())
def test_the_order_of_the_input_does_not_matter(
    backlog: Backlog, total: int, random: Random
) -> None:
    items = list(backlog.items())
    random.shuffle(items)

    assert fair_shares(dict(items), total) == fair_shares(backlog, total)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12), st.integers(1, 500))
def test_everything_is_read_in_the_end(counts: list[int], total: int) -> None:
    left, rounds = ids(*counts), 0
    while any(left.values()):
        shares = fair_shares(left, total)
        left = {s: n - shares[s] for s, n in left.items()}
        rounds += 1
    assert rounds <= -(-sum(counts) // total) + len(counts)
