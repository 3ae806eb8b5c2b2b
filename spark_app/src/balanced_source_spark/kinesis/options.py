"""Reads the options of Kinesis. Keys of the mappings are lower case."""

import datetime as dt
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from balanced_source.assigners import SplitAssigner
from balanced_source.connectors.kinesis import (
    KinesisSource,
    OnShardLoss,
    Server,
    Start,
    StartAt,
    StartWords,
    checked_start,
    named_twice,
)
from balanced_source.names import checked_object, separated, shown
from balanced_source_spark.contract.option_table import rejected
from balanced_source_spark.contract.values import choice, is_url, seconds

STREAM: Final = re.compile(
    r"(arn:[a-z0-9-]+:kinesis:[a-z0-9-]+:[0-9]{12}:stream/)?[A-Za-z0-9_.-]{1,128}\Z"
)
_REGION: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\Z")
_SHORTEST: Final = 0.1
_NUMBER: Final = re.compile(r"(0|[1-9][0-9]{0,128})\Z")
_POSITIONS: Final = tuple(at.value.lower() for at in StartAt)
_WORDS: Final = StartWords(
    time="option startingTimestamp",
    sequences="option startingSequenceNumbers",
    kinds={at: f"startingPosition {at.value}" for at in StartAt},
)
_LOSSES: Final = tuple(loss.value.lower() for loss in OnShardLoss)


def kinesis_source(options: Mapping[str, str], assigner: SplitAssigner) -> KinesisSource:
    """Return the source of a query that runs without an operator and without local mode.

    Raises:
        InvalidSpecError: names the option.
    """
    streams = _streams(options)
    return KinesisSource(
        streams=streams,
        server=_server(options),
        start=_start(options, streams),
        assigner=assigner,
        discovery_interval=_interval(options.get("discoveryinterval", "30s")),
        on_loss=OnShardLoss(choice(options, "onDataLoss", _LOSSES).capitalize()),
    )


def _streams(options: Mapping[str, str]) -> tuple[str, ...]:
    names = separated(options.get("streams", ""))
    if not names:
        raise rejected("streams", "is missing: name the streams to read, separated by commas")
    for name in names:
        if not STREAM.match(name):
            raise rejected("streams", f"{shown(name)} is neither the name nor the ARN of a stream")
    if why := named_twice(names):
        raise rejected("streams", why)
    return names


def _interval(text: str) -> float:
    found = seconds(text, "discoveryInterval")
    # A listing asks three times, and an account has 20 of these requests a second.
    if found < _SHORTEST:
        raise rejected("discoveryInterval", f"must be at least 100ms, not {shown(text)}")
    return found


def _server(options: Mapping[str, str]) -> Server:
    endpoint, secret = options.get("kinesisendpoint", ""), options.get("kinesissecret")
    region = options.get("kinesisregion", "")
    if endpoint and not is_url(endpoint):
        raise rejected("kinesisEndpoint", f"expected an http or https URL, not {shown(endpoint)}")
    if region and not _REGION.match(region):
        raise rejected(
            "kinesisRegion",
            f"expected the name of a region, such as eu-west-1, not {shown(region)}",
        )
    if secret is not None:
        checked_object(secret, field="option kinesisSecret")
    return Server(endpoint=endpoint, region=region, secret=secret)


def _start(options: Mapping[str, str], streams: tuple[str, ...]) -> Start:
    at = StartAt(choice(options, "startingPosition", _POSITIONS).upper())
    time, numbers = options.get("startingtimestamp"), options.get("startingsequencenumbers")
    start = Start(
        at=at,
        time=None if time is None else _millis(time),
        sequences=() if numbers is None else _sequences(numbers),
    )
    return checked_start(start, streams, _WORDS)


def _millis(text: str) -> int:
    try:
        time = text.strip()
        if time.isdecimal():
            return int(time)
        parsed = dt.datetime.fromisoformat(time)
    except ValueError as error:
        raise rejected(
            "startingTimestamp", f"expected a time such as 2026-01-31T12:00:00Z, not {shown(text)}"
        ) from error
    if parsed.tzinfo is None:
        raise rejected("startingTimestamp", f"{shown(text)} has no time zone: add Z for UTC")
    if (millis := round(parsed.timestamp() * 1000)) < 0:
        raise rejected("startingTimestamp", f"{shown(text)} is before 1970")
    return millis


def _sequences(text: str) -> tuple[tuple[str, str, int], ...]:
    wrong = rejected(
        "startingSequenceNumbers",
        f"expected streams with their shards and numbers, not {shown(text)}",
    )
    try:
        found: Any = json.loads(text)
        entries = [
            (stream, shard, str(number))
            for stream, shards in found.items()
            for shard, number in shards.items()
        ]
    except (ValueError, AttributeError, RecursionError) as error:
        raise wrong from error
    if not entries or not all(_NUMBER.match(number) for _, _, number in entries):
        raise wrong
    return tuple((stream, shard, int(number)) for stream, shard, number in sorted(entries))
