"""A hybrid source answers for its parts: the one that a split is of, or all of them."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from balanced_source.api import ANY_SCOPE, Boundedness, Measure, SplitId, SwitchPosition
from balanced_source.connectors.hybrid import HybridSource, checked_hybrid
from balanced_source.connectors.hybrid.values import HybridPart, HybridSplit, PartCall
from balanced_source.errors import (
    ContractViolationError,
    IncompatibleVersionError,
    InvalidSpecError,
    StateError,
)
from support.hybrid_world import TIME, AssignedLists, MeasuredLists, two_parts
from support.pull_source import ListNumbers, NumberLists, Numbers

SPLIT: SplitId = ("lists", "list-0")


@dataclass(frozen=True, slots=True, kw_only=True)
class OddLists(AssignedLists):
    """Lists whose source has other answers than most."""

    kind_name: str = "odd"

    @property
    def kind(self) -> str:
        return self.kind_name

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    @property
    def has_event_times(self) -> bool:
        return False

    @property
    def wants_loads(self) -> bool:
        return True

    def deals_anew(self, split_id: SplitId) -> bool:
        return split_id == SPLIT

    def counts_unread(self, split_id: SplitId) -> bool:
        return split_id != SPLIT

    def why_not_continued(self, split: Any) -> str:
        return f"{split.name} ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endless(AssignedLists):
    """Lists that get more numbers forever."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED


def hybrid(*sources: Any) -> HybridSource:
    return checked_hybrid([(source, None) for source in sources], field="parts")


PLAIN = AssignedLists(count=1)
MIXED = hybrid(PLAIN, OddLists(count=1))
FIRST, SECOND = MIXED.names


def test_each_part_has_its_own_rules_for_its_splits() -> None:
    first, second, other = (FIRST, *SPLIT), (SECOND, *SPLIT), (SECOND, "lists", "list-1")

    assert [MIXED.deals_anew(s) for s in (first, second, other)] == [
        PLAIN.deals_anew(SPLIT),
        True,
        False,
    ]
    assert [MIXED.counts_unread(s) for s in (first, second, other)] == [
        PLAIN.counts_unread(SPLIT),
        False,
        True,
    ]
    for rule in (MIXED.deals_anew, MIXED.counts_unread):
        with pytest.raises(StateError, match="and the source has the parts"):
            rule(("gone", *SPLIT))


def test_a_split_of_a_checkpoint_is_compared_by_its_part() -> None:
    list_0 = Numbers(name="list-0")

    assert MIXED.why_not_continued(HybridSplit(part=FIRST, split=list_0)) == ""
    assert MIXED.why_not_continued(HybridSplit(part=SECOND, split=list_0)) == "list-0 ended"


def test_splits_are_aligned_and_weighed_as_the_parts_need_it() -> None:
    assert (PLAIN.has_event_times, PLAIN.wants_loads) == (True, False)
    assert (MIXED.has_event_times, MIXED.wants_loads) == (False, True)
    assert hybrid(PLAIN, PLAIN).has_event_times
    assert not hybrid(PLAIN, PLAIN).wants_loads
    assert MIXED.has_ending_splits


@pytest.mark.parametrize(("ahead", "found"), [((0, 0), 1), ((3, 1), 3), ((0, 2), 2), ((1, 0), 1)])
def test_readers_look_as_far_ahead_as_the_part_that_needs_most(
    ahead: tuple[int, int], found: int
) -> None:
    assert hybrid(*(NumberLists(ahead=number) for number in ahead)).look_ahead == found


def test_the_last_part_decides_whether_the_source_ends() -> None:
    assert hybrid(PLAIN, PLAIN).boundedness is Boundedness.BOUNDED
    assert hybrid(PLAIN, Endless(count=1)).boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    with pytest.raises(InvalidSpecError, match="never ends") as caught:
        hybrid(PLAIN, Endless(count=1), PLAIN)
    assert caught.value.field == "parts[1]"


def test_a_part_of_parts_is_refused() -> None:
    with pytest.raises(InvalidSpecError, match="cannot be a hybrid source itself") as caught:
        hybrid(PLAIN, MIXED)
    assert caught.value.field == "parts[1]"


def test_two_parts_of_one_name_are_refused() -> None:
    """One kind has the name of another kind with its number."""
    odd = OddLists(count=1, kind_name="x-2")
    twice = OddLists(count=1, kind_name="x")

    with pytest.raises(InvalidSpecError, match="two parts would be called x-2"):
        hybrid(odd, twice, twice)
    assert hybrid(twice, twice, odd).names == ("x-0", "x-1", "x-2"), "another order"


def test_a_split_is_made_by_its_part() -> None:
    made = MIXED.create_split((SECOND, *SPLIT), 1, {"stop": 3})

    assert made == HybridSplit(part=SECOND, split=Numbers(name="list-0", number=1, stop=3))
    with pytest.raises(ContractViolationError, match="is not a split of the parts"):
        MIXED.create_split(("gone", *SPLIT), 1, {"stop": 3})


def test_a_split_of_a_part_is_at_its_end_where_the_part_says_so() -> None:
    split = HybridSplit(part=FIRST, split=Numbers(name="list-0", number=1, stop=3))

    assert (split.split_id, split.position, split.stopping_position) == ((FIRST, *SPLIT), 1, 3)
    assert (split.is_finished, split.at(3).is_finished) == (False, True)
    assert split.at(2) == replace(split, split=Numbers(name="list-0", number=2, stop=3))
    assert split.attributes() == split.split.attributes()


def test_a_call_is_about_what_its_part_asks() -> None:
    listing = ListNumbers(scope="3x1", round=1)

    assert PartCall("part", "kind", "handle", listing).scope == "3x1"


def test_only_what_the_next_part_needs_is_measured() -> None:
    source, position = two_parts(2, 1, length=4), SwitchPosition()

    assert source.measured(0, position, None) == SwitchPosition(time=4)
    unasked = hybrid(*(MeasuredLists(count=2, length=4) for _ in range(2)))
    assert unasked.measured(0, position, None) == SwitchPosition()


def test_what_the_user_says_of_names_wins_over_what_was_stored() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Noted(MeasuredLists):
        """Keeps where it starts."""

        after: SwitchPosition | None = None

        def starting_after(self, position: SwitchPosition) -> Any:
            return replace(self, after=position)

    def started(start: Measure, **known: Any) -> Any:
        parts = [(MeasuredLists(count=1), None), (Noted(count=1), start)]
        source: Any = checked_hybrid(parts, field="parts").started(
            1, SwitchPosition(time=4, meanings=known)
        )
        return source.after

    stored = {"c": {"a": "1"}}
    named = replace(TIME, identities=(("a", "2"),))

    assert started(TIME, **stored) == SwitchPosition(time=4, meanings=stored)
    assert started(TIME, **stored, **{ANY_SCOPE: {"a": "0"}}).meanings == stored, "it was corrected"
    assert started(named, **stored).meanings == {**stored, ANY_SCOPE: {"a": "2"}}


def test_a_part_that_cannot_start_behind_another_one_is_a_mistake() -> None:
    parts = tuple(HybridPart(name=name, source=PLAIN, start=TIME) for name in "ab")

    with pytest.raises(ContractViolationError, match="AssignedLists cannot start where another"):
        HybridSource(parts=parts).started(1, SwitchPosition())


def test_a_newer_state_is_refused() -> None:
    with pytest.raises(IncompatibleVersionError, match="version 2"):
        MIXED.decode_state(2, {})
