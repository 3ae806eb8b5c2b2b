"""An older copy of the state is restored.

No epoch is published twice, and no record is read twice or skipped.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from balanced_source.coordinator import state_codec
from balanced_source.documents import assignment as assignment_document
from balanced_source.documents.assignment import Assignment
from support.stage import Stage, splits
from support.world import UID

T, U = splits("t", 4), splits("u", 3)


def stage_with_history() -> tuple[Stage, str]:
    """A stage that has gone on since its state was copied.

    Other owners, further records, more splits.
    """
    stage = Stage(readers=2, hosts=1).topic("t", 4).running().adopts()
    copy = stage.store.state
    assert copy is not None
    stage.rescales(3).adopts().more(5).adopts()
    stage.topic("u", 3).looks_again().adopts()
    return stage, copy


def restores(stage: Stage, copy: str) -> Stage:
    stage.store.state = copy
    return stage.operator_starts()


def goes_on(stage: Stage) -> None:
    """Everything settles; then the source behaves as if nothing had happened."""
    stage.discovers().adopts().looks_again().adopts()
    stage.rescales(4).adopts().more(3).adopts().adopts()
    assert stage.owners.keys() == {*T, *U}
    assert stage.spread <= 1
    read = stage.drivers["0"].delivered.keys()
    assert read == {(s, o) for s, end in stage.broker.ends.items() for o in range(end)}


def check_epochs(published: list[Assignment]) -> None:
    """An epoch of a lineage has one content, and they only grow."""
    numbers = [(a.lineage, a.epoch) for a in published]
    assert numbers == sorted(numbers)
    decided = {(a.lineage, a.epoch): (a.owners, a.parallelism) for a in published}
    assert all(decided[a.lineage, a.epoch] == (a.owners, a.parallelism) for a in published)


def test_a_published_assignment_that_the_state_does_not_imply_begins_a_new_lineage() -> None:
    stage, copy = stage_with_history()
    before = stage.assignment

    restores(stage, copy)

    assert (stage.assignment.lineage, stage.assignment.epoch) == (
        before.lineage + 1,
        before.epoch + 1,
    )
    assert stage.assignment.incarnations == {"0": 0}, "nobody may adopt it"
    assert "StateOutdated" in stage.facts
    goes_on(stage)
    check_epochs(stage.operator.published)


def test_a_newer_lineage_that_was_published_counts_too() -> None:
    stage, copy = stage_with_history()
    stage.state_lost().operator_starts().adopts().discovers().adopts()
    assert stage.assignment.lineage == 2

    restores(stage, copy)

    assert stage.assignment.lineage == 3
    goes_on(stage)
    check_epochs(stage.operator.published)


def test_a_state_that_implies_what_is_published_is_not_outdated() -> None:
    stage, _ = stage_with_history()
    before = stage.assignment

    stage.operator_starts().discovers()

    assert (stage.assignment.lineage, stage.assignment.epoch) == (before.lineage, before.epoch)
    assert "StateOutdated" not in stage.facts


def test_the_same_epoch_with_other_owners_is_found() -> None:
    """The copy has gone its own way up to the same number."""
    stage, _ = stage_with_history()
    theirs = stage.assignment
    owners = {s: (o + 1) % 3 for s, o in theirs.owners.items()}
    other = Assignment(
        lineage=1,
        epoch=theirs.epoch,
        parallelism=3,
        incarnations=theirs.incarnations,
        owners=owners,
    )
    stage.store.assignment = assignment_document.encode(other, source=UID)

    stage.operator_starts()

    assert stage.assignment.lineage == 2
    goes_on(stage)


def driver_restarts(stage: Stage) -> None:
    stage.fails(0).registers(0)


def nothing(stage: Stage) -> None:
    """The driver continues."""


@pytest.mark.parametrize("happens", [nothing, driver_restarts])
def test_a_missing_assignment_is_detected_by_reports(happens: Callable[[Stage], None]) -> None:
    stage, copy = stage_with_history()
    stage.store.assignment = None

    restores(stage, copy)
    happens(stage)
    stage.adopts()

    assert stage.assignment.lineage == 2
    goes_on(stage)


@pytest.mark.parametrize("happens", [nothing, driver_restarts])
def test_older_documents_are_detected_by_reports(happens: Callable[[Stage], None]) -> None:
    stage = Stage(readers=2, hosts=1).topic("t", 4).running().adopts()
    copy, assignment, reports = stage.store.state, stage.store.assignment, dict(stage.store.reports)
    stage.rescales(3).adopts().more(5).adopts().topic("u", 3).looks_again().adopts()
    stage.store.assignment = assignment
    stage.store.reports.update(reports)
    assert copy is not None

    restores(stage, copy)
    happens(stage)
    stage.adopts()

    goes_on(stage)


def test_an_epoch_that_was_seen_but_not_adopted_differs_from_another_with_its_number() -> None:
    """All documents are older.

    The driver has an assignment in memory that was published after the copy.
    """
    stage = Stage(readers=2, hosts=1).topic("t", 4).running().adopts()
    copy, assignment = stage.store.state, stage.store.assignment
    stage.rescales(3)
    stage.drivers["0"].see_assignment()
    stage.store.assignment = assignment
    assert copy is not None

    restores(stage, copy)
    stage.rescales(1)
    # It was just seen
    assert stage.epoch == stage.drivers["0"].host.assignment.epoch  # type: ignore[union-attr]
    stage.adopts().adopts()

    stage.topic("u", 3)
    goes_on(stage)


def test_an_acknowledgement_after_the_restore_starts_no_new_lineage() -> None:
    """The copy is the newest state."""
    stage, _ = stage_with_history()
    copy = stage.store.state
    assert copy is not None

    restores(stage, copy).discovers().rescales(2).adopts().adopts()

    assert stage.assignment.lineage == 1
    goes_on(stage)


def test_a_state_without_any_published_assignment_is_not_trusted() -> None:
    """The driver continues unheard; what was published since the copy was made cannot be known."""
    stage, copy = stage_with_history()
    stage.store.assignment = None
    stage.store.reports.clear()

    restores(stage, copy)

    assert stage.assignment.lineage == 2
    goes_on(stage)


def test_a_lineage_that_only_reports_know_is_not_begun_again() -> None:
    """The copy is of the first lineage, the second has been in use, no assignment is left."""
    stage, copy = stage_with_history()
    stage.state_lost().operator_starts().adopts().discovers().adopts()
    stage.store.assignment = None

    restores(stage, copy)

    assert stage.assignment.lineage == 3
    goes_on(stage)


def test_a_copy_from_before_the_first_epoch_is_not_trusted_once_readers_have_reported() -> None:
    stage = Stage(readers=2, hosts=1).topic("t", 4)
    stage.operator_starts().rescales(3).rescales(2)
    first = state_codec.decode(stage.store.state or "", stage.operator.source, uid=UID)
    before = replace(first, coordinator=replace(first.coordinator, epoch=0))
    stage.discovers().all_register().adopts().topic("u", 3).looks_again().adopts()
    stage.store.assignment = None

    restores(stage, state_codec.encode(before, stage.operator.source, uid=UID))

    assert stage.assignment.lineage == 2
    goes_on(stage)


def test_a_report_is_enough_to_tell_that_both_documents_are_older_copies() -> None:
    """The published assignment was restored, too, so only the readers know better."""
    stage = Stage(readers=2, hosts=1).topic("t", 4).running().adopts()
    state, assignment = stage.store.state, stage.store.assignment
    stage.rescales(3).adopts().more(5).adopts()
    stage.topic("u", 3).looks_again().adopts()
    lineage = stage.assignment.lineage

    stage.store.assignment = assignment
    assert state is not None
    restores(stage, state).adopts()

    assert stage.assignment.lineage == lineage + 1
    assert "StateOutdated" in stage.facts
    goes_on(stage)
