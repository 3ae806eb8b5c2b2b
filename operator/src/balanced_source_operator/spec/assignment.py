"""``spec.assignment``: who reads what, and when that may change."""

import enum
from typing import Annotated

from pydantic import ConfigDict, Field

from balanced_source.api import RebalanceMode
from balanced_source_operator.contract.base import Duration, Model, rule, with_rules


class Strategy(enum.StrEnum):
    """How owners are picked."""

    ROUND_ROBIN = "RoundRobin"
    HASH = "Hash"
    LOAD_AWARE = "LoadAware"


class Rebalance(Model):
    """When splits may move."""

    mode: RebalanceMode = RebalanceMode.ON_RESCALE
    """OnRescale: when parallelism changes and when the application restarts. Drift: also when the
    loads of readers have differed for a while. Manual: only when rebalanceNonce changes; readers
    added later receive only new splits."""

    max_imbalance: Annotated[float, Field(ge=1.05, le=100)] = 1.2
    """Mode Drift: largest allowed load of a reader, as a multiple of the best value that the splits
    permit."""

    min_interval: Duration = "10m"
    """Mode Drift: minimum time between two rebalances. The operator extends it while rebalances
    have no lasting effect."""

    max_moves: Annotated[int, Field(ge=1, le=1000000)] | None = None
    """Maximum number of splits that one rebalance may move. A change of parallelism may exceed it.
    Absent: no limit."""


class AssignmentSpec(Model):
    """How splits are assigned to readers."""

    model_config = ConfigDict(
        json_schema_extra=with_rules(
            rule(
                "!(self.strategy == 'Hash' && self.rebalance.mode == 'Drift')",
                "owners by Hash follow from name and parallelism alone: use RoundRobin or LoadAware"
                " with mode Drift",
            )
        )
    )

    strategy: Strategy = Strategy.ROUND_ROBIN
    """RoundRobin: gives every reader the same number of splits, over all topics and clusters, with
    the fewest moves. LoadAware: gives every reader the same number of records per second, as
    observed over the last minutes. Hash: uses Flink's owner function, so that a split has the same
    owner on both systems; the balance is worse."""

    rebalance: Rebalance = Rebalance()
    """When splits may move to another reader."""
