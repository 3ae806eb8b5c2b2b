"""How shards are begun that are found after the first discovery of their stream."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from balanced_source.api import SplitId
from balanced_source.connectors.kinesis.lineage import Lineage
from balanced_source.connectors.kinesis.split import time_of


class Later(NamedTuple):
    """See the module.

    Attributes:
        time: where their parents were started, in milliseconds since the epoch; None: at their
            oldest record.
        is_overdue: whether they are older than the retention, so that records may have expired.
    """

    time: int | None = None
    is_overdue: bool = False


def begun_later(
    split_ids: Iterable[SplitId], lineage: Lineage, known: Mapping[SplitId, Mapping[str, Any]]
) -> dict[Later, list[SplitId]]:
    """Return how shards are begun, with the shards.

    Args:
        split_ids: of the shards.
        lineage: of their stream.
        known: attributes of the shards of the stream that were begun.
    """
    common = _time(map(time_of, known.values()))
    found: dict[Later, list[SplitId]] = {}
    for split_id in split_ids:
        parents = lineage.shards[split_id].parents
        # A child may have begun before the time where the user has started. What the user says now
        # is for streams that are new: what was begun tells where this one was started.
        own = [time_of(known[p]) for p in parents if p in known]
        later = Later(
            time=_time(own) if own else common,
            # A closed shard is listed for as long as its last record is retained. So this child is
            # older than the retention, and nothing of it was read.
            is_overdue=bool(known) and any(p not in lineage.shards for p in parents),
        )
        found.setdefault(later, []).append(split_id)
    return found


def _time(times: Iterable[int | None]) -> int | None:
    """Return the earliest start; None is the oldest record."""
    found = list(times)
    known = [time for time in found if time is not None]
    return min(known) if known and len(known) == len(found) else None
