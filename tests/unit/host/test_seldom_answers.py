"""Answers at the borders: splits of which nothing was read, first positions, and quiet times."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import STOP, SplitId
from balanced_source.documents.assignment import Assignment
from balanced_source.documents.journal import (
    FetchLimits,
    JournalPoint,
    JournalRecord,
    RecordKey,
)
from balanced_source.documents.lags import from_metrics
from balanced_source.documents.report import HostReport
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import ContractViolationError
from balanced_source.host import ReaderHost, plan
from balanced_source.host.alignment import slowest
from balanced_source.host.ends import Confirmed, look, mark_of, with_confirmed
from balanced_source.host.journaling import (
    READ_UP_TO,
    STEP,
    Share,
    _is_there,
    _stopped,
    delivered,
)
from balanced_source.host.micro_batch import advance, reachable
from balanced_source.host.observation import observe
from balanced_source.host.reader_figures import FIGURES, ReaderFigures, for_report
from support.pull_source import Numbers

A: SplitId = ("c", "t", 0)
B: SplitId = ("c", "t", 1)
C: SplitId = ("c", "t", 2)
BASE = StreamOffset(epoch=3, readers=(0,), owners={A: 0, B: 0, C: 0}, positions={A: None, B: 5})


def test_a_split_without_a_start_is_a_damaged_offset_log() -> None:
    """A guess would lose or repeat records."""
    end = replace(BASE, positions={A: 2, B: 5, C: 7})

    with pytest.raises(ContractViolationError, match="split c/t/2 of epoch 3 has no start"):
        plan(BASE, end)


def test_a_split_that_has_never_had_a_record_holds_the_others() -> None:
    positions, ends = {A: 0, B: 5}, {B: 5}

    assert slowest(10, positions, ends, {B: None}, last_seen={B: 7}, idle=()) is None
    assert slowest(10, positions, ends, {B: None}, last_seen={B: 7}, idle={A}) == 7


def test_a_query_that_ends_by_itself_reads_nothing_of_a_split_that_it_has_no_target_for() -> None:
    assert reachable(BASE, {A: 9, B: 9}, targets={B: 7}) == {A: 0, B: 7}


@pytest.mark.parametrize(
    ("target", "position", "is_there"),
    [
        (None, None, True),
        (None, 1, True),
        (0, None, True),
        (1, None, False),
        (1, 0, False),
        (1, 1, True),
        (2, 1, False),
    ],
)
def test_a_split_is_at_its_target(target: Any, position: Any, *, is_there: bool) -> None:
    """An unknown position, or target, is the first one."""
    assert _is_there({A: target}, A, position) is is_there
    assert _is_there(None, A, position) is False


@pytest.mark.parametrize(
    ("position", "stop", "is_read"),
    [(None, 0, True), (None, 1, False), (0, 1, False), (1, 1, True), (2, 1, True)],
)
def test_a_split_is_at_its_stop(position: Any, stop: int, *, is_read: bool) -> None:
    base = StreamOffset(positions={A: position, B: 5}, attributes={A: {STOP: stop}, B: {}})

    assert _stopped(base) == ({A} if is_read else set())


@pytest.mark.parametrize(
    ("before", "now", "is_news"),
    [
        (None, STEP, True),
        (None, STEP - 1, False),
        (7, STEP + 7, True),
        (7, STEP + 6, False),
        (7, None, False),
    ],
)
def test_when_a_split_had_nothing_more_is_noted_again_after_a_while(
    before: Any, now: Any, *, is_news: bool
) -> None:
    """Each note is stored."""

    class Quiet(Numbers):
        def attributes(self) -> dict[str, Any]:
            return {} if now is None else {READ_UP_TO: now}

    split = Quiet(name="list-0")
    share = Share(
        key=RecordKey("j", 1, 0),
        parallelism=1,
        limits=FetchLimits(wait_millis=1),
        starts={},
        attributes={} if before is None else {split.split_id: {READ_UP_TO: before}},
    )

    assert share.quiet([split]) == ({split.split_id: now} if is_news else {})


def test_a_check_that_has_learned_nothing_of_former_leaderships_notes_none() -> None:
    found = Confirmed(mark=mark_of(BASE, B), term=4, past=())

    after = with_confirmed(BASE, {B: found})

    assert (after.terms, after.term_ends) == ({B: 4}, {})


def test_a_deleted_split_without_a_stop_has_lost_nothing_that_is_known() -> None:
    base = replace(BASE, attributes={B: {STOP: 5}, C: {STOP: 9}}, positions={A: None, B: 5, C: 8})

    assert look(base, {}, deleted=[A, B, C, ("c", "gone", 0)]).deleted == {C: 9}


def test_a_split_that_is_kept_has_the_leadership_that_is_known_of_it() -> None:
    base = replace(BASE, retained={C: 7, ("c", "old", 0): 7}, terms={B: 3, C: 4})

    assert advance(base, {A: 0, B: 5}).terms == {B: 3, C: 4}


def test_records_of_a_split_that_was_never_read_are_unread_from_the_first_one() -> None:
    never = StreamOffset(epoch=1, parallelism=1, readers=(0,), owners={A: 0}, positions={A: None})

    seen = observe(never, replace(never, positions={A: 3}), {A: 5})

    assert from_metrics(seen.lags_for_report()).splits == {A: 5}


def test_long_times_of_readers_are_reported_in_milliseconds() -> None:
    one = ReaderFigures(records=1, size=2, source=5.0, downstream=6.0, first=7.0)

    assert for_report({3: one}) == {FIGURES: [[3, 1, 2, 5000, 6000, 7000]]}


@pytest.mark.parametrize(
    "past", [{"former": HostReport(incarnation=1)}, {"former_hosts": ("0", "1")}]
)
def test_a_driver_forgets_what_it_repeats_of_former_times(past: dict[str, Any]) -> None:
    host = ReaderHost(name="0", incarnation=2)

    assert replace(host, **past)._without_past() == host
    assert host._without_past() is host


def test_splits_that_were_finished_stay_so() -> None:
    point = JournalPoint(journal="j", number=2, finished=frozenset({B}))
    record = JournalRecord(key=RecordKey("j", 2, 0), finished=frozenset({C}))

    after = delivered(replace(BASE, journal=point), [record]).journal

    assert after is not None
    assert after.finished == {B, C}


def test_a_document_that_changes_without_an_epoch_changes_nothing() -> None:
    known = Assignment(epoch=3, parallelism=1, incarnations={"0": 2})
    host = ReaderHost(name="0", incarnation=2, assignment=known)

    assert host.on_assignment(replace(known, parallelism=7)) is host
    assert host.on_assignment(replace(known, epoch=4)).assignment == replace(known, epoch=4)
