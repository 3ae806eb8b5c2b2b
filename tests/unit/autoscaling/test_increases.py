"""Whether more readers have helped, and what follows where they have not."""

import pytest

from balanced_source.reasons import Reason
from support.reading_source import POLICY, ReadingSource, measured, with_most


def limited(splits: int = 48, most: int = 48) -> ReadingSource:
    """A sink that takes half of what arrives, whatever the number of readers is."""
    return ReadingSource(readers=2, splits=splits, limit=200, policy=with_most(most))


def test_an_increase_is_judged_before_the_next_one() -> None:
    source = limited()
    while source.now < 1600 and (not source.verdicts or source.verdicts[-1].is_able):
        source.run(10, 400)

    assert source.reason is Reason.DOWNSTREAM_LIMIT
    assert source.readers <= 6
    assert "The last increase to 6 readers hardly raised the throughput" in source.message


def test_the_capacity_is_not_lowered_while_an_increase_is_judged() -> None:
    source = limited()
    while source.readers == 2:
        source.run(10, 400)
    source.run(20, 400)

    assert source.reason is Reason.CATCHING_UP
    assert source.verdicts[-1].capacity == pytest.approx(100, rel=0.02)


def test_readers_that_have_not_started_yet_are_waited_for() -> None:
    """The backlog grows meanwhile, and with it what seems to be needed."""
    source = limited()
    while source.readers == 2:
        source.run(10, 400)
    before, owners = source.readers, {("c", "t", s): s % 2 for s in source.read}

    for _ in range(30):
        source.now += 10
        for split in source.read:
            source.read[split] += 10 * 200 / 48
            source.backlog[split] += 10 * 200 / 48
        source.decide(source.sample(readers=2, owners=owners))

    assert (source.readers, source.reason) == (before, Reason.CATCHING_UP)
    assert source.message.startswith("2 readers are catching up, and 6 are asked for; ")


def test_a_load_that_has_clearly_grown_is_not_kept_waiting() -> None:
    source = ReadingSource(readers=2, splits=48, policy=with_most(48))
    while source.readers == 2:
        source.run(10, 400)
    before = source.readers

    source.run(10, 1200)

    assert source.readers > 2 * before


def test_a_downstream_limit_stays_as_long_as_it_lasts() -> None:
    """An alert waits for half an hour."""
    source = ReadingSource(readers=2, limit=200).run(120, 400)
    assert source.reason is Reason.DOWNSTREAM_LIMIT
    del source.verdicts[:]

    source.run(4 * 3600, 400)

    assert source.reasons == [Reason.DOWNSTREAM_LIMIT]
    assert not any(verdict.is_able for verdict in source.verdicts)


def test_time_permits_one_more_step_and_no_more() -> None:
    source = limited().run(500, 400)
    assert source.readers == 6

    source.run(5 * 3600, 400)

    assert 6 < source.readers <= 8


def test_a_limit_that_is_gone_is_forgotten() -> None:
    source = limited().run(300, 400)
    assert source.reason is Reason.DOWNSTREAM_LIMIT

    source.limit = float("inf")
    source.run(60, 400)
    assert source.memory.ceiling is None, "the same readers read more than before"
    source.run(900, 400)
    assert source.verdicts[-1].is_able
    source.run(60, 1000)

    assert source.readers >= 12


def test_more_readers_than_allowed_are_not_asked_for_where_they_do_not_help() -> None:
    source = limited(splits=12, most=3).run(1500, 900)

    assert (source.readers, source.reason) == (3, Reason.DOWNSTREAM_LIMIT)
    assert not any("Raise" in verdict.message for verdict in source.verdicts)


def test_more_readers_than_allowed_are_asked_for_where_the_last_increase_has_helped() -> None:
    source = ReadingSource(readers=2, policy=with_most(3)).run(300, 900)

    assert (source.readers, source.reason) == (3, Reason.AT_MAXIMUM)
    assert source.message.endswith("Raise spec.autoscaling.maxReaders")


def test_a_hot_split_that_one_reader_can_carry_gets_a_reader_of_its_own() -> None:
    """With 12 readers the busiest one has another split beside it, which is too much."""
    source = measured(readers=12, splits=24, policy=with_most(50))

    source.run(1200, 240, hot=85)

    uneven = next(v for v in source.verdicts if v.reason is Reason.SPLITS_UNEVEN)
    assert "12 readers fall behind" in uneven.message
    assert "24 suffice. Use strategy LoadAware" in uneven.message
    assert source.readers == 24
    behind = sum(source.backlog.values())
    source.run(600, 240, hot=85)
    assert sum(source.backlog.values()) <= behind
    assert source.verdicts[-1].is_able


def test_a_hot_split_that_no_allowed_number_of_readers_relieves_is_a_limit() -> None:
    source = measured(readers=12, splits=24, policy=POLICY)

    source.run(1200, 240, hot=85)

    assert source.reason is Reason.AT_MAXIMUM
