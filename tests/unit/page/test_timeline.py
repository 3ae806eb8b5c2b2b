"""The newest epochs: what moved, why, and when it was adopted."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.documents.assignment import Assignment
from balanced_source_operator.page.timeline import ENTRIES, SHOWN, Timeline

A, B, C = ("main", "orders", 0), ("main", "orders", 1), ("main", "bills", 0)
FIRST = Assignment(epoch=3, parallelism=2, incarnations={"0": 1}, owners={A: 0, B: 1})


def after(**changes: Any) -> Any:
    """The entry of an assignment that follows the first one."""
    timeline = Timeline()
    timeline.take(FIRST, 3, 10.0)
    timeline.take(replace(FIRST, **{"epoch": 4, **changes}), 3, 20.0)
    return timeline.entries[0]


def test_the_timeline_begins_with_the_first_epoch_it_sees() -> None:
    timeline = Timeline()

    assert timeline.take(FIRST, None, 10.0)
    entry = timeline.entries[0]
    assert (entry.epoch, entry.readers, entry.splits, entry.moves) == (3, 2, 2, ())
    assert "earlier epochs are not known" in entry.why


@pytest.mark.parametrize("nothing", [None, replace(FIRST, epoch=0, owners={})])
def test_before_the_first_epoch_there_is_nothing(nothing: Assignment | None) -> None:
    timeline = Timeline()

    assert not timeline.take(nothing, None, 1.0)
    assert timeline.entries == ()


def test_moves_are_counted_and_named() -> None:
    entry = after(parallelism=3, owners={A: 2, C: 1})

    assert (entry.moved, entry.added, entry.removed) == (1, 1, 1)
    assert [(move.split, move.before, move.after) for move in entry.moves] == [
        (C, None, 1),
        (A, 0, 2),
        (B, 1, None),
    ]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"parallelism": 4, "owners": {A: 3, B: 1}}, "Rescaled from 2 to 4 readers"),
        ({"owners": {A: 1, B: 1}}, "Rebalanced"),
        ({"owners": {A: 0, B: 1, C: 0}}, "1 split added in main/bills"),
        ({"owners": {A: 0}}, "1 split removed, finished or revoked in main/orders"),
        ({"incarnations": {"0": 2}}, "A driver started or restarted"),
        ({"incarnations": {"0": 1, "1": 1}}, "Hosts joined or left"),
        (
            {"incarnations": {"0": 1, "1": 1}, "idle_hosts": frozenset({"1"})},
            "A driver started or restarted",
        ),
        ({"lineage": 2, "owners": {A: 1, B: 1}}, "The enumerator's state was rebuilt"),
        ({"settings": {"kafka": {}}}, "No split moved: settings or start positions changed"),
        ({"epoch": 6, "owners": {A: 1, B: 1}}, "Rebalanced; epochs 4 to 6 in one step"),
        (
            {"parallelism": 1, "owners": {A: 0, B: 0, C: 0}},
            "Rescaled from 2 to 1 reader; 1 split added in main/bills",
        ),
    ],
)
def test_why(changes: dict[str, Any], why: str) -> None:
    assert after(**changes).why == why


def test_many_topics_are_not_all_named() -> None:
    owners = {**FIRST.owners, **{("main", f"t{number}", 0): 0 for number in range(5)}}

    assert after(owners=owners).why == "5 splits added in main/t0, main/t1, main/t2 and 2 more"


def test_an_epoch_is_adopted_when_all_hosts_have_acknowledged_it() -> None:
    timeline = Timeline()
    timeline.take(FIRST, 2, 10.0)
    assert timeline.entries[0].adopted_at is None
    assert timeline.take(FIRST, 3, 12.0)
    assert not timeline.take(FIRST, 3, 14.0)

    assert timeline.entries[0].adopted_at == 12.0


def test_memory_is_bounded() -> None:
    timeline = Timeline()
    for epoch in range(1, 3 * ENTRIES):
        owners = {("c", "t", number): epoch % 2 for number in range(10 * SHOWN)}
        timeline.take(Assignment(epoch=epoch, parallelism=2, owners=owners), None, 0.0)

    assert len(timeline.entries) == ENTRIES
    assert {len(entry.moves) for entry in timeline.entries} == {SHOWN}
    assert {entry.moved for entry in timeline.entries} == {10 * SHOWN}
    assert timeline.entries[0].epoch == 3 * ENTRIES - 1
