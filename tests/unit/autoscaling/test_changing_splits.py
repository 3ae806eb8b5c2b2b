"""Splits that come, go and move while the load is measured."""

from dataclasses import dataclass, replace

import pytest

from balanced_source.reasons import Reason
from balanced_source_operator.controller.autoscaling import AutoscalerMemory, Sample, observe
from balanced_source_operator.controller.autoscaling.host_samples import HostSamples
from balanced_source_operator.controller.autoscaling.memory import Increase
from support.batch_query import Query, policy

SPLITS = [("c", "t", number) for number in range(8)]


@dataclass
class Growing(Query):
    """A query that gets another split at the first micro-batch after each so many seconds."""

    every: float = 30.0
    came: int = 0

    def _begin(self) -> None:
        super()._begin()
        self.came = int(self.now // self.every)

    def sample(self) -> Sample:
        """Return what the driver would report now, with splits that are empty."""
        found, more = super().sample(), [("c", "new", n) for n in range(self.came)]
        return replace(
            found,
            positions={**found.positions, **dict.fromkeys(more, 0)},
            owners={**found.owners, **dict.fromkeys(more, 0)},
        )


@pytest.mark.parametrize(("trigger", "every"), [(1.0, 30.0), (10.0, 60.0), (60.0, 120.0)])
def test_readers_are_added_while_splits_come_all_the_time(trigger: float, every: float) -> None:
    """The source begins with far too few readers, and nothing is known of them."""
    query = Growing(
        load=6500,
        capacity=1000,
        readers=2,
        cost=0.2,
        policy=policy(trigger),
        tick=0.5,
        spacing=2.0,
        every=every,
    )

    query.run(int(300 + 10 * trigger))

    assert query.readers >= 8


def ended(at: float, *, owners: dict[int, int] | None = None, unread: int = 0) -> Sample:
    """Return a report of two readers that have read 10 records per second of each split."""
    owned = owners or {number: number % 2 for number in range(8)}
    return Sample(
        at=at,
        readers=2,
        unread=unread,
        positions={("c", "t", number): round(10 * at) for number in owned},
        owners={("c", "t", number): owner for number, owner in owned.items()},
    )


def seen(*samples: Sample) -> HostSamples:
    """Return the samples of a host after all of these."""
    series = HostSamples()
    for sample in samples:
        series = series.observed(sample, now=sample.at)
    return series


def test_what_was_read_is_that_of_the_splits_that_both_reports_have() -> None:
    fewer = {number: number % 2 for number in range(7)}
    series = seen(ended(0, owners=fewer), ended(10, owners=fewer), ended(20, unread=90_000))

    steady = series.steady
    assert steady is not None
    assert (steady.rate, steady.splits) == (70, 8)
    assert steady.arrival == 70, "what the new split has unread has not arrived now"
    assert series.recent(5.0) is None, "what arrives is measured anew"


def test_a_split_that_is_gone_ends_no_measurement() -> None:
    fewer = {number: number % 2 for number in range(7)}

    steady = seen(ended(0), ended(10), ended(20, owners=fewer)).steady

    assert steady is not None
    assert steady.rate == 70


def test_many_splits_that_come_begin_a_new_measurement() -> None:
    """What was read of them is unknown, and readers would look too slow."""
    fewer = {number: number % 2 for number in range(4)}
    series = seen(ended(0, owners=fewer), ended(10, owners=fewer), ended(20))

    assert series.steady is None
    assert len(series.samples) == 1


def test_readers_are_measured_without_a_change_of_splits_if_that_is_long_enough() -> None:
    fewer = {number: number % 2 for number in range(7)}
    series = seen(ended(0, owners=fewer), ended(10, owners=fewer), ended(20), ended(26), ended(32))

    steady = series.steady
    assert steady is not None
    assert (steady.rate, steady.seconds) == (80, 12)


@dataclass
class Moving(Query):
    """A query whose splits change their owners all the time, and whose sink is the limit."""

    limit: float = 3000.0
    moves: int = 0

    def _begin(self) -> None:
        self.capacity = min(1000.0, self.limit / self.readers)
        self.moves = int(self.now // 12)
        super()._begin()

    def sample(self) -> Sample:
        """Return what the driver would report now."""
        found = super().sample()
        moved = {s: (owner + self.moves) % self.adopted for s, owner in found.owners.items()}
        return replace(found, owners=moved)


def moving(*, load: float = 6500, limit: float = 3000) -> Moving:
    return Moving(
        load=load,
        limit=limit,
        capacity=1000,
        readers=2,
        cost=0.2,
        policy=policy(1.0),
        tick=0.5,
        spacing=2.0,
    )


def test_an_increase_is_judged_although_owners_change_all_the_time() -> None:
    query = moving(load=4000.0).run(3 * 3600)

    assert query.memory.attempt is None
    assert query.verdicts[-1].reason is Reason.DOWNSTREAM_LIMIT


@pytest.mark.parametrize(("at", "is_kept"), [(3599, True), (3600, False)])
def test_an_increase_that_cannot_be_judged_for_an_hour_is_forgotten(
    at: int, *, is_kept: bool
) -> None:
    """Readers that it has added read all the time, and nothing was measured."""
    attempt = Increase(
        readers=1, rate=100, arrival=100, unread=0, pause=None, at=-600, adopted_at=0
    )
    memory = observe(policy(), AutoscalerMemory(attempt=attempt), ended(at), now=at)

    assert (memory.attempt is not None) == is_kept


def test_the_hour_begins_when_readers_have_started() -> None:
    attempt = Increase(readers=2, rate=100, arrival=100, unread=0, pause=None, at=0)
    memory = observe(policy(), AutoscalerMemory(attempt=attempt), ended(4000), now=4000)

    assert memory.attempt == attempt, "there are two readers still"


def test_readers_are_measured_together_where_owners_change_with_each_micro_batch() -> None:
    query = moving(limit=1e9).run(1800)

    assert query.readers >= 8
