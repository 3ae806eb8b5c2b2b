"""What the packaged application does with the rows: the operator writes it, the driver reads it.

Operator and driver may be of different releases: the image of a running application is the user's.
Version 1 has no number, because release 0.1.0 wrote none; version 2 adds `connector`, and is
written only for sources that need it. Unknown keys are ignored, so that a field with a harmless
default needs no new version; one that an older driver must not ignore does, and its writer adds the
number.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar, assert_never

from balanced_source.api import Json
from balanced_source.documents.envelope import MALFORMED
from balanced_source.errors import CorruptDocumentError, IncompatibleVersionError, in_short

VERSION: Final = 2
"""Newest version that `from_json` reads."""

DEFAULT_CONNECTOR: Final = "kafka"
"""Kind of the source of a pipeline that names none: release 0.1.0 knew no other one."""

_HEADERS: Final = "includeHeaders"
"""An option of Kafka that is a field of its own in the document: release 0.1.0 knew no options."""

_TRUE: Final = "true"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Where the result is written to.

    Attributes:
        format: of Spark's writeStream.
        options: of that format; nothing secret.
        secrets: names of Secrets whose keys are further options; later ones win.
        partition_by: columns to partition the output by.
    """

    format: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessingTime:
    """Start a micro-batch after each interval, a duration such as ``500ms``.

    ``0`` starts the next one at once.
    """

    interval: str


@dataclass(frozen=True, slots=True)
class AvailableNow:
    """Read the available records when the query starts, then end."""


Trigger: TypeAlias = ProcessingTime | AvailableNow
"""When micro-batches run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeAlignment:
    """Alignment of splits in event time; durations as the user wrote them.

    Attributes:
        max_drift: how far a split may be ahead of the slowest active one.
        idle_timeout: time after which a split that is read to its end holds back no other one.
        group: sources with the same group wait for each other; None for none.
    """

    max_drift: str
    idle_timeout: str
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """What the packaged application does.

    Attributes:
        checkpoint_location: folder or URL of Spark's checkpoint.
        sink: where the result is written to.
        trigger: when micro-batches run.
        transform: ``module:function``; None changes nothing.
        columns: of the rows, in this order; None for those that the connector chooses.
        max_records_per_reader: above this many records, a reader's surplus is read by others; None
            for no limit.
        executor_patience: longest wait for executors, as a duration; None for the default.
        warm_spares: executors beside those that the readers need.
        alignment: see `EventTimeAlignment`; None for none.
        accept_checkpoint_of: former source, ``namespace/name``, whose checkpoint is taken over;
            None for none.
        connector: kind of the source.
        options: further options of the source, from its connector; a driver that knows the
            connector knows them.
    """

    checkpoint_location: str
    sink: Sink
    trigger: Trigger
    transform: str | None = None
    columns: tuple[str, ...] | None = None
    max_records_per_reader: int | None = None
    executor_patience: str | None = None
    warm_spares: int = 0
    alignment: EventTimeAlignment | None = None
    accept_checkpoint_of: str | None = None
    connector: str = DEFAULT_CONNECTOR
    options: Mapping[str, str] = field(default_factory=dict)


def to_json(pipeline: Pipeline) -> dict[str, Json]:
    """Return the JSON value of a pipeline, in the oldest version that can say it."""
    sink, is_named = pipeline.sink, pipeline.connector != DEFAULT_CONNECTOR
    return _present(
        version=VERSION if is_named else None,
        connector=pipeline.connector if is_named else None,
        checkpointLocation=pipeline.checkpoint_location,
        sink={
            "format": sink.format,
            "options": dict(sink.options),
            "optionsFrom": [{"secretRef": {"name": name}} for name in sink.secrets],
            "partitionBy": list(sink.partition_by),
        },
        trigger=_trigger_to_json(pipeline.trigger),
        transform=pipeline.transform,
        includeHeaders=pipeline.options.get(_HEADERS) == _TRUE,
        columns=None if pipeline.columns is None else list(pipeline.columns),
        maxRecordsPerReader=pipeline.max_records_per_reader,
        executorPatience=pipeline.executor_patience,
        warmSpares=pipeline.warm_spares or None,
        alignment=_optional(pipeline.alignment, _alignment_to_json),
        acceptCheckpointOf=pipeline.accept_checkpoint_of,
        options=_without_fields(pipeline.options) or None,
    )


def from_json(data: Json) -> Pipeline:
    """Return the pipeline that any version wrote.

    Raises:
        IncompatibleVersionError: a newer operator wrote it.
        CorruptDocumentError: it is no pipeline.
    """
    try:
        if (version := int(data.get("version", 1))) > VERSION:
            raise IncompatibleVersionError("the pipeline", found=version, supported=VERSION)
        return _from_json(data)
    except MALFORMED as error:
        raise CorruptDocumentError(f"the pipeline is malformed: {in_short(error)}") from error


def encode(pipeline: Pipeline) -> str:
    """Return the text of a pipeline; equal pipelines give equal text."""
    return json.dumps(to_json(pipeline), sort_keys=True)


def decode(text: str) -> Pipeline:
    """Return the pipeline that any version wrote as text.

    Raises:
        IncompatibleVersionError: a newer operator wrote it.
        CorruptDocumentError: the text is not JSON, or not a pipeline.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptDocumentError(f"the pipeline is not JSON: {error}") from error
    return from_json(data)


