"""Rules between hosts that random lives hardly ever need: a test notices each one when broken."""

import contextlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from balanced_source.api import ReaderInfo
from balanced_source.connectors.discovery.reported import take_reported
from balanced_source.connectors.discovery.values import DiscoveryState
from balanced_source.connectors.kafka import EARLIEST
from proof.closures import LIVES
from proof.mutation import Mutant
from support.world import kafka_source

pytestmark = pytest.mark.unit

_FOLDER: Final = Path(__file__).parents[1] / "coordinator"
_RECOVERY: Final = "coordinator.recovery"
_REPORTED: Final = "connectors.discovery.reported"


def counterexamples(name: str) -> ModuleType:
    """Import tests of the coordinator, which are in no package."""
    spec = importlib.util.spec_from_file_location(f"counterexamples_{name}", _FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BETWEEN: Final = counterexamples("test_lost_between_hosts")
FOUND: Final = counterexamples("test_found_by_random_lives")
REBUILT: Final = counterexamples("test_rebuilt_state")
APPLIED: Final = counterexamples("test_applied_again")
LOST: Final = counterexamples("test_lost_checkpoints")


def retained_split_gets_no_owner_back() -> None:
    """A host that retains a split cannot tell which of its readers had it."""
    source = kafka_source("c")
    split = source.create_split(("c", "t", 0), 10, {})
    reader = ReaderInfo(subtask_id=0, retained_splits=(split,))

    after, _ = take_reported(DiscoveryState(), [reader], {}, source, until=0.0)

    assert after.unassigned == {split.split_id: split}
    assert after.preferred == {}


def seeded(name: str, where: str, old: str, new: str) -> Mutant:
    return Mutant(
        name=name, rule="rule 2, exactly once", where=where, old=old, new=new, setting=LIVES[0]
    )


RULES: Final[tuple[tuple[Mutant, Callable[[], Any]], ...]] = (
    (
        seeded(
            "of two hosts that name a split the earlier epoch holds it",
            f"{_RECOVERY}:_with_one_holder",
            "key=lambda name: reports[name].epoch",
            "key=lambda name: -reports[name].epoch",
        ),
        lambda: BETWEEN.test_the_later_epoch_decides_between_two_hosts_that_report_a_split(2, 5, 1),
    ),
    (
        seeded(
            "what comes back from a registering host is dropped by hosts that go on",
            f"{_RECOVERY}:recover",
            "(set() if is_full else gone)",
            "set()",
        ),
        BETWEEN.test_a_position_that_came_back_from_a_new_host_is_still_retained_by_the_previous_one,
    ),
    (
        seeded(
            "a looked-up start beats what hosts report",
            f"{_RECOVERY}:_furthest",
            "if position is None or not is_guess:",
            "if True:",
        ),
        FOUND.test_a_moving_split_keeps_its_position_when_the_state_is_lost,
    ),
    (
        seeded(
            "guesses of a rebuilt state are assigned although hosts have a past",
            f"{_RECOVERY}:recover",
            "if has_history else None",
            "if False else None",
        ),
        lambda: REBUILT.test_partitions_made_while_there_was_no_state_start_at_their_beginning(
            "state", 2, is_taken_back=False
        ),
    ),
    (
        seeded(
            "what hosts retain moves no position of a rebuilt state",
            f"{_RECOVERY}:_reported_ids",
            "(*report.retained, *report.positions)",
            "report.positions",
        ),
        BETWEEN.test_a_split_on_its_way_between_hosts_continues_when_the_state_is_lost,
    ),
    (
        seeded(
            "a host that retains a split gets it back",
            f"{_REPORTED}:_Sorted._wait",
            "has_the_word = is_read and",
            "has_the_word =",
        ),
        retained_split_gets_no_owner_back,
    ),
    (
        seeded(
            "positions of removed scopes that only hosts know are dropped",
            f"{_REPORTED}:_Sorted._keep",
            "if self.source.retention > 0:",
            "if False:",
        ),
        lambda: REBUILT.test_a_returning_cluster_continues_at_its_positions("state", EARLIEST),
    ),
    (
        seeded(
            "scopes that hosts hold count as new after a lost state",
            f"{_REPORTED}:_seen",
            "return first |",
            "return",
        ),
        lambda: REBUILT.test_partitions_made_while_there_was_no_state_start_at_their_beginning(
            "state", 0, is_taken_back=False
        ),
    ),
    (
        seeded(
            "a guess that was taken back counts",
            f"{_RECOVERY}:recover",
            "frozenset(gone.intersection(guesses) | taken)",
            "frozenset(gone.intersection(guesses))",
        ),
        lambda: REBUILT.test_partitions_made_while_there_was_no_state_start_at_their_beginning(
            "state", 2, is_taken_back=True
        ),
    ),
    (
        seeded(
            "hosts of a former life that are not wanted are not asked",
            "coordinator.membership:with_former",
            "if state.has_reports:",
            "if True:",
        ),
        lambda: APPLIED.test_hosts_of_the_former_life_are_asked_before_anything_is_read(
            is_discovered_first=True
        ),
    ),
    (
        seeded(
            "a new host does not wait for the first one",
            f"{_RECOVERY}:waiting_for",
            "or name == first",
            "",
        ),
        lambda: APPLIED.test_a_new_host_reads_nothing_before_the_first_one_has_told_what_it_holds(
            2
        ),
    ),
    (
        seeded(
            "the report that a new driver repeats is not taken in",
            "coordinator.host_reports:HostReports._on_report",
            "if report.former is not None:",
            "if False:",
        ),
        lambda: LOST.test_reading_continues_where_the_former_driver_last_reported(0),
    ),
    (
        seeded(
            "what a host must let go of does not move with its predecessor's report",
            "coordinator.registration:absorbed",
            "return with_reported_positions(state, {name: report})",
            "return state",
        ),
        lambda: LOST.test_a_split_on_its_way_to_another_host_starts_where_it_was(
            LOST.was_taken_away_before, goes_back=False
        ),
    ),
)
"""A seeded bug for each rule, and the test that notices it."""


@pytest.mark.parametrize(("mutant", "check"), RULES, ids=[mutant.name for mutant, _ in RULES])
def test_a_broken_rule_is_noticed(mutant: Mutant, check: Callable[[], Any]) -> None:
    check()

    with mutant.applied(), contextlib.suppress(AssertionError, LookupError):
        check()
        pytest.fail(f"nobody notices: {mutant.name}")
