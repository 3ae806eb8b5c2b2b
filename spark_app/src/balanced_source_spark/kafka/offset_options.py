"""Options that say where reading starts and ends: the names, forms and precedence of Spark's own Kafka source.

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
    OffsetsInitializer,
    PerPartition,
    wish_of,
)
from balanced_source.errors import InvalidSpecError
from balanced_source.names import shown

_ANCHORS: Final = {"earliest": EARLIEST, "latest": LATEST}


def starting_offsets(options: Mapping[str, str], *, default: str) -> OffsetsInitializer:
    """``startingTimestamp``, ``startingOffsetsByTimestamp``, ``startingOffsets``; keys are lower case.

    Raises:
        InvalidSpecError: names the option.
    """
    missing = options.get("startingoffsetsbytimestampstrategy", "error").lower()
    if missing not in ("error", "latest"):
        raise InvalidSpecError(
            f"error or latest, not {shown(missing)}", field="options.startingOffsetsByTimestampStrategy"
        )
    reset = Anchor.LATEST if missing == "latest" else None
    return _offsets(options, "starting", default=default, reset=reset)


def ending_offsets(options: Mapping[str, str]) -> OffsetsInitializer | None:
    """``endingTimestamp``, ``endingOffsetsByTimestamp``, ``endingOffsets``; None if none of them is given.

    Spark's own source knows them in batch queries only; here they end a streaming query, too.

    Raises:
        InvalidSpecError: names the option.
    """
    if not any(key.startswith(("endingoffsets", "endingtimestamp")) for key in options):
        return None
    if options.get("endingoffsets", "").lower() == "earliest":
        raise InvalidSpecError("nothing ends at earliest", field="options.endingOffsets")
    return _offsets(options, "ending", default="latest", reset=Anchor.LATEST)


def _offsets(options: Mapping[str, str], which: str, *, default: str, reset: Anchor | None) -> OffsetsInitializer:
    if moment := options.get(f"{which}timestamp"):
        return FromTime(_whole(moment, f"options.{which}Timestamp"), reset=reset)
    last = LATEST if which == "ending" else EARLIEST
    if listed := options.get(f"{which}offsetsbytimestamp"):
        field = f"options.{which}OffsetsByTimestamp"
        return PerPartition(listed=_listed(listed, AtTime, field), default=last, reset=reset)
    value = options.get(f"{which}offsets", default)
    if (anchor := _ANCHORS.get(value.lower())) is not None:
        return anchor
    return PerPartition(listed=_listed(value, wish_of, f"options.{which}Offsets"), default=last)


def _listed(text: str, wish: Callable[[int], Any], field: str) -> dict[tuple[str, int], Any]:
    try:
        read: dict[str, dict[str, int]] = json.loads(text)
        return {(topic, int(p)): wish(int(number)) for topic, ps in read.items() for p, number in ps.items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidSpecError(f'earliest, latest or {{"topic":{{"0":23}}}}, not {shown(text)}', field=field) from error


def _whole(text: str, field: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise InvalidSpecError(f"milliseconds since the epoch, not {shown(text)}", field=field) from error
