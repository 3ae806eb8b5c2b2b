"""A source is deleted with its documents and applied again, with other hosts.

Nothing but the hosts' Spark checkpoints knows how far the source was read.
"""

import pytest

from balanced_source.coordinator import HostOverdue, HostRole, HostsChanged
from balanced_source.lifecycles import HostPhase
from support.stage import Stage


def deleted(hosts: int, *, readers: int = 4) -> Stage:
    """All hosts have read 10 records of each split, then the resource was deleted."""
    return delete(Stage(readers=readers, hosts=hosts).topic("t", 8, end=10).running())


def delete(stage: Stage) -> Stage:
    for driver in stage.drivers.values():
        driver.all_hosts = [*stage.drivers.values()]
    stage.store.state, stage.store.assignment = None, None
    stage.store.reports.clear()
    stage.operator.calls.clear()
    return stage


def applied(stage: Stage, *names: str) -> Stage:
    stage.operator.hosts = names
    return stage.operator_starts()


def check_each_once(stage: Stage) -> None:
    got = [record for driver in stage.drivers.values() for record in driver.delivered]
    assert len(got) == len(set(got)), "records came twice"
    ends = stage.broker.ends.items()
    assert set(got) == {(split, n) for split, end in ends for n in range(end)}


@pytest.mark.parametrize("is_discovered_first", [True, False])
def test_hosts_of_the_former_life_are_asked_before_anything_is_read(
    *, is_discovered_first: bool
) -> None:
    stage = applied(deleted(3), "0")
    if is_discovered_first:
        stage.discovers()

    stage.more(5).registers(0)
    stage.discovers().adopts(0)

    assert {n: host.role for n, host in stage.state.hosts.items()} == {
        "0": HostRole.MEMBER,
        "1": HostRole.LEAVING,
        "2": HostRole.LEAVING,
    }
    assert stage.state.hosts["0"].phase is HostPhase.RECOVERING, "nobody knows what hosts 1, 2 hold"

    stage.registers(1).registers(2).discovers()
    for _ in range(4):
        stage.adopts()

    assert set(stage.state.hosts) == {"0"}
    assert len(stage.read(0)) == 8
    check_each_once(stage)


def test_a_first_host_that_never_read_asks_for_those_that_did() -> None:
    stage = Stage(readers=4, hosts=2).topic("t", 8, end=10)
    stage.operator_starts().discovers().registers(1)
    stage.operator.handle(HostOverdue("0"))
    stage.adopts(1).adopts(1)
    assert len(stage.read(1)) == 8

    applied(delete(stage), "0").more(5).registers(0).discovers().adopts(0)

    assert stage.state.hosts["0"].phase is HostPhase.RECOVERING, "nobody knows what host 1 holds"
    stage.registers(1).discovers()
    for _ in range(4):
        stage.adopts()
    assert set(stage.state.hosts) == {"0"}
    check_each_once(stage)


def test_hosts_that_were_not_known_at_the_last_adoption_are_asked() -> None:
    stage = Stage(readers=4, hosts=1).topic("t", 8, end=10).running()
    stage.drivers["1"] = stage.new_driver("1")
    stage.operator.handle(HostsChanged(("0", "1")))
    stage.registers(1).topic("u", 4, end=10).looks_again().adopts(1).adopts(1)
    assert stage.read(1), "host 1 has read before host 0 has heard of it"

    applied(delete(stage), "0").registers(0).discovers().adopts(0)
    stage.registers(1).discovers()
    for _ in range(4):
        stage.adopts()

    assert set(stage.state.hosts) == {"0"}
    check_each_once(stage)


def test_a_host_of_the_former_life_that_is_wanted_again_reads_on() -> None:
    stage = applied(deleted(2), "0")
    stage.registers(0)

    stage.operator.handle(HostsChanged(("0", "1")))
    stage.registers(1).more(5).discovers()
    stage.adopts().adopts()

    assert [len(stage.read(0)), len(stage.read(1))] == [4, 4]
    check_each_once(stage)


@pytest.mark.parametrize("first", [1, 2])
def test_a_new_host_reads_nothing_before_the_first_one_has_told_what_it_holds(first: int) -> None:
    stage = deleted(1)
    for name in ("1", "2"):
        stage.drivers[name] = stage.new_driver(name)
    applied(stage, "0", "1", "2").discovers()

    stage.more(5).registers(first).adopts(first)
    assert not stage.read(first)
    stage.registers(3 - first).registers(0).discovers()
    for _ in range(4):
        stage.adopts()

    assert all(stage.read(int(name)) for name in stage.drivers)
    check_each_once(stage)


def test_hosts_of_a_new_source_wait_for_the_first_one_until_its_deadline() -> None:
    stage = Stage(readers=4, hosts=2).topic("t", 8, end=10)
    stage.operator_starts().discovers().registers(1).adopts(1)
    assert stage.state.hosts["1"].phase is HostPhase.RECOVERING

    stage.operator.handle(HostOverdue("0"))
    stage.adopts(1).adopts(1)

    assert len(stage.read(1)) == 8
    stage.registers(0).adopts().adopts().adopts()
    assert [len(stage.read(0)), len(stage.read(1))] == [4, 4]
    check_each_once(stage)


def test_a_first_host_that_is_overdue_moves_nothing_between_the_others() -> None:
    """One has come, and one has not; both keep what they were given."""
    stage = Stage(readers=3, hosts=3).topic("t", 6, end=10)
    stage.operator_starts().discovers().registers(1)
    before = {s: stage.state.host_of(owner) for s, owner in stage.state.owners.items()}

    stage.operator.handle(HostOverdue("0"))

    after = {s: stage.state.host_of(owner) for s, owner in stage.state.owners.items()}
    kept = [split for split, host in before.items() if host != "0"]
    assert len(kept) == 4
    assert [after[split] for split in kept] == [before[split] for split in kept]
    assert sorted(after) == sorted(before)


def test_a_source_that_was_scaled_down_before_asks_for_no_one() -> None:
    stage = Stage(readers=4, hosts=2).topic("t", 8, end=10).running()
    stage.operator.handle(HostsChanged(("0",)))
    for _ in range(4):
        stage.adopts()
    assert set(stage.state.hosts) == {"0"}
    stage.adopts(0)
    stage.store.state, stage.store.assignment = None, None
    stage.store.reports.clear()

    applied(stage, "0").discovers().more(5).registers(0).discovers().adopts(0).adopts(0)

    assert set(stage.state.hosts) == {"0"}
    check_each_once(stage)


@pytest.mark.parametrize("is_late", [True, False])
def test_what_comes_twice_because_the_first_host_came_too_late_is_told(*, is_late: bool) -> None:
    stage = deleted(1)
    stage.drivers["1"] = stage.new_driver("1")
    applied(stage, "0", "1").discovers().registers(1)
    if is_late:
        stage.operator.handle(HostOverdue("0"))
        stage.adopts(1)

    stage.registers(0)

    assert ("HostCameLate" in stage.facts) is is_late
    if is_late:
        assert "host 0 has started late and holds 8 splits" in str(stage.operator.messages)


def test_a_host_that_is_added_again_does_not_come_late() -> None:
    stage = Stage(readers=4, hosts=2).topic("t", 8, end=10).running()
    stage.operator.handle(HostsChanged(("0",)))
    for _ in range(4):
        stage.adopts()

    stage.operator.handle(HostsChanged(("0", "1")))
    stage.registers(1)

    assert "HostCameLate" not in stage.facts
