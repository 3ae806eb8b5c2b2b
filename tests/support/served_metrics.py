"""Names of all series that the operator serves."""

from balanced_source_operator.metrics import OF_SIGNALS, Metrics
from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.spec.status import AutoscalingStatus, Condition, Status


def everything() -> Metrics:
    """Return metrics in which each one has a series."""
    metrics, source = Metrics(), Identity(namespace="n", name="s", uid="u")
    condition = Condition(
        type="Ready", status="True", last_transition_time="2026-01-01T00:00:00Z", reason="Reading"
    )
    numbers = AutoscalingStatus(
        desired_readers=1, utilization=1, arrival_rate=1, capacity_per_reader=1
    )
    with metrics.turn(source):
        metrics.published(source)
        metrics.created(source)
        metrics.restarted(source, {"0": 1})
    metrics.observe(
        source,
        Status(lag=1, seconds_behind=1, conditions=[condition], autoscaling=numbers),
        dict.fromkeys(OF_SIGNALS, 1.0),
    )
    metrics.requested("get", "pods", "403")
    return metrics


def served() -> set[str]:
    """Return the names of all series that the operator serves."""
    return {sample.name for family in everything().registry.collect() for sample in family.samples}
