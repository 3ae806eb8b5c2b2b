"""Options of ``format("balanced")`` for Kafka.

The names, forms and defaults of Spark's own Kafka source.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from balanced_source.connectors.kafka import (
    LATEST,
    KafkaCluster,
    KafkaSource,
    KafkaSubscriber,
    OffsetsInitializer,
    OnDataLoss,
    PartitionSet,
    ReadLimits,
    TopicList,
    TopicPattern,
)
from balanced_source.connectors.kafka.pattern import PatternError, compiled
from balanced_source.errors import InvalidSpecError
from balanced_source.names import shown
from balanced_source_spark.contract.half import Choices
from balanced_source_spark.contract.option_table import rejected
from balanced_source_spark.contract.values import choice, flag, number, one_of, positive, seconds
from balanced_source_spark.kafka.client_options import (
    bootstrap_servers,
    client_properties,
    secret_names,
)
from balanced_source_spark.kafka.names import COLUMNS, PLAIN
from balanced_source_spark.kafka.offset_options import (
    check_subscribed,
    ending_offsets,
    given_as,
    starting_offsets,
)
from balanced_source_spark.kafka.partition_json import partitions_of
from balanced_source_spark.kafka.settings import PREFETCH


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How tasks read.

    Attributes:
        columns: of the rows, in this order; columns that are not asked for are not made.
        prefetch: bytes that one reader fetches ahead at most.
        implementation: which implementation reads: `auto`, `native` or `python`.
    """

    columns: tuple[str, ...] = PLAIN
    prefetch: int = PREFETCH
    implementation: str = "auto"


RETENTION: Final = 7 * 86400.0
"""Seconds for which positions of removed topics are kept: as with an operator, by default. A topic
that is hidden for a while, such as by a lost right, must not be read again from its start."""


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """Return how tasks read.

    Raises:
        InvalidSpecError: names the option.
    """
    include_headers = flag(options, "includeHeaders", default=False)
    return ReadOptions(
        columns=_columns(options.get("columns"), include_headers=include_headers),
        prefetch=positive(options, "prefetchBytes") or PREFETCH,
        implementation=choice(options, "reader", ("auto", "native", "python")),
    )


def embedded_source(options: Mapping[str, str], choices: Choices) -> KafkaSource:
    """Return a source of one cluster. A batch query has no limits: they are of micro-batches.

    Raises:
        InvalidSpecError: names the option.
    """
    servers = bootstrap_servers(options)
    subscriber = _subscriber(options)
    cluster = KafkaCluster(
        name="kafka",  # in split ids, checkpoints and rows: it never changes
        bootstrap_servers=servers,
        properties=client_properties(options),
        secrets=secret_names(options),
        is_named=False,
    )
    source = KafkaSource(
        clusters=(cluster,),
        subscriber=subscriber,
        starting_offsets=_start(
            options,
            subscriber,
            default="earliest" if choices.is_batch or choices.is_part else "latest",
            is_batch=choices.is_batch,
        ),
        stopping_offsets=_stop(options, subscriber) or (LATEST if choices.is_batch else None),
        assigner=choices.assigner,
        discovery_interval=float(number(options, "discoveryIntervalSeconds", 300)) or None,
        limits=_limits(options),
        on_data_loss=_on_data_loss(options),
        commit_group=options.get("commitgroup"),
        retention=RETENTION,
    )
    return replace(source, limits=ReadLimits()) if choices.is_batch else source


def _start(
    options: Mapping[str, str], subscriber: KafkaSubscriber, *, default: str, is_batch: bool
) -> OffsetsInitializer:
    start = starting_offsets(options, default=default)
    if is_batch and start == LATEST:
        raise rejected(
            "startingOffsets",
            "a batch query that starts at latest would read nothing: set earliest, offsets as JSON"
            " or startingTimestamp",
        )
    check_subscribed(start, subscriber, given_as(options, "starting"))
    return start


def _stop(options: Mapping[str, str], subscriber: KafkaSubscriber) -> OffsetsInitializer | None:
    stop = ending_offsets(options)
    check_subscribed(stop, subscriber, given_as(options, "ending"))
    return stop


def _columns(value: str | None, *, include_headers: bool) -> tuple[str, ...]:
    if value is None:
        return COLUMNS if include_headers else PLAIN
    chosen = tuple(name.strip() for name in value.split(","))
    if unknown := [name for name in chosen if name not in COLUMNS]:
        raise rejected("columns", one_of(unknown[0], COLUMNS))
    if len(set(chosen)) != len(chosen):
        raise rejected("columns", f"{shown(value)} names a column twice: name each once")
    return chosen


def _limits(options: Mapping[str, str]) -> ReadLimits:
    return ReadLimits(
        max_records=positive(options, "maxOffsetsPerTrigger"),
        max_records_per_split=positive(options, "maxOffsetsPerSplit"),
        max_bytes=positive(options, "maxBytesPerTrigger"),
        min_records=positive(options, "minOffsetsPerTrigger"),
        max_delay=seconds(options.get("maxtriggerdelay", "15m"), "maxTriggerDelay"),
    )


def _on_data_loss(options: Mapping[str, str]) -> OnDataLoss:
    return OnDataLoss.FAIL if flag(options, "failOnDataLoss", default=True) else OnDataLoss.CONTINUE


def _subscriber(options: Mapping[str, str]) -> KafkaSubscriber:
    chosen = [key for key in ("subscribe", "subscribepattern", "assign") if key in options]
    if len(chosen) != 1:
        raise InvalidSpecError(
            "set exactly one of subscribe, subscribePattern and assign", field="options"
        )
    value = options[chosen[0]]
    if chosen == ["subscribe"]:
        return TopicList(_topics(value))
    if chosen == ["subscribepattern"]:
        return TopicPattern(_checked_pattern(value))
    return PartitionSet(_partitions(value))


def _checked_pattern(value: str) -> str:
    try:
        compiled(value)
    except PatternError as error:
        raise rejected("subscribePattern", str(error)) from error
    return value


def _topics(value: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in value.split(",")))
    if "" in names:
        raise rejected(
            "subscribe", f"expected names of topics, separated by commas, not {shown(value)}"
        )
    return names


def _partitions(value: str) -> frozenset[tuple[str, int]]:
    try:
        listed: Any = json.loads(value)
        found = frozenset(
            (str(topic), partition)
            for topic, partitions in listed.items()
            for partition in partitions_of(partitions)
        )
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise rejected("assign", f'expected {{"topic":[0,1]}}, not {shown(value)}') from error
    if not found or min(partition for _, partition in found) < 0:
        raise rejected(
            "assign", f"{shown(value)} names no partition: numbers of partitions begin at 0"
        )
    return found
