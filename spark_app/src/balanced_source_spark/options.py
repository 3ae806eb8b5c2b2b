"""Options of ``spark.readStream.format("balanced")``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from balanced_source.assigners import STRATEGIES
from balanced_source.connectors.kafka import (
    EARLIEST,
    LATEST,
    KafkaCluster,
    KafkaSource,
    KafkaSubscriber,
    PartitionSet,
    TopicList,
    TopicPattern,
    check_properties,
)
from balanced_source.errors import InvalidSpecError
from balanced_source_spark.kafka.arrow import PLAIN, TYPES

_KAFKA_PREFIX = "kafka."


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user, or our packaged application, asked for. Keys are lower case: Spark folds them.

    Exactly one of three ways to get an assignment: from an operator (`source`), from a folder (`assignment_dir`), or
    by itself (`embedded`).

    Attributes:
        source: name of the BalancedSource.
        namespace: its namespace.
        uid: its uid; documents of another one are refused.
        assignment_dir: folder of local mode.
        embedded: the source, when the driver enumerates its splits itself.
        parallelism: number of readers then.
        host: name of this reader host.
        include_headers: whether rows have a column `headers`, unless `columns` says which they have.
        columns: of the rows, in this order; what is not asked for is not made.
        secrets_dir: folder with one folder per Secret, with a file per property.
        max_records_per_reader: from how many records in a micro-batch on the surplus of a reader is read by others,
            as ranges of its splits; None: a split is never cut.
        start_timeout: seconds to wait for the first assignment where waiting is unavoidable.
    """

    source: str | None = None
    namespace: str = "default"
    uid: str = ""
    assignment_dir: Path | None = None
    embedded: KafkaSource | None = None
    parallelism: int = 1
    host: str = "0"
    include_headers: bool = False
    columns: tuple[str, ...] = PLAIN
    secrets_dir: Path | None = None
    max_records_per_reader: int | None = None
    start_timeout: float = 300.0


def parse_options(raw: Mapping[str, str]) -> Options:
    """Read the options that were set on the reader.

    Raises:
        InvalidSpecError: names the option.
    """
    options = {key.lower(): value for key, value in raw.items()}
    source, folder = options.get("source"), options.get("assignmentdir")
    embedded = None if source or folder else _embedded(options)
    secrets = options.get("secretsdir")
    include_headers = options.get("includeheaders", "false").lower() == "true"
    return Options(
        source=source,
        namespace=options.get("namespace", "default"),
        uid=options.get("uid", ""),
        assignment_dir=Path(folder) if folder else None,
        embedded=embedded,
        parallelism=_number(options, "parallelism", 1),
        host=options.get("host", "0"),
        include_headers=include_headers,
        columns=_columns(options.get("columns"), include_headers=include_headers),
        secrets_dir=Path(secrets) if secrets else None,
        max_records_per_reader=_positive(options, "maxrecordsperreader"),
        start_timeout=float(_number(options, "starttimeoutseconds", 300)),
    )


def _columns(value: str | None, *, include_headers: bool) -> tuple[str, ...]:
    if value is None:
        return tuple(TYPES) if include_headers else PLAIN
    chosen = tuple(name.strip() for name in value.split(","))
    if unknown := [name for name in chosen if name not in TYPES]:
        raise InvalidSpecError(f"no column {unknown[0]!r}; there are {', '.join(TYPES)}", field="options.columns")
    if len(set(chosen)) != len(chosen):
        raise InvalidSpecError(f"a column is named twice in {value!r}", field="options.columns")
    return chosen


def _embedded(options: Mapping[str, str]) -> KafkaSource:
    """A source of one cluster from the options of Spark's own Kafka source."""
    bootstrap = options.get("kafka.bootstrap.servers")
    if not bootstrap:
        raise InvalidSpecError(
            "set `source` (an operator assigns), `assignmentDir` (local mode) or `kafka.bootstrap.servers` (by itself)",
            field="options",
        )
    properties = {
        key.removeprefix(_KAFKA_PREFIX): value
        for key, value in options.items()
        if key.startswith(_KAFKA_PREFIX) and key != "kafka.bootstrap.servers"
    }
    check_properties(properties, field="options")
    return KafkaSource(
        clusters=(KafkaCluster(name="kafka", bootstrap_servers=bootstrap, properties=properties),),
        subscriber=_subscriber(options),
        starting_offsets=_starting(options),
        assigner=STRATEGIES[options.get("strategy", "RoundRobin")](),
        discovery_interval=float(_number(options, "discoveryintervalseconds", 300)) or None,
    )


def _subscriber(options: Mapping[str, str]) -> KafkaSubscriber:
    chosen = [key for key in ("subscribe", "subscribepattern", "assign") if key in options]
    if len(chosen) != 1:
        raise InvalidSpecError("exactly one of subscribe, subscribePattern and assign is needed", field="options")
    value = options[chosen[0]]
    if chosen == ["subscribe"]:
        return TopicList(tuple(name.strip() for name in value.split(",")))
    if chosen == ["subscribepattern"]:
        return TopicPattern(value)
    return PartitionSet(_partitions(value))


def _partitions(value: str) -> frozenset[tuple[str, int]]:
    try:
        listed: Any = json.loads(value)
        return frozenset((str(topic), int(p)) for topic, partitions in listed.items() for p in partitions)
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidSpecError(f'expected {{"topic":[0,1]}}, got {value!r}', field="options.assign") from error


def _starting(options: Mapping[str, str]) -> Any:
    value = options.get("startingoffsets", "latest").lower()
    known = {"earliest": EARLIEST, "latest": LATEST}
    if value not in known:
        raise InvalidSpecError(f"earliest or latest, not {value!r}", field="options.startingOffsets")
    return known[value]


def _number(options: Mapping[str, str], key: str, default: int) -> int:
    value = options.get(key, str(default))
    try:
        return int(value)
    except ValueError as error:
        raise InvalidSpecError(f"a number, not {value!r}", field=f"options.{key}") from error


def _positive(options: Mapping[str, str], key: str) -> int | None:
    if key not in options:
        return None
    number = _number(options, key, 0)
    if number < 1:
        raise InvalidSpecError(f"at least 1, not {number}", field=f"options.{key}")
    return number
