"""What is too large to explore.

Up to 20 readers on up to three hosts, 100 splits and more, long histories.
"""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from balanced_source.api import SplitId
from balanced_source.coordinator import HostLost, ParallelismChanged
from support.world import Broker, CrashError, Driver, Operator, Store, kafka_source

pytestmark = pytest.mark.unit

readers = st.integers(1, 20)


class LargeWorld(RuleBasedStateMachine):
    """Everything that may happen to one source.

    At its end nothing more goes wrong, and all must be well.
    """

    @initialize(
        hosts=st.integers(1, 3),
        parallelism=readers,
        topics=st.lists(st.integers(1, 40), min_size=3, max_size=3),
    )
    def begin(self, hosts: int, parallelism: int, topics: list[int]) -> None:
        self.broker, self.store = Broker(), Store()
        for number, partitions in enumerate(topics):
            self.broker.create("c", f"topic-{number}", range(partitions), end=3)
        names = tuple(str(number) for number in range(hosts))
        source = kafka_source("c", retention=1e9)
        self.operator = Operator(
            source=source,
            store=self.store,
            broker=self.broker,
            parallelism=parallelism,
            hosts=names,
        )
        self.drivers = [Driver(store=self.store, broker=self.broker, name=name) for name in names]
        self.running: set[str] = set()
        self.operator.start()
        self.operator.answer()

    # --- what happens anyway ----------------------------------------------------------------------

    @rule(is_late=st.booleans())
    def calls_are_answered(self, is_late: bool) -> None:
        self.operator.answer(delayed=is_late)

    @rule()
    def the_operator_sees_reports(self) -> None:
        self.operator.see_reports()

    @rule(number=st.integers(0, 2))
    def a_driver_starts(self, number: int) -> None:
        driver = self.drivers[number % len(self.drivers)]
        if driver.name not in self.running:
            driver.start()
            self.running.add(driver.name)

    @rule(number=st.integers(0, 2))
    def a_driver_goes_on(self, number: int) -> None:
        driver = self.drivers[number % len(self.drivers)]
        if driver.name in self.running:
            driver.see_assignment()
            driver.batch()

    @rule()
    def all_drivers_go_on(self) -> None:
        for number in range(len(self.drivers)):
            self.a_driver_starts(number)
            self.a_driver_goes_on(number)

    # --- what the user does, and the outside ------------------------------------------------------

    @rule(parallelism=readers)
    def the_user_rescales(self, parallelism: int) -> None:
        self.operator.parallelism = parallelism
        self.operator.handle(ParallelismChanged(parallelism))

    @rule(partitions=st.integers(1, 60))
    def a_topic_grows(self, partitions: int) -> None:
        self.broker.create("c", "topic-1", range(partitions), end=2)

    @rule(records=st.integers(1, 5))
    def records_are_written(self, records: int) -> None:
        for split_id in self.broker.ends:
            self.broker.ends[split_id] += records

    # --- what goes wrong --------------------------------------------------------------------------

    @rule(
        number=st.integers(0, 2),
        stage=st.sampled_from(["logged", "delivered"]),
        is_seen=st.booleans(),
    )
    def a_driver_dies_in_a_batch(self, number: int, stage: str, is_seen: bool) -> None:
        driver = self.drivers[number % len(self.drivers)]
        if driver.name in self.running:
            driver.batch(die=stage)
            self.running.discard(driver.name)
            if is_seen:
                self.operator.handle(HostLost(driver.name, driver.host.incarnation))

    @rule(effect=st.integers(0, 2), parallelism=readers)
    def the_operator_dies_between_effects(self, effect: int, parallelism: int) -> None:
        self.operator.crash_before_effect = effect
        try:
            self.operator.see_reports()
            self.operator.handle(ParallelismChanged(parallelism))
        except CrashError:
            pass
        self.operator.crash_before_effect = None
        self.operator.start()

    @rule()
    def the_state_is_deleted(self) -> None:
        self.store.state = None
        self.operator.start()

    # --- what must hold ---------------------------------------------------------------------------

    @invariant()
    def a_split_has_one_owner_or_is_pending(self) -> None:
        state = self.operator.coordinator.state
        assert all(0 <= owner < state.parallelism for owner in state.owners.values())
        assert not state.owners.keys() & state.retained

    @invariant()
    def no_record_is_delivered_twice(self) -> None:
        """Within one host, the sink of the made-up driver sees to it."""
        assert sum(len(driver.delivered) for driver in self.drivers) == len(self._delivered())

    def teardown(self) -> None:
        if not hasattr(self, "operator"):
            return
        for _ in range(8):
            self.operator.answer(delayed=True)
            self.operator.see_reports()
            self.all_drivers_go_on()
            for driver in self.drivers:
                driver.report()
        self.no_record_is_delivered_twice()
        self._check_settled()

    def _check_settled(self) -> None:
        state = self.operator.coordinator.state
        ends = self.broker.ends
        assert self._delivered() == {
            (s, offset) for s, end in ends.items() for offset in range(end)
        }
        assert state.owners.keys() == ends.keys()
        assert {host.acknowledged_epoch for host in state.hosts.values()} == {state.epoch}
        loads = Counter(state.owners.values())
        counts = [loads[subtask] for subtask in range(state.parallelism)]
        assert max(counts) - min(counts) <= 1

    def _delivered(self) -> set[tuple[SplitId, int]]:
        return {record for driver in self.drivers for record in driver.delivered}


LargeWorld.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestLargeWorld = LargeWorld.TestCase


def a_rescale_while_a_host_is_lost(world: LargeWorld) -> None:
    world.begin(hosts=2, parallelism=20, topics=[40, 40, 20])
    world.all_drivers_go_on()
    world.the_operator_sees_reports()
    world.all_drivers_go_on()
    world.a_driver_dies_in_a_batch(1, "logged", is_seen=True)
    world.the_user_rescales(7)
    world.the_operator_sees_reports()


def a_revoked_split_whose_host_dies_before_it_lets_go(world: LargeWorld) -> None:
    world.begin(hosts=2, parallelism=2, topics=[1, 1, 1])
    world.a_driver_starts(1)
    world.the_operator_sees_reports()
    world.the_user_rescales(1)
    world.a_driver_starts(0)
    world.the_operator_sees_reports()
    world.a_driver_dies_in_a_batch(1, "logged", is_seen=False)
    world.a_driver_starts(1)


def a_lost_state_during_growth(world: LargeWorld) -> None:
    world.begin(hosts=1, parallelism=20, topics=[40, 1, 40])
    world.all_drivers_go_on()
    world.the_operator_sees_reports()
    world.all_drivers_go_on()
    world.a_topic_grows(60)
    world.the_state_is_deleted()
    world.the_user_rescales(3)


@pytest.mark.parametrize(
    "history",
    [
        a_rescale_while_a_host_is_lost,
        a_revoked_split_whose_host_dies_before_it_lets_go,
        a_lost_state_during_growth,
    ],
)
def test_histories_worth_keeping(history: Callable[[LargeWorld], None]) -> None:
    world = LargeWorld()
    history(world)

    world.teardown()
