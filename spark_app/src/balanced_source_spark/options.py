"""Options of ``spark.readStream.format("balanced")``.

Those of one kind of source are its connector's.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from balanced_source.api import Boundedness, Source
from balanced_source.assigners import STRATEGIES, SplitAssigner
from balanced_source.documents.environment import HOST, port_of
from balanced_source.documents.pipeline import DEFAULT_CONNECTOR
from balanced_source.documents.storage import FIRST_HOST
from balanced_source.documents.stream_offset import STATE_DIR
from balanced_source.errors import InvalidSpecError
from balanced_source.names import checked_label, checked_object, separated
from balanced_source_adapters.connectors import installed
from balanced_source_adapters.mistakes import explained
from balanced_source_adapters.registrations import BUILT_IN
from balanced_source_spark.contract.ddl import check_names
from balanced_source_spark.contract.half import (
    AnyHalf,
    Choices,
    Query,
    SparkHalf,
    half_of,
    secrets_in,
)
from balanced_source_spark.contract.half_answers import asked
from balanced_source_spark.contract.option_table import (
    Option,
    check_options,
    is_embedded,
    options_page,
    rejected,
    where_options_are,
)
from balanced_source_spark.contract.secrets import NO_SECRETS, QuerySecrets
from balanced_source_spark.contract.values import number, one_of, positive, seconds
from balanced_source_spark.control import MOST_READERS
from balanced_source_spark.journal_options import OPTIONS as JOURNAL_OPTIONS
from balanced_source_spark.journal_options import JournalOptions, journal_options
from balanced_source_spark.option_names import OPTIONS

MIN_GROUP_IDLE: Final = 3.0
"""Seconds; sources of a group hear of each other every few seconds."""

PATIENCE: Final = 30
"""Seconds to wait for executors unless told otherwise; then the readers share the available ones.

A pod whose image is on the node takes 10 to 20.
"""

SERVERS_PATIENCE: Final = 60
"""Seconds that a query without an operator waits for the servers of its source, as Kafka's clients
do."""

OPERATOR_PATIENCE: Final = 300
"""Seconds that a query waits for an operator, which may be about to be installed or upgraded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentOptions:
    """Event-time alignment by admission, see `balanced_source.host.alignment`.

    Attributes:
        max_drift: milliseconds that a split may be ahead of the slowest active one.
        idle_timeout: seconds after which a split that is read to its end holds the others back no
            more.
        group: sources of the namespace with the same group wait for each other; None: this one is
            alone.
    """

    max_drift: int
    idle_timeout: float = 30.0
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user, or our packaged application, asked for. Keys are lower case: Spark folds them.

    Exactly one of three ways to get an assignment: from an operator (`source`), from a folder
    (`assignment_dir`), or by itself (`embedded`).

    Attributes:
        source: name of the BalancedSource.
        namespace: its namespace.
        uid: its uid; documents of another one are refused.
        assignment_dir: folder of local mode.
        embedded: the source, when the driver enumerates its splits itself.
        parallelism: number of readers then.
        host: name of this reader host.
        former_hosts: other hosts whose Spark checkpoints hold splits, as far as the query knows.
        connector: kind of the source.
        read: what schema and tasks must know, see `SparkHalf.read_options`.
        secrets: of the query.
        max_records_per_reader: from how many records in a micro-batch on the surplus of a reader is
            read by others, as ranges of its splits; None: a split is never cut.
        alignment: None: splits are read as far as they are, whatever the time of their records.
        executors_dir: folder in which the driver's own program follows the number of readers, see
            `executors`.
        executor_patience: longest time, in seconds, that a larger parallelism waits for its
            executors.
        metrics_port: where the driver serves Prometheus metrics of the query; None: nowhere.
        start_timeout: seconds to wait for the first assignment where waiting is unavoidable.
        accept_checkpoint_of: namespace and name of another source whose Spark checkpoint this query
            continues from.
        notes: sentences about options that have no effect; a query logs them when it starts.
        journal: where and how a source is read whose ends are not known; None: they are.
        schema: see `Query`.
        zone: availability zone of the driver, if the user says it; else empty.
        state_dir: folder of the enumerator state, when the driver enumerates its splits itself;
            None: Spark's checkpoint is all that is stored.
    """

    source: str | None = None
    namespace: str = "default"
    uid: str = ""
    assignment_dir: Path | None = None
    embedded: Source[Any, Any] | None = None
    parallelism: int = 1
    host: str = FIRST_HOST
    former_hosts: tuple[str, ...] = ()
    connector: str = DEFAULT_CONNECTOR
    read: Any = None
    secrets: QuerySecrets = NO_SECRETS
    max_records_per_reader: int | None = None
    alignment: AlignmentOptions | None = None
    executors_dir: Path | None = None
    executor_patience: float = PATIENCE
    metrics_port: int | None = None
    start_timeout: float = float(OPERATOR_PATIENCE)
    accept_checkpoint_of: str = ""
    notes: tuple[str, ...] = ()
    journal: JournalOptions | None = None
    schema: Any = None
    zone: str = ""
    state_dir: Path | None = None

    @property
    def checkpoint_owner(self) -> str:
        """What must be there for a restart besides the checkpoint.

        Namespace and name of the BalancedSource that the query reads; `STATE_DIR`; or nothing.
        """
        if self.source:
            return f"{self.namespace}/{self.source}"
        own = self.embedded
        # Their splits leave the checkpoint when they are read: only the state knows of them.
        leave = own is not None and (own.boundedness is Boundedness.BOUNDED or own.look_ahead > 0)
        return STATE_DIR if leave and self.state_dir is not None else ""


def client_id(options: Options) -> str:
    """What servers see in their logs and quotas."""
    return f"balanced-source-{options.source or 'embedded'}"


def query_of(options: Options) -> Query[Any]:
    """Return what the connector's Spark half knows of a query."""
    return Query(
        client_id=client_id(options),
        secrets=options.secrets,
        read=options.read,
        has_metrics=options.metrics_port is not None,
        journal=options.journal.store if options.journal is not None else None,
        schema=options.schema,
    )


