"""Options of ``format("balanced")`` for Kafka: the names, forms and defaults of Spark's own Kafka source."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from balanced_source.connectors.kafka import (
    LATEST,
    KafkaCluster,
    KafkaSource,
    KafkaSubscriber,
    OnDataLoss,
    PartitionSet,
    ReadLimits,
    TopicList,
    TopicPattern,
    check_properties,
)
from balanced_source.connectors.kafka.pattern import PatternError, compiled
from balanced_source.errors import InvalidSpecError
from balanced_source.names import shown
from balanced_source_spark.contract.half import Choices
from balanced_source_spark.contract.values import choice, number, positive, seconds
from balanced_source_spark.kafka.names import COLUMNS, PLAIN
from balanced_source_spark.kafka.offset_options import ending_offsets, starting_offsets
from balanced_source_spark.kafka.settings import PREFETCH

_PREFIX: Final = "kafka."


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


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """Return how tasks read.

    Raises:
        InvalidSpecError: names the option.
    """
    include_headers = options.get("includeheaders", "false").lower() == "true"
    return ReadOptions(
        columns=_columns(options.get("columns"), include_headers=include_headers),
        prefetch=positive(options, "prefetchbytes") or PREFETCH,
        implementation=choice(options, "reader", ("auto", "native", "python")),
    )


def embedded_source(options: Mapping[str, str], choices: Choices) -> KafkaSource:
    """Return a source of one cluster. A batch query has no limits: they are of micro-batches.

    Raises:
        InvalidSpecError: names the option.
    """
    bootstrap = options.get("kafka.bootstrap.servers")
    if not bootstrap:
        raise InvalidSpecError(
            "set `source` (an operator assigns), `assignmentDir` (local mode) or `kafka.bootstrap.servers` (by itself)",
            field="options",
        )
    properties = {
        key.removeprefix(_PREFIX): value
        for key, value in options.items()
        if key.startswith(_PREFIX) and key != "kafka.bootstrap.servers"
    }
    check_properties(properties, field="options")
    source = KafkaSource(
        clusters=(KafkaCluster(name="kafka", bootstrap_servers=bootstrap, properties=properties),),
        subscriber=_subscriber(options),
        starting_offsets=starting_offsets(options, default="earliest" if choices.is_batch else "latest"),
        stopping_offsets=ending_offsets(options) or (LATEST if choices.is_batch else None),
        assigner=choices.assigner,
        discovery_interval=float(number(options, "discoveryintervalseconds", 300)) or None,
        limits=_limits(options),
        on_data_loss=_on_data_loss(options),
        commit_group=options.get("commitgroup"),
    )
    return replace(source, limits=ReadLimits()) if choices.is_batch else source


def _columns(value: str | None, *, include_headers: bool) -> tuple[str, ...]:
    if value is None:
        return COLUMNS if include_headers else PLAIN
    chosen = tuple(name.strip() for name in value.split(","))
    if unknown := [name for name in chosen if name not in COLUMNS]:
        raise InvalidSpecError(
            f"no column {shown(unknown[0])}; there are {', '.join(COLUMNS)}", field="options.columns"
        )
    if len(set(chosen)) != len(chosen):
        raise InvalidSpecError(f"a column is named twice in {shown(value)}", field="options.columns")
    return chosen


def _limits(options: Mapping[str, str]) -> ReadLimits:
    return ReadLimits(
        max_records=positive(options, "maxoffsetspertrigger"),
        max_records_per_split=positive(options, "maxoffsetspersplit"),
        max_bytes=positive(options, "maxbytespertrigger"),
        min_records=positive(options, "minoffsetspertrigger"),
        max_delay=seconds(options.get("maxtriggerdelay", "15m"), "maxTriggerDelay"),
    )


def _on_data_loss(options: Mapping[str, str]) -> OnDataLoss:
    is_failing = choice(options, "failondataloss", ("true", "false")) == "true"
    return OnDataLoss.FAIL if is_failing else OnDataLoss.CONTINUE


def _subscriber(options: Mapping[str, str]) -> KafkaSubscriber:
    chosen = [key for key in ("subscribe", "subscribepattern", "assign") if key in options]
    if len(chosen) != 1:
        raise InvalidSpecError("exactly one of subscribe, subscribePattern and assign is needed", field="options")
    value = options[chosen[0]]
    if chosen == ["subscribe"]:
        return TopicList(tuple(name.strip() for name in value.split(",")))
    if chosen == ["subscribepattern"]:
        return TopicPattern(_checked_pattern(value))
    return PartitionSet(_partitions(value))


def _checked_pattern(value: str) -> str:
    try:
        compiled(value)
    except PatternError as error:
        raise InvalidSpecError(str(error), field="options.subscribePattern") from error
    return value


def _partitions(value: str) -> frozenset[tuple[str, int]]:
    try:
        listed: Any = json.loads(value)
        return frozenset((str(topic), int(p)) for topic, partitions in listed.items() for p in partitions)
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidSpecError(f'expected {{"topic":[0,1]}}, got {shown(value)}', field="options.assign") from error
