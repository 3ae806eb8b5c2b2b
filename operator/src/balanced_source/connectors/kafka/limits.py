"""How much a micro-batch may read: admission as a pure function of the backlog.

The options are those of Spark's own Kafka source (``maxOffsetsPerTrigger``,
``minOffsetsPerTrigger`` with ``maxTriggerDelay``), and two that it lacks: a limit per split, and
one in bytes.

Shares are max-min fair: every split gets the same, and what a split does not need goes to the
others. Spark shares in proportion to the backlog instead, so that a small split beside a huge one
gets one record at a time; here it is read to its end at once. In one point both agree: a split with
a backlog always gets at least one record, so no limit can starve it; a limit below the number of
such splits is exceeded by as much.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from balanced_source.api import Json, SplitId

DEFAULT_MAX_DELAY: Final = 900.0
"""Seconds that Spark's ``maxTriggerDelay`` is by default."""

ASSUMED_RECORD_BYTES: Final = 1024.0
"""Size of a record while nothing is known about any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """Limits of one micro-batch; None does not limit.

    Attributes:
        max_records: offsets, of all splits together (``maxOffsetsPerTrigger``).
        max_records_per_split: offsets of each split.
        max_bytes: bytes of keys, values and headers, of all splits together; estimated, see
            `admit`.
        min_records: offsets that must be there before a micro-batch begins
            (``minOffsetsPerTrigger``).
        max_delay: seconds after which it begins although there are fewer (``maxTriggerDelay``).
    """

    max_records: int | None = None
    max_records_per_split: int | None = None
    max_bytes: int | None = None
    min_records: int | None = None
    max_delay: float = DEFAULT_MAX_DELAY

    def to_json(self) -> dict[str, Json]:
        """For readers; only what limits."""
        everything = {
            "maxRecords": self.max_records,
            "maxRecordsPerSplit": self.max_records_per_split,
            "maxBytes": self.max_bytes,
            "minRecords": self.min_records,
            "maxDelay": self.max_delay if self.min_records is not None else None,
        }
        return {key: value for key, value in everything.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        return cls(
            max_records=data.get("maxRecords"),
            max_records_per_split=data.get("maxRecordsPerSplit"),
            max_bytes=data.get("maxBytes"),
            min_records=data.get("minRecords"),
            max_delay=float(data.get("maxDelay", DEFAULT_MAX_DELAY)),
        )


def admit(
    backlog: Mapping[SplitId, int],
    limits: ReadLimits,
    *,
    waited: float,
    record_bytes: Mapping[SplitId, float] | None = None,
) -> dict[SplitId, int]:
    """How many offsets of each split the next micro-batch takes.

    0 for a split without any, or that must wait.

    Args:
        backlog: offsets of each split that could be read now.
        limits: of the micro-batch.
        waited: seconds since the last micro-batch with records began, or since the query did.
        record_bytes: mean size of a record per split, as far as known; others count as the mean of
            those, and `ASSUMED_RECORD_BYTES` if none is known.
    """
    if not is_due(backlog, limits, waited=waited):
        return dict.fromkeys(backlog, 0)
    cap = limits.max_records_per_split
    shares = {s: max(0, n) for s, n in backlog.items()}
    if cap is not None:
        shares = {s: min(n, cap) for s, n in shares.items()}
    if limits.max_records is not None:
        shares = fair_shares(shares, limits.max_records)
    # Bytes last, over what the other limits left: what is not read costs no bytes.
    if limits.max_bytes is not None:
        shares = fair_shares(shares, limits.max_bytes, costs=_costs(shares, record_bytes or {}))
    return shares


def is_due(backlog: Mapping[SplitId, int], limits: ReadLimits, *, waited: float) -> bool:
    """Whether a micro-batch may begin: enough is there, or it has been waited for long enough."""
    if limits.min_records is None or waited >= limits.max_delay:
        return True
    # A log that was cut ends before the position, and takes nothing from what others have.
    return sum(max(0, n) for n in backlog.values()) >= limits.min_records


def fair_shares(
    demand: Mapping[SplitId, int], capacity: float, *, costs: Mapping[SplitId, float] | None = None
) -> dict[SplitId, int]:
    """Max-min fair division of `capacity`: no one gets more than another one that wants more.

    Args:
        demand: how many units each split wants.
        capacity: what there is to divide.
        costs: capacity that a unit of each split takes; 1 by default.
    """
    cost = costs or dict.fromkeys(demand, 1.0)
    shares = dict.fromkeys(demand, 0)
    left = float(capacity)
    # The smallest demand first: what it does not need goes to those that come after it.
    waiting = sorted(
        (s for s, n in demand.items() if n > 0), key=lambda s: (demand[s] * cost[s], s)
    )
    for served, split_id in enumerate(waiting):
        level = left / (len(waiting) - served)
        # At least one record, as in Spark's own source, so that no limit can starve a split.
        shares[split_id] = max(1, min(demand[split_id], int(level // cost[split_id])))
        # The one record may exceed what was left.
        left = max(0.0, left - shares[split_id] * cost[split_id])
    return shares


def _costs(splits: Mapping[SplitId, int], known: Mapping[SplitId, float]) -> dict[SplitId, float]:
    sizes = [max(1.0, known[s]) for s in splits if s in known]
    mean = sum(sizes) / len(sizes) if sizes else ASSUMED_RECORD_BYTES
    # Records without bytes exist (no key and no value), and nothing can be divided by a cost of 0.
    return {s: max(1.0, known.get(s, mean)) for s in splits}
