"""What each host of a source has for itself.

Its Spark checkpoint, its folder in a file sink, its query's name.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from balanced_source.documents.environment import DriverEnvironment
from balanced_source.documents.pipeline import Pipeline, Sink
from balanced_source.documents.storage import FIRST_HOST
from balanced_source.sinks import own_options

HOSTS: Final = "hosts"
"""Folder with the Spark checkpoints of further hosts."""


def of_host(pipeline: Pipeline, host: str) -> Pipeline:
    """Return the pipeline with the Spark checkpoint of a host.

    For further hosts, a folder in the source's.
    """
    if host == FIRST_HOST:
        return pipeline
    location = checkpoint_of(pipeline.checkpoint_location, host)
    return replace(pipeline, checkpoint_location=location)


def checkpoint_of(location: str, host: str) -> str:
    """Return where the Spark checkpoint of a host lies, in that of its source."""
    return location if host == FIRST_HOST else f"{location.rstrip('/')}/{HOSTS}/{host}"


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
    return own_options(sink.format, options, host=host, is_first=host == FIRST_HOST)
