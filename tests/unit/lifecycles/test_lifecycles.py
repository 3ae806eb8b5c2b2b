"""The tables of the protocol's life cycles: complete, true, and drawn as they are."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import ContractViolationError
from balanced_source.host import ReaderHost
from balanced_source.lifecycles import (
    HOST,
    INCARNATION,
    LIFECYCLES,
    HostEvent,
    HostPhase,
    Lifecycle,
)
from proof import page
from proof.explorer import Explorer
from proof.values import Budget, Setting

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("life", LIFECYCLES, ids=lambda life: life.name)
def test_every_phase_can_be_reached(life: Lifecycle[Any, Any]) -> None:
    reached = {life.first}
    for _ in life.moves:
        reached |= {target for (phase, _), target in life.moves.items() if phase in reached}

    assert reached == set(type(life.first))


@pytest.mark.parametrize("life", LIFECYCLES, ids=lambda life: life.name)
def test_every_phase_has_a_meaning(life: Lifecycle[Any, Any]) -> None:
    told = page.diagram(life)

    assert all(f"- **{phase.value}**: " in told for phase in type(life.first))


def test_a_transition_outside_of_the_table_is_impossible() -> None:
    assert not HOST.allows(HostPhase.EXPECTED, HostEvent.GONE)
    with pytest.raises(
        ContractViolationError, match="'its pods are gone' cannot happen while Expected"
    ):
        HOST.after(HostPhase.EXPECTED, HostEvent.GONE)


@contextmanager
def recorded() -> Iterator[set[tuple[str, Any, Any]]]:
    """All rows that the code looks up."""
    used: set[tuple[str, Any, Any]] = set()
    look_up = Lifecycle.after

    def after(life: Lifecycle[Any, Any], phase: Any, event: Any) -> Any:
        used.add((life.name, phase, event))
        return look_up(life, phase, event)

    with patch.object(Lifecycle, "after", after):
        yield used


def test_the_tables_that_decide_have_no_dead_row() -> None:
    """Exploration of small worlds uses every row.

    Left out are those of lost states, for which there are closures of their own, and heartbeats
    behind the gate.
    """
    small = Setting(name="small", splits=1, records=1)
    gate = replace(small, hosts=("0", "1"), parallelism=2, are_drivers_early=True)
    budgets = (Budget(crashes=2), Budget(zombies=1), Budget(crashes=1, old_news=1))
    settings = [
        *(replace(small, budget=budget) for budget in budgets),
        replace(gate, budget=Budget(crashes=1)),
    ]
    with recorded() as used:
        for setting in settings:
            Explorer(setting, limit=6_000).run()
        host, nothing = ReaderHost(incarnation=1), StreamOffset()
        host.on_fenced().on_fenced()  # it learns it twice, before it could register
        # Spark asks again while nothing is assigned
        host.on_committed(nothing).on_committed(nothing)

    unused = {
        (*row,)
        for life in (HOST, INCARNATION)
        for row in life.moves
        if (life.name, *row) not in used
    }
    heartbeat = (HostPhase.RECOVERING, HostEvent.REPORTED)
    assert {row for row in unused if row[1].name != "FORGOTTEN"} <= {heartbeat}


def test_the_page_is_up_to_date() -> None:
    text = page.PAGE.read_text()

    assert page.written(text) == text, "run `make generate`"


def test_a_page_without_a_marker_is_refused() -> None:
    with pytest.raises(ValueError, match="life of a split"):
        page.written("# nothing")
