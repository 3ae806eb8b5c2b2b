"""What an enumerator that discovers its splits keeps of scopes, look-ups and positions."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.discovery import Discovered, DiscoveryState
from balanced_source.connectors.discovery.values import Retained, TransientState
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError
from support.world import kafka_source, partition_split

A, B, C = ("c", "t", 0), ("c", "t", 1), ("c", "t", 2)
HEAD, OTHER_HEAD = ("c", "u"), ("d", "u")
ERROR, OTHER = DiscoveryError("silent", scope="c"), DiscoveryError("lost", scope="c")


def kept(*splits: KafkaPartitionSplit) -> dict[SplitId, Retained[KafkaPartitionSplit]]:
    return {s.split_id: Retained(split=s, until=9.0) for s in splits}


def test_what_is_awaited_and_voided_leaves_with_its_scope() -> None:
    state = TransientState(
        voided=frozenset({"c", "gone"}),
        awaited={"c": frozenset({HEAD}), "gone": frozenset({OTHER_HEAD})},
    )

    found = state.within(frozenset({"c", "new"}), lambda s: str(s[0]))

    assert found == TransientState(voided=frozenset({"c"}), awaited={"c": frozenset({HEAD})})


@pytest.mark.parametrize(
    ("changes", "is_asking", "is_unsettled"),
    [
        ({"voided": frozenset({"c"})}, True, True),
        ({"unstarted": {"c": (1, ERROR)}}, True, True),
        ({"missing": {A: 1}}, True, True),
        ({"refusing": frozenset({"c"})}, False, True),
        ({"awaited": {"c": frozenset(), "d": frozenset({OTHER_HEAD})}}, False, True),
        ({"awaited": {"c": frozenset()}}, False, False),
        ({"unconfirmed": frozenset({A})}, False, False),
    ],
)
def test_what_is_asked_for_and_what_may_still_come(
    changes: dict[str, Any], *, is_asking: bool, is_unsettled: bool
) -> None:
    state = TransientState(**changes)

    assert (state.is_asking, state.is_unsettled) == (is_asking, is_unsettled)


def test_what_was_there_once_is_not_awaited_again() -> None:
    state = TransientState().awaiting("d", [OTHER_HEAD]).awaiting("c", [HEAD, A])
    assert state.awaited == {"c": {HEAD, A}, "d": {OTHER_HEAD}}

    later = state.awaiting("c", [HEAD, B])

    assert later.awaited == {"c": {HEAD}, "d": {OTHER_HEAD}}
    assert later.awaiting("c", []).awaiting("c", [HEAD]).awaited["c"] == frozenset()


def test_another_question_forgets_the_answers_to_the_former_one() -> None:
    state = TransientState(
        answered=frozenset({"c", "d"}), awaited={"c": frozenset({HEAD}), "d": frozenset()}
    )

    found = state.asked_otherwise(frozenset({"c"}))

    assert (found.answered, found.awaited) == ({"c"}, {"c": {HEAD}})


def test_an_absent_scope_is_counted_until_it_fails_in_another_way() -> None:
    absent = DiscoveryError("no such stream", scope="c", is_hopeless=True)
    state = TransientState(absences={"d": 1})

    for _ in range(2):
        state = state.failed("c", absent, threshold=9)
    assert state.absences == {"c": 2, "d": 1}
    assert state.failed("c", ERROR, threshold=9).absences == {"d": 1}
    assert state.listed("c", Discovered(split_ids=frozenset())).absences == {"d": 1}
    assert state.problems == {}


def test_splits_without_a_start_are_a_problem_after_some_look_ups() -> None:
    state = TransientState(problems={"d": OTHER})
    problems = []
    for _ in range(3):
        state = state.lacks("c", ERROR)
        problems.append(state.found_problems(2))

    assert problems == [{"d": OTHER}, {"c": ERROR, "d": OTHER}, {"c": ERROR, "d": OTHER}]
    assert state.lacks("d", ERROR).lacks("d", ERROR).found_problems(2)["d"] == OTHER
    assert (state.incomplete, state.answered) == ({"c"}, {"c"})


def test_a_scope_whose_splits_have_started_has_no_such_problem_any_more() -> None:
    state = TransientState().lacks("c", ERROR).lacks("d", ERROR)

    assert state.started("c").unstarted.keys() == {"d"}
    assert state.started("e") is state


def test_a_voided_scope_is_asked_until_it_answers() -> None:
    state = TransientState(voided=frozenset({"d"})).lacks("c", ERROR)

    voided = state.without_look_ups({"c", "e"})

    assert voided.voided == {"c", "d"}
    assert voided.listed("c", Discovered(split_ids=frozenset())).voided == {"d"}


def test_a_refusal_stays_beside_losses_of_other_scopes() -> None:
    refusal = RefusedDiscoveryError("recreated", scope="c")
    state = TransientState(problems={"c": refusal})

    assert state.noted("d", OTHER).problems == {"c": refusal, "d": OTHER}


def test_final_positions_replace_what_was_retained_or_waits() -> None:
    """Of a split that is neither, the coordinator knows the position."""
    state = DiscoveryState(
        unassigned={A: partition_split(A), C: partition_split(C)}, retained=kept(partition_split(B))
    )
    final = [
        partition_split(A, 9, stop=9),
        partition_split(B, 8),
        partition_split(("c", "x", 0), 7),
    ]

    found = state.with_final(final)

    assert found.unassigned == {A: final[0], C: partition_split(C)}
    assert found.retained == kept(final[1])
    assert found.finished == {A}
    assert state.with_final([partition_split(A, 8, stop=9)]).finished == frozenset()


def test_the_final_position_of_a_retained_split_does_not_finish_it() -> None:
    """It may return under another stop."""
    waits = DiscoveryState(unassigned={B: partition_split(B)}, retained=kept(partition_split(B)))

    found = waits.with_final([partition_split(B, 9, stop=9)])

    assert (found.finished, found.unassigned) == (frozenset(), {B: partition_split(B)})
    assert found.retained == kept(partition_split(B, 9, stop=9))


def test_a_split_that_returns_continues_and_is_finished_at_its_end() -> None:
    state = DiscoveryState(
        unassigned={C: partition_split(C)},
        retained=kept(partition_split(A, 9, stop=9), partition_split(B, 8, stop=9)),
    )

    both, one = state.with_returned([A, B]), state.with_returned([B])

    assert both.unassigned == {
        C: partition_split(C),
        A: partition_split(A, 9, stop=9),
        B: partition_split(B, 8, stop=9),
    }
    assert (both.retained, both.finished) == ({}, {A})
    assert (one.retained.keys(), one.finished) == ({A}, frozenset())


def test_a_state_is_read_as_it_was_written() -> None:
    source = kafka_source("c")
    state = DiscoveryState(
        unassigned={A: partition_split(A)},
        preferred={A: 3},
        finished=frozenset({B}),
        retained=kept(partition_split(C, 7)),
        discovered=frozenset({"c", "d"}),
        removed={"e": 5.0, "d": 7.5},
        rebalance_due=True,
    )

    written = source.encode_state(state)

    assert source.decode_state(source.state_version, written) == state
    assert list(written["removed"]) == ["d", "e"]
    without = source.encode_state(replace(state, removed={}))
    assert "removed" not in without, "an older release wrote none"
    assert source.decode_state(source.state_version, without).removed == {}
