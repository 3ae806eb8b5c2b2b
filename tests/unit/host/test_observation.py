"""What is told of a micro-batch."""

from dataclasses import replace

from balanced_source.documents.lags import from_metrics
from balanced_source.documents.stream_offset import StreamOffset
from balanced_source.host.observation import WORST, observe
from balanced_source.host.reader_figures import ReaderFigures

A, B, C = ("k", "t", 0), ("k", "t", 1), ("k", "u", 0)


def offset(**positions: int) -> StreamOffset:
    return StreamOffset(
        epoch=4,
        parallelism=2,
        readers=(0, 1),
        owners={A: 0, B: 0, C: 1},
        positions={A: positions["a"], B: positions["b"], C: positions["c"]},
    )


def test_lag_records_and_skew_of_each_reader() -> None:
    told = observe(offset(a=0, b=0, c=0), offset(a=10, b=20, c=10), {A: 10, B: 50, C: 15}).to_json()

    assert (told["epoch"], told["parallelism"], told["lag"], told["records"]) == (4, 2, 35, 40)
    assert told["readers"] == {
        "0": {"splits": 2, "lag": 30, "records": 30},
        "1": {"splits": 1, "lag": 5, "records": 10},
    }
    assert told["skew"] == 1.5
    assert told["worstSplits"] == [
        {"split": ["k", "t", 1], "lag": 30},
        {"split": ["k", "u", 0], "lag": 5},
    ]


def test_measurements_of_tasks_are_shown_with_the_load_of_their_reader() -> None:
    figures = ReaderFigures(
        records=7,
        size=70,
        source=1.2345678,
        downstream=2.3456789,
        first=0.1234567,
        speed=9.0,
    )

    told = observe(offset(a=0, b=0, c=0), offset(a=1, b=0, c=0), {}).to_json({1: figures})

    assert told["readers"] == {
        "0": {"splits": 2, "lag": None, "records": 1},
        "1": {
            "splits": 1,
            "lag": None,
            "records": 0,
            "recordsRead": 7,
            "bytesRead": 70,
            "sourceSeconds": 1.234568,
            "downstreamSeconds": 2.345679,
            "firstRecordsSeconds": 0.123457,
        },
    }


def test_a_split_that_was_never_read_lags_from_its_beginning() -> None:
    never = StreamOffset(epoch=1, parallelism=1, readers=(0,), owners={A: 0}, positions={A: None})

    assert observe(never, never, {A: 5}).lag == 5
    seen = observe(never, replace(never, positions={A: 3}), {A: 5})
    assert (seen.records, seen.lag) == (3, 2)


def test_a_log_that_still_has_its_first_record_has_lost_nothing() -> None:
    never = StreamOffset(epoch=1, parallelism=1, readers=(0,), owners={A: 0}, positions={A: None})

    assert observe(never, never, {A: 5}, firsts={A: 0}).lag == 5
    assert observe(never, never, {A: 5}, firsts={A: 1}).lag == 4


def test_a_lag_that_is_unknown_is_not_0() -> None:
    """A split whose broker does not answer may have any number of records left.

    So may its reader and the source.
    """
    same = offset(a=1, b=1, c=1)

    seen = observe(same, same, {A: 5, C: 3})

    assert (seen.lag, seen.lags, seen.unknown) == (None, {A: 4, B: None, C: 2}, 1)
    told = seen.to_json()
    assert (told["lag"], told["splitsWithUnknownLag"]) == (None, 1)
    assert told["readers"] == {
        "0": {"splits": 2, "lag": None, "records": 0},
        "1": {"splits": 1, "lag": 2, "records": 0},
    }
    assert told["worstSplits"] == [
        {"split": ["k", "t", 0], "lag": 4},
        {"split": ["k", "u", 0], "lag": 2},
    ]


def test_the_lag_is_unknown_while_there_is_more_than_readers_hold() -> None:
    """That of each reader is known: it is what the reader has to read."""
    same = offset(a=1, b=1, c=1)

    seen = observe(same, same, {A: 5, B: 1, C: 3}, is_whole=False)

    assert (seen.lag, seen.unread, seen.to_json()["lag"]) == (None, None, None)
    assert {reader: load.lag for reader, load in seen.readers.items()} == {0: 4, 1: 2}


