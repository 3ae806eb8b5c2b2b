"""What an enumerator that discovers its splits remembers, and when that settles."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import ReaderInfo, SplitId
from balanced_source.connectors.discovery import Discovered, DiscoveryState, Initialize
from balanced_source.connectors.discovery.reported import without_guesses
from balanced_source.connectors.discovery.values import Retained, TransientState
from balanced_source.connectors.kafka import KafkaPartitionSplit
from balanced_source.errors import DiscoveryError, RefusedDiscoveryError
from support.world import kafka_source

A, B, GONE = ("c", "t", 0), ("c", "t", 1), ("gone", "t", 0)
ERROR, OTHER = DiscoveryError("silent", scope="c"), DiscoveryError("lost", scope="c")


def scope_of(split_id: SplitId) -> str:
    return str(split_id[0])


def look_up(scope: str, *split_ids: SplitId) -> Initialize:
    call: Initialize = kafka_source("c", "gone").initialize(scope, split_ids, is_first=True)
    return call


def test_nothing_is_remembered_of_scopes_that_left_the_source() -> None:
    kept, dropped = look_up("c", A), look_up("gone", GONE)
    both = frozenset({A, GONE})
    state = TransientState(
        answered=frozenset({"c", "gone"}),
        look_ups=(kept, dropped),
        in_flight=both,
        incomplete=frozenset({"c", "gone"}),
        doubtful=both,
        unconfirmed=both,
        missing={A: 1, GONE: 2},
        refusing=frozenset({"c", "gone"}),
        failures={"c": 1, "gone": 2},
        problems={"c": ERROR, "gone": OTHER},
        rounds={"c": 3, "gone": 4},
        unstarted={"c": (1, ERROR), "gone": (2, OTHER)},
        absences={"c": 1, "gone": 2},
    )

    found = state.within(frozenset({"c"}), scope_of)

    assert found == TransientState(
        answered=frozenset({"c"}),
        look_ups=(kept,),
        in_flight=frozenset({A}),
        incomplete=frozenset({"c"}),
        doubtful=frozenset({A}),
        unconfirmed=frozenset({A}),
        missing={A: 1},
        refusing=frozenset({"c"}),
        failures={"c": 1},
        problems={"c": ERROR},
        # Answers of former rounds must stay recognisable.
        rounds={"c": 3, "gone": 4},
        unstarted={"c": (1, ERROR)},
        absences={"c": 1},
    )


def test_people_are_told_of_a_scope_that_fails_several_times_in_a_row() -> None:
    state = TransientState()
    problems = []
    for _ in range(3):
        state = state.failed("c", ERROR, threshold=2)
        problems.append(dict(state.problems))

    assert problems == [{}, {"c": ERROR}, {"c": ERROR}]
    assert state.failures == {"c": 3}
    assert state.answered == {"c"}, "known splits of it continue"


def test_an_answer_ends_the_failures_of_its_scope() -> None:
    state = TransientState(
        failures={"c": 2, "d": 1},
        problems={"c": ERROR, "d": OTHER},
        named=frozenset({A, B}),
        refusing=frozenset({"c", "d"}),
    )

    whole = state.listed("c", Discovered(split_ids=frozenset({A})))
    partial = state.listed(
        "c", Discovered(split_ids=frozenset(), problem=OTHER, refused=frozenset({("c", "u")}))
    )

    assert (whole.failures, whole.problems) == ({"d": 1}, {"d": OTHER})
    assert (whole.named, whole.refusing, whole.answered) == ({B}, {"d"}, {"c"})
    assert partial.problems == {"c": OTHER, "d": OTHER}
    assert (partial.named, partial.refusing) == ({A, B}, {"c", "d"})


def test_a_refusal_says_more_than_a_loss() -> None:
    refusal = RefusedDiscoveryError("recreated", scope="c")

    assert TransientState(problems={"c": refusal}).noted("c", OTHER).problems == {"c": refusal}
    assert TransientState(problems={"c": ERROR}).noted("c", OTHER).problems == {"c": OTHER}


def test_only_the_very_look_up_that_was_made_is_answered() -> None:
    """An equal call of a scope's former life is another one."""
    call, equal = look_up("c", A), look_up("c", A)
    other = look_up("c", B)
    state = TransientState().looks_up(call).looks_up(other)

    assert (state.is_looking_up(call), state.is_looking_up(equal)) == (True, False)
    assert state.in_flight == {A, B}
    after = state.looked_up(call)
    assert (after.look_ups, after.in_flight) == ((other,), {B})
    assert after.looked_up(call) is after
    assert state.without_look_ups({"c"}).in_flight == frozenset()
    assert state.without_look_ups({"d"}) is state


