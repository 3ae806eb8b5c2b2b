"""Hosts are added, removed and overdue while others read.

Each record once, and nothing moves without need.
"""

import random
from collections import Counter
from typing import Any, Final, Self

import pytest

from balanced_source.api import RebalanceCause, SourceEvent, SplitsAssignment
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.coordinator import (
    CoordinatorState,
    HostLost,
    HostOverdue,
    HostPhase,
    HostRole,
    HostsChanged,
    HostState,
    ParallelismChanged,
)
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.coordinator.membership import change, followed
from balanced_source.coordinator.phase import acknowledged_epoch
from balanced_source.documents.assignment import NumberedEvent
from balanced_source.documents.report import HostReport
from balanced_source.errors import ContractViolationError
from balanced_source.host import Phase
from support.stage import Stage
from support.world import Driver

SEEDS: Final = range(40)


def test_events_follow_their_readers_and_end_with_them() -> None:
    """Of three hosts with a reader each the second one goes."""
    events = [
        NumberedEvent(number=n, subtask_id=n, event=SourceEvent(name="hello")) for n in range(3)
    ]
    there = {name: HostState() for name in "012"}
    state: CoordinatorState[Any] = CoordinatorState(
        parallelism=3, hosts=there, outbox=tuple(events)
    )
    context: CoordinatorContext[Any] = CoordinatorContext(state)

    change(context, {name: there[name] for name in "02"})

    assert [(e.number, e.subtask_id) for e in context.state.outbox] == [(0, 0), (2, 1)]


class Hosts(Stage):
    """A stage on which hosts come and go."""

    def hosts_are(self, *names: str) -> Self:
        """The user wants these hosts; each that is new has a driver that has not started."""
        for name in names:
            self.drivers.setdefault(name, Driver(store=self.store, broker=self.broker, name=name))
        self.operator.hosts = names
        self.operator.handle(HostsChanged(names))
        return self

    @property
    def roles(self) -> dict[str, HostRole]:
        return {name: host.role for name, host in self.state.hosts.items()}

    @property
    def splits_per_host(self) -> Counter[str]:
        return Counter(self.state.host_of(owner) for owner in self.state.owners.values())

    def settles(self, rounds: int = 8) -> Self:
        for _ in range(rounds):
            self.discovers()
            for name, driver in self.drivers.items():
                if name in self.state.hosts and driver.host.incarnation == 0:
                    self.registers(int(name))
            self.adopts()
        return self

    def check_each_once(self) -> None:
        got = [record for driver in self.drivers.values() for record in driver.delivered]
        assert len(got) == len(set(got)), "a record was delivered twice"
        assert set(got) == {
            (split, offset) for split, end in self.broker.ends.items() for offset in range(end)
        }


def one_host(readers: int = 4, splits: int = 8) -> Hosts:
    stage = Hosts(readers=readers, hosts=1)
    stage.topic("t", splits, end=10).running()
    return stage


def test_a_host_that_is_added_gets_readers_when_it_has_registered() -> None:
    stage = one_host()

    stage.hosts_are("0", "1").adopts(0)

    assert stage.roles == {"0": HostRole.MEMBER, "1": HostRole.JOINING}
    assert len(stage.read(0)) == 8, "host 0 reads everything meanwhile"
    before = dict(stage.owners)
    stage.registers(1)
    assert stage.roles == {"0": HostRole.MEMBER, "1": HostRole.MEMBER}
    stage.more(3).adopts().adopts().adopts()
    assert stage.splits_per_host == {"0": 4, "1": 4}
    assert stage.loads == [2, 2, 2, 2]
    assert len(stage.read(0)) == len(stage.read(1)) == 4
    assert len([s for s in before if s in stage.read(0)]) == 4
    stage.check_each_once()


