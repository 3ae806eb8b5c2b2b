"""What sources of one alignment group tell each other, by way of the operator.

How far in event time they are.

Times are milliseconds since the epoch. Two values are none: `MIN_WATERMARK` for "not known yet",
which holds everybody, and `MAX_WATERMARK` for "idle", which holds no one (so the least of all is
what counts, as in FLIP-182).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from balanced_source.api import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceWatermark:
    """Part of a report: how far one source is.

    Attributes:
        group: name within the namespace.
        watermark: nothing older comes of this source's active splits.
        max_drift: milliseconds that this source may be ahead of the others.
        idle_timeout: seconds after which this source waits no more for one that says nothing.
    """

    group: str
    watermark: int
    max_drift: int
    idle_timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWatermark:
    """Part of an assignment: how far the *other* sources of the group are.

    The source's own watermark is not in there: what it knows of itself is newer than what the
    operator does.

    Attributes:
        watermark: the least of theirs.
        heartbeat: seconds since the epoch when this was written; a value that differs from the one
            before is a sign of life, also when the watermark has not changed.
    """

    watermark: int
    heartbeat: float


def source_to_json(value: SourceWatermark) -> Json:
    """For a report."""
    return {
        "group": value.group,
        "watermark": value.watermark,
        "maxDrift": value.max_drift,
        "idleTimeout": value.idle_timeout,
    }


def source_from_json(data: Mapping[str, Any]) -> SourceWatermark:
    """Inverse of `source_to_json`."""
    return SourceWatermark(
        group=str(data["group"]),
        watermark=int(data["watermark"]),
        max_drift=int(data["maxDrift"]),
        idle_timeout=float(data["idleTimeout"]),
    )


def group_to_json(value: GroupWatermark) -> Json:
    """For an assignment."""
    return {"watermark": value.watermark, "heartbeat": value.heartbeat}


def group_from_json(data: Mapping[str, Any]) -> GroupWatermark:
    """Inverse of `group_to_json`."""
    return GroupWatermark(watermark=int(data["watermark"]), heartbeat=float(data["heartbeat"]))
