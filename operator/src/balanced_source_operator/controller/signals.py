"""What metrics say of a source besides its status."""

from collections.abc import Mapping

from balanced_source.coordinator.phase import acknowledged_epoch
from balanced_source_operator.controller.facts import Facts
from balanced_source_operator.controller.liveness import newest_report


def signals_of(facts: Facts, *, desired_readers: int | None) -> Mapping[str, float | None]:
    """Return the values by the names of `metrics.OF_SIGNALS`; None where a value is unknown.

    Args:
        facts: what the status is made from.
        desired_readers: of the spec in effect; None if none was ever valid.
    """
    state = facts.state
    report = newest_report(state) if state is not None else None
    return {
        "desired_readers": desired_readers,
        "epoch_lag": state.epoch - acknowledged_epoch(state) if state is not None else None,
        "discovery_failing_scopes": len(facts.discovery) if state is not None else None,
        "report_timestamp_seconds": report.heartbeat if report is not None else None,
        "skipped_records": float(facts.losses.records) if report is not None else None,
        "application_failures": facts.application.failures,
    }
