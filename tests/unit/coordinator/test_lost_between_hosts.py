"""The state is lost, or an older copy restored, while a split is between two hosts."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import LATEST, KafkaPartitionSplit
from balanced_source.coordinator.recovery import recover
from balanced_source.coordinator.state import CoordinatorState, HostState, Revocation
from balanced_source.coordinator.tracker import SplitAssignmentTracker
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import ContractViolationError
from balanced_source.host.adoption import adopt
from balanced_source.lifecycles import HostPhase
from support.stage import Stage
from support.world import kafka_source

S = ("c", "t", 0)


def moved_and_released() -> tuple[Stage, SplitId]:
    """Host 0 has let go of a split at 10 and has seen that host 1 owns it.

    Host 1 has not seen that yet.
    """
    stage = Stage(readers=2, hosts=2).topic("t", 4, end=10).running()
    away = stage.with_owner(0)
    stage.moves(away, 1).adopts(0).adopts(0)
    assert stage.assignment.starts[away] == 10
    assert away not in stage.read(0)
    assert away not in stage.read(1)
    return stage, away


def check_each_once(stage: Stage) -> None:
    got = [record for driver in stage.drivers.values() for record in driver.delivered]
    assert len(got) == len(set(got))
    assert set(got) == {
        (split, offset) for split, end in stage.broker.ends.items() for offset in range(end)
    }


def test_a_previous_host_keeps_a_position_until_the_next_host_has_the_split() -> None:
    stage, away = moved_and_released()

    assert stage.kept(0) == {away: 10}

    stage.adopts(1).rescales(4).adopts().adopts()
    assert away not in stage.kept(0)


def test_a_split_on_its_way_between_hosts_continues_when_the_state_is_lost() -> None:
    """Nothing but the former host's stream offset says where it was."""
    stage, _ = moved_and_released()

    stage.state_lost().operator_starts().discovers().adopts().discovers().adopts().more(
        3
    ).adopts().adopts()

    check_each_once(stage)


def test_a_position_that_came_back_from_a_new_host_is_still_retained_by_the_previous_one() -> None:
    """Host 1 fails before it adopts the split, and the next operator is yet to ask brokers."""
    stage, away = moved_and_released()
    stage.fails(1).operator_starts().registers(1)
    assert away not in stage.owners

    stage.adopts(0)

    assert stage.kept(0) == {away: 10}


def restored_while_a_split_moves() -> tuple[Stage, SplitId]:
    """A copy of the state in which host 0 reads a split that belongs to host 1 next is restored.

    Host 0 has let go of the split since the copy was made, and host 1 does not read it yet.
    """
    stage = Stage(readers=2, hosts=2).topic("t", 3, end=10).running().adopts()
    away = max(stage.owned(0))
    stage.moves(away, 1)
    copy = stage.store.state
    assert stage.state.revoking.keys() == {away}
    stage.adopts(0)
    assert away in stage.kept(0)
    stage.store.state = copy
    return stage.operator_starts(), away


def test_a_moving_split_goes_where_an_older_state_has_decided() -> None:
    """Host 0 has adopted the split before, so what was decided about it is not a guess."""
    stage, _ = restored_while_a_split_moves()
    before = stage.owners

    stage.discovers().adopts().discovers().adopts()

    assert stage.owners == before
    check_each_once(stage.more(3).adopts().adopts())


def test_a_moving_split_continues_when_its_host_has_lost_the_spark_checkpoint() -> None:
    """Nothing but the older state says where it was."""
    stage, away = restored_while_a_split_moves()

    stage.registers(0, holding={}).discovers().adopts().discovers().adopts()

    assert stage.owners[away] == 1
    assert stage.positions()[away] == 10, "the split is read again"


def recovering(*reports: HostReport) -> CoordinatorState[Any]:
    hosts = {
        r.host: HostState(incarnation=1, phase=HostPhase.RECOVERING, report=r) for r in reports
    }
    return CoordinatorState(lineage=2, has_history=True, parallelism=2, hosts=hosts)


