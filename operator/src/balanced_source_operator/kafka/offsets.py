"""Validate: from ``startingOffsets`` and ``stoppingOffsets`` to initializers."""

from collections.abc import Callable, Mapping
from typing import Final, assert_never

from balanced_source.connectors.kafka import (
    EARLIEST,
    LATEST,
    Anchor,
    AtTime,
    FromAnchor,
    FromCommit,
    FromTime,
    OffsetsInitializer,
    PerPartition,
    PerTopic,
    wish_of,
)
from balanced_source.connectors.kafka.offsets import EARLIEST_OFFSET, Wish
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.kafka.spec import offsets as spec

MAX_PARTITION: Final = 2**31 - 1
"""Largest partition number of Kafka's protocol."""


def _anchor(reset: spec.Reset) -> Anchor | None:
    """Return the end that a reset names; None refuses partitions without an answer."""
    match reset:
        case spec.Reset.EARLIEST:
            return Anchor.EARLIEST
        case spec.Reset.LATEST:
            return Anchor.LATEST
        case spec.Reset.NONE:
            return None
        case _:
            assert_never(reset)


def to_start(chosen: spec.StartingOffsets, *, field: str) -> OffsetsInitializer:
    """Where reading starts.

    Raises:
        InvalidSpecError: what CEL could not check. Names the field.
    """
    general = _initializer(chosen, unlisted=Anchor.EARLIEST, field=field)
    topics = {
        item.topic: _initializer(item, unlisted=Anchor.EARLIEST, field=f"{field}.topics[{index}]")
        for index, item in enumerate(chosen.topics)
    }
    return PerTopic(topics=topics, default=general) if topics else general


def to_stop(chosen: spec.StoppingOffsets | None, *, field: str) -> OffsetsInitializer | None:
    """Where reading ends; None if it does not.

    Raises:
        InvalidSpecError: what CEL could not check. Names the field.
    """
    if chosen is None:
        return None
    for item in (chosen, *chosen.topics):
        _check_ends(item, field)
    general = _initializer(chosen, unlisted=Anchor.LATEST, field=field)
    topics = {
        item.topic: _initializer(item, unlisted=Anchor.LATEST, field=f"{field}.topics[{index}]")
        for index, item in enumerate(chosen.topics)
    }
    return PerTopic(topics=topics, default=general) if topics else general


def _check_ends(chosen: spec.StopChoice, field: str) -> None:
    """Reject ends with which nothing would be read, without a word."""
    for topic, numbers in (chosen.offsets or {}).items():
        if EARLIEST_OFFSET in numbers.values():
            raise InvalidSpecError(
                "reading cannot end at −2, the earliest offset: set another, or −1 for the latest",
                field=f"{field}.offsets.{topic}",
            )


def _initializer(
    chosen: spec.StartChoice | spec.StopChoice, *, unlisted: Anchor, field: str
) -> OffsetsInitializer:
    match chosen.type:
        case spec.StartingOffsetsType.EARLIEST:
            return EARLIEST
        case spec.StartingOffsetsType.LATEST | spec.StopType.LATEST:
            return LATEST
        case spec.StartingOffsetsType.COMMITTED | spec.StopType.COMMITTED:
            return _commit(chosen, field)
        case spec.StartingOffsetsType.TIMESTAMP | spec.StopType.TIMESTAMP:
            return _times(chosen, unlisted, field)
        case spec.StartingOffsetsType.SPECIFIC | spec.StopType.SPECIFIC:
            return _offsets(chosen, unlisted, field)
        case _:
            assert_never(chosen.type)


def _commit(chosen: spec.Choice, field: str) -> FromCommit:
    if chosen.group is None:
        raise InvalidSpecError("Committed needs a group", field=f"{field}.group")
    return FromCommit(chosen.group, _anchor(chosen.reset or spec.Reset.NONE))


def _times(chosen: spec.Choice, unlisted: Anchor, field: str) -> OffsetsInitializer:
    reset = _anchor(chosen.reset or spec.Reset.LATEST)
    general = (
        FromAnchor(unlisted) if chosen.timestamp is None else FromTime(chosen.timestamp, reset)
    )
    if chosen.timestamps is None:
        if chosen.timestamp is None:
            raise InvalidSpecError("Timestamp needs timestamp or timestamps", field=field)
        return general
    listed = _listed(chosen.timestamps, AtTime, f"{field}.timestamps")
    return PerPartition(listed=listed, default=general, reset=reset)


def _offsets(chosen: spec.Choice, unlisted: Anchor, field: str) -> OffsetsInitializer:
    if chosen.offsets is None:
        raise InvalidSpecError("Specific needs offsets", field=f"{field}.offsets")
    default = (
        FromAnchor(unlisted)
        if chosen.unlisted is None
        else _unlisted(chosen, chosen.unlisted, field)
    )
    return PerPartition(
        listed=_listed(chosen.offsets, wish_of, f"{field}.offsets"), default=default
    )


def _unlisted(chosen: spec.Choice, rest: spec.Unlisted, field: str) -> OffsetsInitializer:
    match rest:
        case spec.Unlisted.EARLIEST:
            return EARLIEST
        case spec.Unlisted.LATEST:
            return LATEST
        case spec.Unlisted.COMMITTED:
            return _commit(chosen, field)
        case _:
            assert_never(rest)


def _listed(
    table: Mapping[str, Mapping[str, int]], wish: Callable[[int], Wish], field: str
) -> dict[tuple[str, int], Wish]:
    for topic, numbers in table.items():
        for number in numbers:
            if not (number.isascii() and number.isdigit() and int(number) <= MAX_PARTITION):
                raise InvalidSpecError(
                    f"{number!r} is not a valid partition number", field=f"{field}.{topic}"
                )
    return {
        (topic, int(number)): wish(value)
        for topic, rows in table.items()
        for number, value in rows.items()
    }
