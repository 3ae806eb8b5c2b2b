"""Start and stop as Spark's own source takes them."""

import pytest

from balanced_source.connectors.kafka import (
    EARLIEST,
    LATEST,
    Anchor,
    AtOffset,
    AtTime,
    TopicList,
)
from balanced_source.errors import InvalidSpecError
from balanced_source_spark.kafka.offset_options import (
    check_subscribed,
    ending_offsets,
    given_as,
    starting_offsets,
)


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


def test_a_wrong_partition_number_is_named() -> None:
    with pytest.raises(InvalidSpecError, match=r"t/-1 is not a partition: numbers .* begin at 0"):
        starting_offsets({"startingoffsets": '{"t":{"0":1,"-1":5}}'}, default="latest")


def test_the_first_partition_that_is_not_subscribed_is_named() -> None:
    """Whatever the order of the option is, the message is the same."""
    given = starting_offsets(
        {"startingoffsets": '{"z":{"0":1},"t":{"0":1},"odrers":{"3":1,"2":1}}'}, default="latest"
    )

    with pytest.raises(
        InvalidSpecError,
        match=r"startingOffsets.*partition 2 of topic 'odrers' is not subscribed: correct it",
    ):
        check_subscribed(given, TopicList(("t",)), "startingOffsets")


@pytest.mark.parametrize("option", [None, '{"t":{"0":1}}', "latest"])
def test_offsets_of_subscribed_partitions_are_accepted(option: str | None) -> None:
    given = None
    if option is not None:
        given = starting_offsets({"startingoffsets": option}, default="latest")

    check_subscribed(given, TopicList(("t",)), "startingOffsets")


def test_partitions_of_an_end_that_are_not_listed_are_read_to_their_latest_offset() -> None:
    ends = ending_offsets({"endingoffsets": '{"t":{"0":23}}'})
    assert ends is not None
    assert (ends.wishes("t", 0), ends.wishes("t", 1)) == ((AtOffset(23),), (Anchor.LATEST,))

    timed = ending_offsets({"endingtimestamp": "7"})
    assert timed is not None
    assert timed.wishes("t", 0) == (AtTime(7), Anchor.LATEST), "no record after it"


@pytest.mark.parametrize("which", ["starting", "ending"])
def test_a_message_names_the_option_that_was_given(which: str) -> None:
    assert given_as({}, which) == f"{which}Offsets"
    by_time = {f"{which}offsetsbytimestamp": "{}"}
    assert given_as(by_time, which) == f"{which}OffsetsByTimestamp"


NO_NUMBERS = {
    "half an offset": ("startingoffsets", '{"t":{"0":23.5}}', "expected earliest, latest or"),
    "a truth value": ("startingoffsets", '{"t":{"0":true}}', "expected earliest, latest or"),
    "depth": ("startingoffsets", "[" * 100_000, "expected earliest, latest or"),
    "an offset below -2": ("startingoffsets", '{"t":{"0":-3}}', "-3 is not an offset: .* −2"),
    "-1 as a time": ("startingtimestamp", "-1", "expected milliseconds since the epoch"),
    "-2 as times": ("startingoffsetsbytimestamp", '{"t":{"0":-2}}', "expected milliseconds"),
    "microseconds": ("startingtimestamp", "1700000000000000", "expected milliseconds"),
}


@pytest.mark.parametrize(("option", "value", "text"), NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_what_only_looks_like_an_offset_or_a_time_is_rejected(
    option: str, value: str, text: str
) -> None:
    """Brokers take −1 and −2 for the ends of a partition, also where a time is expected."""
    with pytest.raises(InvalidSpecError, match=text):
        starting_offsets({option: value}, default="latest")


@pytest.mark.parametrize("offset", [-2, -3])
def test_an_end_with_which_nothing_would_be_read_is_rejected(offset: int) -> None:
    with pytest.raises(
        InvalidSpecError, match=f"{offset} is not an offset: .*or −1 for the latest"
    ):
        ending_offsets({"endingoffsets": f'{{"t":{{"0":{offset}}}}}'})


def test_offsets_may_be_written_as_text() -> None:
    start = starting_offsets({"startingoffsets": '{"t":{"0":"23"}}'}, default="latest")

    assert start.wishes("t", 0) == (AtOffset(23),)
