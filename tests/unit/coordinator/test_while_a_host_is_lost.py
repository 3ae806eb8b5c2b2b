"""A host is lost, and its splits wait for it. Nothing else does."""

from collections import Counter

import pytest

from balanced_source.api import RebalanceMode, RebalancePolicy
from balanced_source.assigners import HashAssigner
from balanced_source.coordinator import HostsChanged, HostSilent
from support.stage import Stage, splits
from support.world import kafka_source


def lost(stage: Stage, host: int) -> Stage:
    """All hosts run with 8 splits of topic t, then one is gone for long."""
    return silent(stage.topic("t", 8).running(), host)


def silent(stage: Stage, host: int) -> Stage:
    name = str(host)
    stage.dead.add(name)
    stage.operator.handle(HostSilent(name, stage.state.hosts[name].incarnation))
    return stage


def of(stage: Stage, host: int) -> set[object]:
    members = stage.state.members
    return {s for s, owner in stage.owners.items() if members[owner % len(members)] == str(host)}


def check_each_once(stage: Stage) -> None:
    got = Counter(record for driver in stage.drivers.values() for record in driver.delivered)
    assert set(got.values()) == {1}, "records came twice"
    ends = stage.broker.ends.items()
    assert set(got) == {(split, n) for split, end in ends for n in range(end)}


@pytest.mark.parametrize("strategy", ["RoundRobin", "Hash"])
def test_new_partitions_are_read_by_the_other_hosts(strategy: str) -> None:
    source = kafka_source(**({"assigner": HashAssigner()} if strategy == "Hash" else {}))
    stage = lost(Stage(readers=4, hosts=2, source=source), 1)
    before = of(stage, 1)

    stage.topic("u", 8).looks_again().adopts(0).adopts(0)

    assert of(stage, 1) == before, "a host that may never come back gets nothing"
    read = {split for split, _ in stage.drivers["0"].delivered}
    assert read.issuperset(splits("u", 8))

    stage.registers(1).discovers()
    for _ in range(4):
        stage.adopts()
    assert len(of(stage, 1)) > len(before), "it gets its share when it is back"
    if strategy == "RoundRobin":
        assert len(of(stage, 1)) == 8
    check_each_once(stage)


def test_splits_of_a_host_that_leaves_are_read_by_the_hosts_that_run() -> None:
    stage = lost(Stage(readers=6, hosts=3), 1)
    before = of(stage, 1)

    stage.operator.handle(HostsChanged(("0", "1")))
    stage.adopts(0, 2).adopts(0, 2).more(5).adopts(0).adopts(0)

    assert of(stage, 1) == before
    assert of(stage, 0) == set(splits("t", 8)) - before
    assert "2" not in stage.state.hosts, "it has handed over"

    stage.registers(1).discovers()
    for _ in range(4):
        stage.adopts()
    assert [len(of(stage, 0)), len(of(stage, 1))] == [4, 4]
    check_each_once(stage)


def test_splits_of_readers_that_are_gone_are_read_by_the_hosts_that_run() -> None:
    stage = lost(Stage(readers=6, hosts=2), 1)
    held = of(stage, 1)

    stage.rescales(2).adopts(0).adopts(0)

    kept = of(stage, 1)
    assert kept < held
    stage.more(5).registers(1).discovers()
    for _ in range(4):
        stage.adopts()
    assert [len(of(stage, 0)), len(of(stage, 1))] == [4, 4]
    check_each_once(stage)


def test_nothing_moves_back_if_splits_move_on_request_only() -> None:
    policy = RebalancePolicy(mode=RebalanceMode.MANUAL)
    stage = lost(Stage(readers=4, hosts=2, source=kafka_source(rebalance_policy=policy)), 1)
    stage.topic("u", 8).looks_again().adopts(0).adopts(0)

    stage.registers(1).discovers().adopts().adopts()
    assert [len(of(stage, 0)), len(of(stage, 1))] == [12, 4]

    stage.rebalances()
    for _ in range(4):
        stage.adopts()
    assert [len(of(stage, 0)), len(of(stage, 1))] == [8, 8]
    check_each_once(stage)


def test_new_partitions_are_read_by_the_first_host_that_is_back() -> None:
    stage = silent(lost(Stage(readers=4, hosts=2), 1), 0)
    stage.topic("u", 8).looks_again()
    assert stage.pending == set(splits("u", 8)), "no one is there who could read them"

    stage.registers(0).discovers().adopts(0).adopts(0)

    read = {split for split, _ in stage.drivers["0"].delivered}
    assert read.issuperset(splits("u", 8))


def test_a_silent_host_that_reports_again_gets_its_share_without_a_restart() -> None:
    stage = lost(Stage(readers=4, hosts=2), 1)
    stage.topic("u", 8).looks_again().adopts(0).adopts(0)

    for _ in range(4):
        stage.adopts()

    assert [len(of(stage, 0)), len(of(stage, 1))] == [8, 8]
    check_each_once(stage)


def test_that_a_host_is_silent_is_of_one_incarnation_and_changes_no_epoch() -> None:
    stage = Stage(readers=4, hosts=2).topic("t", 8).running()
    former = stage.state.hosts["1"].incarnation
    stage.registers(1).adopts(1).adopts()
    silence = HostSilent("1", former)

    stage.operator.handle(silence)
    stage.topic("u", 8).looks_again()
    assert len(of(stage, 1)) == 8, "another attempt has registered"

    epoch = stage.epoch
    for _ in range(2):
        stage.operator.handle(HostSilent("1", stage.state.hosts["1"].incarnation))
    assert stage.epoch == epoch


def test_readers_that_a_silent_host_gets_by_a_rescale_get_no_splits_yet() -> None:
    stage = lost(Stage(readers=2, hosts=2), 1)

    stage.rescales(4).adopts(0)

    assert all(owner != 3 for owner in stage.owners.values())
    stage.registers(1).discovers()
    for _ in range(4):
        stage.adopts()
    assert Counter(stage.owners.values()) == {0: 2, 1: 2, 2: 2, 3: 2}
    check_each_once(stage)