def test_splits_may_move_when_the_hosts_that_have_readers_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What comes back is dealt out, but only a rebalance evens what the others hold."""
    stage, causes = one_host(), list[tuple[RebalanceCause, int]]()
    coordinator = stage.operator.coordinator

    def rebalance(cause: RebalanceCause) -> None:
        causes.append((cause, len(coordinator._context.readers)))

    monkeypatch.setattr(coordinator.enumerator, "rebalance", rebalance)

    stage.hosts_are("0", "1").adopts(0)
    assert causes == [], "host 1 has no readers yet"
    stage.registers(1)

    assert causes == [(RebalanceCause.RESCALE, 4)], "once the readers of both are there"


def test_host_0_keeps_its_incarnation() -> None:
    stage = one_host()
    incarnation = stage.drivers["0"].host.incarnation

    stage.hosts_are("0", "1").settles()

    assert stage.drivers["0"].host.incarnation == incarnation
    assert stage.drivers["0"].host.phase is Phase.READING


def test_a_removed_host_is_forgotten_when_the_others_have_its_splits() -> None:
    stage = one_host()
    stage.hosts_are("0", "1").settles()

    stage.hosts_are("0")

    assert stage.roles["1"] is HostRole.LEAVING
    stage.adopts(1)
    assert stage.read(1) == {}
    assert stage.roles["1"] is HostRole.LEAVING, "its position is nowhere else yet"
    stage.adopts(0).adopts(0)
    stage.adopts(1)
    assert "1" not in stage.roles
    stage.more(5).adopts(0).adopts(0)
    assert len(stage.read(0)) == 8
    stage.check_each_once()


def test_splits_of_a_removed_host_come_back_in_the_order_of_its_readers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The outcome does not depend on the order in which splits were assigned."""
    stage = Hosts(readers=6, hosts=2)
    stage.topic("t", 6).running()
    for number, split_id in enumerate(sorted(stage.owners)):
        stage.moves(split_id, 5 - number)
    stage.settles()
    enumerator: Any = stage.operator.coordinator.enumerator
    enumerator.source = stage.operator.source
    take_back, asked = enumerator.add_splits_back, list[int]()

    def noted(splits: Any, subtask_id: int) -> None:
        asked.append(subtask_id)
        take_back(splits, subtask_id)

    monkeypatch.setattr(enumerator, "add_splits_back", noted)

    stage.hosts_are("0")

    assert asked == [1, 3, 5]


def test_readers_keep_their_splits_when_the_number_of_hosts_changes() -> None:
    """Nine readers on two hosts, then on three: the former hosts only give."""
    stage = Hosts(readers=9, hosts=2)
    stage.topic("t", 36, end=1).running().settles()
    before = [stage.read(0), stage.read(1)]

    stage.hosts_are("0", "1", "2").settles()

    assert stage.loads == [4] * 9
    assert [len(stage.read(host)) for host in range(3)] == [12, 12, 12]
    moved = [s for host in range(2) for s in stage.read(host) if s not in before[host]]
    assert not moved
    stage.check_each_once()


@pytest.mark.parametrize(("epoch", "is_gone"), [(4, False), (5, True)])
def test_what_a_leaving_host_holds_is_known_when_it_has_acknowledged(
    epoch: int, *, is_gone: bool
) -> None:
    report = HostReport(host="1", incarnation=2, sequence=1, epoch=epoch)
    leaving = HostState(
        role=HostRole.LEAVING,
        phase=HostPhase.ACTIVE,
        report=report,
        addressed_epoch=5,
        known_from=1,
    )
    hosts = {"0": HostState(phase=HostPhase.ACTIVE), "1": leaving}
    state: CoordinatorState[Any] = CoordinatorState(parallelism=1, hosts=hosts, epoch=5)

    assert ("1" not in followed(state)) == is_gone


def test_a_host_that_never_started_goes_at_once() -> None:
    stage = one_host()
    epoch = stage.hosts_are("0", "1").epoch

    stage.hosts_are("0")

    assert list(stage.roles) == ["0"]
    assert stage.epoch == epoch + 1
    assert len(stage.owners) == 8


