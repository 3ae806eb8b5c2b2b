"""A host that is lost for long is given up.

Others read its splits once it is safe, each record once.
"""

from dataclasses import replace

import pytest

from balanced_source.coordinator import HostGivenUp, HostLost, HostRole, HostsChanged
from balanced_source.documents import stream_offset
from balanced_source.lifecycles import HostPhase
from support.stage import Stage


def running(hosts: int = 2, readers: int = 4) -> Stage:
    """A source of which each host has read what there is."""
    stage = Stage(readers=readers, hosts=hosts)
    return stage.topic("t", 8, end=10).running()


def give_up(stage: Stage, host: str, *, accepts_duplicates: bool = False) -> None:
    incarnation = stage.state.hosts[host].incarnation
    stage.operator.handle(HostGivenUp(host, incarnation, accepts_duplicates))


def dies_after_delivery(stage: Stage, host: str) -> None:
    """The sink has a micro-batch that the driver did not report."""
    stage.drivers[host].batch(die="delivered")
    stage.dead.add(host)
    stage.operator.see_reports()


def role(stage: Stage, host: str) -> HostRole:
    return stage.state.hosts[host].role


def delivered(stage: Stage) -> list[object]:
    return [record for driver in stage.drivers.values() for record in driver.delivered]


def test_splits_of_a_host_that_was_given_up_wait_for_its_next_attempt() -> None:
    stage = running().more(3)
    dies_after_delivery(stage, "1")

    give_up(stage, "1")
    stage.adopts(0).adopts(0)

    assert role(stage, "1") is HostRole.DRAINING
    assert len(stage.read(0)) == 4, "nobody knows where the splits of host 1 stand"
    stage.registers(1).adopts(1).adopts(0).adopts(0)
    assert len(stage.read(0)) == 8
    got = delivered(stage)
    assert len(got) == len(set(got)) == 8 * 13


class CutOff:
    """A driver that has planned a micro-batch and stands still before it logs it."""

    def __init__(self, stage: Stage, host: str) -> None:
        self._driver = stage.drivers[host]
        self._number = len(self._driver.offsets)
        planned = stream_offset.from_json(self._driver.offsets[-1])
        self._end = replace(planned, positions={s: stage.broker.ends[s] for s in planned.positions})

    def logs(self) -> bool:
        """Go on; returns whether the offset log, which takes an entry once, took this one."""
        if len(self._driver.offsets) > self._number:
            return False
        self._driver.offsets.append(stream_offset.to_json(self._end))
        self._driver._run(self._number, commit=False)
        return True


def test_splits_wait_until_the_drain_attempt_has_taken_the_next_entry_of_the_log() -> None:
    stage = running().more(3)
    cut_off = CutOff(stage, "1")
    give_up(stage, "1")

    stage.registers(1).adopts(0).adopts(0)
    assert len(stage.read(0)) == 4, "the log has room for what the lost driver has planned"

    stage.adopts(1)
    assert stage.read(1) == {}
    assert not cut_off.logs()
    stage.adopts(0).adopts(0)
    assert len(stage.read(0)) == 8
    got = delivered(stage)
    assert len(got) == len(set(got)) == 8 * 13


def test_a_driver_that_logs_before_the_drain_attempt_does_is_replayed() -> None:
    stage = running().more(3)
    cut_off = CutOff(stage, "1")
    give_up(stage, "1")
    stage.registers(1)

    assert cut_off.logs()
    # Spark ends the drain attempt, whose entry the log refuses; the next one replays the batch.
    stage.registers(1).more(2).adopts(0).adopts(0)
    assert len(stage.read(0)) == 4
    stage.adopts(1).adopts(0).adopts(0)

    assert len(stage.read(0)) == 8
    got = delivered(stage)
    assert len(got) == len(set(got)) == 8 * 15


def test_a_host_that_has_drained_is_forgotten_and_may_join_again() -> None:
    stage = running()
    stage.dead.add("1")
    give_up(stage, "1")
    stage.registers(1).adopts().adopts().adopts()
    assert "1" not in stage.state.hosts

    stage.operator.handle(HostsChanged(("0", "1")))
    assert role(stage, "1") is HostRole.JOINING
    stage.registers(1).more(2).adopts().adopts().adopts()

    assert role(stage, "1") is HostRole.MEMBER
    assert [len(stage.read(0)), len(stage.read(1))] == [4, 4]
    got = delivered(stage)
    assert len(got) == len(set(got)) == 8 * 12


def test_a_change_of_the_spec_does_not_end_the_drain() -> None:
    stage = running()
    stage.dead.add("1")
    give_up(stage, "1")

    stage.operator.handle(HostsChanged(("0", "1")))
    assert role(stage, "1") is HostRole.DRAINING
    stage.operator.handle(HostsChanged(("0",)))
    assert role(stage, "1") is HostRole.DRAINING

    stage.dead.discard("1")
    stage.registers(1).adopts().adopts().adopts()
    assert "1" not in stage.state.hosts
    assert len(stage.read(0)) == 8
    got = delivered(stage)
    assert len(got) == len(set(got))