def test_a_look_up_that_failed_is_forgotten_with_its_scope() -> None:
    state = TransientState().lacks("c", DiscoveryError("gone")).looks_up(look_up("gone", B))

    assert state.looked_at == {"c", "gone"}
    assert state.without_look_ups({"c"}).looked_at == {"gone"}
    assert state.without_look_ups({"c"}).unstarted == {}


def test_a_scope_is_settled_when_every_listed_split_has_a_start() -> None:
    state = TransientState().looks_up(look_up("c", A))
    assert not state.is_settled("c")
    assert state.is_settled("d")

    waiting = TransientState().awaits("c", {A})
    assert not waiting.is_settled("c")
    assert waiting.doubtful == {A}
    assert waiting.awaits("d", ()).incomplete == {"c"}
    assert waiting.awaits("c", ()).is_settled("c")
    assert waiting.awaits("c", ()).doubtful == {A}


def test_another_discovery_confirms_the_splits_of_its_scope() -> None:
    state = TransientState(unconfirmed=frozenset({A, GONE}), missing={B: 1})

    assert [state.doubts(s) for s in (A, B, ("c", "t", 2))] == [True, True, False]
    found = state.confirmed("c", scope_of)
    assert found.unconfirmed == {GONE}
    assert not found.doubts(A)


@pytest.mark.parametrize(
    ("changes", "is_sure"),
    [
        ({"answered": frozenset({"c", "d"})}, True),
        ({"answered": frozenset({"c"})}, False),
        ({"answered": frozenset({"c", "d"}), "unconfirmed": frozenset({A})}, False),
    ],
)
def test_the_whole_is_known_when_all_scopes_have_answered(
    changes: dict[str, Any], *, is_sure: bool
) -> None:
    assert TransientState(**changes).is_sure(("c", "d")) is is_sure


@pytest.mark.parametrize(
    ("changes", "is_unsettled"),
    [
        ({}, False),
        ({"in_flight": frozenset({A})}, True),
        ({"missing": {A: 1}}, True),
        ({"failures": {"c": 1}}, True),
        ({"refusing": frozenset({"c"})}, True),
        ({"problems": {"c": ERROR}}, False),
    ],
)
def test_what_keeps_a_source_from_being_complete(
    changes: dict[str, Any], *, is_unsettled: bool
) -> None:
    assert TransientState(**changes).is_unsettled is is_unsettled


def test_a_scope_that_left_stays_discovered_until_its_deadline() -> None:
    """What appears there after a return is new, wherever the user wanted to start."""
    state: DiscoveryState[KafkaPartitionSplit] = DiscoveryState(
        discovered=frozenset({"c", "d", "e", "f"}), removed={"e": 100.0, "f": 50.0, "x": 500.0}
    )

    found = state.of_scopes(frozenset({"c"}), retained={"f"}, now=60.0, until=200.0)

    assert found.removed == {"d": 200.0, "e": 100.0}
    assert found.discovered == {"c", "d", "e", "f"}, "positions of f are still kept"
    over = found.of_scopes(frozenset({"c"}), retained=(), now=100.0, until=300.0)
    assert over.removed == {"d": 200.0, "f": 300.0}, "f has left again"
    assert over.discovered == {"c", "d", "f"}
    back = found.of_scopes(frozenset({"c", "d"}), retained=(), now=61.0, until=300.0)
    assert back.removed == {"e": 100.0, "f": 300.0}


@pytest.mark.parametrize(
    ("refused", "left"),
    [
        ((), {A, B, GONE}),
        ((("c", "t"),), {GONE}),
        ((("c", "t", 1),), {A, GONE}),
        ((("c",),), {GONE}),
    ],
)
def test_refused_beginnings_of_ids_say_nothing_of_their_splits(
    refused: tuple[SplitId, ...], left: set[SplitId]
) -> None:
    found = Discovered(split_ids=frozenset(), refused=frozenset(refused))

    assert found.without_refused({A, B, GONE}) == left


def test_what_readers_report_counts_before_what_was_kept_without_them() -> None:
    def split(split_id: SplitId) -> KafkaPartitionSplit:
        return KafkaPartitionSplit(cluster="c", topic="t", partition=int(split_id[2]), offset=5)

    kept = {s: Retained(split=split(s), until=9.0) for s in (A, B)}
    reader = ReaderInfo(subtask_id=0, reported_splits=(replace(split(A), offset=7),))

    after, dropped = without_guesses(DiscoveryState(retained=kept), [reader], (), kafka_source())

    assert after.retained == {B: kept[B]}
    assert dropped == frozenset()
