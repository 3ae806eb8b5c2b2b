"""Start and stop as Spark's own source takes them."""

import pytest

from balanced_source.connectors.kafka import EARLIEST, LATEST, Anchor, AtOffset, AtTime
from balanced_source.errors import InvalidSpecError
from balanced_source_spark.kafka.offset_options import ending_offsets, starting_offsets


def test_offsets_per_partition_with_the_numbers_of_the_ends() -> None:
    start = starting_offsets({"startingoffsets": '{"t":{"0":23,"1":-2,"2":-1}}'}, default="latest")

    assert [start.wishes("t", p) for p in range(3)] == [
        (AtOffset(23),),
        (Anchor.EARLIEST,),
        (Anchor.LATEST,),
    ]
    assert start.wishes("other", 0) == (Anchor.EARLIEST,)


def test_a_timestamp_goes_before_timestamps_per_partition_and_those_before_offsets() -> None:
    given = {
        "startingoffsets": "latest",
        "startingoffsetsbytimestamp": '{"t":{"0":5}}',
        "startingtimestamp": "7",
        "startingoffsetsbytimestampstrategy": "latest",
    }

    assert starting_offsets(given, default="latest").wishes("t", 0) == (AtTime(7), Anchor.LATEST)
    del given["startingtimestamp"]
    assert starting_offsets(given, default="latest").wishes("t", 0) == (AtTime(5), Anchor.LATEST)
    del given["startingoffsetsbytimestamp"]
    assert starting_offsets(given, default="latest") == LATEST


def test_a_time_after_the_last_record_is_an_error_by_default() -> None:
    assert starting_offsets({"startingtimestamp": "7"}, default="latest").wishes("t", 0) == (
        AtTime(7),
    )


def test_offsets_that_are_not_given() -> None:
    assert starting_offsets({}, default="earliest") == EARLIEST
    assert ending_offsets({}) is None
    assert ending_offsets({"endingoffsets": "latest"}) == LATEST


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"startingoffsets": "soon"}, "startingOffsets"),
        ({"startingtimestamp": "soon"}, "startingTimestamp"),
        ({"startingoffsetsbytimestamp": "[]"}, "startingOffsetsByTimestamp"),
        ({"startingoffsetsbytimestampstrategy": "guess"}, "startingOffsetsByTimestampStrategy"),
    ],
)
def test_a_wrong_start_is_named(options: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidSpecError, match=rf"option {field}"):
        starting_offsets(options, default="latest")


def test_a_wrong_end_is_named() -> None:
    with pytest.raises(InvalidSpecError, match=r"option endingOffsets"):
        ending_offsets({"endingoffsets": "earliest"})
