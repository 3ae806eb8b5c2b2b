"""What one reader is to read, and a sealed record that says otherwise."""

from dataclasses import replace

import pytest

from balanced_source.api import READ_UP_TO, STOP, SplitId
from balanced_source.connectors.kinesis import ShardSplit
from balanced_source.documents.journal import FetchLimits, JournalPoint, JournalRecord, RecordKey
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.errors import ContractViolationError
from balanced_source.host.journaling import (
    STEP,
    Share,
    caught_up,
    delivered,
    has_progress,
    millis_behind,
    next_end,
    readers_of,
    shares,
    stops_of,
)

A, B, C = ("numbers", 0), ("numbers", 1), ("numbers", 2)
KEY = RecordKey("a5f3", 7, 0)
SHARE = Share(key=KEY, parallelism=1, limits=FetchLimits(), starts={A: 5, B: None})
RECORD = JournalRecord(key=KEY, starts={A: 5, B: None}, ends={A: 9}, finished=frozenset({B}))


def test_a_record_of_this_share_is_accepted() -> None:
    SHARE.check(RECORD)
    SHARE.check(JournalRecord(key=KEY))


@pytest.mark.parametrize(
    "record",
    [
        replace(RECORD, starts={A: 6, B: None}),
        replace(RECORD, starts={B: None}),
        replace(RECORD, starts={A: 5, B: 0}),
        replace(RECORD, ends={A: 9, ("numbers", 2): 1}),
        replace(RECORD, finished=frozenset({("numbers", 2)})),
    ],
    ids=[
        "elsewhere",
        "nowhere",
        "finished from elsewhere",
        "another split",
        "another split is finished",
    ],
)
def test_a_record_of_another_share_is_refused(record: JournalRecord) -> None:
    with pytest.raises(ContractViolationError, match="two queries use one Spark checkpoint"):
        SHARE.check(record)


JOURNAL = JournalPoint(journal="a5f3", number=7, finished=frozenset({C}))
END = StreamOffset(
    epoch=1,
    parallelism=3,
    readers=(0, 1, 2),
    owners={B: 0, A: 0, C: 1},
    positions={B: None, A: 5, C: 4},
    journal=JOURNAL,
)


def test_each_reader_has_a_share_if_any_has_something_to_read() -> None:
    planned = shares(END)

    assert [(s.key.reader, dict(s.starts)) for s in planned] == [
        (0, {A: 5, B: None}),
        (1, {}),
        (2, {}),
    ]
    assert {s.key.number for s in planned} == {7}


@pytest.mark.parametrize(
    "nothing",
    [
        replace(END, journal=replace(JOURNAL, finished=frozenset({A, B, C}))),
        replace(END, journal=replace(JOURNAL, targets={A: 5, B: 0})),
        replace(END, closings=1),
        replace(END, journal=None),
    ],
    ids=["all is finished", "the targets are reached", "a closing one", "no journal"],
)
def test_an_empty_micro_batch_has_no_shares(nothing: StreamOffset) -> None:
    assert shares(nothing) == ()


def test_a_split_that_is_held_is_not_read_in_this_micro_batch() -> None:
    held = replace(END, journal=replace(JOURNAL, held=frozenset({A})))

    assert [dict(s.starts) for s in shares(held)] == [{B: None}, {}, {}]
    assert readers_of(held) == [0]


def test_an_offset_without_a_journal_is_where_everything_was_delivered() -> None:
    plain = replace(END, journal=None)

    assert delivered(plain, []) == plain
    assert readers_of(plain) == []
    assert readers_of(replace(END, closings=1)) == []


