"""Random lives of a source.

The real coordinator, enumerator and reader hosts in a world where everything happens.

One seed is one life: which source it is, what happens in which order, and where everybody dies.
`Ledger` keeps the account of records.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from balanced_source.api import RebalanceCause, SplitId
from balanced_source.assigners import STRATEGIES
from balanced_source.connectors.discovery import Alarm
from balanced_source.connectors.kafka import EARLIEST, LATEST, KafkaSource, OnDataLoss, TopicPattern
from balanced_source.coordinator import (
    CallCompleted,
    ExecuteCall,
    HostLost,
    HostSilent,
    ParallelismChanged,
    RebalanceRequested,
    SourceChanged,
)
from support.ledger import Ledger
from support.life_driver import LifeDriver
from support.stage import bounded_source
from support.world import Broker, CrashError, Operator, Store, kafka_source

CLUSTERS: Final = ("c", "d")
TOPICS: Final = ("t", "u", "v")
STEPS: Final = 90
ROUNDS: Final = 12
"""Exchanges of everything after which a life must have come to rest."""


@dataclass
class Life:
    """See the module. `begin`, then `step` as often as wanted, then `settle`, which checks.

    Attributes:
        loses: what someone loses or restores from older copies in this life: "state" or
            "checkpoint". Both at once leave no one who knows.
    """

    seed: int
    hosts: tuple[str, ...] = ("0",)
    log: list[str] = field(default_factory=list)
    copies: list[tuple[str, str | None]] = field(default_factory=list)
    decided: dict[tuple[int, int], Any] = field(default_factory=dict)
    topics_created: int = 0

    def __post_init__(self) -> None:
        self.rng = rng = random.Random(self.seed)
        self.is_bounded, self.loses = (
            rng.random() < 0.25,
            rng.choice(["state", "state", "checkpoint"]),
        )
        retention, starts_latest = (
            rng.choice([0.0, 1e9]),
            not self.is_bounded and rng.random() < 0.5,
        )
        self.broker, self.store = Broker(is_bounded=self.is_bounded), Store()
        self.ledger = Ledger(starts_latest=starts_latest, forgets=retention == 0)
        make = bounded_source if self.is_bounded else kafka_source
        self.all: KafkaSource = make(
            *CLUSTERS,
            assigner=STRATEGIES[rng.choice(["RoundRobin", "RoundRobin", "Hash"])](),
            retention=retention,
            starting_offsets=LATEST if starts_latest else EARLIEST,
            on_data_loss=rng.choice(list(OnDataLoss)),
        )
        self.active, self.excluded = set(CLUSTERS), set[str]()
        for cluster in CLUSTERS:
            self.create_topic(cluster, "t")
        for cluster in CLUSTERS:
            self.ledger.cluster_added(cluster)
        self.parallelism = rng.randint(1, 4)
        self.operator = Operator(
            source=self.source,
            store=self.store,
            broker=self.broker,
            parallelism=self.parallelism,
            hosts=self.hosts,
        )
        self.drivers = [
            LifeDriver(store=self.store, broker=self.broker, name=name, ledger=self.ledger, rng=rng)
            for name in self.hosts
        ]
        for driver in self.drivers:
            driver.all_hosts = [*self.drivers]
        self.operator.start()

    @property
    def source(self) -> KafkaSource:
        """What the user wants now."""
        clusters = tuple(c for c in self.all.clusters if c.name in self.active)
        pattern = TopicPattern(".*", "|".join(sorted(self.excluded)) or None)
        return replace(self.all, clusters=clusters, subscriber=pattern)

    # --- steps ------------------------------------------------------------------------------------

    def step(self) -> None:
        """Something happens."""
        steps, weights = zip(*self._steps(), strict=True)
        step: Callable[[], Any] = self.rng.choices(steps, weights)[0]
        self.log.append(step.__name__)
        step()
        self._note_published()

    def _steps(self) -> list[tuple[Callable[[], Any], float]]:
        common: list[tuple[Callable[[], Any], float]] = [
            (self.answer_one, 6),
            (self.answer_all, 2),
            (self.see_reports, 3),
            (self.drive, 10),
            (self.drive_and_die, 0.7),
            (self.start_driver, 3),
            (self.kill_driver, 0.7),
            (self.miss_reports, 0.4),
            (self.produce, 4),
            (self.grow, 1),
            (self.recreate_topic, 0.5),
            (self.toggle_cluster_down, 1),
            (self.toggle_cluster, 1),
            (self.toggle_topic, 0.5),
            (self.rescale, 1),
            (self.rebalance, 0.3),
            (self.crash_operator, 1),
        ]
        if self.loses == "checkpoint":
            return [*common, (self.lose_checkpoint, 0.7), (self.roll_back_checkpoint, 0.7)]
        return [
            *common,
            (self.lose_state, 0.7),
            (self.lose_everything, 1),
            (self.restore_state, 1),
        ]

    def answer_one(self) -> None:
        calls = self.operator.calls
        if calls:
            self._answer(calls.pop(self.rng.randrange(len(calls))))

    def answer_all(self) -> None:
        """What is under way now, and what that leads to at once."""
        todo, self.operator.calls = self.operator.calls, []
        for call in todo:
            self._answer(call)
        while at_once := [call for call in self.operator.calls if call.delay == 0]:
            self.operator.calls.remove(at_once[0])
            self._answer(at_once[0])

    def _answer(self, call: ExecuteCall) -> None:
        # A retention alarm that comes early asks what time it is.
        self.operator.now += 0.0 if isinstance(call.call, Alarm) else call.delay
        self.operator.handle(CallCompleted(call.call_id, self.broker.execute(call.call)))

    def see_reports(self) -> None:
        self.operator.see_reports()

    def drive(self) -> None:
        driver = self._driver()
        if driver.is_running:
            if self.rng.random() < 0.6:
                driver.see_assignment()
            driver.trigger()

    def drive_and_die(self) -> None:
        driver = self._driver()
        if driver.is_running:
            driver.trigger(die=self.rng.choice(["logged", "delivered"]))
            driver.is_running = False

    def kill_driver(self) -> None:
        driver = self._driver()
        driver.is_running = False
        if self.rng.random() < 0.5:
            self.operator.handle(HostLost(driver.name, driver.host.incarnation))

    def miss_reports(self) -> None:
        """The operator has not heard a host for long, whether its driver runs or not."""
        name = self._driver().name
        if (host := self.operator.coordinator.state.hosts.get(name)) is not None:
            self.operator.handle(HostSilent(name, host.incarnation))

    def start_driver(self) -> None:
        driver = self._driver()
        if not driver.is_running and (self.store.assignment is not None or driver.offsets):
            self._start(driver)

    def produce(self) -> None:
        for split_id in self.rng.sample(
            sorted(self.broker.ends), self.rng.randint(0, len(self.broker.ends))
        ):
            count = self.rng.randint(1, 3)
            self.broker.ends[split_id] += count
            self.ledger.produced(self._topic_id(split_id), split_id, count)

    def grow(self) -> None:
        cluster, topic = self.rng.choice(CLUSTERS), self.rng.choice(TOPICS)
        if (cluster, topic) in self.broker.topic_ids:
            count = sum(s[:2] == (cluster, topic) for s in self.broker.ends)
            if count < 4:
                self._create_partitions(cluster, topic, range(count + 1))
        else:
            self.create_topic(cluster, topic)

    def create_topic(self, cluster: str, topic: str) -> None:
        self.topics_created += 1
        self.broker.topic_ids[cluster, topic] = f"{cluster}-{topic}-{self.topics_created}"
        self._create_partitions(cluster, topic, range(self.rng.randint(1, 3)))

    def recreate_topic(self) -> None:
        """Deleted; recreated at once, later, or never."""
        if not self.broker.topic_ids:
            return
        cluster, topic = self.rng.choice(sorted(self.broker.topic_ids))
        del self.broker.topic_ids[cluster, topic]
        self.ledger.topic_deleted(topic)
        self.broker.delete([s for s in self.broker.ends if s[:2] == (cluster, topic)])
        if self.rng.random() < 0.6:
            self.create_topic(cluster, topic)

    def toggle_cluster_down(self) -> None:
        self.broker.down ^= {self.rng.choice(CLUSTERS)}

    def toggle_cluster(self) -> None:
        cluster = self.rng.choice(CLUSTERS)
        if cluster not in self.active:
            self.active.add(cluster)
            self.ledger.cluster_added(cluster)
        elif len(self.active) > 1:
            self.active.discard(cluster)
            self.ledger.cluster_removed(cluster)
        self._source_changed()

    def toggle_topic(self) -> None:
        topic = self.rng.choice(TOPICS)
        if topic in self.excluded:
            self.excluded.discard(topic)
        else:
            self.excluded.add(topic)
            self.ledger.topic_removed(topic)
        self._source_changed()

    def rescale(self) -> None:
        self.parallelism = self.rng.randint(1, 5)
        self.operator.handle(ParallelismChanged(self.parallelism))

    def rebalance(self) -> None:
        self.operator.handle(RebalanceRequested(RebalanceCause.REQUESTED))

    def crash_operator(self) -> None:
        """It dies, perhaps in the middle of a turn, and another one starts."""
        self.operator.crash_before_effect = self.rng.randrange(4)
        try:
            for step in self.rng.sample(
                [self.see_reports, self.rescale, self.answer_one, self.answer_all], 3
            ):
                step()
        except CrashError:
            pass
        self.operator.crash_before_effect = None
        self._note_published()
        self._restart_operator()

    def lose_state(self) -> None:
        self.store.state = None
        self._restart_operator()

    def lose_everything(self) -> None:
        """The resource is deleted with its documents and its applications, and applied again.

        Perhaps with other hosts.
        """
        self.store.state, self.store.assignment = None, None
        self.store.reports.clear()
        self.decided.clear()
        self.copies.clear()  # they carry the uid of the deleted resource
        for driver in self.drivers:
            driver.is_running = False
        self.operator.hosts = self.rng.choice([self.hosts, self.hosts[:1]])
        self._restart_operator()

    def restore_state(self) -> None:
        """An older copy of the state.

        Sometimes with the assignment of that time, or without any.
        """
        if not self.copies:
            return
        state, assignment = self.rng.choice(self.copies[-30:])
        self.store.state, self.ledger.is_restored = state, True
        for driver in self.drivers:
            if driver.is_running:
                # what it adopts it acknowledges at once; here `trigger` leaves that to the next one
                driver.report()
        what = self.rng.random()
        if what < 0.4:
            # With several hosts no one can tell that both are older until all hosts have reported.
            self.store.assignment = assignment if what < 0.2 and len(self.hosts) == 1 else None
            self.decided.clear()
        self._restart_operator()

    def lose_checkpoint(self) -> None:
        """It is deleted when the driver has reported all that was in it.

        The operator need not have seen that report, or stored what it said.
        """
        driver = self._driver()
        if driver.is_running and driver.committed == len(driver.offsets):
            driver._latest()
            driver.wipe()
            self._start(driver)

    def roll_back_checkpoint(self) -> None:
        """Within the present epoch, and noticed at once.

        Further back the operator knows more than the checkpoint.
        """
        driver = self._driver()
        if self._is_known(driver):
            driver.roll_back()
            self._start(driver)
            self.operator.see_reports()

    # --- the end ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Nothing goes wrong any more, and everything is wanted: every record must arrive."""
        self.log.append("settle")
        self.broker.down.clear()
        for cluster in sorted(set(CLUSTERS) - self.active):
            self.active.add(cluster)
            self.ledger.cluster_added(cluster)
        self.excluded.clear()
        self.all = replace(self.all, on_data_loss=OnDataLoss.CONTINUE)
        self._source_changed()
        for driver in self.drivers:
            if not driver.is_running:
                self._start(driver)
        for _ in range(ROUNDS):
            self._exchange()
        self.operator.handle(RebalanceRequested(RebalanceCause.REQUESTED))
        for _ in range(3):
            self._exchange()
        self.check()

    def _exchange(self) -> None:
        self.answer_all()
        self._note_published()
        for driver in self.drivers:
            driver.see_assignment()
            driver.trigger(reads_all=True)
            driver.trigger(reads_all=True)
            driver.report()
        self.operator.see_reports()
        self._note_published()

    def check(self) -> None:
        """Everything that exists is owned, read to its end, and acknowledged."""
        state, exists = self.operator.coordinator.state, set(self.broker.ends)
        if self.is_bounded:
            # a bounded source looks once, so it also waits for a topic that is gone
            exists = set(state.owners)
            is_over = self.operator.coordinator.enumerator.is_finished()
            assert is_over or self._waits_for_the_past(), "bounded, and not finished"
        assert set(state.owners) == exists, (
            f"owned {sorted(state.owners)}, there are {sorted(exists)}"
        )
        missing = self.ledger.missing(self.broker.topic_ids)
        missing = {s: gaps for s, gaps in missing.items() if s in exists}
        assert not missing, f"never delivered: {missing}"
        for name, host in state.hosts.items():
            assert host.acknowledged_epoch == state.epoch, (
                f"host {name} has not acknowledged epoch {state.epoch}"
            )

    def _waits_for_the_past(self) -> bool:
        splits, topics = self.operator.coordinator.state.splits, self.broker.topic_ids
        return any(
            topics.get((str(s[0]), str(s[1]))) != split.topic_id for s, split in splits.items()
        )

    # --- inside -----------------------------------------------------------------------------------

    def _driver(self) -> LifeDriver:
        return self.rng.choice(self.drivers)

    def _start(self, driver: LifeDriver) -> None:
        if driver.is_running and self.rng.random() < 0.5:
            self.operator.handle(HostLost(driver.name, driver.host.incarnation))
        driver.start()
        driver.is_running = True

    def _restart_operator(self) -> None:
        self.operator.source, self.operator.parallelism = self.source, self.parallelism
        self.operator.start()
        self._agree()

    def _agree(self) -> None:
        """What every runtime does: tell the coordinator what is wanted now."""
        if self.operator.coordinator.state.parallelism != self.parallelism:
            self.operator.handle(ParallelismChanged(self.parallelism))

    def _source_changed(self) -> None:
        self.operator.source = self.source
        self.operator.handle(SourceChanged(self.source))

    def _topic_id(self, split_id: SplitId) -> str:
        return self.broker.topic_ids[str(split_id[0]), str(split_id[1])]

    def _create_partitions(self, cluster: str, topic: str, numbers: range) -> None:
        known = set(self.broker.ends)
        self.broker.create(cluster, topic, numbers)
        for split_id in sorted(set(self.broker.ends) - known):
            self.ledger.created(self._topic_id(split_id), split_id)

    def _is_known(self, driver: LifeDriver) -> bool:
        """Whether the operator has stored all that the driver's checkpoint holds."""
        if not driver.is_running or driver.committed != len(driver.offsets) or not driver.offsets:
            return False
        driver._latest()
        self.operator.see_reports()
        known = self.operator.coordinator.state.hosts[driver.name]
        last = driver._last_offset()
        is_current = (
            last.epoch == self.operator.coordinator.state.epoch
            and known.acknowledged_epoch == last.epoch
        )
        return is_current and known.report is not None and known.report.positions == last.positions

    def _note_published(self) -> None:
        """An epoch of a lineage has one content; copies are kept of what is stored."""
        for assignment in self.operator.published:
            number = (assignment.lineage, assignment.epoch)
            decision = (dict(assignment.owners), assignment.parallelism)
            assert self.decided.setdefault(number, decision) == decision, (
                f"epoch {number} was published before"
            )
        self.operator.published.clear()
        state = self.store.state
        if state is not None and (not self.copies or self.copies[-1][0] != state):
            self.copies.append((state, self.store.assignment))


def live(seed: int, hosts: tuple[str, ...]) -> None:
    """Live one life from its beginning to its end.

    Raises:
        AssertionError: a rule is broken, or the code raises. Names the seed and the steps.
    """
    life = Life(seed, hosts)
    try:
        for _ in range(STEPS):
            life.step()
        life.settle()
    except Exception as error:
        raise AssertionError(
            f"life {seed} with {len(hosts)} hosts, after {len(life.log)} steps: {error};"
            f" {' '.join(life.log)}"
        ) from error
