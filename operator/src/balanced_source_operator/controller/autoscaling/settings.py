"""Between the custom resource and the autoscaler.

Its policy, and what the status says of its decisions.
"""

from collections.abc import Mapping
from typing import Any

from balanced_source.api import RebalanceMode
from balanced_source.durations import seconds
from balanced_source_operator.controller.autoscaling.policy import Policy
from balanced_source_operator.controller.autoscaling.verdict import Verdict
from balanced_source_operator.spec import BalancedSourceSpec, Strategy
from balanced_source_operator.spec.status import AutoscalingStatus

UNKNOWN_TRIGGER = 1.0
"""Seconds that are assumed between two micro-batches of an application of the user's own."""


def policy_of(spec: BalancedSourceSpec) -> Policy | None:
    """Return the autoscaler's policy; None if the number of readers is the user's affair."""
    asked, pipeline = spec.autoscaling, spec.application.pipeline
    if asked is None:
        return None
    trigger = pipeline.trigger.processing_time if pipeline is not None else None
    return Policy(
        min_readers=asked.min_readers,
        max_readers=asked.max_readers,
        target_utilization=asked.target_utilization / 100,
        max_lag=max(1.0, seconds(asked.max_lag)),
        scale_down_delay=seconds(asked.scale_down_delay),
        trigger=seconds(trigger) if trigger is not None else UNKNOWN_TRIGGER,
        shares_splits=pipeline is not None and pipeline.max_records_per_reader is not None,
        follows_load=spec.assignment.strategy is Strategy.LOAD_AWARE,
        is_manual=spec.assignment.rebalance.mode is RebalanceMode.MANUAL,
    )


def stored_capacity(body: Mapping[str, Any]) -> float | None:
    """Return the capacity of a reader that the status of a resource shows; None if it shows none.

    Only what was measured is shown.
    """
    status = body.get("status")
    shown = status.get("autoscaling") if isinstance(status, Mapping) else None
    found = shown.get("capacityPerReader") if isinstance(shown, Mapping) else None
    return float(found) if type(found) is int and found > 0 else None


def autoscaling_status(verdict: Verdict | None) -> AutoscalingStatus | None:
    """Return the numbers of a decision for the status."""
    if verdict is None:
        return None
    return AutoscalingStatus(
        desired_readers=verdict.readers,
        utilization=_rounded(verdict.utilization, scale=100),
        arrival_rate=_rate(verdict.arrival),
        capacity_per_reader=_rate(verdict.capacity),
    )


def _rounded(value: float | None, *, scale: float = 1) -> int | None:
    """Return a number with two significant digits, so that noise does not change the status."""
    return None if value is None else round(float(f"{value * scale:.1e}"))


def _rate(value: float | None) -> int | None:
    """Return records per second; None for less than one, which is not none."""
    return None if value is None or 0 < value < 1 else _rounded(value)
