"""The row of a source's dashboard about what is wrong with it."""

from typing import Final

from support.dashboards import panels
from support.dashboards.panels import About, AnyPanel
from support.dashboards.promql import RATE, SOURCE, of_source

TURNS: Final = f"sum by (le) (rate({SOURCE('turn_seconds_bucket')}{RATE}))"


def row_problems() -> list[AnyPanel]:
    """Return the panels about what is wrong with a source."""
    return [
        _failing_discoveries(),
        _failures_of_the_application_in_a_row(),
        _restarts_of_drivers(),
        _skipped_records(),
        _turns_of_the_operator(),
        _failed_turns(),
    ]


def _failing_discoveries() -> AnyPanel:
    return panels.named(
        About(
            title="Failing discoveries",
            text=(
                "Clusters, or other parts of the source, whose newest discovery failed. The "
                "condition Degraded has the error."
            ),
            alerts=["BalancedSourceDiscoveryFailing"],
            width=8,
        ),
        panels.COUNT,
        axis="scopes",
        Failing=of_source("discovery_failing_scopes"),
    )


def _failures_of_the_application_in_a_row() -> AnyPanel:
    return panels.limited(
        panels.named(
            About(
                title="Failures of the application in a row",
                text=(
                    "See the log of the driver. The operator keeps a failed application for a "
                    "while, and starts it again."
                ),
                alerts=["BalancedSourceApplicationFailing"],
                width=8,
            ),
            panels.COUNT,
            axis="failures",
            Failures=of_source("application_failures"),
        ),
        3,
    )


def _restarts_of_drivers() -> AnyPanel:
    restarts = SOURCE("driver_restarts_total")
    return panels.limited(
        panels.ranked(
            About(
                title="Restarts of drivers within 2 hours",
                text=(
                    "Drivers that were started again although no change of the source asked for "
                    "it. A driver that dies every 12 minutes is seen here only: its failures are "
                    "no row. See the log of the driver, and the events of its pod."
                ),
                alerts=["BalancedSourceDriverRestarting"],
                width=8,
            ),
            panels.COUNT,
            f"max by (host) (changes({restarts}[2h]))",
            legend="host {{host}}",
            axis="restarts",
        ),
        4,
    )


def _skipped_records() -> AnyPanel:
    return panels.named(
        About(
            title="Skipped records",
            text=(
                "Offsets that were deleted before they were read, since the driver has "
                "started; and gaps of Kinesis shards and blocks of files, whose records are "
                "not counted. The sink lacks them. Raise the retention, or read faster."
            ),
            alerts=["BalancedSourceDataLoss", "BalancedSourceDataLossGrowing"],
            width=8,
        ),
        panels.RECORDS,
        axis="records",
        Skipped=of_source("skipped_records"),
        Skipped_gaps_and_blocks=of_source("skipped_gaps"),
    )


def _turns_of_the_operator() -> AnyPanel:
    return panels.named(
        About(
            title="Turns of the operator",
            text=(
                "How long the operator works on this source at a time. Above 1 s for long: check "
                "the latency of the API server, and the CPU limit of the operator."
            ),
            width=8,
        ),
        panels.SECONDS,
        p50=f"histogram_quantile(0.5, {TURNS})",
        p99=f"histogram_quantile(0.99, {TURNS})",
    )


def _failed_turns() -> AnyPanel:
    return panels.named(
        About(
            title="Failed turns within 10 minutes",
            text=(
                "The operator retries them. If they repeat, the condition Degraded and the log of "
                "the operator have the error."
            ),
            alerts=["BalancedSourceTurnsFailing"],
            width=8,
        ),
        panels.COUNT,
        axis="turns",
        Failed=f"max(increase({SOURCE('failed_turns_total')}[10m]))",
    )
