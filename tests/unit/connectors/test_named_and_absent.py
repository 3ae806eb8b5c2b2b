"""A source that ends waits for what the user names and what does not exist yet."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import pytest

from balanced_source.api import SplitId
from balanced_source.connectors.discovery import Discovered, DiscoveringSplitEnumerator
from balanced_source.connectors.discovery.values import TransientState
from balanced_source.coordinator import CoordinatorState
from balanced_source.coordinator.context import CoordinatorContext
from support.tapes import SHELF, ListTapes, TapeSource, TapeSplit

A: Final[SplitId] = (SHELF, "a")
B: Final[SplitId] = (SHELF, "b")


class Life:
    """A source that ends, of tapes that the user names one by one."""

    def __init__(self) -> None:
        self.source = TapeSource(is_bounded=True, discovery_interval=None)
        self.context: CoordinatorContext[Any] = CoordinatorContext(CoordinatorState())
        self.enumerator: DiscoveringSplitEnumerator[TapeSplit]
        self.enumerator = self.source.create_enumerator(self.context)
        self.enumerator.start()

    def lists(self, *tapes: SplitId, absent: Iterable[SplitId] = ()) -> None:
        number = self.enumerator.transient.rounds[SHELF]
        answer = Discovered(split_ids=frozenset(tapes), absent=frozenset(absent))
        self.enumerator.handle_discovery(ListTapes(scope=SHELF, round=number), answer)
        for call in self.enumerator.transient.look_ups:
            found = [TapeSplit(name=str(s[1]), next=9, stop=9) for s in call.split_ids]
            self.enumerator.handle_initialized(call, found)

    def reads_all(self) -> None:
        self.enumerator.handle_finished(list(self.enumerator.state.unassigned))

    @property
    def is_over(self) -> bool:
        return self.enumerator.is_finished()


def test_it_ends_when_all_that_is_named_was_read() -> None:
    life = Life()
    life.lists(A, B)
    assert not life.is_over

    life.reads_all()

    assert life.is_over


@pytest.mark.parametrize("there", [(), (A,)], ids=["nothing is there", "another one is there"])
def test_it_waits_for_what_is_named_and_reads_it_when_it_is_there(
    there: tuple[SplitId, ...],
) -> None:
    life = Life()
    life.lists(*there, absent=[B])
    life.reads_all()
    assert not life.is_over

    life.lists(*there, B)
    life.reads_all()

    assert life.is_over


def test_what_was_read_and_is_deleted_then_is_not_waited_for() -> None:
    life = Life()
    life.lists(A, B)
    life.reads_all()

    life.lists(A, absent=[B])
    life.lists(A, absent=[B])

    assert life.is_over


def test_what_was_there_once_is_not_waited_for_again() -> None:
    life = Life()
    life.lists(A, absent=[B])
    life.lists(A, B)
    life.reads_all()
    life.enumerator.state = replace(life.enumerator.state, unassigned={}, finished=frozenset())

    life.lists(A, absent=[B])

    assert life.enumerator.transient.awaited[SHELF] == frozenset()


def test_a_changed_question_is_asked_from_the_start() -> None:
    transient = TransientState().awaiting("one", [A]).awaiting("two", [B])

    assert transient.asked_otherwise(frozenset({"two"})).awaited == {"two": frozenset({B})}
    assert transient.within(frozenset({"one"}), lambda s: str(s[0])).awaited == {
        "one": frozenset({A})
    }


def test_a_source_without_any_split_waits_where_nothing_matches() -> None:
    life = Life()
    life.lists(absent=[()])
    assert not life.is_over

    life.lists(A)
    life.reads_all()

    assert life.is_over
