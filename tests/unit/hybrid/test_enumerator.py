"""What the enumerator of a hybrid source says and counts, and which part gets what."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from balanced_source.api import Json, SourceEvent, SwitchPosition
from balanced_source.connectors.hybrid import HybridSource, checked_hybrid
from balanced_source.connectors.hybrid.enumerator import HybridSplitEnumerator
from balanced_source.connectors.hybrid.values import HybridSplit, HybridState
from balanced_source.connectors.pull import PullState
from balanced_source.coordinator import CoordinatorState, ExecuteCall, ReportFact
from balanced_source.coordinator.context import CoordinatorContext
from support.hybrid_world import TIME, MeasuredLists, answer, two_parts
from support.pull_source import NumberLists, Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetLists(MeasuredLists):
    """Lists that are measured by offsets."""

    def switch_position(self, state: PullState[Numbers]) -> SwitchPosition:
        return SwitchPosition(offsets={("orders", 0): 5, ("orders", 1): 7})


def parts(first: NumberLists, *, is_measured: bool = True) -> HybridSource:
    following = (MeasuredLists(count=1, length=0), TIME if is_measured else None)
    return checked_hybrid([(first, None), following], field="parts")


def enumerator_of(source: HybridSource, state: HybridState | None = None) -> HybridSplitEnumerator:
    return HybridSplitEnumerator(CoordinatorContext(CoordinatorState()), source, state)


def facts_of_the_switch(source: HybridSource) -> list[str]:
    """Return what is said when the first part, which is empty, has been listed."""
    enumerator = enumerator_of(source)
    enumerator.start()
    context: Any = enumerator.context
    (call,) = [effect for effect in context.turn.effects if isinstance(effect, ExecuteCall)]
    enumerator.handle_part_call(call.call, answer(call.call))  # type: ignore[arg-type]
    return [effect.message for effect in context.turn.effects if isinstance(effect, ReportFact)]


@pytest.mark.parametrize(
    ("source", "where"),
    [
        (parts(MeasuredLists(count=0)), "behind 3 ms since the epoch"),
        (parts(OffsetLists(count=0)), "behind the offsets of 2 partitions"),
        (parts(NumberLists(count=0), is_measured=False), "where its own settings say"),
    ],
)
def test_a_switch_says_which_part_is_read_from_where(source: HybridSource, where: str) -> None:
    former, name = source.names

    assert facts_of_the_switch(source) == [
        f"Part {former} is read to its end. Reading continues with part {name}, {where}"
    ]


def in_second_part(leftovers: int, pending: int) -> HybridSplitEnumerator:
    """Return an enumerator that reads the second part, while splits of the first came back."""
    source = two_parts(5, 5)
    first, second = source.names
    left = [HybridSplit(part=first, split=Numbers(name=f"list-{n}")) for n in range(leftovers)]
    waiting = [Numbers(name=f"list-{n}") for n in range(pending)]
    state = HybridState(
        part=second,
        state=PullState(pending={split.split_id: split for split in waiting}, is_listed=True),
        leftovers={split.split_id: split for split in left},
    )
    return enumerator_of(source, state)


def test_splits_of_a_former_part_that_came_back_are_pending_as_well() -> None:
    assert in_second_part(leftovers=2, pending=3).pending_splits() == 5
    assert in_second_part(leftovers=2, pending=0).pending_splits() == 2


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (lambda name: {"part": name, "payload": 7}, [SourceEvent(name="ready", payload=7)]),
        (lambda _: {"part": "another", "payload": 7}, []),
        (lambda _: "no part at all", []),
    ],
    ids=["its own", "another part's", "malformed"],
)
def test_events_of_readers_reach_the_part_that_they_name(
    payload: Any, expected: list[SourceEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    enumerator = in_second_part(leftovers=0, pending=1)
    received: list[SourceEvent] = []
    monkeypatch.setattr(
        enumerator.part, "handle_source_event", lambda _, event: received.append(event)
    )
    sent: Json | Mapping[str, Json] = payload(enumerator.name)

    enumerator.handle_source_event(0, SourceEvent(name="ready", payload=sent))

    assert received == expected


def test_what_readers_ask_for_adds_up_over_the_parts() -> None:
    enumerator = in_second_part(leftovers=0, pending=0)

    enumerator.handle_split_requests({0: 2, 1: 1}, None)
    enumerator.handle_split_requests({0: 3}, None)

    assert enumerator.asked == {0: 5, 1: 1}