def parse_options(raw: Mapping[str, str], *, is_batch: bool = False, schema: Any = None) -> Options:
    """Read the options that were set on the reader.

    Args:
        raw: as Spark passes them.
        is_batch: a batch query starts at the earliest offsets and ends at the latest, unless told
            otherwise.
        schema: see `Query`.

    Raises:
        InvalidSpecError: an option is unknown, or its value is invalid; names the option.
        ConnectorError: the connector is not installed, or is broken.
    """
    options = {key.lower(): value for key, value in raw.items()}
    _check_names(options)
    connector = options.get("connector", DEFAULT_CONNECTOR)
    half = half_of(connector)
    is_stream = schema is not None and not is_batch
    choices = Choices(assigner=_assigner(options), is_batch=is_batch, is_stream=is_stream)
    _check_columns(schema)
    with explained(connector, "reading its options"):
        own = _read_by(connector, half, options, choices)
    source, folder = options.get("source"), options.get("assignmentdir")
    return Options(
        source=source,
        namespace=options.get("namespace", "default"),
        uid=options.get("uid", ""),
        assignment_dir=Path(folder) if folder else None,
        embedded=own.source,
        parallelism=number(options, "parallelism", 1, least=1, most=MOST_READERS),
        host=_host(options),
        former_hosts=_former_hosts(options),
        connector=connector,
        read=own.read,
        secrets=own.secrets,
        executors_dir=Path(options["executorsdir"]) if "executorsdir" in options else None,
        executor_patience=seconds(
            options.get("executorpatience", f"{PATIENCE}s"), "executorPatience"
        ),
        metrics_port=_metrics_port(options),
        alignment=_alignment(options),
        max_records_per_reader=positive(options, "maxRecordsPerReader"),
        start_timeout=float(number(options, "startTimeoutSeconds", _patience(options), least=1)),
        accept_checkpoint_of=options.get("acceptcheckpointof", ""),
        notes=own.notes,
        journal=None if isinstance(half, SparkHalf) else journal_options(options),
        schema=schema,
        zone=options.get("zone", ""),
        state_dir=Path(options["statedir"])
        if options.get("statedir") and is_embedded(options)
        else None,
    )


