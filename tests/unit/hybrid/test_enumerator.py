"""What the enumerator of a hybrid source says and counts, and which part gets what."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from balanced_source.api import (
    Boundedness,
    Json,
    ReaderInfo,
    RebalanceCause,
    SourceEvent,
    SplitId,
    SwitchPosition,
)
from balanced_source.connectors.hybrid import HybridSource, checked_hybrid
from balanced_source.connectors.hybrid.enumerator import HybridSplitEnumerator
from balanced_source.connectors.hybrid.state import HybridState
from balanced_source.connectors.hybrid.values import HybridSplit
from balanced_source.connectors.pull import PullState
from balanced_source.coordinator import CoordinatorState, ExecuteCall, HostState, ReportFact
from balanced_source.coordinator.context import CoordinatorContext
from balanced_source.errors import ContractViolationError, InvalidSpecError
from support.hybrid_world import TIME, AssignedLists, MeasuredLists, answer, two_parts
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


def test_the_stage_is_the_part_that_is_read() -> None:
    first, second = two_parts(1, 1).names
    assert enumerator_of(two_parts(1, 1)).stage == first
    assert in_second_part(leftovers=0, pending=0).stage == second


def test_what_readers_ask_for_adds_up_over_the_parts() -> None:
    enumerator = in_second_part(leftovers=0, pending=0)

    enumerator.handle_split_requests({0: 2, 1: 1}, None)
    enumerator.handle_split_requests({0: 3}, None)

    assert enumerator.asked == {0: 5, 1: 1}


def with_readers(
    enumerator: HybridSplitEnumerator, *readers: ReaderInfo[HybridSplit], **changes: Any
) -> CoordinatorContext[Any]:
    """Two readers have registered, and the enumerator has not been called since."""
    context: Any = enumerator.context
    context.state = CoordinatorState(parallelism=2, hosts={"0": HostState()}, **changes)
    known: dict[int, ReaderInfo[HybridSplit]] = {n: ReaderInfo(subtask_id=n) for n in (0, 1)}
    context.set_readers({**known, **{reader.subtask_id: reader for reader in readers}})
    return context


def former(enumerator: HybridSplitEnumerator, number: int, *, at: int = 0) -> HybridSplit:
    part = enumerator.source.names[0]
    return HybridSplit(part=part, split=Numbers(name=f"list-{number}", number=at, stop=2))


def present(enumerator: HybridSplitEnumerator, number: int, *, at: int = 0) -> HybridSplit:
    return HybridSplit(
        part=enumerator.name, split=Numbers(name=f"list-{number}", number=at, stop=2)
    )


def test_a_rebalance_gives_out_what_came_back_of_all_parts() -> None:
    """The readers with the fewest splits get it, whichever part these are of."""
    enumerator = in_second_part(leftovers=2, pending=0)
    owned = present(enumerator, 7)
    context = with_readers(enumerator, owners={owned.split_id: 0}, splits={owned.split_id: owned})
    back = present(enumerator, 8, at=1)
    enumerator.add_splits_back([back], 0)

    enumerator.rebalance(RebalanceCause.RESCALE)

    owners = {s: o for s, o in context.current_assignments().items() if s != owned.split_id}
    assert owners[back.split_id] == 1
    assert sorted(owners.values()) == [0, 1, 1]
    assert enumerator.pending_splits() == 0


def test_a_split_of_a_former_part_is_read_on_where_its_reader_has_let_go() -> None:
    enumerator = in_second_part(leftovers=1, pending=1)
    context = with_readers(enumerator)
    own = present(enumerator, 0, at=1)

    enumerator.handle_revoked([former(enumerator, 0, at=1), former(enumerator, 5), own])

    assert context.state.splits == {former(enumerator, 0).split_id: former(enumerator, 0, at=1)}, (
        "the other one is not known"
    )
    assert enumerator.part.snapshot_state().pending == {own.split_id[1:]: own.split}
    before = enumerator.part.snapshot_state()
    enumerator.handle_revoked([former(enumerator, 5)])
    assert enumerator.part.snapshot_state() is before


def test_the_last_split_of_a_part_that_comes_back_read_begins_the_next_part() -> None:
    source = two_parts(5, 5)
    first, second = source.names
    split = Numbers(name="list-0", stop=2)
    waiting = PullState(pending={split.split_id: split}, is_listed=True)
    enumerator = enumerator_of(source, HybridState(part=first, state=waiting))

    enumerator.handle_revoked([HybridSplit(part=first, split=split.at(2))])
    assert enumerator.stage == second


def test_of_splits_that_come_back_only_unread_ones_are_read_again() -> None:
    enumerator = in_second_part(leftovers=0, pending=0)
    read, unread = former(enumerator, 0, at=2), former(enumerator, 1, at=1)
    kept = frozenset({read.split_id, unread.split_id})
    context = with_readers(enumerator, retained=kept)

    enumerator.add_splits_back([read, unread, present(enumerator, 2)], 0)

    assert enumerator.leftovers == {unread.split_id: unread}
    assert enumerator.pending_splits() == 2
    assert context.state.retained == {unread.split_id}


def test_splits_of_a_former_part_that_come_back_are_stored() -> None:
    """Another operator would not know of them, and their records would never be read."""
    enumerator = in_second_part(leftovers=0, pending=1)
    before = enumerator.snapshot_state()
    back = former(enumerator, 1, at=1)

    enumerator.add_splits_back([back], 0)

    assert before.leftovers == {}
    assert enumerator.snapshot_state().leftovers == {back.split_id: back}


@pytest.mark.parametrize("has_registered", [True, False])
def test_a_lost_state_continues_with_the_part_that_readers_hold(*, has_registered: bool) -> None:
    """Splits of the first part that readers still keep were read."""
    enumerator = enumerator_of(two_parts(5, 5))
    enumerator.start()
    second = enumerator.source.names[1]
    held = HybridSplit(part=second, split=Numbers(name="list-0", number=1))
    kept = former(enumerator, 3)
    reader = ReaderInfo(subtask_id=0, reported_splits=(held,), retained_splits=(kept,))
    context = with_readers(enumerator, reader, retained=frozenset({kept.split_id}))

    if has_registered:
        enumerator.add_readers([0])
    else:
        enumerator.handle_history([])

    assert (enumerator.name, enumerator.leftovers) == (second, {})
    assert context.state.retained == frozenset()
    (warning,) = [e for e in context.turn.effects if isinstance(e, ReportFact)]
    assert warning.message.startswith(f"The stored state was lost while part {second} was read")


@pytest.mark.parametrize(
    ("first", "held", "is_reported"),
    [
        (AssignedLists(count=1), False, True),
        (AssignedLists(count=1), True, False),
        (NumberLists(count=1), False, False),
    ],
    ids=["nothing is held", "something is held", "nothing is given out"],
)
def test_a_lost_state_is_reported_if_no_reader_holds_a_split(
    first: Any, *, held: bool, is_reported: bool
) -> None:
    """Their first part may have been read, and they hold nothing of the next one yet."""
    source = checked_hybrid([(first, None), (NumberLists(count=1), None)], field="parts")
    enumerator = enumerator_of(source)
    enumerator.start()
    own = HybridSplit(part=enumerator.name, split=Numbers(name="list-0", stop=2))
    context = with_readers(
        enumerator, ReaderInfo(subtask_id=0, reported_splits=(own,) if held else ())
    )
    before = len(context.turn.effects)

    enumerator.handle_history([])

    facts = [e.message for e in context.turn.effects[before:] if isinstance(e, ReportFact)]
    assert [f"whether part {enumerator.name} was read to its end" in text for text in facts] == (
        [True] * is_reported
    )


def test_what_readers_hold_of_an_earlier_part_is_read_beside_the_present_one() -> None:
    """An older Spark checkpoint: records of the first part are not delivered yet."""
    enumerator = in_second_part(leftovers=0, pending=0)
    unread, read, owned = (
        former(enumerator, 0, at=1),
        former(enumerator, 1, at=2),
        former(enumerator, 2),
    )
    kept = former(enumerator, 3)
    reader = ReaderInfo(
        subtask_id=1, reported_splits=(unread, read, owned), retained_splits=(kept, unread)
    )
    retained = frozenset(s.split_id for s in (unread, read, kept))
    context = with_readers(
        enumerator,
        reader,
        retained=retained,
        owners={owned.split_id: 0},
        splits={owned.split_id: owned},
    )

    enumerator.add_readers([1])

    assert context.current_assignments() == {owned.split_id: 0, unread.split_id: 1}
    assert context.state.splits[unread.split_id] == unread
    assert context.state.retained == frozenset()
    assert context.state.reclaimed == {unread.split_id}, "a host may have read further"


@pytest.mark.parametrize("parts_left", [0, 1])
def test_what_came_back_of_a_former_part_is_read_before_the_end(parts_left: int) -> None:
    """Neither does the source end, nor does another part begin, while a reader has it."""
    lists = [(MeasuredLists(count=1), None)] * (2 + parts_left)
    source = checked_hybrid(lists, field="parts")
    enumerator = enumerator_of(
        source, HybridState(part=source.names[1], state=PullState(is_listed=True))
    )
    unread = former(enumerator, 0, at=1)
    owners, splits = {unread.split_id: 0}, {unread.split_id: unread}
    context = with_readers(enumerator, owners=owners, splits=splits)

    enumerator.rebalance(RebalanceCause.RESCALE)
    assert (enumerator.is_finished(), enumerator.stage) == (False, source.names[1])

    enumerator.handle_finished([unread.split_id])
    assert context.current_assignments() == {}
    assert (enumerator.is_finished(), enumerator.stage) == (not parts_left, source.names[-1])


def test_only_what_readers_did_not_get_is_asked_for_in_the_next_part() -> None:
    enumerator = in_second_part(leftovers=0, pending=2)
    with_readers(enumerator)

    enumerator.handle_split_requests({0: 1, 1: 3}, None)
    assert enumerator.asked == {1: 2}

    enumerator.handle_renumbered({1: 0})
    assert enumerator.asked == {0: 2}
    enumerator.add_readers([0])
    assert enumerator.asked == {}, "a new incarnation asks again"


def test_a_reader_that_is_there_no_more_asks_for_nothing() -> None:
    enumerator = in_second_part(leftovers=0, pending=0)
    enumerator.handle_split_requests({0: 1, 1: 3}, None)

    enumerator.handle_renumbered({1: 0})

    assert enumerator.asked == {0: 3}


def test_only_readers_that_are_there_ask_the_next_part() -> None:
    """Fewer readers may be left since they asked, and a part gets no splits for the others."""
    enumerator = enumerator_of(two_parts(0, 3))
    enumerator.start()
    context = with_readers(enumerator)
    enumerator.handle_split_requests({0: 1, 1: 1}, None)
    context.set_readers({0: ReaderInfo(subtask_id=0)})
    (call,) = (pending.call for pending in context.calls.values())

    enumerator.handle_part_call(call, answer(call))  # type: ignore[arg-type]

    assert enumerator.stage == enumerator.source.names[1]
    assert enumerator.asked == {0: 1}


@pytest.mark.parametrize("wanting", [0, 1])
def test_loads_are_observed_if_one_part_wants_them(wanting: int) -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Wanting(NumberLists):
        wants_loads = True

    of_each = [Wanting() if part == wanting else NumberLists() for part in (0, 1)]
    of_none = checked_hybrid([(NumberLists(), None)] * 2, field="parts")

    assert checked_hybrid([(of_each[0], None), (of_each[1], None)], field="parts").wants_loads
    assert not of_none.wants_loads


def test_a_hybrid_source_looks_ahead_as_far_as_its_part_that_looks_furthest() -> None:
    parts_of_both = [(NumberLists(ahead=3), None), (AssignedLists(count=1), None)]

    assert checked_hybrid(parts_of_both, field="parts").look_ahead == 3


@pytest.mark.parametrize("split_id", [("other", "lists", "list-0"), ("lists", "list-0")])
def test_a_split_of_no_part_is_a_mistake(split_id: SplitId) -> None:
    with pytest.raises(ContractViolationError, match="is not a split of the parts"):
        two_parts(1, 1).create_split(split_id, 0, {"stop": 1})


def test_the_parts_of_a_running_source_stay() -> None:
    source = two_parts(1, 1)
    enumerator = enumerator_of(source)
    three = checked_hybrid([(NumberLists(), None)] * 3, field="parts")

    for other in (three, NumberLists()):
        with pytest.raises(ContractViolationError, match="order of the parts cannot change"):
            enumerator.handle_source_change(other)  # type: ignore[arg-type]


def test_positions_of_the_present_part_that_readers_keep_are_left_to_it() -> None:
    enumerator = in_second_part(leftovers=0, pending=1)
    kept, old = present(enumerator, 0, at=1), former(enumerator, 3)
    reader = ReaderInfo(subtask_id=0, retained_splits=(kept, old))
    retained = frozenset({kept.split_id, old.split_id})
    context = with_readers(enumerator, reader, retained=retained)

    enumerator.add_readers([0])

    assert context.state.retained == {kept.split_id}


def test_the_present_part_hears_of_new_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    enumerator = in_second_part(leftovers=0, pending=1)
    with_readers(enumerator, ReaderInfo(subtask_id=3))
    heard: list[Sequence[int]] = []
    monkeypatch.setattr(enumerator.part, "add_readers", heard.append)

    enumerator.add_readers([3])

    assert heard == [[3]]


def test_a_part_hears_of_guesses_under_its_own_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    enumerator = in_second_part(leftovers=0, pending=1)
    with_readers(enumerator)
    heard: list[Collection[SplitId]] = []
    monkeypatch.setattr(enumerator.part, "handle_history", heard.append)

    enumerator.handle_history([present(enumerator, 0).split_id, former(enumerator, 1).split_id])

    assert heard == [{("lists", "list-0")}]


@pytest.mark.parametrize(("which", "hears"), [(present, True), (former, False)])
def test_only_a_copy_of_the_same_part_is_an_older_checkpoint_of_it(
    monkeypatch: pytest.MonkeyPatch, which: Callable[..., Any], *, hears: bool
) -> None:
    """What was read of later parts says nothing about an earlier one, and the other way round."""
    enumerator = in_second_part(leftovers=0, pending=1)
    with_readers(enumerator, ReaderInfo(subtask_id=1, reported_splits=(which(enumerator, 0),)))
    heard: list[bool] = []
    monkeypatch.setattr(enumerator.part, "handle_older_checkpoint", lambda: heard.append(True))

    enumerator.handle_older_checkpoint()

    assert heard == ([True] if hears else [])


class Endless(NumberLists):
    boundedness = Boundedness.CONTINUOUS_UNBOUNDED


@pytest.mark.parametrize(
    ("sources", "says"),
    [
        ([(NumberLists(), None)], "parts: a hybrid source has at least two parts"),
        (
            [(NumberLists(), None), (Endless(), None), (NumberLists(), None)],
            r"parts\[1\]: part .* never ends, so part .* would never start",
        ),
        (
            [(NumberLists(), None), (two_parts(1, 1), None)],
            r"parts\[1\]: a part cannot be a hybrid source itself",
        ),
        (
            [(MeasuredLists(), TIME), (NumberLists(), None)],
            r"parts\[0\]: the first part has no part before it",
        ),
        (
            [(MeasuredLists(), None), (NumberLists(), TIME)],
            r"parts\[1\]: part .* cannot start at a position that was read",
        ),
        (
            [(NumberLists(), None), (MeasuredLists(), TIME)],
            r"parts\[1\]: part .* cannot measure where part .* starts",
        ),
    ],
)
def test_parts_that_cannot_be_combined_are_named(sources: Any, says: str) -> None:
    with pytest.raises(InvalidSpecError, match=says):
        checked_hybrid(sources, field="parts")


def test_the_last_part_may_be_endless() -> None:
    source = checked_hybrid([(NumberLists(), None), (Endless(), None)], field="parts")

    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert two_parts(1, 1).boundedness is Boundedness.BOUNDED


def test_two_parts_of_one_name_are_refused() -> None:
    """Splits of one would be taken for those of the other."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Second(NumberLists):
        @property
        def kind(self) -> str:
            return f"{NumberLists(count=0).kind}-1"

    one, two, other = (NumberLists(count=1), None), (NumberLists(count=1), None), Second(count=1)

    with pytest.raises(InvalidSpecError, match="two parts would be called -1, which"):
        checked_hybrid([one, two, (other, None)], field="parts")
    assert checked_hybrid([one, (other, None), two], field="parts").names == ("-0", "-1", "-2")
