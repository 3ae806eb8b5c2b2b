"""Which splits wait for slower ones, when only readers know the times of records."""

from balanced_source.api import MAX_WATERMARK, MIN_WATERMARK, SplitId
from balanced_source.documents.journal import JournalPoint, JournalRecord, Pause, RecordKey
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.pausing import PauseAligner

A: SplitId = ("s", "a")
B: SplitId = ("s", "b")


def end(*splits: SplitId, paused: frozenset[SplitId] = frozenset()) -> StreamOffset:
    """One reader has all splits."""
    point = JournalPoint(journal="j", number=1, pause=Pause(beyond=0, splits=paused))
    return StreamOffset(
        epoch=1,
        parallelism=1,
        readers=(0,),
        owners=dict.fromkeys(splits, 0),
        positions=dict.fromkeys(splits, 0),
        journal=point,
    )


def record(times: dict[SplitId, int], *, has_more: bool = True) -> JournalRecord:
    return JournalRecord(
        key=RecordKey("j", 1, 0), ends=dict.fromkeys(times, 1), has_more=has_more, times=times
    )


def aligner(idle: float = 10.0) -> PauseAligner:
    return PauseAligner(max_drift=100, idle_timeout=idle)


def pause(
    made: PauseAligner, *splits: SplitId, now: float = 0.0, others: int = MAX_WATERMARK
) -> Pause:
    return made.pause(splits, others=others, now=now)


def test_before_anything_is_known_nothing_is_read() -> None:
    assert pause(aligner(), A, B) == Pause(beyond=MIN_WATERMARK)


def test_the_slowest_split_sets_the_bound_and_what_is_beyond_it_waits() -> None:
    made = aligner()
    made.note(end(A, B), [record({A: 1000, B: 5000})], now=0.0)

    assert pause(made, A, B) == Pause(beyond=1100, splits=frozenset({B}))
    assert made.report() == {"alignedTo": 1100, "slowest": 1000, "idle": 0}
    assert made.watermark == 1000

    made.note(end(A, B, paused=frozenset({B})), [record({A: 4950})], now=1.0)
    assert pause(made, A, B) == Pause(beyond=5050)


def test_the_bound_never_falls() -> None:
    made = aligner()
    made.note(end(A), [record({A: 1000})], now=0.0)
    pause(made, A)
    made.note(end(A, B), [record({A: 1000, B: 10})], now=0.0)

    assert pause(made, A, B).beyond == 1100


def test_a_split_that_is_read_to_its_end_holds_the_others_until_it_is_idle() -> None:
    made = aligner(idle=10.0)
    made.note(end(A, B), [record({A: 1000, B: 5000})], now=0.0)
    pause(made, A, B)
    made.note(end(A, B, paused=frozenset({B})), [record({A: 1050}, has_more=False)], now=1.0)
    made.note(end(A, B, paused=frozenset({B})), [record({}, has_more=False)], now=2.0)

    assert pause(made, A, B, now=11.0).splits == {B}
    assert pause(made, A, B, now=12.0) == Pause(beyond=5100)

    made.note(end(A, B), [record({A: 1060})], now=13.0)
    assert made._slowest == 5000
    pause(made, A, B, now=13.0)
    assert made.watermark == 1060, "it is active again"


def test_a_split_that_waits_is_not_idle() -> None:
    made = aligner(idle=0.0)
    made.note(end(A, B), [record({A: 1000, B: 5000})], now=0.0)
    pause(made, A, B)

    made.note(end(A, B, paused=frozenset({B})), [record({}, has_more=False)], now=1.0)

    assert made.silent_since == {A: 1.0}


def test_an_unknown_time_holds_all_others() -> None:
    made = aligner()
    made.note(end(A, B), [record({A: 1000}, has_more=False)], now=0.0)

    assert pause(made, A, B) == Pause(beyond=MIN_WATERMARK, splits=frozenset({A}))
    assert made.watermark == MIN_WATERMARK
    assert made.report()["alignedTo"] is None
    assert pause(made, A, B, now=10.0).beyond == 1100, "the empty one is idle"


def test_splits_that_left_hold_no_one() -> None:
    made = aligner()
    made.note(end(A, B), [record({A: 1000, B: 5000})], now=0.0)

    assert pause(made, B) == Pause(beyond=5100)
    assert made.times == {B: 5000}


def test_other_sources_of_the_group_are_waited_for() -> None:
    made = aligner()
    made.note(end(A), [record({A: 5000})], now=0.0)

    assert pause(made, A, others=MIN_WATERMARK).splits == {A}
    assert made.report()["others"] == "unknown"
    assert pause(made, A, others=2000) == Pause(beyond=2100, splits=frozenset({A}))
    assert made.report()["others"] == 2000


def test_a_source_that_is_read_to_its_end_holds_no_other_source() -> None:
    made = aligner(idle=0.0)
    made.note(end(A), [record({A: 5000}, has_more=False)], now=0.0)
    made.note(end(A), [record({}, has_more=False)], now=1.0)
    pause(made, A, now=1.0)

    assert made.watermark == MAX_WATERMARK
    assert made.report()["slowest"] is None


def test_a_split_without_records_up_to_its_known_end_becomes_idle_without_a_micro_batch() -> None:
    """The time since which it is read counts, not that of the newest look."""
    made = aligner(idle=10.0)
    made.note(end(A, B), [record({A: 1000, B: 5000})], now=0.0)
    for now in (1.0, 5.0):
        made.note_read([A], now=now)

    assert made.silent_since == {A: 1.0}
    assert pause(made, A, B, now=10.9).beyond == 1100
    assert pause(made, A, B, now=11.0).beyond == 5100


def test_a_split_stays_silent_until_it_moves() -> None:
    """Also while its reader is busy with another one, and does not look at it."""
    made = aligner()
    made.note(end(A, B), [record({}, has_more=False)], now=1.0)
    made.note(end(A, B), [record({B: 1000})], now=2.0)

    assert made.silent_since == {A: 1.0}
