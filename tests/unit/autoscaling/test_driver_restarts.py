"""A driver that was away: its backlog needs more readers, once."""

import pytest

from balanced_source.reasons import Reason
from support.batch_query import Query, policy


def running() -> Query:
    return Query(
        load=6000,
        capacity=1000,
        readers=2,
        cost=0.2,
        noise=0.1,
        policy=policy(1.0, most=40),
        tick=0.25,
        spacing=2.0,
        is_timed=True,
    ).run(1800)


def steps(query: Query, since: int) -> list[int]:
    """Return the numbers of readers in turn, from a verdict on."""
    found = [verdict.readers for verdict in query.verdicts[since:]]
    return [n for i, n in enumerate(found) if i == 0 or n != found[i - 1]]


@pytest.mark.parametrize("away", [55, 75, 100, 200])
def test_readers_are_added_once_within_the_first_micro_batch_of_a_driver(away: int) -> None:
    """Before it ends, what is unread becomes older with each report."""
    query = running()
    before, since = query.readers, len(query.verdicts)
    query.restart(away).run(45)

    assert len(steps(query, since)) == 2
    assert query.readers > before
    assert query.verdicts[-1].reason is Reason.CATCHING_UP


def test_a_load_that_clearly_grows_meanwhile_adds_readers_again() -> None:
    query = running()
    since = len(query.verdicts)
    query.restart(75).run(15)
    first = query.readers
    query.load = 15_000
    query.run(20)

    assert len(steps(query, since)) >= 3
    assert query.readers > first


def test_too_few_readers_are_said_to_be_too_few_also_while_the_last_ones_are_awaited() -> None:
    """Whether an increase within the first micro-batch has helped is never known."""
    query = running()
    query.load, query.policy = 12_000, policy(1.0, most=9)
    query.restart(400).run(30)
    assert (query.readers, query.adopted) == (9, 8)
    since = len(query.verdicts)

    query.run(450)

    assert query.adopted == 8, "the first micro-batch lasts"
    assert {v.reason for v in query.verdicts[since:]} == {Reason.AT_MAXIMUM}


@pytest.mark.parametrize("away", [55, 200])
def test_a_backlog_of_a_time_without_a_driver_is_worked_off(away: int) -> None:
    query = running()
    since = len(query.verdicts)
    query.restart(away).run(600)
    assert query.arrived - query.read <= 3 * query.load
    query.run(1800)

    assert len(steps(query, since)) <= 3, "more, and fewer again"
    assert query.readers <= 9
    assert query.memory.attempt is None, "there is nothing to compare with"