def test_with_duplicates_allowed_other_hosts_need_no_report_of_the_lost_one() -> None:
    """An operator that has just started may have seen none."""
    stage = running().more(3)
    dies_after_delivery(stage, "1")
    del stage.store.reports["1"]
    stage.operator_starts().discovers()

    give_up(stage, "1", accepts_duplicates=True)
    stage.adopts(0).adopts(0)

    assert len(stage.read(0)) == 8
    assert set(delivered(stage)) == {
        (s, n) for s, end in stage.broker.ends.items() for n in range(end)
    }


def test_with_duplicates_allowed_other_hosts_continue_at_once_from_the_last_report() -> None:
    stage = running().more(3)
    dies_after_delivery(stage, "1")

    give_up(stage, "1", accepts_duplicates=True)
    stage.adopts(0).adopts(0)

    assert role(stage, "1") is HostRole.JOINING
    assert len(stage.read(0)) == 8
    got = delivered(stage)
    assert set(got) == {(s, n) for s, end in stage.broker.ends.items() for n in range(end)}
    assert len(got) == 8 * 13 + 4 * 3, "what host 1 had read since its report is read again"
    stage.registers(1).adopts().adopts().adopts()
    assert [len(stage.read(0)), len(stage.read(1))] == [4, 4]


def test_a_host_that_was_given_up_although_it_lives_hands_over_by_itself() -> None:
    stage = running()
    give_up(stage, "1")

    stage.more(3).adopts(1).adopts(0).adopts(0).adopts(1)

    assert "1" not in stage.state.hosts
    assert len(stage.read(0)) == 8
    got = delivered(stage)
    assert len(got) == len(set(got)) == 8 * 13


@pytest.mark.parametrize("accepts_duplicates", [False, True])
def test_nothing_happens_without_a_host_that_can_take_over(accepts_duplicates: bool) -> None:
    stage = running()
    stage.operator.handle(HostLost("0", stage.state.hosts["0"].incarnation))
    before = stage.state

    give_up(stage, "1", accepts_duplicates=accepts_duplicates)

    assert stage.state == before


def test_a_source_with_one_host_gives_nothing_up() -> None:
    stage = running(hosts=1)
    before = stage.state

    give_up(stage, "0")

    assert stage.state == before


def test_nothing_happens_when_the_host_has_registered_again_or_never_did() -> None:
    stage = running()
    former = stage.state.hosts["1"].incarnation
    stage.registers(1)
    before = stage.state
    stage.operator.handle(HostGivenUp("1", former))
    assert stage.state == before

    other = Stage(readers=2, hosts=2)
    other.topic("t", 2).operator_starts().discovers().registers(0)
    unseen = other.state
    other.operator.handle(HostGivenUp("1", 0))
    assert other.state == unseen


@pytest.mark.parametrize("accepts_duplicates", [False, True])
def test_a_host_that_was_not_heard_since_the_state_was_lost_is_drained(
    accepts_duplicates: bool,
) -> None:
    """The gate waits for it, and nobody knows a position of its splits: only it can tell."""
    stage = running().more(3)
    dies_after_delivery(stage, "1")
    stage.state_lost().operator_starts().discovers().registers(0)
    assert stage.state.hosts["1"].phase is HostPhase.EXPECTED

    give_up(stage, "1", accepts_duplicates=accepts_duplicates)
    stage.adopts(0)
    assert role(stage, "1") is HostRole.DRAINING
    assert stage.state.hosts["0"].phase is HostPhase.RECOVERING, "it waits for what host 1 holds"

    stage.registers(1).adopts().adopts().adopts()
    assert "1" not in stage.state.hosts
    assert len(stage.read(0)) == 8
    got = delivered(stage)
    assert len(got) == len(set(got)) == 8 * 13


def test_a_host_at_the_gate_continues_when_one_that_was_thought_lost_reports() -> None:
    """Found by random lives: the gate was looked at only when a host registered."""
    stage = running()
    stage.operator.handle(HostLost("0", stage.state.hosts["0"].incarnation))
    stage.registers(1)
    assert stage.state.hosts["1"].phase is HostPhase.RECOVERING

    stage.more(1).adopts(0)

    assert stage.state.hosts["1"].phase is HostPhase.ACTIVE


