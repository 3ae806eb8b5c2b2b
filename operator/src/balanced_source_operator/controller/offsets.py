"""Validate: from ``startingOffsets`` and ``stoppingOffsets`` to initializers."""

from collections.abc import Callable, Mapping
from typing import Final

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
from balanced_source.connectors.kafka.offsets import Wish
from balanced_source.errors import InvalidSpecError
from balanced_source_operator.spec import offsets as spec

MAX_PARTITION: Final = 2**31 - 1
"""Largest partition number of Kafka's protocol."""

_ANCHORS: Final[Mapping[str, Anchor]] = {"Earliest": Anchor.EARLIEST, "Latest": Anchor.LATEST}


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
    general = _initializer(chosen, unlisted=Anchor.LATEST, field=field)
    topics = {
        item.topic: _initializer(item, unlisted=Anchor.LATEST, field=f"{field}.topics[{index}]")
        for index, item in enumerate(chosen.topics)
    }
    return PerTopic(topics=topics, default=general) if topics else general


def _initializer(chosen: spec.StartChoice | spec.StopChoice, *, unlisted: Anchor, field: str) -> OffsetsInitializer:
    match chosen.type.value:
        case "Earliest":
            return EARLIEST
        case "Latest":
            return LATEST
        case "Committed":
            return _commit(chosen, field)
        case "Timestamp":
            return _times(chosen, unlisted, field)
        case _:
            return _offsets(chosen, unlisted, field)


def _commit(chosen: spec.Choice, field: str) -> FromCommit:
    if chosen.group is None:
        raise InvalidSpecError("Committed needs a group", field=f"{field}.group")
    return FromCommit(chosen.group, _ANCHORS.get((chosen.reset or spec.Reset.NONE).value))


def _times(chosen: spec.Choice, unlisted: Anchor, field: str) -> OffsetsInitializer:
    reset = _ANCHORS.get((chosen.reset or spec.Reset.LATEST).value)
    general = FromAnchor(unlisted) if chosen.timestamp is None else FromTime(chosen.timestamp, reset)
    if chosen.timestamps is None:
        if chosen.timestamp is None:
            raise InvalidSpecError("Timestamp needs timestamp or timestamps", field=field)
        return general
    listed = _listed(chosen.timestamps, AtTime, f"{field}.timestamps")
    return PerPartition(listed=listed, default=general, reset=reset)


def _offsets(chosen: spec.Choice, unlisted: Anchor, field: str) -> OffsetsInitializer:
    if chosen.offsets is None:
        raise InvalidSpecError("Specific needs offsets", field=f"{field}.offsets")
    rest = chosen.unlisted or spec.Unlisted(unlisted.value)
    default = _commit(chosen, field) if rest is spec.Unlisted.COMMITTED else FromAnchor(_ANCHORS[rest.value])
    return PerPartition(listed=_listed(chosen.offsets, wish_of, f"{field}.offsets"), default=default)


def _listed(
    table: Mapping[str, Mapping[str, int]], wish: Callable[[int], Wish], field: str
) -> dict[tuple[str, int], Wish]:
    for topic, numbers in table.items():
        for number in numbers:
            if not (number.isascii() and number.isdigit() and int(number) <= MAX_PARTITION):
                raise InvalidSpecError(f"{number!r} is not a valid partition number", field=f"{field}.{topic}")
    return {(topic, int(number)): wish(value) for topic, rows in table.items() for number, value in rows.items()}
