"""Several hosts of one source: revoke, the old one lets go, assign.

Cases beyond the list, for rules 1, 2, 3, 10.
"""

import random

import pytest

from balanced_source.api import SplitId
from balanced_source.coordinator import ParallelismChanged
from balanced_source.host import Phase
from support.stage import Stage
from support.world import CrashError, kafka_source


def delivered(stage: Stage) -> list[tuple[SplitId, int]]:
    """Records of all hosts; one that two hosts delivered is there twice."""
    return [record for driver in stage.drivers.values() for record in driver.delivered]


def check_each_once(stage: Stage) -> None:
    got = delivered(stage)
    assert len(got) == len(set(got))
    assert set(got) == {
        (split, offset) for split, end in stage.broker.ends.items() for offset in range(end)
    }


@pytest.mark.hosts_apart
def test_a_split_is_with_its_new_host_only_after_the_old_one_let_go() -> None:
    """Until the old host acknowledges, no one but it has the split, whatever it still reads."""
    stage = Stage(readers=2).topic("t", 4).running()
    away = stage.with_owner(0)

    stage.moves(away, 1)
    assert away not in stage.assignment.owners
    stage.adopts(1)
    assert away not in stage.read(1)

    stage.more(5)
    stage.drivers["0"].batch()  # one more micro-batch with the old owners
    stage.adopts(0)
    assert stage.assignment.starts[away] == 15
    stage.adopts(1).more(5).adopts()
    check_each_once(stage)


def test_a_move_that_is_taken_back_in_time_costs_nothing() -> None:
    """The split never leaves its host, continues where it is, and is not read twice."""
    stage = Stage(readers=2).topic("t", 4).running()
    away = stage.with_owner(0)

    stage.moves(away, 1).moves(away, 0).more(5).adopts()

    assert stage.state.revoking == {}
    assert stage.read(0)[away] == 15
    check_each_once(stage)


def test_a_rescale_moves_splits_between_hosts_without_reading_twice() -> None:
    """From 2 to 5 readers and down to 1, on two hosts: balanced at each step, each record once."""
    stage = Stage(readers=2, hosts=2).topic("t", 10).running()
    for readers in (5, 3, 1, 4):
        stage.rescales(readers).more(3).adopts().adopts().adopts()
        assert stage.spread <= 1
    check_each_once(stage)


def test_a_zombie_is_fenced_as_soon_as_its_successor_has_registered() -> None:
    """Its reports are refused, and the next document that it sees stops it."""
    stage = Stage(readers=2).topic("t", 4).running()
    zombie = stage.drivers["0"].host
    stage.fails(0).registers(0)
    before = stage.state

    late = zombie.report(sequence=99)
    assert late is not None
    stage.operator_hears(late)

    assert stage.state == before
    assert zombie.on_assignment(stage.assignment).phase is Phase.FENCED


def test_a_host_that_fails_in_the_middle_of_two_moves() -> None:
    """It was to give one split and to get another.

    Both end where they belong, at the right positions.
    """
    stage = Stage(readers=2).topic("t", 4).running()
    gives, gets = stage.with_owner(0), stage.with_owner(1)
    stage.moves(gives, 1).moves(gets, 0).more(5)

    stage.fails(0).registers(0).adopts().adopts()

    assert gives in stage.read(1)
    assert gets in stage.read(0)
    stage.more(5).adopts().adopts()
    check_each_once(stage)


class Walk:
    """Anything may happen to two or three hosts and their operator."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        hosts = self.rng.choice([2, 3])
        self.stage = Stage(readers=self.rng.randint(1, 4), hosts=hosts, source=kafka_source("c"))
        self.stage.topic("t", 5, end=3).operator_starts()
        self.running: set[int] = set()

    def step(self) -> None:
        stage, rng = self.stage, self.rng
        host = rng.randrange(len(stage.drivers))
        match rng.randrange(9):
            case 0:
                stage.discovers()
            case 1:
                stage.looks_again()
            case 2:
                stage.rescales(rng.randint(1, 5))
            case 3:
                stage.more(rng.randrange(3)).topic(rng.choice("tu"), rng.randint(1, 6))
            case 4 if host not in self.running or rng.random() < 0.3:
                self.restart(host)
            case 5 if host in self.running:
                die = rng.choice(["logged", "delivered"])
                stage.drivers[str(host)].batch(die=die)
                self.running.discard(host)
            case 6 if rng.random() < 0.3:
                self.crash_operator()
            case _ if host in self.running:
                self.work(host)

    def work(self, host: int) -> None:
        driver = self.stage.drivers[str(host)]
        for act in self.rng.sample([driver.see_assignment, driver.batch, driver.report], k=2):
            act()
        if self.rng.random() < 0.7:
            self.stage.operator.see_reports()

    def restart(self, host: int) -> None:
        if self.stage.drivers[str(host)].host.incarnation:
            self.stage.fails(host)
        self.stage.registers(host)
        self.running.add(host)

    def crash_operator(self) -> None:
        operator = self.stage.operator
        operator.crash_before_effect = self.rng.randrange(3)
        try:
            operator.see_reports()
            operator.handle(ParallelismChanged(self.rng.randint(1, 5)))
        except CrashError:
            pass
        operator.crash_before_effect = None
        operator.start()

    def settle(self) -> None:
        for host in range(len(self.stage.drivers)):
            if host not in self.running:
                self.restart(host)
        for _ in range(8):
            self.stage.looks_again().adopts()


@pytest.mark.parametrize("seed", [*range(40), 704, 779, 1065])
def test_every_record_arrives_once_under_any_change_of_hosts(seed: int) -> None:
    """And in the end every host holds exactly what is its own, evenly."""
    walk = Walk(seed)
    for _ in range(100):
        walk.step()

    walk.settle()

    stage = walk.stage
    check_each_once(stage)
    assert stage.spread <= 1
    for name in stage.drivers:
        mine = {s for reader in stage.state.subtasks_of(name) for s in stage.owned(reader)}
        assert set(stage.read(int(name))) == mine
