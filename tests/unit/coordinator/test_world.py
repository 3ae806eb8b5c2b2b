"""The whole protocol in a random world.

Whatever happens, every record arrives once, and splits stay balanced.
"""

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from balanced_source.assigners import STRATEGIES
from balanced_source.coordinator import HostLost, ParallelismChanged
from support.world import Broker, CrashError, Driver, Operator, Store, kafka_source

pytestmark = pytest.mark.unit


@dataclass
class Walk:
    """A random walk through everything that can happen to one source with one reader host."""

    rng: random.Random
    broker: Broker = field(default_factory=Broker)
    store: Store = field(default_factory=Store)
    is_running: bool = False

    def __post_init__(self) -> None:
        self.broker.create("c", "orders", range(4), end=3)
        strategy = STRATEGIES[self.rng.choice(["RoundRobin", "Hash"])]()
        source = kafka_source("c", assigner=strategy, retention=self.rng.choice([0.0, 1e9]))
        self.operator = Operator(source=source, store=self.store, broker=self.broker, parallelism=2)
        self.driver = Driver(store=self.store, broker=self.broker)
        self.operator.start()

    def step(self) -> None:
        match self.rng.randrange(11):
            case 0 | 1:
                self.operator.answer(delayed=self.rng.random() < 0.5)
            case 2:
                self.operator.see_reports()
            case 3:
                self.operator.handle(ParallelismChanged(self.rng.randint(1, 5)))
            case 4 if self.rng.random() < 0.4:
                self.crash_operator()
            case 5 if not self.is_running or self.rng.random() < 0.2:
                self.restart_driver()
            case 6:
                self.broker.create("c", self.rng.choice("ab"), range(self.rng.randint(1, 3)))
            case 7:
                for split_id in self.broker.ends:
                    self.broker.ends[split_id] += self.rng.randrange(3)
            case 8 if self.is_running:
                self.driver.see_assignment()
            case 9 if self.is_running and self.rng.random() < 0.2:
                self.driver.batch(die=self.rng.choice(["logged", "delivered"]))
                self.is_running = False
            case _ if self.is_running:
                self.driver.batch()

    def crash_operator(self) -> None:
        """Die before some effect of some event; sometimes the stored state is gone as well."""
        self.operator.crash_before_effect = self.rng.randrange(3)
        try:
            self.operator.see_reports()
            self.operator.handle(ParallelismChanged(self.rng.randint(1, 5)))
            self.operator.answer(delayed=True)
        except CrashError:
            pass
        self.operator.crash_before_effect = None
        if self.rng.random() < 0.3:
            self.store.state = None
        self.operator.start()

    def restart_driver(self) -> None:
        if self.is_running:
            self.operator.handle(HostLost("0", self.driver.host.incarnation))
        self.driver.start()
        self.is_running = True

    def settle(self) -> None:
        """Nothing else goes wrong: everything pending gets done."""
        if not self.is_running:
            self.driver.start()
        for _ in range(6):
            self.operator.answer(delayed=True)
            self.operator.see_reports()
            self.driver.see_assignment()
            self.driver.batch()
            self.driver.report()


@pytest.mark.parametrize("seed", range(300))
def test_every_record_arrives_once_whatever_happens(seed: int) -> None:
    walk = Walk(random.Random(seed))
    for _ in range(120):
        walk.step()

    walk.settle()

    ends, delivered = walk.broker.ends, walk.driver.delivered
    assert not {(s, o) for s in ends for o in range(ends[s]) if (s, o) not in delivered}
    state = walk.operator.coordinator.state
    assert set(state.owners) == set(ends)
    assert state.hosts["0"].acknowledged_epoch == state.epoch
    if walk.operator.source.assigner == STRATEGIES["RoundRobin"]():
        counts = Counter(state.owners.values())
        loads = [counts[i] for i in range(state.parallelism)]
        assert max(loads) - min(loads) <= 1
