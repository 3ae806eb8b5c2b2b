"""Options that say where reading starts and ends.

The names, forms and precedence of Spark's own Kafka source.

A timestamp for all partitions goes before timestamps per partition, those before offsets.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from balanced_source.connectors.kafka import (
    EARLIEST,
    LATEST,
    Anchor,
    AtTime,
    FromTime,
    KafkaSubscriber,
    OffsetsInitializer,
    PerPartition,
    wish_of,
)
from balanced_source.connectors.kafka.offsets import EARLIEST_OFFSET
from balanced_source.names import shown
from balanced_source_spark.contract.option_table import rejected
from balanced_source_spark.contract.values import choice
from balanced_source_spark.kafka.partition_json import whole

_ANCHORS: Final = {"earliest": EARLIEST, "latest": LATEST}

_LAST_MILLIS: Final = 253_402_300_799_999
"""The end of the year 9999, as in the custom resource."""


def starting_offsets(options: Mapping[str, str], *, default: str) -> OffsetsInitializer:
    """``startingTimestamp``, ``startingOffsetsByTimestamp``, ``startingOffsets``.

    Keys are lower case.

    Raises:
        InvalidSpecError: names the option.
    """
    missing = choice(options, "startingOffsetsByTimestampStrategy", ("error", "latest"))
    reset = Anchor.LATEST if missing == "latest" else None
    return _offsets(options, "starting", default=default, reset=reset)


def ending_offsets(options: Mapping[str, str]) -> OffsetsInitializer | None:
    """``endingTimestamp``, ``endingOffsetsByTimestamp``, ``endingOffsets``.

    None if none of them is given.

    Spark's own source knows them in batch queries only; here they end a streaming query, too.

    Raises:
        InvalidSpecError: names the option.
    """
    if not any(key.startswith(("endingoffsets", "endingtimestamp")) for key in options):
        return None
    if options.get("endingoffsets", "").lower() == "earliest":
        raise rejected(
            "endingOffsets", "reading cannot end at earliest: set latest, or offsets as JSON"
        )
    return _offsets(options, "ending", default="latest", reset=Anchor.LATEST)


def given_as(options: Mapping[str, str], which: str) -> str:
    """Return the name of the option that says where reading starts or ends, per partition.

    Args:
        options: of the query.
        which: ``starting`` or ``ending``.
    """
    by_time = f"{which}OffsetsByTimestamp"
    return by_time if by_time.lower() in options else f"{which}Offsets"


def _offsets(
    options: Mapping[str, str], which: str, *, default: str, reset: Anchor | None
) -> OffsetsInitializer:
    if moment := options.get(f"{which}timestamp"):
        name = f"{which}Timestamp"
        return FromTime(_checked_time(_whole(moment, name), name), reset=reset)
    last = LATEST if which == "ending" else EARLIEST
    if listed := options.get(f"{which}offsetsbytimestamp"):
        name = f"{which}OffsetsByTimestamp"
        times = _listed(listed, lambda n: AtTime(_checked_time(n, name)), name)
        return PerPartition(listed=times, default=last, reset=reset)
    value = options.get(f"{which}offsets", default)
    if (anchor := _ANCHORS.get(value.lower())) is not None:
        return anchor
    name = f"{which}Offsets"
    offsets = _listed(value, lambda n: wish_of(_checked_offset(n, which, name)), name)
    return PerPartition(listed=offsets, default=last)


def _listed(text: str, wish: Callable[[int], Any], name: str) -> dict[tuple[str, int], Any]:
    try:
        read = json.loads(text)
        listed = [
            (str(topic), whole(partition), whole(n))
            for topic, numbers in read.items()
            for partition, n in numbers.items()
        ]
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        expected = 'expected earliest, latest or {"topic":{"0":23}}'
        raise rejected(name, f"{expected}, not {shown(text)}") from error
    if negative := [f"{topic}/{p}" for topic, p, _ in listed if p < 0]:
        raise rejected(name, f"{negative[0]} is not a partition: numbers of partitions begin at 0")
    return {(topic, partition): wish(n) for topic, partition, n in listed}


def _checked_time(millis: int, name: str) -> int:
    """Reject what is no time: brokers take −1 and −2 for the ends of a partition."""
    if not 0 <= millis <= _LAST_MILLIS:
        raise rejected(
            name,
            f"expected milliseconds since the epoch, from 0 to {_LAST_MILLIS}, not {millis}",
        )
    return millis


def _checked_offset(offset: int, which: str, name: str) -> int:
    """Reject negative numbers without a meaning, with which nothing would be read."""
    if offset >= EARLIEST_OFFSET and not (which == "ending" and offset == EARLIEST_OFFSET):
        return offset
    known = (
        "−1 for the latest" if which == "ending" else "−2 for the earliest and −1 for the latest"
    )
    raise rejected(name, f"{offset} is not an offset: set one from 0 on, or {known}")


def check_subscribed(
    offsets: OffsetsInitializer | None, subscriber: KafkaSubscriber, name: str
) -> None:
    """Reject offsets for partitions that are not read.

    A misspelt topic would be read from the default.

    Raises:
        InvalidSpecError: names the option and the partition.
    """
    if not isinstance(offsets, PerPartition):
        return
    for topic, partition in sorted(offsets.listed):
        if not subscriber.subscribes(topic, partition):
            where = f"partition {partition} of topic {shown(topic)}"
            raise rejected(
                name, f"{where} is not subscribed: correct it, or add it to the subscription"
            )


def _whole(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise rejected(name, f"expected milliseconds since the epoch, not {shown(text)}") from error