def test_a_host_at_the_gate_does_not_pass_because_of_one_that_leaves_in_the_same_turn() -> None:
    """Found by random lives: no one is active afterwards, and host 0 has not said what it holds."""
    stage = running(hosts=3, readers=2)
    assert stage.read(2) == {}
    give_up(stage, "2")
    stage.operator.handle(HostLost("0", stage.state.hosts["0"].incarnation))
    stage.registers(1)

    stage.adopts(2)

    assert "2" not in stage.state.hosts
    assert stage.state.hosts["1"].phase is HostPhase.RECOVERING
    stage.more(1).adopts(0)
    assert stage.state.hosts["1"].phase is HostPhase.ACTIVE


def test_a_host_at_the_gate_does_not_wait_for_one_that_is_removed() -> None:
    """What that one holds is revoked, so host 0 can read on with the rest."""
    stage = running()
    stage.fails(0).fails(1)
    stage.registers(0)
    assert stage.state.hosts["0"].phase is HostPhase.RECOVERING

    stage.operator.handle(HostsChanged(("0",)))
    stage.discovers().more(1).adopts(0)

    assert stage.state.hosts["0"].phase is HostPhase.ACTIVE
    assert len(stage.read(0)) == 4
    stage.registers(1).adopts().adopts().adopts()
    assert set(stage.state.hosts) == {"0"}
    assert len(stage.read(0)) == 8
    got = delivered(stage)
    assert len(got) == len(set(got)) == 8 * 11


def removed_while_silent(stage: Stage) -> Stage:
    """Host 1 hangs, and the user wants only host 0."""
    stage.dead.add("1")
    stage.operator.handle(HostsChanged(("0",)))
    stage.adopts(0).adopts(0)
    assert role(stage, "1") is HostRole.LEAVING
    assert len(stage.read(0)) == 4, "only host 1 can say where its splits stand"
    return stage


def test_a_host_that_is_lost_while_it_leaves_is_drained() -> None:
    stage = running().more(3)
    dies_after_delivery(stage, "1")
    removed_while_silent(stage)

    give_up(stage, "1")

    assert role(stage, "1") is HostRole.DRAINING
    stage.registers(1).adopts(1).adopts(0).adopts(0)
    assert "1" not in stage.state.hosts
    assert len(stage.read(0)) == 8
    got = delivered(stage)
    assert len(got) == len(set(got)) == 8 * 13


@pytest.mark.parametrize("restarts", [False, True])
def test_with_duplicates_allowed_a_host_that_is_lost_while_it_leaves_is_forgotten(
    *, restarts: bool
) -> None:
    """Also if an operator that has just started has seen none of its reports."""
    stage = running().more(3)
    dies_after_delivery(stage, "1")
    removed_while_silent(stage)
    if restarts:
        del stage.store.reports["1"]
        stage.operator_starts().discovers()

    give_up(stage, "1", accepts_duplicates=True)
    stage.adopts(0).adopts(0)

    assert "1" not in stage.state.hosts
    assert len(stage.read(0)) == 8
    assert set(delivered(stage)) == {
        (s, n) for s, end in stage.broker.ends.items() for n in range(end)
    }
    # What comes late from the host changes nothing, and it may be added again.
    stage.drivers["1"].report()
    stage.operator.see_reports()
    assert len(stage.owners) == 8
    stage.operator.handle(HostsChanged(("0", "1")))
    stage.registers(1).adopts().adopts().adopts()
    assert [len(stage.read(0)), len(stage.read(1))] == [4, 4]


def test_a_host_that_was_given_up_with_duplicates_can_be_removed() -> None:
    stage = running()
    stage.dead.add("1")
    give_up(stage, "1", accepts_duplicates=True)
    assert role(stage, "1") is HostRole.JOINING

    stage.operator.handle(HostsChanged(("0",)))
    stage.adopts(0).adopts(0)
    if "1" in stage.state.hosts:
        give_up(stage, "1", accepts_duplicates=True)

    assert "1" not in stage.state.hosts


@pytest.mark.parametrize("is_wanted", [True, False])
def test_duplicates_that_are_accepted_later_end_the_wait_for_a_drain_attempt(
    *, is_wanted: bool
) -> None:
    stage = running().more(3)
    dies_after_delivery(stage, "1")
    give_up(stage, "1")
    if not is_wanted:
        stage.operator.handle(HostsChanged(("0",)))
    assert role(stage, "1") is HostRole.DRAINING
    give_up(stage, "1")
    assert role(stage, "1") is HostRole.DRAINING, "nothing has changed"

    give_up(stage, "1", accepts_duplicates=True)
    stage.adopts(0).adopts(0)

    assert role(stage, "1") is HostRole.JOINING
    assert len(stage.read(0)) == 8
    stage.operator.handle(HostsChanged(("0", "1") if is_wanted else ("0",)))
    if is_wanted:
        stage.registers(1).adopts().adopts().adopts()
        assert [len(stage.read(0)), len(stage.read(1))] == [4, 4]
    else:
        give_up(stage, "1", accepts_duplicates=True)
        assert "1" not in stage.state.hosts
