"""Splits with a stop that are deleted before they were read to it."""

from typing import Any

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.discovery import Discovered, DiscoveringSplitEnumerator
from balanced_source.coordinator import CoordinatorState, ReportFact
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.errors import RefusedDiscoveryError
from balanced_source.reasons import Reason
from support.tapes import SHELF, ListTapes, TapeSource, TapeSplit

TAPE: SplitId = (SHELF, "a")


class Life:
    """A tape that was found, with its enumerator."""

    def __init__(self, tape: TapeSplit, *, may_lose: bool = False) -> None:
        self.context: CoordinatorContext[Any] = CoordinatorContext(CoordinatorState())
        source = TapeSource(may_lose=may_lose)
        self.enumerator: DiscoveringSplitEnumerator[TapeSplit]
        self.enumerator = source.create_enumerator(self.context)
        self.enumerator.start()
        self.enumerator.add_splits_back([tape], 0)

    def lists(self, *split_ids: SplitId, times: int = 2) -> None:
        for _ in range(times):
            number = self.enumerator.transient.rounds[SHELF]
            answer = Discovered(split_ids=frozenset(split_ids))
            self.enumerator.handle_discovery(ListTapes(scope=SHELF, round=number), answer)

    @property
    def is_held(self) -> bool:
        return TAPE in self.enumerator.snapshot_state().unassigned

    @property
    def facts(self) -> list[ReportFact]:
        return [e for e in self.context.turn.effects if isinstance(e, ReportFact)]


def test_it_stays_and_is_a_problem_until_someone_decides() -> None:
    life = Life(TapeSplit(name="a", next=30, stop=500))

    life.lists(times=3)

    assert life.is_held
    problem = life.enumerator.problems()[SHELF]
    assert isinstance(problem, RefusedDiscoveryError)
    assert problem.reason == Reason.SPLITS_LOST
    assert str(problem).startswith("1 split, shelf/a (30 to 500): deleted before")


def test_the_problem_is_over_when_it_is_there_again() -> None:
    life = Life(TapeSplit(name="a", next=30, stop=500))

    life.lists(times=3)
    life.lists(TAPE, times=1)

    assert life.is_held
    assert not life.enumerator.problems()


def test_it_goes_with_a_warning_if_the_source_may_lose() -> None:
    life = Life(TapeSplit(name="a", next=30, stop=500), may_lose=True)

    life.lists()

    assert not life.is_held
    assert not life.enumerator.problems()
    (told,) = [fact for fact in life.facts if fact.warning]
    assert told.reason == Reason.RECORDS_GONE
    assert "shelf/a (30 to 500): deleted before" in told.message


@pytest.mark.parametrize("tape", [TapeSplit(name="a", next=500, stop=500), TapeSplit(name="a")])
def test_a_split_that_is_read_or_has_no_stop_goes_without_a_problem(tape: TapeSplit) -> None:
    life = Life(tape)

    life.lists()

    assert not life.is_held
    assert not life.enumerator.problems()
    assert [fact.reason for fact in life.facts] == [Reason.SPLITS_REMOVED]
