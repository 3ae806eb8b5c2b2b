"""Changes the number of readers of a running query from the program that started it."""

import json
import time
from collections.abc import Iterable
from numbers import Integral
from pathlib import Path
from typing import Any, Final

from balanced_source.errors import InvalidSpecError
from balanced_source.names import shown
from balanced_source_spark.control import CONTROL, MOST_READERS, RescaleError, request_parallelism

__all__ = ["RescaleError", "rescale"]

_POLL: Final = 0.1
"""Seconds between two looks at the progress of a query that has just been started."""


_CONNECT: Final = "pyspark.sql.connect."
"""Modules of Spark Connect.

A query of such a class runs in the server, usually on another machine.
"""

_PYTHON: Final = "Python"
"""Spark describes every source that is written in Python by a name that holds this word."""


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
        InvalidSpecError: this is not a query, or the number is not whole, too small or too large.
        RescaleError: the query has ended, does not assign its splits itself, or runs on another
            machine without Spark Connect.
    """
    _check(query, parallelism)
    for folder in _folders(query, timeout):
        try:
            _request(query, folder, parallelism)
        except RescaleError:
            _check_running(query)  # its folder goes with it
            raise


def _check(query: Any, parallelism: object) -> None:
    if not hasattr(query, "isActive"):
        raise InvalidSpecError(
            f"expected the query that writeStream.start() returned, not {_quoted(query)}",
            field="query",
        )
    if isinstance(parallelism, bool) or not isinstance(parallelism, Integral):
        raise InvalidSpecError(
            f"expected a whole number of readers, not {_quoted(parallelism)}", field="parallelism"
        )
    if not 1 <= int(parallelism) <= MOST_READERS:
        raise InvalidSpecError(
            f"expected 1 to {MOST_READERS} readers, not {parallelism}", field="parallelism"
        )


def _quoted(value: object) -> str:
    if isinstance(value, str):
        return shown(value)
    plain = isinstance(value, float | int | None)
    return repr(value) if plain else f"an object of type {type(value).__name__}"


def _check_running(query: Any) -> None:
    if query.isActive:
        return
    again = "start it again with the option parallelism, and call rescale with the new query"
    if getattr(query, "exception", lambda: None)() is not None:
        raise RescaleError(
            f"query {_called(query)} has failed: query.exception() says why. Correct that, {again}"
        )
    raise RescaleError(f"query {_called(query)} has ended: {again}")


def _called(query: Any) -> str:
    return str(getattr(query, "name", None) or query.id)


def _folders(query: Any, timeout: float) -> list[Path]:
    deadline = time.monotonic() + timeout
    while True:
        _check_running(query)  # a query that has ended still shows its last progress
        progress = query.lastProgress
        if progress is not None and (found := list(_named(progress["sources"]))):
            return found
        if progress is not None and not any(map(_may_name_one, progress["sources"])):
            raise RescaleError(_no_source(query))
        if time.monotonic() > deadline:
            raise RescaleError(_nothing(query, has_progress=progress is not None))
        time.sleep(_POLL)


def _may_name_one(source: Any) -> bool:
    """Whether a source can name its folder later.

    The first progress of a query that repeats a micro-batch has no `latestOffset` yet.
    """
    return _newest(source) is None and _PYTHON in source["description"]


def _nothing(query: Any, *, has_progress: bool) -> str:
    if has_progress:
        return _no_source(query)
    return (
        f"query {_called(query)} has shown no progress yet: look at the driver's log, or wait"
        " longer with timeout"
    )


def _no_source(query: Any) -> str:
    return (
        f"query {_called(query)} has no balanced source that its driver assigns. With an operator"
        " use kubectl scale, in local mode change parallelism in the manifest"
    )


def _named(sources: Iterable[Any]) -> Iterable[Path]:
    for source in sources:
        newest = _newest(source)
        if isinstance(newest, dict) and CONTROL in newest:
            yield Path(newest[CONTROL])


def _newest(source: Any) -> Any:
    """Return what a source shows; the text "null" and no text at all mean the same."""
    newest = source["latestOffset"]
    try:
        return json.loads(newest) if isinstance(newest, str) else newest
    except ValueError:  # of another source, which shows what it likes
        return newest


def _request(query: Any, folder: Path, parallelism: int) -> None:
    if type(query).__module__.startswith(_CONNECT):
        from balanced_source_spark.remote_rescaling import request_on_server

        if (refusal := request_on_server(query, folder, parallelism)) is not None:
            raise RescaleError(
                f"the Spark Connect server cannot rescale query {_called(query)}: {refusal}"
            )
        return
    request_parallelism(folder, parallelism)
