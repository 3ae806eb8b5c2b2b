"""What Spark's sinks need, so that a missing option is named before a query starts."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from balanced_source.errors import InvalidSpecError

FIELD: Final = "spec.application.pipeline.sink.options"

SHARED_FORMATS: Final = frozenset({"delta", "hudi", "iceberg", "kafka"})
"""Sinks that several queries may write to at the same time.

Of all others, each host gets a path of its own.
"""

HOST_FIELD: Final = "{host}"
"""Stands for the name of the host in the path of a sink."""

_PATH: Final = "path"

_ROOT: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?(//[^/]*)?/*")
"""A path or URL that names no folder."""

_FILES: Final = ("avro", "csv", "delta", "json", "orc", "parquet", "text")

_NEEDED: Final = {
    **dict.fromkeys(_FILES, ("path", "a folder or URL that driver and executors can write to")),
    "kafka": ("kafka.bootstrap.servers", "the addresses of the brokers to write to"),
}
"""Formats → the option without which Spark does not start a query, and what to set it to."""

FORMATS: Final = tuple(_NEEDED)
"""Formats of sinks that most people use."""

_NO_FORMAT: Final = ("[DATA_SOURCE_NOT_FOUND]", "Failed to find data source: ")
"""How Spark says that no jar brings a format. The second text is that for Kafka and Avro."""


_NO_LOG: Final = ("BATCH_METADATA_NOT_FOUND", "_spark_metadata")
"""How Spark says that the log of a file sink lacks a micro-batch that the checkpoint has."""


def check_options(sink_format: str, names: Iterable[str]) -> None:
    """Check that a sink has the option that its format cannot do without.

    Formats that are not Spark's own are not checked.

    Args:
        sink_format: of Spark's ``writeStream``. Spark ignores its case, and that of the names.
        names: of the options, with those that come from Secrets.

    Raises:
        InvalidSpecError: the option is missing. Says which, and what to set it to.
    """
    needed, meaning = _NEEDED.get(sink_format.lower(), ("", ""))
    if needed and needed not in {name.lower() for name in names}:
        raise InvalidSpecError(
            f"the option {needed} is missing, which the sink format {sink_format} needs. Set it to"
            f" {meaning}",
            field=FIELD,
        )


def own_options(
    sink_format: str, options: Mapping[str, str], *, host: str, is_first: bool
) -> dict[str, str]:
    """Return the options of a sink for one host, which may get a path of its own.

    The first host keeps the path that the source had before there were further hosts.

    Raises:
        InvalidSpecError: the path is the root of a file system, which has no folder beside it.
    """
    is_shared = is_first or sink_format.lower() in SHARED_FORMATS
    return {
        name: _own_path(value, host, is_shared=is_shared) if name.lower() == _PATH else value
        for name, value in options.items()
    }


def _own_path(value: str, host: str, *, is_shared: bool) -> str:
    if HOST_FIELD in value:
        return value.replace(HOST_FIELD, host)
    if is_shared:
        return value
    path = value.rstrip("/")
    if _ROOT.fullmatch(value):
        raise InvalidSpecError(
            f"{value!r} has no folder beside it for host {host}: name one with {HOST_FIELD}, such"
            f" as {path}/orders/host={HOST_FIELD}",
            field=f"{FIELD}.{_PATH}",
        )
    return f"{path}-host-{host}"


def query_error(error: Exception) -> str:
    """Return why a query has failed; a sentence where its sink's folder is of another checkpoint.

    Args:
        error: of Spark.
    """
    text = str(error)
    return str(new_folder()) if all(known in text for known in _NO_LOG) else text


def has_log(sink_format: str) -> bool:
    """Return whether Spark keeps a log of micro-batches in the folder of a sink."""
    return sink_format.lower() in _FILES and sink_format.lower() != "delta"


def new_folder() -> InvalidSpecError:
    """Return the error for a sink whose folder does not belong to the Spark checkpoint."""
    return InvalidSpecError(
        "the folder of the sink lacks Spark's record (_spark_metadata) of the micro-batches that"
        " the checkpoint has finished: path was changed, or the folder was deleted. Set path back,"
        " or start over with another checkpointLocation",
        field=f"{FIELD}.path",
    )


def absent_format(
    sink_format: str, text: str, *, similar: str | None = None
) -> InvalidSpecError | None:
    """Return a sentence for a Spark without the jars of a sink; None for another error of Spark.

    Args:
        sink_format: of Spark's ``writeStream``.
        text: of the error with which the query did not start.
        similar: the nearest of `FORMATS`, if any is near.
    """
    if not any(known in text for known in _NO_FORMAT):
        return None
    meant = f"; did you mean {similar}?" if similar and similar != sink_format.lower() else "."
    return InvalidSpecError(
        f"Spark has no sink format {sink_format!r} here{meant} Correct the name, or add the jars of"
        " the format to spec.application.image (balanced-source run uses no image: set"
        " spark.jars.packages or spark.jars in spec.application.sparkConf)",
        field="spec.application.pipeline.sink.format",
    )
