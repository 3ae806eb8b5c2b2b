"""Why splits move while a source runs.

What the user asks for, what drifts, and what each mode leaves alone.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from balanced_source.api import RebalanceMode, RebalancePolicy, SplitId
from balanced_source.assigners import LoadAwareAssigner, imbalance
from balanced_source.connectors.kafka import KafkaSource
from balanced_source.coordinator import RebalanceRequested, ReportReceived, state_codec
from support.stage import Stage, splits
from support.world import UID, kafka_source

IDS = splits("t", 16)


def source(mode: RebalanceMode = RebalanceMode.ON_RESCALE, **policy: Any) -> KafkaSource:
    wanted = RebalancePolicy(mode=mode, **policy)
    return kafka_source(assigner=LoadAwareAssigner(), rebalance_policy=wanted)


@dataclass
class Reading:
    """A stage whose reader has splits that cost what `rate` says, in records per second."""

    source: KafkaSource
    rate: Callable[[SplitId], float] = lambda split_id: 100.0 if int(split_id[-1]) % 4 == 0 else 1.0
    stage: Stage = field(init=False)

    def __post_init__(self) -> None:
        self.stage = (
            Stage(readers=4, hosts=1, source=self.source).topic(partitions=16, end=0).running()
        )

    @property
    def owners(self) -> Mapping[SplitId, int]:
        return self.stage.owners

    @property
    def imbalance(self) -> float:
        return imbalance(self.owners, {s: self.rate(s) for s in IDS}, self.stage.state.parallelism)

    def passes(self, seconds: float, *, every: float = 30.0) -> "Reading":
        """Time passes, in which the host reads, commits and reports."""
        operator = self.stage.operator
        driver = self.stage.drivers["0"]
        for _ in range(int(seconds / every)):
            operator.now += every
            for split_id in IDS:
                self.stage.broker.ends[split_id] += round(self.rate(split_id) * every)
            driver.see_assignment()
            driver.batch()
            driver.batch()
            report = driver.report()
            assert report is not None
            operator.handle(ReportReceived(replace(report, heartbeat=operator.now)))
        return self

    def asks(self, nonce: int) -> "Reading":
        """The user changes ``rebalanceNonce``."""
        self.stage.operator.handle(RebalanceRequested(nonce=nonce))
        return self


def moved(before: Mapping[SplitId, int], after: Mapping[SplitId, int]) -> int:
    return sum(after[s] != o for s, o in before.items())


def test_a_new_source_balances_numbers_and_observing_alone_moves_nothing() -> None:
    reading = Reading(source())
    before = reading.owners

    reading.passes(3600)
    assert Counter(before.values()) == Counter({0: 4, 1: 4, 2: 4, 3: 4})
    assert reading.owners == before
    assert reading.imbalance > 3, "all busy splits are with one reader"


def test_a_rescale_goes_by_the_loads_that_were_observed() -> None:
    reading = Reading(source()).passes(600)

    reading.stage.rescales(5)
    assert reading.imbalance < 1.1


def test_a_nonce_rebalances_once() -> None:
    reading = Reading(source(RebalanceMode.MANUAL)).passes(600)
    reading.asks(7)
    balanced, epoch = reading.owners, reading.stage.epoch

    assert reading.imbalance < 1.1
    reading.rate = lambda _: 1.0
    reading.passes(3600).asks(7)
    assert (reading.owners, reading.stage.epoch) == (balanced, epoch)


def test_a_nonce_survives_the_operator() -> None:
    reading = Reading(source()).asks(7)

    reading.stage.operator_starts()
    assert reading.stage.state.rebalance_nonce == 7


def test_no_more_splits_move_than_allowed_and_the_next_nonce_continues() -> None:
    reading = Reading(source(max_moves=1)).passes(600)
    before = reading.owners

    first = reading.asks(1).owners
    second = reading.asks(2).owners
    assert (moved(before, first), moved(first, second)) == (1, 1)


def test_manual_leaves_new_readers_empty_until_asked_and_orphans_nowhere() -> None:
    reading = Reading(source(RebalanceMode.MANUAL))
    before = reading.owners

    reading.stage.rescales(6)
    assert reading.owners == before
    reading.stage.rescales(3)
    kept = {s: o for s, o in before.items() if o < 3}
    assert {s: reading.owners[s] for s in kept} == kept
    assert max(reading.owners.values()) == 2
    assert len(reading.owners) == 16


def test_drift_is_followed_once_it_has_lasted() -> None:
    reading = Reading(source(RebalanceMode.DRIFT, min_interval=600.0))
    before = reading.owners

    reading.passes(300)
    assert reading.owners == before, "too soon to tell"
    reading.passes(1200)
    assert reading.imbalance < 1.2
    assert reading.stage.facts.count("LoadsDrifted") == 1
    after, epoch = reading.owners, reading.stage.epoch
    reading.passes(7200)
    assert (reading.owners, reading.stage.epoch) == (after, epoch), "balanced, so it stays"


def test_drift_moves_nothing_while_a_rebalance_is_due() -> None:
    """The rebalance waits for the first listing of a new operator, and moves splits by itself."""
    reading = Reading(source(RebalanceMode.DRIFT, min_interval=600.0))
    before = reading.owners
    reading.stage.operator_starts()

    reading.asks(1).passes(3600)
    assert reading.owners == before
    reading.stage.discovers()
    assert reading.imbalance < 1.2
    assert "LoadsDrifted" not in reading.stage.facts


def test_drift_rebalances_in_small_steps_if_moves_are_limited() -> None:
    reading = Reading(source(RebalanceMode.DRIFT, min_interval=600.0, max_moves=1)).passes(1500)
    before = reading.owners

    reading.passes(3600)
    assert moved(before, reading.owners) >= 1
    assert reading.imbalance < 1.2


def test_round_robin_fills_the_holes_that_a_removal_left_when_it_may() -> None:
    policy = RebalancePolicy(mode=RebalanceMode.DRIFT, min_interval=600.0)
    reading = Reading(kafka_source(rebalance_policy=policy), rate=lambda _: 1.0)
    gone = [s for s, o in reading.owners.items() if o in (1, 2)]
    reading.stage.broker.delete(gone[:6])
    IDS_LEFT = [s for s in IDS if s not in gone[:6]]  # noqa: N806
    reading.stage.looks_again(2)
    assert reading.stage.spread > 1

    operator, driver = reading.stage.operator, reading.stage.drivers["0"]
    for _ in range(60):
        operator.now += 30
        driver.see_assignment()
        driver.batch()
        report = driver.report()
        assert report is not None
        operator.handle(ReportReceived(replace(report, heartbeat=operator.now)))
    assert sorted(reading.owners) == IDS_LEFT
    assert reading.stage.spread <= 1


def test_observed_loads_survive_an_operator_restart() -> None:
    reading = Reading(source()).passes(600)
    before = reading.stage.state.loads.loads()
    text = reading.stage.store.state
    reading.asks(1)  # stores the state
    text = reading.stage.store.state
    assert text is not None

    after = state_codec.decode(text, reading.source, uid=UID).coordinator.loads.loads()
    assert after.keys() == before.keys()
    assert all(abs(after[s] / before[s] - 1) < 0.06 for s in before)


def test_a_source_that_does_not_look_at_loads_does_not_observe_them() -> None:
    reading = Reading(kafka_source()).passes(120)

    assert reading.stage.state.loads.observations == {}


def test_splits_of_removed_readers_come_back_in_the_order_of_the_readers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The outcome does not depend on the order in which splits were assigned."""
    stage = Stage(readers=8, hosts=1).topic("t", 8).running()
    for number, split_id in enumerate(sorted(stage.owners)):
        stage.moves(split_id, 7 - number)
    enumerator: Any = stage.operator.coordinator.enumerator
    enumerator.source = stage.operator.source
    take_back, asked = enumerator.add_splits_back, list[int]()

    def noted(splits: Any, subtask_id: int) -> None:
        asked.append(subtask_id)
        take_back(splits, subtask_id)

    monkeypatch.setattr(enumerator, "add_splits_back", noted)

    stage.rescales(4)

    assert asked == [4, 5, 6, 7]
