"""One line per micro-batch in the driver's log."""

import json
import sys
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)


class ProgressLogger(StreamingQueryListener):
    """Writes JSON lines: which batch, in which epoch, with how many readers, rows and milliseconds."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        _say(event="query started", query=str(event.id), run=str(event.runId), at=event.timestamp)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        sources = [_source(source.endOffset) for source in progress.sources]
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


def _source(end_offset: str) -> dict[str, Any]:
    try:
        offset = json.loads(end_offset)
        return {"epoch": offset.get("epoch"), "parallelism": offset.get("parallelism")}
    except (ValueError, AttributeError, TypeError):
        return {}


def _say(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()
