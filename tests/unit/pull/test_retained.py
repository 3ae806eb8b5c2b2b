"""Splits that hosts have let go of, and that no one reads now."""

from collections.abc import Mapping
from typing import Any

import pytest

from balanced_source.api import ReaderInfo, SplitId
from balanced_source.connectors.pull import PullState
from balanced_source.connectors.pull.enumerator import PullingSplitEnumerator
from balanced_source.coordinator import CoordinatorState
from balanced_source.coordinator.context import CoordinatorContext
from support.pull_source import NumberLists, Numbers

A: SplitId = ("lists", "list-0")
B: SplitId = ("lists", "list-1")


def registered(
    pending: Mapping[SplitId, Numbers], *retained: Numbers, is_listed: bool = True
) -> tuple[PullState[Numbers], frozenset[SplitId]]:
    """What is pending, and which positions hosts keep, after a reader with splits has come.

    Nothing is given out: what was read is in doubt.
    """
    kept = frozenset(split.split_id for split in retained)
    context: CoordinatorContext[Any] = CoordinatorContext(CoordinatorState(retained=kept))
    state = PullState(pending=pending, is_listed=is_listed, is_doubtful=True)
    enumerator = PullingSplitEnumerator[Numbers](context, NumberLists(), state)
    context.set_readers({0: ReaderInfo(subtask_id=0, retained_splits=retained)})
    enumerator.add_readers([0])
    return enumerator.snapshot_state(), frozenset(context.state.retained)


@pytest.mark.parametrize(("known", "retained", "continued"), [(0, 1, 1), (1, 0, 1)])
def test_a_pending_split_continues_at_the_furthest_position_and_hosts_keep_it(
    known: int, retained: int, continued: int
) -> None:
    """The state may be lost before the split has an owner."""
    pending = {A: Numbers(name="list-0", number=known)}

    state, kept = registered(pending, Numbers(name="list-0", number=retained))

    assert state.pending[A].number == continued
    assert kept == {A}


def test_a_split_that_the_state_does_not_know_was_read() -> None:
    state, kept = registered({A: Numbers(name="list-0")}, Numbers(name="list-1", number=1))

    assert state.pending.keys() == {A}
    assert kept == frozenset()


def test_a_split_comes_back_if_the_state_was_lost() -> None:
    state, kept = registered({}, Numbers(name="list-1", number=1), is_listed=False)

    assert state.pending == {B: Numbers(name="list-1", number=1)}
    assert state.returned == kept == {B}


def test_a_split_that_comes_back_read_is_forgotten() -> None:
    state, kept = registered({}, Numbers(name="list-1", number=2), is_listed=False)

    assert (state.pending, kept) == ({}, frozenset())