@pytest.mark.parametrize("is_adopted", [True, False])
def test_only_a_moving_split_that_its_host_never_adopted_is_a_guess(*, is_adopted: bool) -> None:
    split = KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=10)
    state = replace(
        recovering(
            HostReport(host="0", incarnation=1, lineage=2, epoch=5),
            HostReport(host="1", incarnation=1, lineage=2),
        ),
        owners={S: 1},
        splits={S: split},
        revoking={S: Revocation(host="0", epoch=4, split=split)},
        tracker=SplitAssignmentTracker(by_checkpoint={} if is_adopted else {3: {S: 0}}),
    )

    done = recover(state, kafka_source("c"))

    assert done is not None
    assert done.back == {1: [split]}
    assert done.guessed == (frozenset() if is_adopted else {S})


def report(host: str, *, epoch: int, position: int) -> HostReport:
    return HostReport(
        host=host,
        incarnation=1,
        lineage=2,
        epoch=epoch,
        owners={S: int(host)},
        positions={S: position},
    )


@pytest.mark.parametrize(("first", "second", "holder"), [(2, 5, 1), (5, 2, 0)])
def test_the_later_epoch_decides_between_two_hosts_that_report_a_split(
    first: int, second: int, holder: int
) -> None:
    """The other one let go of it by registering; its Spark checkpoint does not know yet."""
    state = recovering(
        report("0", epoch=first, position=10 + first),
        report("1", epoch=second, position=10 + second),
    )

    done = recover(state, kafka_source("c"))

    assert done is not None
    read = {
        subtask: [s.position for s in reader.reported_splits]
        for subtask, reader in done.readers.items()
    }
    kept = {
        subtask: [s.split_id for s in reader.retained_splits]
        for subtask, reader in done.readers.items()
    }
    assert read == {holder: [15], 1 - holder: []}
    assert kept == {holder: [], 1 - holder: [S]}


@pytest.mark.parametrize(("first", "second", "holder"), [(2, 5, 1), (5, 2, 0)])
@pytest.mark.parametrize("guess", [0, 1])
def test_the_owner_is_a_reader_of_the_host_that_holds_the_split(
    first: int, second: int, holder: int, guess: int
) -> None:
    """What the state says was decided before the hosts had spoken."""
    partition = KafkaPartitionSplit(cluster="c", topic="t", partition=0, offset=0)
    state = replace(
        recovering(report("0", epoch=first, position=10), report("1", epoch=second, position=20)),
        owners={S: guess},
        splits={S: partition},
    )

    done = recover(state, kafka_source("c"))

    assert done is not None
    assert done.state.owners == {S: holder}


def test_two_hosts_that_report_a_split_of_one_epoch_are_an_error() -> None:
    state = recovering(report("0", epoch=4, position=10), report("1", epoch=4, position=10))

    with pytest.raises(ContractViolationError, match="reported by host 0 and by host 1"):
        recover(state, kafka_source("c"))


def test_a_host_that_never_had_a_split_keeps_nothing_of_it() -> None:
    assignment = Assignment(
        epoch=3,
        parallelism=2,
        incarnations={"0": 1, "1": 1},
        owners={S: 1},
        starts={S: 4},
        since={S: 3},
    )

    assert adopt(StreamOffset(epoch=2), assignment, host="0").retained == {}
    assert adopt(StreamOffset(epoch=2, positions={S: 4}), assignment, host="0").retained == {S: 4}


def test_a_guess_that_was_taken_back_gives_way_to_what_the_holder_reports() -> None:
    """A start position that was looked up when the state was lost may be beyond what is read."""
    stage = Stage(readers=2, hosts=2, source=kafka_source("c", starting_offsets=LATEST))
    stage.topic("t", 2, end=0).running()
    stage.moves(stage.with_owner(1), 0).adopts().adopts().more(3).adopts()
    assert stage.read(0) == {("c", "t", 0): 3, ("c", "t", 1): 3}
    stage.state_lost().more(5).operator_starts().discovers()
    assert set(stage.positions().values()) == {8}, "nothing is known yet but the ends"
    assert stage.owned(1), "a reader of the host that holds nothing is guessed to be an owner"

    stage.registers(1).rescales(1).registers(0).discovers()

    assert set(stage.positions().values()) == {3}
    stage.adopts().adopts()
    check_each_once(stage)
