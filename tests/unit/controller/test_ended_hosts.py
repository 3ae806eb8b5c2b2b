"""A host of a bounded source that has ended: what it has still to read, and what is said of it."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.coordinator import CoordinatorState, HostPhase, HostRole, HostState
from balanced_source.coordinator.state import Revocation
from balanced_source.documents.report import HostReport
from balanced_source_operator.controller.application_facts import ApplicationState
from balanced_source_operator.controller.conditions import status_of
from balanced_source_operator.controller.decisions import Decision
from balanced_source_operator.controller.ended_hosts import has_read_all, is_waited_for, unread
from balanced_source_operator.controller.hosts import combined, reports_of_readers, still_silent
from support.builders import make_report
from support.stage import bounded_source
from support.status_facts import facts
from support.world import kafka_source

A, B = ("c", "t", 0), ("c", "t", 1)
ENDED: dict[str, Any] = {"status": {"applicationState": {"state": "COMPLETED"}}}
RUNS: dict[str, Any] = {"status": {"applicationState": {"state": "RUNNING"}}}


def split(partition: int) -> KafkaPartitionSplit:
    return KafkaPartitionSplit(
        cluster="c", topic="t", partition=partition, offset=0, stopping_offset=5
    )


def host(name: str, **positions: int) -> HostState:
    report = HostReport(
        host=name,
        incarnation=1,
        epoch=1,
        positions={("c", "t", int(p[1:])): n for p, n in positions.items()},
    )
    return HostState(phase=HostPhase.ACTIVE, report=report, known_from=1)


def state(*, read: int = 5) -> CoordinatorState[Any]:
    """Host 1 reads split B, up to `read`."""
    return CoordinatorState(
        epoch=1,
        parallelism=2,
        hosts={"0": host("0", p0=2), "1": host("1", p1=read)},
        owners={A: 0, B: 1},
        splits={A: split(0), B: split(1)},
    )


def with_host(name: str, **changes: Any) -> CoordinatorState[Any]:
    hosts = state().hosts
    return replace(state(), hosts={**hosts, name: replace(hosts[name], **changes)})


def test_a_split_is_unread_until_its_end_is_reported() -> None:
    source = bounded_source()

    assert unread(state(), source, "1") == frozenset()
    assert unread(state(read=4), source, "1") == {B}
    assert unread(state(), source, "0") == {A}
    assert unread(state(), source, "7") == frozenset(), "it is gone"
    assert unread(state(), kafka_source(), "1") == {B}, "its splits never end"


def test_a_split_that_a_host_has_to_let_go_of_counts_as_its_own() -> None:
    revoking = {A: Revocation(host="1", epoch=2, split=split(0))}

    assert unread(replace(state(), revoking=revoking), bounded_source(), "1") == {A}


def test_nothing_is_known_of_a_host_that_was_not_heard_since_a_loss() -> None:
    expected = with_host("1", phase=HostPhase.EXPECTED)
    joining = with_host("1", phase=HostPhase.EXPECTED, role=HostRole.JOINING)

    assert unread(expected, bounded_source(), "1") is None
    assert unread(with_host("1", report=None), bounded_source(), "1") is None
    assert unread(joining, bounded_source(), "1") == frozenset(), "it has no splits yet"


@pytest.mark.parametrize(
    ("read", "applications", "expected"),
    [
        (5, [ENDED], True),
        (4, [ENDED], False),
        (5, [RUNS], False),
        (5, [ENDED, RUNS], False),
        (5, [], False),
    ],
)
def test_a_host_has_read_all_when_its_application_has_ended_in_order(
    read: int, applications: list[dict[str, Any]], *, expected: bool
) -> None:
    assert has_read_all(state(read=read), bounded_source(), "1", applications) is expected


def test_others_wait_for_a_host_that_has_to_let_go() -> None:
    revoking = {B: Revocation(host="1", epoch=2, split=split(1))}
    leaving = with_host("1", role=HostRole.LEAVING)
    lost = replace(leaving.hosts["0"], phase=HostPhase.LOST)

    assert not is_waited_for(state(), "1")
    assert is_waited_for(replace(state(), revoking=revoking), "1")
    assert not is_waited_for(replace(state(), revoking=revoking), "0")
    assert is_waited_for(leaving, "1")
    assert not is_waited_for(replace(leaving, hosts={**leaving.hosts, "0": lost}), "1")


def test_a_host_that_is_done_does_not_speak_for_the_source_while_another_one_reads() -> None:
    runs = Decision(state=ApplicationState.RUNNING, name="orders-1")
    ended = Decision(state=ApplicationState.FINISHED, name="orders-h1-1")
    done = replace(ended, is_done=True)

    assert combined({"0": runs, "1": done}, state()) is runs
    assert combined({"0": done, "1": runs}, state()) is runs
    assert combined({"0": runs, "1": ended}, state()) is ended
    assert combined({"0": done, "1": done}, state()) is done


def test_the_lag_of_a_host_that_is_done_is_known() -> None:
    done = Decision(state=ApplicationState.FINISHED, is_done=True)

    assert still_silent({"1": done}, frozenset({"0", "1"})) == {"0"}


def test_a_source_reads_although_a_host_that_is_done_adopts_nothing() -> None:
    runs = Decision(state=ApplicationState.RUNNING, name="orders-1")
    done = Decision(state=ApplicationState.FINISHED, name="orders-h1-1", is_done=True)
    hosts = state().hosts
    adopted = {name: replace(found, addressed_epoch=1) for name, found in hosts.items()}
    behind = replace(adopted["1"], report=replace(make_report(), host="1", epoch=0))
    before = replace(state(), hosts={**adopted, "1": behind})

    def conditions(*decisions: Decision) -> list[tuple[str, str]]:
        named = dict(zip(hosts, decisions, strict=True))
        status = status_of(facts(state=before, application=combined(named, before), hosts=named))
        return [(c.type, c.reason) for c in status.conditions]

    assert conditions(runs, done)[:2] == [("Ready", "Reading"), ("Progressing", "Stable")]
    assert conditions(runs, runs)[:2] == [("Ready", "Adopting"), ("Progressing", "Adopting")]


def reading(state: CoordinatorState[Any], *, done: str = "") -> set[str]:
    """Return the hosts whose load counts."""
    finished = {done: Decision(state=ApplicationState.FINISHED, is_done=True)} if done else {}
    return set(reports_of_readers(finished, state))


def test_the_load_of_a_source_is_that_of_hosts_that_read() -> None:
    assert reports_of_readers({}, None) == {}
    assert reading(state()) == {"0", "1"}
    assert reading(state(), done="1") == {"0"}, "it reports no lag any more"
    assert reading(with_host("1", role=HostRole.DRAINING)) == {"0"}, "it was given up"
    assert reading(with_host("1", report=None)) == {"0", "1"}, "its load is unknown, and not 0"
    assert reading(replace(state(), parallelism=1)) == {"0"}, "host 1 has no reader"
    held = make_report(positions={B: 1})
    assert reading(with_host("1", role=HostRole.LEAVING, report=held)) == {"0", "1"}
    assert reading(with_host("1", role=HostRole.LEAVING)) == {"0"}, "it has let go of all"


def test_a_source_that_no_host_reads_has_the_reports_that_there_are() -> None:
    left = {name: replace(h, role=HostRole.DRAINING) for name, h in state().hosts.items()}

    assert reading(replace(state(), hosts=left)) == {"0", "1"}


def test_of_hosts_that_have_all_ended_the_first_one_with_readers_speaks_for_the_source() -> None:
    """Host 0 was given up: that it still runs says nothing of those that have read everything."""
    given_up = with_host("0", role=HostRole.DRAINING)
    done = Decision(state=ApplicationState.FINISHED, name="orders-1-1", is_done=True)
    runs = Decision(state=ApplicationState.RUNNING, name="orders-0-1")

    assert combined({"0": runs, "1": done}, given_up) == done
    assert combined({"0": runs, "1": done}, state()) == runs
