"""Which reader gets which split, and what an enumerator says when it may not give any out."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import ReaderInfo, SplitId
from balanced_source.connectors.pull import PullState
from balanced_source.connectors.pull.dealing import dealt, least_loaded
from balanced_source.connectors.pull.enumerator import SPLITS, PullingSplitEnumerator
from balanced_source.coordinator import CoordinatorState, HostState
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.errors import RefusedDiscoveryError
from support.pull_source import NumberLists, Numbers


def lists(count: int) -> dict[SplitId, Numbers]:
    splits = (Numbers(name=f"list-{number}") for number in range(count))
    return {split.split_id: split for split in splits}


def names(given: Mapping[int, list[Numbers]]) -> dict[int, list[str]]:
    return {reader: [split.name[-1] for split in splits] for reader, splits in given.items()}


@pytest.mark.parametrize("readers", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_splits_that_no_one_asked_for_go_to_the_readers_that_have_the_fewest(
    readers: tuple[int, ...],
) -> None:
    """Of equal ones to the lowest number, whatever the order of the readers is."""
    found = least_loaded(lists(5).values(), readers, [0, 0, 2, 9])

    assert names(found) == {1: ["0", "1", "4"], 2: ["2"], 0: ["3"]}
    assert least_loaded([], readers, []) == {}


@given(
    st.integers(0, 12),
    st.dictionaries(st.integers(0, 4), st.integers(-1, 5)),
)
def test_readers_get_what_they_ask_for_in_turn(count: int, counts: dict[int, int]) -> None:
    asked = {reader: number for reader, number in counts.items() if number > 0}

    found = dealt(lists(count), counts)

    sizes = {reader: len(splits) for reader, splits in found.items()}
    assert sum(sizes.values()) == min(count, sum(asked.values()))
    assert all(sizes[reader] <= asked[reader] for reader in sizes)
    short = [sizes.get(reader, 0) for reader in asked if sizes.get(reader, 0) < asked[reader]]
    assert not short or max(sizes.values(), default=0) <= min(short) + 1, "in turn"
    first = [split.name for splits in found.values() for split in splits]
    assert sorted(first) == sorted(
        split.name for split in list(lists(count).values())[: len(first)]
    )


def enumerator(
    state: PullState[Numbers], **source: Any
) -> tuple[PullingSplitEnumerator[Numbers], CoordinatorContext[Any]]:
    context: CoordinatorContext[Any] = CoordinatorContext(
        CoordinatorState(parallelism=1, hosts={"0": HostState()})
    )
    context.set_readers({0: ReaderInfo(subtask_id=0)})
    return PullingSplitEnumerator(context, NumberLists(**source), state), context


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (0, "what was read already of the splits. Nothing"),
        (1, "what was read already of 1 split. Nothing"),
        (2, "what was read already of 2 splits. Nothing"),
    ],
)
def test_splits_in_doubt_are_not_given_out_unless_records_may_repeat(count: int, says: str) -> None:
    state = PullState(pending=lists(count), is_listed=True, is_doubtful=True)
    held, outer = enumerator(state)
    repeated, other = enumerator(state, may_repeat=True)

    held.handle_split_request(0, None)
    repeated.handle_split_request(0, None)

    assert held.problems().keys() == {SPLITS}
    problem = held.problems()[SPLITS]
    assert isinstance(problem, RefusedDiscoveryError)
    assert says in str(problem)
    assert "or allow the source to repeat records to read all" in str(problem)
    assert (outer.current_assignments(), held.pending_splits()) == ({}, count)
    assert repeated.problems() == {}
    assert len(other.current_assignments()) == min(count, 1)
    assert repeated.snapshot_state().is_doubtful is (count > 1)


def test_an_enumerator_without_a_listing_is_blocked_by_its_failure() -> None:
    listed, _ = enumerator(PullState(is_listed=True, is_doubtful=True))
    unlisted, _ = enumerator(PullState(is_doubtful=True))

    assert (listed.blocked(), listed.undiscovered()) == ({}, frozenset())
    assert unlisted.blocked().keys() == {SPLITS}
    assert unlisted.undiscovered() == {unlisted.scope}


def test_renumbered_readers_keep_their_requests() -> None:
    made, _ = enumerator(PullState())
    made.handle_split_requests({0: 2, 1: 1}, "pod-0")
    before = made.waiting
    made.handle_renumbered({0: 1})

    assert before.counts == {0: 2}, "reader 1 is not there"
    assert (made.waiting.counts, made.waiting.hosts) == ({1: 2}, {1: "pod-0"})