def _from_json(data: Mapping[str, Any]) -> Pipeline:
    sink = data["sink"]
    return Pipeline(
        checkpoint_location=data["checkpointLocation"],
        sink=Sink(
            format=sink["format"],
            options=dict(sink.get("options", {})),
            secrets=tuple(source["secretRef"]["name"] for source in sink.get("optionsFrom", ())),
            partition_by=tuple(sink.get("partitionBy", ())),
        ),
        trigger=_trigger_from_json(data["trigger"]),
        transform=data.get("transform"),
        columns=_optional(data.get("columns"), tuple),
        max_records_per_reader=data.get("maxRecordsPerReader"),
        executor_patience=data.get("executorPatience"),
        warm_spares=int(data.get("warmSpares", 0)),
        alignment=_optional(data.get("alignment"), _alignment_from_json),
        accept_checkpoint_of=data.get("acceptCheckpointOf"),
        connector=data.get("connector", DEFAULT_CONNECTOR),
        options={**data.get("options", {}), **_fields(data)},
    )


def _fields(data: Mapping[str, Any]) -> dict[str, str]:
    return {_HEADERS: _TRUE} if data.get(_HEADERS, False) else {}


def _without_fields(options: Mapping[str, str]) -> dict[str, str]:
    """The options that are no field of their own."""
    return {name: value for name, value in options.items() if (name, value) != (_HEADERS, _TRUE)}


def _trigger_to_json(trigger: Trigger) -> Json:
    match trigger:
        case ProcessingTime(interval):
            return {"processingTime": interval}
        case AvailableNow():
            return {"availableNow": True}
        case _:
            assert_never(trigger)


def _trigger_from_json(data: Mapping[str, Any]) -> Trigger:
    return AvailableNow() if data.get("availableNow") else ProcessingTime(data["processingTime"])


def _alignment_to_json(alignment: EventTimeAlignment) -> Json:
    return _present(
        maxDrift=alignment.max_drift, idleTimeout=alignment.idle_timeout, group=alignment.group
    )


def _alignment_from_json(data: Mapping[str, Any]) -> EventTimeAlignment:
    return EventTimeAlignment(
        max_drift=data["maxDrift"], idle_timeout=data["idleTimeout"], group=data.get("group")
    )


def _present(**values: Json) -> dict[str, Json]:
    return {key: value for key, value in values.items() if value is not None}


def _optional(value: Any, convert: Callable[[Any], T]) -> T | None:
    return None if value is None else convert(value)