def test_time_behind_is_that_of_the_slowest_split_and_unknown_while_any_is() -> None:
    same = offset(a=1, b=1, c=1)

    late = observe(same, same, {}, {A: 1500, B: 0, C: 200})
    assert late.millis_behind == 1500
    told = late.to_json()
    assert (told["millisBehind"], told["lag"]) == (1500, None)
    assert told["splitsBehind"][:2] == [
        {"split": ["k", "t", 0], "millisBehind": 1500},
        {"split": ["k", "u", 0], "millisBehind": 200},
    ]

    unknown = observe(same, same, {}, {A: 1500, B: None, C: 0})
    assert (unknown.millis_behind, unknown.to_json()["millisBehind"]) == (None, None)
    assert "millisBehind" not in observe(same, same, {}).to_json(), (
        "a source that counts records says nothing of it"
    )


def test_the_skew_is_shown_with_three_digits() -> None:
    seen = observe(offset(a=0, b=0, c=0), offset(a=1, b=1, c=1), {})

    assert seen.to_json()["skew"] == 1.333


def test_nothing_to_read_is_even() -> None:
    same = offset(a=1, b=1, c=1)

    assert observe(same, same, {}).skew == 1.0


def test_only_the_worst_splits_are_listed_individually() -> None:
    many = {("k", "t", number): 0 for number in range(500)}
    end = StreamOffset(
        epoch=1, parallelism=1, readers=(0,), owners=dict.fromkeys(many, 0), positions=many
    )

    told = observe(end, end, {s: int(s[2]) for s in many}).to_json()

    assert [entry["lag"] for entry in told["worstSplits"]] == list(range(499, 499 - WORST, -1))  # type: ignore[index,union-attr,call-overload]


def test_a_report_gets_a_lag_per_split() -> None:
    same = offset(a=1, b=1, c=1)

    told = from_metrics(observe(same, same, {A: 5, C: 3}).lags_for_report())

    assert told.splits == {A: 4, B: None, C: 2}


def test_records_of_the_micro_batch_are_unread_until_it_ends() -> None:
    seen = observe(offset(a=0, b=0, c=0), offset(a=10, b=20, c=10), {A: 10, B: 50, C: 15})

    assert (seen.lag, seen.unread) == (35, 75)
    assert {reader: load.unread for reader, load in seen.readers.items()} == {0: 60, 1: 15}
    assert from_metrics(seen.lags_for_report()).splits == {A: 10, B: 50, C: 15}


def test_records_of_a_delivered_micro_batch_are_unread_no_more() -> None:
    seen = observe(offset(a=0, b=0, c=0), offset(a=10, b=20, c=10), {A: 10, B: 50, C: 15})

    delivered = seen.delivered()

    assert (delivered.lag, delivered.unread) == (35, 35)
    assert from_metrics(delivered.lags_for_report()).splits == {A: 0, B: 30, C: 5}


def test_only_records_of_the_micro_batch_count_as_unread() -> None:
    """It begins where the former one ended."""
    seen = observe(offset(a=7, b=19, c=9), offset(a=10, b=20, c=10), {A: 10, B: 50, C: 15})

    assert from_metrics(seen.lags_for_report()).splits == {A: 3, B: 31, C: 6}
    assert {reader: load.records for reader, load in seen.readers.items()} == {0: 4, 1: 1}
    assert (seen.records, seen.skew) == (5, 1.6)


def test_what_is_unread_is_unknown_where_the_lag_is() -> None:
    seen = observe(offset(a=0, b=0, c=0), offset(a=1, b=2, c=3), {A: 5, C: 3})

    assert seen.unread is None
    assert from_metrics(seen.lags_for_report()).splits == {A: 5, B: None, C: 3}


def test_the_splits_that_are_furthest_behind_are_listed_first() -> None:
    behind = {A: 5, C: 7, B: 7}
    end = offset(a=1, b=1, c=1)

    observed = observe(end, end, {}, behind)

    assert observed.to_json()["millisBehind"] == 7
    assert observed.to_json()["splitsBehind"] == [
        {"split": ["k", "t", 1], "millisBehind": 7},
        {"split": ["k", "u", 0], "millisBehind": 7},
        {"split": ["k", "t", 0], "millisBehind": 5},
    ]
    unknown = observe(end, end, {}, {A: None, B: 3}).to_json()
    assert (unknown["millisBehind"], unknown["splitsBehind"]) == (
        None,
        [{"split": ["k", "t", 1], "millisBehind": 3}],
    )


def test_only_some_of_the_splits_that_are_behind_are_listed() -> None:
    behind = {("k", "t", number): number for number in range(WORST + 3)}
    end = offset(a=1, b=1, c=1)

    told = observe(end, end, {}, behind).to_json()["splitsBehind"]

    assert told == [
        {"split": ["k", "t", number], "millisBehind": number} for number in range(WORST + 2, 2, -1)
    ]
