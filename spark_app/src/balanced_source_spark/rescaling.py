"""Changes the number of readers of a running query from the program that started it."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from balanced_source.errors import InvalidSpecError
from balanced_source_spark.control import CONTROL, MOST, RescaleError, request_parallelism

__all__ = ["RescaleError", "rescale"]

_POLL: Final = 0.1
"""Seconds between two looks at the progress of a query that has just been started."""


_CONNECT: Final = "pyspark.sql.connect."
"""Modules of Spark Connect.

A query of such a class runs in the server, usually on another machine.
"""


def rescale(query: Any, parallelism: int, *, timeout: float = 60.0) -> None:
    """Set the number of readers of a running streaming query.

    It takes effect within two micro-batches.

    Under Spark Connect, the request goes to the server.

    Every balanced source of the query that the driver assigns by itself is rescaled. When the query
    is started again, it begins with its option `parallelism`.

    Args:
        query: of ``format("balanced")``, as `start` returned it.
        parallelism: number of readers, at least 1.
        timeout: seconds to wait for the first progress of a query that has just been started.

    Raises:
        InvalidSpecError: the number is too small or too large.
        RescaleError: the query has ended, does not assign its splits itself, or runs on another
            machine without Spark Connect.
    """
    if not 1 <= parallelism <= MOST:
        raise InvalidSpecError(
            f"expected 1 to {MOST} readers, not {parallelism}", field="parallelism"
        )
    for folder in _folders(query, timeout):
        _request(query, folder, parallelism)


def _folders(query: Any, timeout: float) -> list[Path]:
    deadline = time.monotonic() + timeout
    # The first progress names the folder, and a query that was just started has none yet.
    while (progress := query.lastProgress) is None or not (
        found := list(_named(progress["sources"]))
    ):
        if not query.isActive:
            raise RescaleError(
                f"query {query.id} is not running: start it again, with the option parallelism"
            )
        if time.monotonic() > deadline:
            raise RescaleError(_nothing(query.id, has_progress=progress is not None))
        time.sleep(_POLL)
    return found


def _nothing(query_id: Any, *, has_progress: bool) -> str:
    if not has_progress:
        return (
            f"query {query_id} has shown no progress yet: look at the driver's log, or wait longer"
            " with timeout"
        )
    return (
        f"query {query_id} has no balanced source that its driver assigns. With an operator use"
        " kubectl scale, in local mode change parallelism in the manifest"
    )


def _named(sources: Iterable[Any]) -> Iterable[Path]:
    for source in sources:
        newest = source["latestOffset"]
        shown = json.loads(newest) if isinstance(newest, str) else newest
        if isinstance(shown, dict) and CONTROL in shown:
            yield Path(shown[CONTROL])


def _request(query: Any, folder: Path, parallelism: int) -> None:
    if type(query).__module__.startswith(_CONNECT):
        from balanced_source_spark.remote_rescaling import request_on_server

        if (refusal := request_on_server(query, folder, parallelism)) is not None:
            raise RescaleError(
                f"the Spark Connect server cannot rescale query {query.id}: {refusal}"
            )
        return
    request_parallelism(folder, parallelism)