class _Own(NamedTuple):
    """What the connector makes of the options."""

    notes: tuple[str, ...]
    source: Source[Any, Any] | None
    read: Any
    secrets: QuerySecrets


def _read_by(
    connector: str, half: AnyHalf[Any], options: Mapping[str, str], choices: Choices
) -> _Own:
    embedded, ask = is_embedded(options), partial(asked, connector, half)
    notes = _checked(options, half)
    read = ask("read_options", options)  # before the source: it checks the options of parts
    return _Own(
        notes=notes,
        source=ask("source", options, choices) if embedded else None,
        read=read,
        secrets=ask("secrets", options) if embedded else secrets_in(options),
    )


def _check_columns(schema: Any) -> None:
    """Check the columns that the user may have set: the half's own were checked."""
    try:
        check_names(schema.names if schema is not None else ())
    except ValueError as error:
        raise InvalidSpecError(str(error), field="schema") from error


def _checked(options: Mapping[str, str], half: AnyHalf[Any]) -> tuple[str, ...]:
    """Return sentences about options that have no effect.

    An unknown one is an error if the connector names its own.
    """
    connector = options.get("connector", DEFAULT_CONNECTOR)
    own: Sequence[Option] | None = asked(connector, half, "options")
    if own is None:
        return tuple(asked(connector, half, "notes", options))
    known = (*OPTIONS, *(() if isinstance(half, SparkHalf) else JOURNAL_OPTIONS), *own)
    where = _where(connector, half, own)
    idle = check_options(options, known, is_embedded=is_embedded(options), where=where)
    return *idle, *asked(connector, half, "notes", options)


def _where(connector: str, half: AnyHalf[Any], own: Sequence[Option]) -> str:
    if connector in BUILT_IN:
        return options_page()
    return where_options_are(
        connector, own, package=installed().package_of(connector), reference=half.reference
    )


def _patience(options: Mapping[str, str]) -> int:
    return SERVERS_PATIENCE if is_embedded(options) else OPERATOR_PATIENCE


def _check_names(options: Mapping[str, str]) -> None:
    """They become parts of URLs and of file names."""
    for name in ("source", "namespace"):
        if name in options:
            checked_object(options[name], field=f"option {name}")
    if "host" in options:
        checked_label(options["host"], field="option host")


def _host(options: Mapping[str, str]) -> str:
    """Return the host that the query is.

    What the operator has told its driver, unless an option says otherwise.
    """
    from_operator = os.environ.get(HOST) if options.get("source") else None
    return checked_label(options.get("host") or from_operator or FIRST_HOST, field="option host")


def _former_hosts(options: Mapping[str, str]) -> tuple[str, ...]:
    names = separated(options.get("formerhosts", ""))
    return tuple(checked_label(name, field="option formerHosts") for name in names)


def _metrics_port(options: Mapping[str, str]) -> int | None:
    """Return where metrics are served.

    Where the operator has told its driver, unless an option says otherwise.
    """
    if "metricsport" in options or not options.get("source"):
        return positive(options, "metricsPort")
    return port_of(os.environ) or None


def _assigner(options: Mapping[str, str]) -> SplitAssigner:
    name = options.get("strategy", "RoundRobin")
    if name not in STRATEGIES:
        raise rejected("strategy", one_of(name, STRATEGIES))
    return STRATEGIES[name]()


def _alignment(options: Mapping[str, str]) -> AlignmentOptions | None:
    drift, idle = options.get("alignmentmaxdrift"), options.get("alignmentidletimeout", "30s")
    if drift is None:
        return None
    max_drift = round(seconds(drift, "alignmentMaxDrift") * 1000)
    if max_drift < 1:
        raise rejected("alignmentMaxDrift", "must be longer than 0")
    group = options.get("alignmentgroup")
    if group is not None and "source" not in options:
        raise rejected(
            "alignmentGroup", "only sources of an operator can be aligned together: leave it out"
        )
    idle_timeout = seconds(idle, "alignmentIdleTimeout")
    if group is not None and idle_timeout < MIN_GROUP_IDLE:
        raise rejected("alignmentIdleTimeout", f"must be at least {MIN_GROUP_IDLE:.0f}s in a group")
    return AlignmentOptions(max_drift=max_drift, idle_timeout=idle_timeout, group=group)