def test_a_new_host_is_a_member_at_once_if_all_others_are_on_their_way_out() -> None:
    """Someone must have readers."""
    stage = one_host()

    stage.hosts_are("1")

    assert stage.roles == {"0": HostRole.LEAVING, "1": HostRole.MEMBER}


def test_other_hosts_read_the_share_of_an_overdue_host_until_it_registers() -> None:
    stage = Hosts(readers=4, hosts=2)
    stage.topic("t", 8, end=10).operator_starts().discovers().registers(0).adopts(0)
    assert len(stage.read(0)) == 4

    stage.operator.handle(HostOverdue("1"))
    stage.adopts(0).adopts(0)
    assert len(stage.read(0)) == 8

    stage.registers(1).adopts().adopts().adopts()
    assert stage.splits_per_host == {"0": 4, "1": 4}
    stage.check_each_once()


def test_no_host_is_overdue_while_none_has_registered() -> None:
    stage = Hosts(readers=4, hosts=2)
    stage.topic("t", 8).operator_starts().discovers()
    before = stage.state

    stage.operator.handle(HostOverdue("1"))

    assert stage.state == before


def test_a_host_that_comes_back_after_it_was_removed_starts_behind_the_others() -> None:
    """Its Spark checkpoint is that of former times."""
    stage = one_host()
    stage.hosts_are("0", "1").settles()
    stage.hosts_are("0").settles()
    stage.more(5).adopts(0).adopts(0)
    stage.drivers["1"].host = Driver(store=stage.store, broker=stage.broker, name="1").host

    stage.hosts_are("0", "1").settles().more(2).settles()

    assert stage.splits_per_host == {"0": 4, "1": 4}
    stage.check_each_once()


@pytest.mark.parametrize("count", [2, 3, 12])
def test_operator_and_drivers_agree_on_the_order_of_hosts(count: int) -> None:
    """Also beyond ten hosts, whose names do not sort as text.

    A disagreement would start over forever.
    """
    names = tuple(map(str, range(count)))
    stage = Hosts(readers=2 * count, hosts=1)
    stage.topic("t", 4 * count, end=2).running()

    stage.hosts_are(*names).settles()

    assert stage.state.members == names
    assert {name: len(stage.read(int(name))) for name in names} == dict.fromkeys(names, 4)
    assert stage.state.lineage == 1
    stage.check_each_once()


def test_a_host_that_returns_while_a_later_one_leaves_gets_its_place_back() -> None:
    stage = Hosts(readers=3, hosts=3)
    stage.topic("t", 6, end=5).running().settles()
    stage.hosts_are("0").adopts(1).adopts(0).adopts(0).adopts(1)
    assert list(stage.roles) == ["0", "2"], "host 2 has not let go yet"

    stage.hosts_are("0", "1", "2").settles(12).more(2).settles()

    assert stage.state.members == ("0", "1", "2")
    assert stage.state.lineage == 1
    stage.check_each_once()


def test_an_older_copy_of_the_state_does_not_forget_a_host_that_was_added_since() -> None:
    stage = one_host()
    older = stage.store.state
    stage.hosts_are("0", "1").settles()
    stage.store.state = older

    stage.operator_starts()

    assert stage.roles == {"0": HostRole.MEMBER, "1": HostRole.MEMBER}
    stage.settles().more(2).settles()
    stage.check_each_once()


def test_a_host_that_is_wanted_again_behind_the_gate_keeps_its_splits() -> None:
    """Nobody has decided about its splits since the state was lost."""
    stage = one_host().hosts_are("0", "1").settles()
    before = stage.owners
    assert stage.splits_per_host == {"0": 4, "1": 4}

    stage.state_lost().operator_starts().hosts_are("0").registers(1)
    assert stage.roles["1"] is HostRole.LEAVING
    stage.hosts_are("0", "1").registers(0).settles()

    assert stage.owners == before
    stage.more(5).settles().check_each_once()


