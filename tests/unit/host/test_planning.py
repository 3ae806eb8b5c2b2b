"""Planning works on columns; here it is compared with looking each split up in each table.

A replay must read the same ranges with the same owners, whatever the order of the tables is.
"""

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balanced_source.api import IDENTITY, SplitId
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host import SplitRange, plan
from balanced_source.host.micro_batch import advance
from balanced_source.host.planning import PlanOnce, ReaderPlan
from balanced_source.host.ranges import ranges_of
from balanced_source.host.table_columns import column
from balanced_source_spark.partition import ReaderPartition

READERS = (0, 1, 2)
SPLITS: list[SplitId] = [("c", topic, number) for topic in "ba" for number in range(4)]

position = st.one_of(st.none(), st.integers(0, 3))
split_id = st.sampled_from(SPLITS)
numbers = st.dictionaries(split_id, st.integers(0, 3))


@st.composite
def offsets(draw: st.DrawFn) -> tuple[StreamOffset, StreamOffset]:
    """Start and end of a micro-batch, with tables in any order, some of them incomplete."""
    split_ids = draw(st.permutations(SPLITS))
    begin = StreamOffset(positions={s: draw(position) for s in split_ids})
    held = draw(st.lists(split_id, unique=True))
    end = StreamOffset(
        readers=READERS,
        positions={s: draw(position) for s in held},
        owners={s: draw(st.sampled_from(READERS)) for s in draw(st.permutations(SPLITS))},
        attributes={s: {IDENTITY: f"id-{s}"} for s in draw(st.lists(split_id, unique=True))},
        terms=draw(numbers),
    )
    return begin, end


def planned(begin: StreamOffset, end: StreamOffset) -> tuple[ReaderPlan, ...]:
    """What `plan` returns, split by split."""
    found: dict[int, list[SplitRange]] = {reader: [] for reader in end.readers}
    for split in sorted(end.positions):
        start, to = begin.positions[split], end.positions[split]
        if (start or 0) < (to or 0):
            identity: Any = end.attributes.get(split, {}).get(IDENTITY)
            term = end.terms.get(split)
            found[end.owners[split]].append(
                SplitRange(split_id=split, start=start, end=to, identity=identity, term=term)
            )
    if not any(found.values()):
        return ()
    return tuple(ReaderPlan(subtask_id=r, ranges=tuple(ranges)) for r, ranges in found.items())


@given(offsets())
def test_a_plan_is_that_of_each_split(case: tuple[StreamOffset, StreamOffset]) -> None:
    begin, end = case
    assert plan(begin, end) == planned(begin, end)


@given(offsets(), numbers, numbers)
def test_leaderships_follow_the_splits_that_moved(
    case: tuple[StreamOffset, StreamOffset],
    ends: Mapping[SplitId, int],
    terms: Mapping[SplitId, int],
) -> None:
    base = replace(case[0], terms=case[1].terms)
    moved = {s for s, to in ends.items() if to != (base.positions[s] or 0)}

    found = advance(base, ends, terms=terms).terms

    expected = {s: base.terms[s] for s in ends.keys() & base.terms.keys() - moved}
    assert found == {**expected, **{s: terms[s] for s in moved & terms.keys()}}


def test_a_split_with_records_and_without_an_owner_is_an_error() -> None:
    begin = StreamOffset(positions={SPLITS[0]: 1})
    with pytest.raises(KeyError):
        plan(begin, StreamOffset(readers=READERS, positions={SPLITS[0]: 2}))


@given(numbers, st.lists(split_id, unique=True))
def test_a_column_has_a_value_for_each_split(
    table: Mapping[SplitId, int], split_ids: list[SplitId]
) -> None:
    assert column(table, split_ids) == [table.get(s) for s in split_ids]
    assert column(table, list(table)) == list(table.values())


@given(offsets())
def test_ranges_reach_the_task_as_they_were_planned(
    case: tuple[StreamOffset, StreamOffset],
) -> None:
    for share in plan(*case):
        part = ReaderPartition(subtask_id=share.subtask_id, ranges=share.ranges)
        assert pickle.loads(pickle.dumps(part)).ranges == share.ranges  # noqa: S301


def test_ranges_made_from_columns_are_like_any_others() -> None:
    (found,) = ranges_of([[SPLITS[0]], [1], [2], ["id"], [None]])

    assert found == SplitRange(split_id=SPLITS[0], start=1, end=2, identity="id")
    assert hash(found) == hash(replace(found))
    assert ranges_of([]) == ranges_of([[], [], [], [], []]) == ()


def test_a_micro_batch_is_planned_once() -> None:
    first = StreamOffset(positions={SPLITS[0]: 0}, starts={SPLITS[0]: 0})
    second, third = (
        StreamOffset(readers=READERS, positions={SPLITS[0]: n}, owners={SPLITS[0]: 0})
        for n in (5, 9)
    )
    once = PlanOnce()
    planned = once(first, third)

    assert planned == plan(first, third)
    assert once(first, third) is planned
    assert once(second, third) == plan(second, third) != planned
    assert once(second, second) == plan(second, second)
