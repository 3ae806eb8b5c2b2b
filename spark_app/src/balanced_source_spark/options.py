"""Options of ``spark.readStream.format("balanced")``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from balanced_source import durations
from balanced_source.assigners import STRATEGIES, SplitAssigner
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
from balanced_source.names import checked_label, checked_object, shown
from balanced_source_spark.kafka.names import COLUMNS, PLAIN
from balanced_source_spark.kafka.settings import PREFETCH
from balanced_source_spark.offset_options import ending_offsets, starting_offsets

MIN_GROUP_IDLE: Final = 3.0
"""Seconds; sources of a group hear of each other every few seconds."""

PATIENCE: Final = 30
"""Seconds to wait for executors unless told otherwise; then the readers share those that there are. A pod whose image
is on the node takes 10 to 20."""

_KAFKA_PREFIX = "kafka."


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """Event-time alignment by admission, see `balanced_source.host.alignment`.

    Attributes:
        max_drift: milliseconds that a split may be ahead of the slowest active one.
        idle_timeout: seconds after which a split that is read to its end holds the others back no more.
        group: sources of the namespace with the same group wait for each other; None: this one is alone.
    """

    max_drift: int
    idle_timeout: float = 30.0
    group: str | None = None


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
        reader: which implementation reads: `auto`, `native` or `python`.
        prefetch: bytes that one reader fetches ahead at most.
        max_records_per_reader: from how many records in a micro-batch on the surplus of a reader is read by others,
            as ranges of its splits; None: a split is never cut.
        alignment: None: splits are read as far as they are, whatever the time of their records.
        executors_dir: folder in which the driver's own program follows the number of readers, see `executors`.
        executor_patience: longest time, in seconds, that a larger parallelism waits for its executors.
        metrics_port: where the driver serves Prometheus metrics of the query; None: nowhere.
        start_timeout: seconds to wait for the first assignment where waiting is unavoidable.
        accept_checkpoint_of: namespace and name of another source whose Spark checkpoint this query goes on from.
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
    reader: str = "auto"
    prefetch: int = PREFETCH
    max_records_per_reader: int | None = None
    alignment: Alignment | None = None
    executors_dir: Path | None = None
    executor_patience: float = PATIENCE
    metrics_port: int | None = None
    start_timeout: float = 300.0
    accept_checkpoint_of: str = ""

    @property
    def checkpoint_owner(self) -> str:
        """Namespace and name of the BalancedSource that the query reads; empty without one."""
        return f"{self.namespace}/{self.source}" if self.source else ""


def client_id(options: Options) -> str:
    """What brokers see in their logs and quotas."""
    return f"balanced-source-{options.source or 'embedded'}"


def parse_options(raw: Mapping[str, str], *, is_batch: bool = False) -> Options:
    """Read the options that were set on the reader.

    Args:
        raw: as Spark passes them.
        is_batch: a batch query starts at the earliest offsets and ends at the latest, unless told otherwise.

    Raises:
        InvalidSpecError: names the option.
    """
    options = {key.lower(): value for key, value in raw.items()}
    source, folder = options.get("source"), options.get("assignmentdir")
    _check_names(options)
    embedded = None if source or folder else _embedded(options, is_batch=is_batch)
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
        reader=_choice(options, "reader", ("auto", "native", "python")),
        prefetch=_positive(options, "prefetchbytes") or PREFETCH,
        executors_dir=Path(options["executorsdir"]) if "executorsdir" in options else None,
        executor_patience=_seconds(options.get("executorpatience", f"{PATIENCE}s"), "executorPatience"),
        metrics_port=_positive(options, "metricsport"),
        alignment=_alignment(options),
        max_records_per_reader=_positive(options, "maxrecordsperreader"),
        start_timeout=float(_number(options, "starttimeoutseconds", 300)),
        accept_checkpoint_of=options.get("acceptcheckpointof", ""),
    )


def _check_names(options: Mapping[str, str]) -> None:
    """They become parts of URLs and of file names."""
    for name in ("source", "namespace"):
        if name in options:
            checked_object(options[name], field=f"options.{name}")
    if "host" in options:
        checked_label(options["host"], field="options.host")


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


def _embedded(options: Mapping[str, str], *, is_batch: bool) -> KafkaSource:
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
        starting_offsets=starting_offsets(options, default="earliest" if is_batch else "latest"),
        stopping_offsets=ending_offsets(options) or (LATEST if is_batch else None),
        assigner=_assigner(options),
        discovery_interval=float(_number(options, "discoveryintervalseconds", 300)) or None,
        limits=_limits(options),
        on_data_loss=_on_data_loss(options),
        commit_group=options.get("commitgroup"),
    )


def _assigner(options: Mapping[str, str]) -> SplitAssigner:
    name = options.get("strategy", "RoundRobin")
    if name not in STRATEGIES:
        raise InvalidSpecError(f"one of {', '.join(STRATEGIES)}, not {shown(name)}", field="options.strategy")
    return STRATEGIES[name]()


def _limits(options: Mapping[str, str]) -> ReadLimits:
    return ReadLimits(
        max_records=_positive(options, "maxoffsetspertrigger"),
        max_records_per_split=_positive(options, "maxoffsetspersplit"),
        max_bytes=_positive(options, "maxbytespertrigger"),
        min_records=_positive(options, "minoffsetspertrigger"),
        max_delay=_seconds(options.get("maxtriggerdelay", "15m"), "maxTriggerDelay"),
    )


def _on_data_loss(options: Mapping[str, str]) -> OnDataLoss:
    is_failing = _choice(options, "failondataloss", ("true", "false")) == "true"
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


def _number(options: Mapping[str, str], key: str, default: int) -> int:
    value = options.get(key, str(default))
    try:
        return int(value)
    except ValueError as error:
        raise InvalidSpecError(f"a number, not {shown(value)}", field=f"options.{key}") from error


def _alignment(options: Mapping[str, str]) -> Alignment | None:
    drift, idle = options.get("alignmentmaxdrift"), options.get("alignmentidletimeout", "30s")
    if drift is None:
        return None
    max_drift = round(_seconds(drift, "alignmentMaxDrift") * 1000)
    if max_drift < 1:
        raise InvalidSpecError("must be longer than 0", field="options.alignmentMaxDrift")
    group = options.get("alignmentgroup")
    if group is not None and "source" not in options:
        raise InvalidSpecError("only sources of an operator can be aligned together", field="options.alignmentGroup")
    idle_timeout = _seconds(idle, "alignmentIdleTimeout")
    if group is not None and idle_timeout < MIN_GROUP_IDLE:
        raise InvalidSpecError(f"at least {MIN_GROUP_IDLE:.0f}s in a group", field="options.alignmentIdleTimeout")
    return Alignment(max_drift=max_drift, idle_timeout=idle_timeout, group=group)


def _seconds(duration: str, name: str) -> float:
    """``500ms``, ``5m``, ``1h30m``, or ``0``, as in the custom resource."""
    if not durations.is_duration(duration):
        raise InvalidSpecError(f"a duration such as 500ms, 5m or 1h30m, not {shown(duration)}", field=f"options.{name}")
    return durations.seconds(duration)


def _choice(options: Mapping[str, str], key: str, known: tuple[str, ...]) -> str:
    value = options.get(key, known[0]).lower()
    if value not in known:
        raise InvalidSpecError(f"one of {', '.join(known)}, not {shown(value)}", field=f"options.{key}")
    return value


def _positive(options: Mapping[str, str], key: str) -> int | None:
    if key not in options:
        return None
    number = _number(options, key, 0)
    if number < 1:
        raise InvalidSpecError(f"at least 1, not {number}", field=f"options.{key}")
    return number