@pytest.mark.parametrize(
    ("targets", "left"),
    [
        ({A: 6, B: 1}, {A, B}),
        ({A: 5, B: 1}, {B}),
        ({A: 6, B: 0}, {A}),
        ({A: 6}, {A}),
        ({A: 5, B: 0}, set()),
    ],
)
def test_a_split_is_read_until_it_is_at_its_target(
    targets: dict[SplitId, int], left: set[SplitId]
) -> None:
    """Split B was never read, and has no position; a split without records has no target."""
    planned = shares(replace(END, journal=replace(JOURNAL, targets=targets)))

    assert {s for share in planned for s in share.starts} == left
    for share in planned:
        assert share.targets == {s: targets[s] for s in share.starts}


def test_splits_at_their_stop_are_finished_in_the_next_micro_batch() -> None:
    base = replace(
        END,
        positions={A: 5, B: None, C: 4},
        attributes={A: {STOP: 5}, B: {STOP: 1}, C: {"zone": "x"}},
        max_records_per_reader=7,
    )
    point = JournalPoint(journal="a5f3", number=8)

    following = next_end(base, point)

    assert following.journal == replace(point, finished=frozenset({A, C}))
    assert following.max_records_per_reader is None, "no one knows where the ranges end"
    assert following.positions == base.positions
    first = next_end(replace(base, journal=None), point)
    assert first.journal == replace(point, finished=frozenset({A}))


def test_a_micro_batch_has_progress_if_one_reader_read_or_left_something() -> None:
    nothing = JournalRecord(key=KEY)
    read, more = replace(nothing, ends={A: 9}), replace(nothing, has_more=True)

    assert [
        has_progress(records) for records in ((nothing, read), (more, nothing), (nothing,))
    ] == [
        True,
        True,
        False,
    ]


def test_splits_whose_readers_met_no_limit_are_caught_up() -> None:
    """A reader that met one may not have looked at every split."""
    records = [
        JournalRecord(key=KEY, has_more=True),
        JournalRecord(key=RecordKey("a5f3", 7, 1)),
    ]
    end = replace(END, owners={**END.owners, ("numbers", 9): 1})

    assert caught_up(end, records) == {C}


@pytest.mark.parametrize("is_continued", [False, True])
def test_how_far_splits_are_behind_is_unknown_where_no_reader_says(*, is_continued: bool) -> None:
    """Splits that are read to their end count as long as others may continue them."""
    records = [JournalRecord(key=KEY, behind={A: 30, C: 5}, finished=frozenset({B}))]

    found = millis_behind(END, records, is_continued=is_continued)

    assert found == ({A: 30, B: None, C: None} if is_continued else {A: 30})
    assert millis_behind(END, [JournalRecord(key=KEY)]) == {}
    assert millis_behind(replace(END, journal=None), records) == {}


def test_a_share_lists_its_splits_in_the_order_of_their_ids() -> None:
    """A replay hands its reader the same splits in the same order, whatever that of the tables."""
    targets, attributes = {B: 7, A: 9}, {B: {"zone": "x"}, A: {"zone": "y"}}
    end = replace(END, attributes=attributes, journal=replace(JOURNAL, targets=targets))

    share = shares(end)[0]

    assert list(share.starts) == list(share.targets or ()) == list(share.attributes) == [A, B]


@pytest.mark.parametrize(
    ("before", "now", "is_news"),
    [(None, None, False), (None, STEP, True), (None, STEP - 1, False), (5, STEP + 5, True)],
)
def test_that_a_split_has_nothing_more_is_noted_once_in_a_while(
    before: int | None, now: int | None, *, is_news: bool
) -> None:
    """Each note is stored."""
    resting = ShardSplit(stream="s", shard="0", read_up_to=now)
    known = {} if before is None else {resting.split_id: {READ_UP_TO: before}}
    share = replace(SHARE, attributes=known)

    assert share.quiet([resting]) == ({resting.split_id: now} if is_news else {})


def test_what_is_sealed_stops_where_it_ended_unless_it_ends_by_itself() -> None:
    record = replace(RECORD, ends={A: 9, B: 3, C: 4}, finished=frozenset({B}))

    assert stops_of(record) == {A: 9, C: 4}
