"""Answers at the borders: splits of which nothing was read, first positions, and quiet times."""

from dataclasses import replace
from typing import Any

import pytest

from balanced_source.api import STOP, SplitId
from balanced_source.documents.journal import FetchLimits, RecordKey
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import ContractViolationError
from balanced_source.host import plan
from balanced_source.host.alignment import slowest
from balanced_source.host.ends import Confirmed, mark_of, with_confirmed
from balanced_source.host.journaling import READ_UP_TO, STEP, Share, _is_there, _stopped
from balanced_source.host.micro_batch import reachable
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
