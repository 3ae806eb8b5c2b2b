"""What the enumerator hears of splits that have reached their end."""

from collections.abc import Sequence
from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.discovery import DiscoveringSplitEnumerator
from support.stage import Stage, bounded_source, splits


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[list[SplitId]]:
    """What each call of `handle_finished` said."""
    calls: list[list[SplitId]] = []
    handle_finished = DiscoveringSplitEnumerator.handle_finished

    def spy(self: Any, split_ids: Sequence[SplitId]) -> None:
        calls.append(list(split_ids))
        handle_finished(self, split_ids)

    monkeypatch.setattr(DiscoveringSplitEnumerator, "handle_finished", spy)
    return calls


def read_to_the_end() -> Stage:
    stage = Stage(readers=2, hosts=1, source=bounded_source("c")).topic("t", 4).running()
    for _ in range(4):
        stage.adopts()
    return stage


def test_a_finished_split_is_reported_once(told: list[list[SplitId]]) -> None:
    """However many reports still show it."""
    stage = read_to_the_end()

    assert told == [splits("t", 4)]
    assert stage.operator.coordinator.enumerator.is_finished()


def test_a_finished_split_is_reported_again_after_it_was_reassigned(
    told: list[list[SplitId]],
) -> None:
    """A rescale gives back what its reader had.

    The enumerator forgets the end with it, and hears of it again.
    """
    stage = read_to_the_end()
    given_anew = sorted(stage.owned(1))

    stage.rescales(1)
    stage.adopts().adopts()

    assert told == [splits("t", 4), given_anew]
    assert stage.operator.coordinator.enumerator.is_finished()


def test_a_finished_split_is_reported_again_after_an_operator_restart(
    told: list[list[SplitId]],
) -> None:
    """What was told is not stored; what the enumerator made of it is."""
    stage = read_to_the_end()

    stage.operator_starts().adopts().adopts()

    assert told == [splits("t", 4), splits("t", 4)]
