"""What each host of a source has for itself.

Its Spark checkpoint, its folder in a file sink, its query's name.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from balanced_source.documents.environment import DriverEnvironment
from balanced_source.documents.pipeline import Pipeline, Sink
from balanced_source.documents.storage import FIRST_HOST
from balanced_source.errors import InvalidSpecError
from balanced_source.sinks import SHARED_FORMATS

HOST_FIELD: Final = "{host}"
"""Stands for the name of the host in the path of a sink."""

_PATH: Final = "path"


def of_host(pipeline: Pipeline, host: str) -> Pipeline:
    """Return the pipeline with the Spark checkpoint of a host.

    For further hosts, a folder in the source's.
    """
    if host == FIRST_HOST:
        return pipeline
    location = f"{pipeline.checkpoint_location.rstrip('/')}/hosts/{host}"
    return replace(pipeline, checkpoint_location=location)


def query_name(environment: DriverEnvironment) -> str:
    """Return the name of the query, as Spark's progress and metrics show it."""
    return (
        environment.name
        if environment.host == FIRST_HOST
        else f"{environment.name}-host-{environment.host}"
    )


def own_sink(sink: Sink, options: Mapping[str, str], *, host: str) -> dict[str, str]:
    """Return the options of the sink for one host.

    Two queries must not write to one folder of a file sink: each would take the other's log of
    files for its own.

    Args:
        sink: what the user wants.
        options: its options, with those from Secrets.
        host: name of the host.

    Raises:
        InvalidSpecError: the path is the root of a file system, which has no folder beside it.
    """
    return {name: _own(name, value, sink, host) for name, value in options.items()}


def _own(name: str, value: str, sink: Sink, host: str) -> str:
    if name.lower() != _PATH:
        return value
    if HOST_FIELD in value:
        return value.replace(HOST_FIELD, host)
    # The first host keeps the path that the source had before there were further hosts.
    if host == FIRST_HOST or sink.format.lower() in SHARED_FORMATS:
        return value
    path = value.rstrip("/")
    if not urlsplit(path).path.strip("/"):
        raise InvalidSpecError(
            f"{value!r} has no folder beside it for host {host}: name one with {HOST_FIELD}, such"
            f" as {path}/orders/host={HOST_FIELD}",
            field="spec.application.pipeline.sink.options.path",
        )
    return f"{path}-host-{host}"
