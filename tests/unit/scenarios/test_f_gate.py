"""Group F: the recovery gate (upstream's ReaderRecoveryGate), and the end of defect X8."""

import itertools

import pytest

from balanced_source.coordinator import HostPhase
from support.stage import Stage, bounded_source, splits


def waiting(readers: int = 3) -> Stage:
    """All hosts were running, all are gone, and the operator has started again."""
    stage = Stage(readers=readers).topic("t", 2 * readers).running()
    for host in range(readers):
        stage.fails(host)
    return stage.operator_starts()


@pytest.mark.scenario("F1")
def test_f1_a_fresh_start_has_no_gate() -> None:
    """The first host gets its splits at once, whoever else is missing."""
    stage = Stage(readers=3).topic("t", 6).operator_starts().discovers().registers(0)

    assert stage.operator.coordinator.waiting_for == ()
    assert len(stage.given(0)) == 2


@pytest.mark.hosts_apart
@pytest.mark.scenario("F2")
def test_f2_after_a_restore_the_gate_is_closed_until_all_hosts_have_registered() -> None:
    """Nothing is given before the last one registers; meanwhile the missing ones are named."""
    stage = waiting()

    stage.registers(0).discovers()
    assert stage.operator.coordinator.waiting_for == ("1", "2")
    stage.registers(2)
    assert stage.operator.coordinator.waiting_for == ("1",)
    assert [stage.given(reader) for reader in range(3)] == [set()] * 3

    stage.registers(1)
    assert stage.operator.coordinator.waiting_for == ()
    assert [len(stage.given(reader)) for reader in range(3)] == [2, 2, 2]


@pytest.mark.hosts_apart
@pytest.mark.scenario("F3")
def test_f3_repeated_reports_do_not_open_the_gate() -> None:
    """A host that reports again and again is still one host."""
    stage = waiting().registers(0)

    for _ in range(3):
        stage.drivers["0"].report()
        stage.operator.see_reports()

    assert stage.operator.coordinator.waiting_for == ("1", "2")
    assert stage.given(0) == set()


@pytest.mark.scenario("F4")
def test_f4_the_return_of_one_reader_concerns_that_reader_alone() -> None:
    """While others are running it gets its splits at once, and they see no change."""
    stage = Stage(readers=3).topic("t", 6).running()
    others = stage.given(0), stage.given(2)

    stage.fails(1)
    assert stage.operator.coordinator.waiting_for == ()
    stage.registers(1)

    assert len(stage.given(1)) == 2
    assert (stage.given(0), stage.given(2)) == others


@pytest.mark.scenario("F5")
def test_f5_an_empty_report_counts() -> None:
    """A host without anything is there all the same, and opens the gate as the last one."""
    stage = waiting().registers(0).registers(1)

    stage.registers(2, holding={}).discovers()

    assert stage.operator.coordinator.waiting_for == ()
    assert len(stage.given(2)) == 2


@pytest.mark.scenario("F6")
def test_f6_a_second_report_replaces_the_first() -> None:
    """Its newest incarnation tells where a host is."""
    mine = ("c", "t", 0)
    stage = waiting(2).registers(0, holding={mine: 3}).registers(0, holding={mine: 7})

    stage.registers(1)

    assert stage.positions()[mine] == 7


@pytest.mark.scenario("F7", "X11")
def test_f7_an_empty_second_report_replaces_too_and_loses_nothing() -> None:
    """The host holds nothing any more.

    What it had told stays known, and it gets its splits back there.
    """
    stage = waiting(2)
    mine = stage.owned(0)

    stage.registers(0, holding=dict.fromkeys(mine, 4), epoch=stage.epoch)
    stage.registers(0, holding={}).registers(1).discovers()

    assert stage.given(0) == mine
    assert {stage.positions()[split] for split in mine} == {4}
    assert {stage.assignment.starts[split] for split in mine} == {4}


@pytest.mark.scenario("F8")
def test_f8_the_order_of_reports_does_not_matter_and_they_are_taken_once() -> None:
    """Whoever comes last: the same owners at the same positions; nothing waits afterwards."""
    ends = set()
    for order in itertools.permutations(range(3)):
        stage = waiting()
        for host in order:
            stage.registers(host)
        stage.discovers()
        assert {host.phase for host in stage.state.hosts.values()} == {HostPhase.ACTIVE}
        ends.add((tuple(sorted(stage.owners.items())), tuple(sorted(stage.positions().items()))))
    assert len(ends) == 1


@pytest.mark.scenario("X8")
def test_x8_no_more_splits_is_signalled_once_per_registration() -> None:
    """Splits that come back, discoveries and rescales do not repeat it.

    A reader that registers again is told again.
    """
    stage = Stage(readers=2, source=bounded_source("c")).topic("t", 4).running()
    assert stage.told_no_more == {0, 1}

    def of_reader(reader: int) -> list[bool]:
        return [reader in document.no_more_splits for document in stage.operator.published]

    before = len(stage.operator.published)
    stage.looks_again(2).fails(1).registers(1).adopts()

    again = stage.operator.published[before:]
    assert all(0 in document.no_more_splits for document in again)
    assert [1 in document.no_more_splits for document in again][-1]
    assert len(again) == 1
    assert sum(b > a for a, b in itertools.pairwise(of_reader(0))) <= 1


@pytest.mark.hosts_apart
def test_a_snapshot_inside_the_window_keeps_who_has_registered() -> None:
    """The operator that restarts waits for the same hosts as before, and asks no one twice."""
    stage = waiting().registers(0)

    stage.operator_starts()

    assert stage.operator.coordinator.waiting_for == ("1", "2")
    assert stage.registers(1).registers(2).loads == [2, 2, 2]


@pytest.mark.hosts_apart
def test_a_partition_that_is_found_behind_a_closed_gate_waits() -> None:
    """It is known and pending, and assigned with everything else when the last host is there."""
    stage = waiting(2).registers(0).discovers().topic("new", 2).looks_again()
    assert stage.pending == set(splits("new", 2))

    stage.registers(1)

    assert stage.pending == set()
    assert stage.loads == [3, 3]
