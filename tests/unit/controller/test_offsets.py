"""From startingOffsets and stoppingOffsets in the spec to initializers."""

from typing import Any

import pytest

from balanced_source.api import Boundedness
from balanced_source.connectors.kafka import (
    EARLIEST,
    LATEST,
    Anchor,
    AtOffset,
    AtTime,
    FromCommit,
    FromTime,
    PerPartition,
    PerTopic,
    ReadLimits,
)
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.controller.translate import to_source
from balanced_source_operator.kafka.spec.offsets import StartingOffsetsType, StopType
from support.builders import make_spec, spec_json

NO_RECORD = {"type": "Timestamp", "timestamp": 5, "reset": "None"}


def source(**changes: Any) -> Any:
    return to_source(make_spec(source={"kafka": {**spec_json()["source"]["kafka"], **changes}}))


@pytest.mark.parametrize(
    ("offsets", "want"),
    [
        ({}, EARLIEST),
        ({"type": "Latest"}, LATEST),
        ({"type": "Committed", "group": "g"}, FromCommit("g")),
        ({"type": "Committed", "group": "g", "reset": "Latest"}, FromCommit("g", Anchor.LATEST)),
        ({"type": "Timestamp", "timestamp": 5}, FromTime(5, Anchor.LATEST)),
        (NO_RECORD, FromTime(5, None)),
        (
            {"type": "Timestamp", "timestamps": {"t": {"0": 7}}},
            PerPartition(listed={("t", 0): AtTime(7)}, default=EARLIEST, reset=Anchor.LATEST),
        ),
        (
            {"type": "Specific", "offsets": {"t": {"0": 23, "1": -2, "2": -1}}},
            PerPartition(
                listed={("t", 0): AtOffset(23), ("t", 1): Anchor.EARLIEST, ("t", 2): Anchor.LATEST},
                default=EARLIEST,
            ),
        ),
        (
            {
                "type": "Specific",
                "offsets": {"t": {"0": 1}},
                "unlisted": "Committed",
                "group": "g",
                "reset": "Earliest",
            },
            PerPartition(listed={("t", 0): AtOffset(1)}, default=FromCommit("g", Anchor.EARLIEST)),
        ),
        (
            {"type": "Latest", "topics": [{"topic": "t", "type": "Earliest"}]},
            PerTopic(topics={"t": EARLIEST}, default=LATEST),
        ),
    ],
)
def test_each_start(offsets: dict[str, Any], want: Any) -> None:
    made = source(startingOffsets=offsets)

    assert made.starting_offsets == want
    assert made.boundedness is Boundedness.CONTINUOUS_UNBOUNDED


@pytest.mark.scenario("I12")
def test_a_stop_makes_the_source_bounded_and_its_discovery_one_time() -> None:
    """What is read is fixed at the start; the interval is 5 minutes otherwise."""
    bounded = source(stoppingOffsets={"type": "Latest"})

    assert (bounded.boundedness, bounded.discovery_interval) == (Boundedness.BOUNDED, None)
    assert source().discovery_interval == 300


def test_partitions_without_a_listed_stop_end_at_the_latest_offset() -> None:
    made = source(stoppingOffsets={"type": "Specific", "offsets": {"t": {"0": 5}}})

    assert made.stopping_offsets == PerPartition(listed={("t", 0): AtOffset(5)}, default=LATEST)


def test_limits_are_taken_over() -> None:
    made = source(
        limits={"maxOffsetsPerTrigger": 9, "minOffsetsPerTrigger": 2, "maxTriggerDelay": "1m"}
    )

    assert made.limits == ReadLimits(max_records=9, min_records=2, max_delay=60)
    assert made.reader_settings()["kafka"]["limits"] == {
        "maxRecords": 9,
        "minRecords": 2,
        "maxDelay": 60,
    }


@pytest.mark.scenario("I10")
@pytest.mark.parametrize(
    ("offsets", "field", "says"),
    [
        ({"type": "Committed"}, "startingOffsets.group", "needs a group"),
        ({"type": "Timestamp"}, "startingOffsets", "timestamp or timestamps"),
        ({"type": "Specific"}, "startingOffsets.offsets", "needs offsets"),
        (
            {"type": "Specific", "offsets": {"t": {"x": 1}}},
            "startingOffsets.offsets.t.x",
            "must be a whole number",
        ),
        (
            {"type": "Specific", "offsets": {"t": {"0": 1, "2147483648": 1}}},
            "startingOffsets.offsets.t",
            "'2147483648' is not a valid partition number",
        ),
        (
            {"topics": [{"topic": "t", "type": "Committed"}]},
            "startingOffsets.topics[0].group",
            "needs a group",
        ),
    ],
)
def test_invalid_values_are_rejected_with_their_path(
    offsets: dict[str, Any], field: str, says: str
) -> None:
    """A committed start without a group is an error, as upstream; here it names the field."""
    with pytest.raises(InvalidSpecError, match=says) as caught:
        source(startingOffsets=offsets)

    assert caught.value.field == f"spec.source.kafka.{field}"


@pytest.mark.parametrize("kind", StartingOffsetsType)
def test_every_type_of_start_is_a_start_of_its_own(kind: StartingOffsetsType) -> None:
    """A type that no one thought of must fail here, not become one of the others."""
    others = {
        other: source(startingOffsets=_example(other)).starting_offsets
        for other in StartingOffsetsType
        if other != kind
    }

    assert source(startingOffsets=_example(kind)).starting_offsets not in others.values()


@pytest.mark.parametrize("kind", StopType)
def test_every_type_of_stop_is_what_the_start_of_that_name_is(kind: StopType) -> None:
    """But for the partitions that are not listed.

    They begin at the earliest offset, and end at the latest.
    """
    example = {**_example(kind), **({"unlisted": "Earliest"} if kind is StopType.SPECIFIC else {})}

    made = source(startingOffsets=example, stoppingOffsets=example)

    assert made.starting_offsets == made.stopping_offsets


@pytest.mark.parametrize(
    ("unlisted", "want"),
    [("Earliest", EARLIEST), ("Latest", LATEST), ("Committed", FromCommit("g"))],
)
def test_every_choice_for_partitions_that_are_not_listed(unlisted: str, want: Any) -> None:
    group = {"group": "g"} if unlisted == "Committed" else {}
    made = source(
        startingOffsets={
            "type": "Specific",
            "offsets": {"t": {"0": 5}},
            "unlisted": unlisted,
            **group,
        }
    )

    assert made.starting_offsets == PerPartition(listed={("t", 0): AtOffset(5)}, default=want)


def _example(kind: StartingOffsetsType | StopType) -> dict[str, Any]:
    more: dict[str, dict[str, Any]] = {
        "Committed": {"group": "g"},
        "Timestamp": {"timestamp": 5},
        "Specific": {"offsets": {"t": {"0": 5}}},
    }
    return {"type": kind.value, **more.get(kind.value, {})}


STOPS_AT_THE_START = [
    {"type": "Specific", "offsets": {"t": {"0": 5, "1": -2}}},
    {"type": "Latest", "topics": [{"topic": "t", "type": "Specific", "offsets": {"t": {"0": -2}}}]},
]


@pytest.mark.parametrize("offsets", STOPS_AT_THE_START, ids=["source", "topic"])
def test_reading_cannot_end_at_the_earliest_offset(offsets: dict[str, Any]) -> None:
    """Nothing would be read, without a word."""
    with pytest.raises(InvalidSpecError, match=r"cannot end at −2.*or −1 for the latest"):
        source(stoppingOffsets=offsets)
