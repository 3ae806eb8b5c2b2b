"""One line per micro-batch in the driver's log."""

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)
from pyspark.sql.streaming.query import StreamingQuery

from balanced_source.documents.stream_offset import FINISHED


class StopWhenFinished(StreamingQueryListener):
    """Ends the query of a bounded source after everything has been read and reported.

    Args:
        stop: called once, in a thread of its own, because a listener must not wait for the query
            that it listens to.
        query_id: of the query; others are not looked at.
    """

    def __init__(self, stop: Callable[[], None], *, query_id: str) -> None:
        self._query_id = query_id
        self._stop: Callable[[], None] | None = stop

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing to do."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.look(event.progress)

    def look(self, progress: StreamingQueryProgress) -> None:
        """Stop the query if its last micro-batch was the closing one."""
        if str(progress.id) != self._query_id:
            return
        ends = [_offset(source.endOffset) for source in progress.sources]
        if self._stop is not None and ends and all(end.get(FINISHED) for end in ends):
            threading.Thread(target=self._stop, name="bsrc-finished", daemon=True).start()
            self._stop = None

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing to do."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Nothing to do."""


def stop_when_finished(query: StreamingQuery, stop: Callable[[], None] | None = None) -> None:
    """End a streaming query when its source, which has an end, is read to it.

    Nothing happens to the query of a source without an end.

    Args:
        query: a query that runs.
        stop: ends it; `query.stop` if None.
    """
    listener = StopWhenFinished(stop or query.stop, query_id=str(query.id))
    _session_of(query).streams.addListener(listener)
    # Its last micro-batch may have ended before anyone listened.
    if (last := query.lastProgress) is not None:
        listener.look(last)


def _session_of(query: StreamingQuery) -> SparkSession:
    """Return the session that the query belongs to: others do not hear of its progress."""
    session, started = SparkSession.active(), getattr(query, "_jsq", None)
    if started is None:
        return session  # of Spark Connect, which has one
    return SparkSession(session.sparkContext, started.sparkSession())


class ProgressLogger(StreamingQueryListener):
    """Writes a JSON line for each micro-batch.

    It has the batch, the epoch, the numbers of readers, rows and milliseconds, and the lag that the
    micro-batch left.
    """

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        _say(event="query started", query=str(event.id), run=str(event.runId), at=event.timestamp)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        sources = [_source(source.endOffset, source.latestOffset) for source in progress.sources]
        _say(
            event="batch",
            batch=progress.batchId,
            at=progress.timestamp,
            rows=progress.numInputRows,
            durations=dict(progress.durationMs),
            sources=sources,
        )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing to say."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        _say(event="query terminated", query=str(event.id), error=event.exception)


def _source(end_offset: str, latest_offset: str) -> dict[str, Any]:
    if not (offset := _offset(end_offset)):
        return {}
    found = {"epoch": offset.get("epoch"), "parallelism": offset.get("parallelism")}
    lag = _offset(latest_offset).get("lag")
    return found if lag is None else {**found, "lag": lag}


def _offset(end_offset: str) -> dict[str, Any]:
    try:
        offset = json.loads(end_offset)
    except (ValueError, TypeError):
        return {}
    return offset if isinstance(offset, dict) else {}


def _say(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()
