"""``spec.assignment``: who reads what, and when that may change."""

import enum
from typing import Annotated

from pydantic import ConfigDict, Field

from balanced_source_operator.contract.base import Duration, Model, rule, with_rules


class Strategy(enum.StrEnum):
    """How owners are picked."""

    ROUND_ROBIN = "RoundRobin"
    HASH = "Hash"
    LOAD_AWARE = "LoadAware"


class RebalanceMode(enum.StrEnum):
    """What may move splits."""

    ON_RESCALE = "OnRescale"
    DRIFT = "Drift"
    MANUAL = "Manual"


class Rebalance(Model):
    """When splits may move."""

    mode: RebalanceMode = RebalanceMode.ON_RESCALE
    """OnRescale: when parallelism changes, and when the application starts anew. Drift: also when loads have drifted
    apart for a while. Manual: only when rebalanceNonce changes; readers that are added later get what is new."""

    max_imbalance: Annotated[float, Field(ge=1.05, le=100)] = 1.2
    """Mode Drift: what the largest load of a reader may be, as a multiple of the best that the splits permit."""

    min_interval: Duration = "10m"
    """Mode Drift: time between two rebalances, at least. It grows by itself while rebalances do not help for long."""

    max_moves: Annotated[int, Field(ge=1, le=1000000)] | None = None
    """Splits that one rebalance may move, at most; a change of parallelism moves what it must. Absent: any number."""


class Assignment(Model):
    """How splits are assigned to readers."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "!(self.strategy == 'Hash' && self.rebalance.mode == 'Drift')",
                "owners by Hash follow from name and parallelism alone: use RoundRobin or LoadAware with mode Drift",
            )
        )
    )

    strategy: Strategy = Strategy.ROUND_ROBIN
    """RoundRobin: as many splits for every reader, over all topics and clusters, with the fewest moves. LoadAware: as
    many records per second for every reader, as observed over the last minutes. Hash: Flink's owner function, for
    equal owners on both systems; balances worse."""

    rebalance: Rebalance = Rebalance()
    """When splits may move to another reader."""