def test_a_lost_state_with_an_idle_host() -> None:
    stage = one_host()
    stage.hosts_are("0", "1").settles()
    stage.hosts_are("0").adopts(1)
    stage.store.state = None

    stage.operator.hosts = ("0", "1")
    stage.operator_starts().settles()
    stage.hosts_are("0").settles().more(2).settles()

    assert list(stage.roles) == ["0"]
    stage.check_each_once()


@pytest.mark.parametrize("seed", SEEDS)
def test_each_record_is_delivered_once_in_random_lives(seed: int) -> None:
    rng = random.Random(seed)
    stage = Hosts(readers=rng.randint(1, 5), hosts=rng.randint(1, 2))
    stage.topic("t", rng.randint(1, 7), end=3).operator_starts().discovers()

    for _ in range(60):
        step(stage, rng)

    wanted = tuple(map(str, range(rng.randint(1, 3))))
    stage.hosts_are(*wanted)
    for name in stage.state.hosts:
        if name in stage.dead:
            stage.registers(int(name))
    stage.settles(14)
    stage.more(2).settles(3)
    assert tuple(stage.roles) == wanted or set(stage.roles) == set(wanted)
    assert set(stage.roles.values()) == {HostRole.MEMBER}
    assert stage.spread <= 1
    stage.check_each_once()


def step(stage: Hosts, rng: random.Random) -> None:
    """One thing happens."""
    names = list(stage.state.hosts)
    name = rng.choice(names)
    driver = stage.drivers[name]
    match rng.randrange(12):
        case 0:
            stage.hosts_are(*map(str, range(rng.randint(1, 3))))
        case 1:
            stage.operator.handle(ParallelismChanged(rng.randint(1, 6)))
        case 2:
            stage.operator_starts()
        case 3:
            stage.operator.handle(HostOverdue(name))
        case 4:
            driver.batch(
                die=rng.choice(["logged", "delivered"])
            ) if driver.host.incarnation else None
            stage.dead.add(name)
            if rng.random() < 0.5:
                stage.operator.handle(HostLost(name, driver.host.incarnation))
        case 5 | 6:
            stage.registers(int(name))
        case 7:
            stage.more(rng.randint(0, 2)).discovers()
        case _ if driver.host.incarnation and name not in stage.dead:
            driver.see_assignment()
            driver.batch()
            if rng.random() < 0.7:
                driver.report()
            if rng.random() < 0.7:
                stage.operator.see_reports()
        case _:
            stage.registers(int(name))


@pytest.mark.parametrize("hosts", [("0",), ("0", "1")])
def test_a_split_that_is_given_to_two_readers_is_refused(hosts: tuple[str, ...]) -> None:
    stage = Stage(readers=2, hosts=len(hosts)).operator_starts()
    context = stage.operator.coordinator.enumerator.context
    split = KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=0)

    with pytest.raises(
        ContractViolationError, match=r"split \('c', 't', 0\) is given to readers 0 and 1"
    ):
        context.assign_splits(SplitsAssignment(assignment={0: [split], 1: [split]}))
    assert context.current_assignments() == {}


@pytest.mark.parametrize(
    ("event", "says"), [(ParallelismChanged(0), "1 host"), (HostsChanged(()), "0 hosts")]
)
def test_there_is_at_least_one_reader_and_one_host(event: Any, says: str) -> None:
    stage = one_host(readers=2, splits=2)

    with pytest.raises(ContractViolationError, match=f"with {says}: both must be at least"):
        stage.operator.handle(event)


def test_a_host_that_joins_holds_back_no_epoch() -> None:
    """It has no readers yet, and may never come."""
    hosts = {
        "0": HostState(
            phase=HostPhase.ACTIVE, addressed_epoch=1, report=HostReport(incarnation=1, epoch=4)
        ),
        "1": HostState(phase=HostPhase.EXPECTED, role=HostRole.JOINING),
    }
    state: CoordinatorState[Any] = CoordinatorState(epoch=4, hosts=hosts)

    assert acknowledged_epoch(state) == 4
    assert acknowledged_epoch(CoordinatorState()) == 0
