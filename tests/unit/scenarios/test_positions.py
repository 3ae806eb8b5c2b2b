"""Whose position counts: cases beyond the list, for rules 1, 2 and 8 of the design."""

import pytest

from balanced_source.coordinator import HostPhase
from support.stage import Stage, splits
from support.world import kafka_source

S = ("c", "t", 0)


@pytest.mark.parametrize("hosts_see_the_removal", [True, False])
def test_a_deleted_and_recreated_topic_is_read_from_its_beginning(
    hosts_see_the_removal: bool,
) -> None:
    """What a host keeps of the former topic does not count, or new records would be lost."""
    stage = Stage(readers=1, source=kafka_source("c")).topic("t", 1, end=10).running()
    stage.topic_deleted("t").looks_again(2)
    assert stage.owners == {}
    stage.drivers["0"].delivered.clear()
    if hosts_see_the_removal:
        stage.adopts()

    stage.topic("t", 1, end=4).looks_again().adopts().looks_again().discovers().adopts()

    assert stage.read(0) == {S: 4}
    assert stage.positions() == {S: 4}


@pytest.mark.hosts_apart
def test_a_moved_split_is_not_set_back_by_its_previous_owner() -> None:
    """Host 0 keeps an old position, owns the split again without having adopted it, and fails.

    The newer one counts.
    """
    stage = Stage(readers=2, source=kafka_source("c")).topic("t", 2, end=10).running()
    away, home = stage.with_owner(0), 0
    stage.moves(away, 1).adopts(0).adopts(1)
    stage.more(20).adopts(1)
    stage.moves(away, 0).adopts(1)
    assert stage.kept(0) == {away: 10}

    stage.fails(home).registers(home)

    assert stage.positions()[away] == 30
    assert stage.adopts().read(0)[away] == 30


def test_a_split_that_returns_before_its_host_let_go_is_read_on_where_the_host_stopped() -> None:
    """The host had adopted the removal, and the operator had not heard of its last progress.

    The host's word counts.
    """
    stage = (
        Stage(readers=1, source=kafka_source("c", retention=600.0)).topic("t", 1, end=10).running()
    )
    stage.more(5)
    stage.drivers["0"].batch()  # progress that is not reported yet
    ends = dict(stage.broker.ends)
    stage.topic_deleted("t").looks_again(2)
    stage.drivers["0"].see_assignment()
    stage.drivers["0"].batch()  # adopted, not reported either
    stage.broker.ends.update(ends)
    stage.broker.begins.update(dict.fromkeys(ends, 0))

    stage.looks_again()
    assert stage.state.revoking == {}
    stage.adopts()

    assert stage.read(0) == {S: 15}


def test_a_spark_checkpoint_that_was_set_back_is_believed() -> None:
    """Whoever reads a split has the word, also backwards: its query has not seen those records."""
    stage = Stage(readers=1, source=kafka_source("c")).topic("t", 1, end=10).running()

    stage.fails(0).registers(0, holding={S: 3}).drivers["0"].delivered.clear()

    assert stage.positions() == {S: 3}
    assert stage.adopts().read(0) == {S: 10}


def test_a_late_report_of_a_lost_host_is_not_a_sign_of_life_after_a_restart() -> None:
    """The restarted operator sees the dead host's last document, and waits for its successor."""
    stage = Stage(readers=2, source=kafka_source("c")).topic("t", 4).running().fails(0)

    stage.operator_starts()

    assert stage.state.hosts["0"].phase is HostPhase.LOST
    assert stage.owned(0) | stage.owned(1) == set(splits("t", 4))


@pytest.mark.hosts_apart
@pytest.mark.parametrize("had_seen_it", [True, False])
def test_a_split_whose_holder_fails_before_it_let_go_moves_all_the_same(had_seen_it: bool) -> None:
    """The restarted holder lets go; the new owner goes on at the reported position."""
    stage = Stage(readers=2, source=kafka_source("c")).topic("t", 2, end=10).running()
    away = stage.with_owner(0)
    stage.moves(away, 1).more(5)
    stage.drivers["0"].batch()  # progress that the operator has not heard of
    if had_seen_it:
        stage.drivers["0"].see_assignment()
        stage.drivers["0"].batch()
    assert away not in stage.given(1)

    stage.fails(0).registers(0)
    assert away not in stage.given(1), "the log has room for a micro-batch of the former driver"
    stage.adopts(0)

    assert away in stage.given(1)
    assert stage.assignment.starts[away] == 15
    assert stage.adopts().read(1)[away] == 15
    assert away not in stage.read(0)
