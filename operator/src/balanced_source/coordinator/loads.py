"""What each split costs.

How fast its position grows, averaged over minutes, from the reports of the reader hosts.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from balanced_source.api import Json, Position, SplitId
from balanced_source.documents import columns
from balanced_source.documents.report import HostReport

AVERAGED_OVER: Final = 300.0
"""Seconds after which an observation counts by 1/e."""

ENOUGH: Final = 30.0
"""Seconds of observation from which on a load is believed."""

IDLE_SHARE: Final = 0.01
"""What a split without records costs, as a share of the mean: someone polls it all the same."""

_PER_DOUBLING: Final = 8
"""Steps in which stored loads are rounded: 8 per doubling are at most 5 % off."""


@dataclass(frozen=True, slots=True)
class SplitObservation:
    """What has been observed of one split.

    Attributes:
        position: last seen.
        at: when, by the host's clock.
        records: how far the position has come; older progress counts less.
        seconds: in which time; counted alike.
    """

    position: Position
    at: float
    records: float = 0.0
    seconds: float = 0.0

    def then(self, position: Position, at: float, decay: float) -> "SplitObservation":
        """Return the observation after a further measurement. Ignores a position that went back."""
        # A split that was recreated, or whose log was cut, begins again. What was measured still
        # counts.
        if position is None or self.position is None or position < self.position:
            return SplitObservation(position, at, self.records, self.seconds)
        return SplitObservation(
            position,
            at,
            self.records * decay + position - self.position,
            self.seconds * decay + at - self.at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTracker:
    """Tracks the load of each split. Immutable.

    Attributes:
        observations: by split.
    """

    observations: Mapping[SplitId, SplitObservation] = field(default_factory=dict)

    def observe(self, report: HostReport, owned: Collection[SplitId]) -> Self:
        """Return the tracker after a host's report.

        Drops splits that neither the report nor `owned` has.
        """
        at, decays = report.heartbeat, dict[float, float]()
        seen = {
            s: o for s, o in self.observations.items() if s in owned and s not in report.positions
        }
        for split_id, position in report.positions.items():
            before = self.observations.get(split_id)
            # The heartbeat is the host's clock: a report that came late, or another host's clock
            # behind the former one's, would give a negative span.
            if before is None or at <= before.at:
                seen[split_id] = before or SplitObservation(position, at)
                continue
            span = at - before.at
            # All splits of a report have mostly the same span, and an exponential for each would
            # cost more than all the rest.
            if (decay := decays.get(span)) is None:
                decay = decays[span] = math.exp(-span / AVERAGED_OVER)
            seen[split_id] = before.then(position, at, decay)
        return type(self)(observations=seen)

    def loads(self) -> dict[SplitId, float]:
        """Return records per second of each split that has been observed for long enough."""
        rates = {
            s: o.records / o.seconds for s, o in self.observations.items() if o.seconds >= ENOUGH
        }
        idle = IDLE_SHARE * sum(rates.values()) / len(rates) if rates else 0.0
        # In place: a second table of 100,000 splits would hash every id again.
        for split_id, rate in rates.items():
            if rate < idle:
                rates[split_id] = idle
        return rates


def to_json(tracker: LoadTracker) -> Json:
    """Return the observations as JSON for the enumerator state.

    They are rounded, to keep 100,000 of them small.
    """
    steps = {
        s: round(_PER_DOUBLING * math.log2(load)) for s, load in tracker.loads().items() if load > 0
    }
    return columns.encode_map(steps)


def from_json(data: Json) -> LoadTracker:
    """Inverse of `to_json`, except for the rounding."""
    rates = {
        s: 2.0 ** (int(steps) / _PER_DOUBLING) for s, steps in columns.decode_map(data).items()
    }
    known = {
        # Without a position, so the first report after a restart only sets the place to count from.
        s: SplitObservation(None, 0.0, records=rate * AVERAGED_OVER, seconds=AVERAGED_OVER)
        for s, rate in rates.items()
    }
    return LoadTracker(observations=known)
