"""Whether records of a shard may have expired before they were read."""

import datetime as dt
from typing import Final

from balanced_source.connectors.kinesis import ShardSplit
from balanced_source_adapters.kinesis.client import Batch, Summary

SHORTEST_RETENTION: Final = 24 * 60 * 60 * 1000
"""Milliseconds for which each stream keeps records at least."""

NEAR: Final = 0.75
"""Part of the retention after which a record may soon expire."""


def is_late(split: ShardSplit, summary: Summary) -> bool:
    """Return whether a shard is older than the retention. Asked if nothing of it was read."""
    if split.found is None or summary.retention is None:
        return False
    return split.found < summary.now - summary.retention


def was_empty(when: int | None, summary: Summary) -> bool:
    """Return whether a shard had nothing more so lately that nothing can have expired since.

    Args:
        when: it had nothing more, in milliseconds by the clock of the service; None: unknown.
        summary: of its stream.
    """
    if when is None or summary.retention is None:
        return False
    # The retention may have been shorter since.
    return summary.now - when < min(summary.retention, SHORTEST_RETENTION)


def is_near(batch: Batch, arrived: int | None, retention: int | None) -> bool:
    """Return whether records behind the one that was read last may expire before the next read.

    Then an iterator that continues behind it does not tell whether any is missing.

    Args:
        batch: that was read last.
        arrived: see `FetchedUpTo`.
        retention: of the stream, in milliseconds; None: unknown.
    """
    if batch.behind == 0 or batch.now is None or arrived is None:
        return False
    return batch.now - arrived // 1000 > NEAR * (retention or SHORTEST_RETENTION)


def former_gone(split: ShardSplit, error: Exception | None = None) -> str:
    """Return the sentence for a shard whose record before the position has expired."""
    return (
        f"stream {split.stream}, shard {split.shard}: the record {split.offset - 1}, which was"
        f" read last, is not retained any more{f' ({error})' if error else ''}. Records after"
        " it may have expired unread"
    )


def begun_late(split: ShardSplit) -> str:
    """Return the sentence for a shard that is older than the retention, and was not read."""
    found = dt.datetime.fromtimestamp((split.found or 0) // 1000, dt.UTC)
    return (
        f"stream {split.stream}, shard {split.shard}: it exists since"
        f" {found:%Y-%m-%dT%H:%M:%SZ} or longer, and nothing of it was read within the retention of"
        " the stream. Its first records may have expired unread"
    )
