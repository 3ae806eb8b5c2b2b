"""The dashboard of all sources, and of the operator."""

from grafana_foundation_sdk.builders import dashboard as dashboards

from support.dashboards import panels
from support.dashboards.board import Board, Row, labels_of, option, rendered
from support.dashboards.panels import About, AnyPanel
from support.dashboards.promql import (
    ALL_SOURCES,
    OPERATOR,
    SOURCES,
    counted,
    each,
    top,
    top_of,
    where,
)
from support.dashboards.replicas import row_operator

STOPPED = each(
    SOURCES("condition_reason", 'type="Ready"', 'reason=~"Suspended|PausedByAnnotation"')
)
READY = where("Ready", 1)
UNKNOWN = f"{ALL_SOURCES} unless {READY} unless {where('Ready', 0)}"
SUSPENDED = f"{where('Ready', 0)} and on (namespace, source) {STOPPED}"
NOT_READY = f"{where('Ready', 0)} unless on (namespace, source) {STOPPED}"
AGE = f"time() - {each(SOURCES('report_timestamp_seconds'))}"
# A condition Ready that is Unknown is neither 0 nor 1.
MAY_BE_READ = f"unless on (namespace, source) {where('Ready', 0)}"
IS_SILENT = SOURCES("condition_reason", 'type="Ready"', 'reason="DriverSilent"')
SILENT = f"{each(IS_SILENT)} == 1"
ADOPTS = f"{each('changes(' + SOURCES('acknowledged_epoch') + '[15m])')} > 0"
WRONG = SOURCES("condition", 'type=~"Degraded|DataLoss"')
MISSING = SOURCES("condition", 'type=~"Ready|Autoscaling"')
DECIDED = each(SOURCES("autoscaling_desired_readers"))
WITHOUT_LAG = (
    f"{ALL_SOURCES} {MAY_BE_READ} unless on (namespace, source) {each(SOURCES('lag_records'))}"
    f" unless on (namespace, source) {each(SOURCES('behind_seconds'))}"
)


def dashboard() -> str:
    """Return the dashboard."""
    return rendered(
        Board(
            uid="balanced-source-fleet",
            title="Balanced Source / All sources",
            text=(
                "All BalancedSources of the operator: which need attention, and is the "
                "operator well?"
            ),
            other="One source",
            variables=_variables(),
            rows=[
                Row(title="Now", panels=_row_now()),
                Row(title="Lag", panels=_row_lag()),
                Row(title="Drivers and assignments", panels=_row_drivers()),
                Row(title="Readers", panels=_row_readers()),
                Row(title="Operator", panels=row_operator()),
            ],
        )
    )


def _variables() -> list[dashboards.QueryVariable | dashboards.CustomVariable]:
    namespaces = (
        labels_of("namespace", "Namespace", OPERATOR("condition"), "Namespaces of the sources.")
        .multi(multi=True)
        .include_all(include_all=True)
        .all_value(".*")
        .current(option("All", "$__all"))
    )
    rows = (
        dashboards.CustomVariable("top")
        .label("Sources per panel")
        .description("Panels show the sources with the highest values within the chosen time.")
        .values("5,10,20,50")
        .current(option("10", "10"))
    )
    return [namespaces, rows]


def _row_now() -> list[AnyPanel]:
    return [_sources_by_state(), _operator(), _attention(), _states()]


def _sources_by_state() -> AnyPanel:
    return panels.figures(
        About(
            title="Sources by state",
            text=(
                "Sources may be in several states. A suspended source is not ready because "
                "its spec says so. Unknown: its driver does not report. If the lag of a source is "
                "unknown, its driver cannot reach a broker, or the operator has not heard from "
                "the driver. Without any number, the operator is not scraped: see the panel "
                "Operator."
            ),
            alerts=["BalancedSourceNotReady", "BalancedSourceDegraded"],
            width=16,
            height=5,
        ),
        panels.COUNT,
        All=f"count({ALL_SOURCES})",
        Ready=counted(READY),
        Not_ready=counted(NOT_READY),
        Unknown=counted(UNKNOWN),
        Suspended=counted(SUSPENDED),
        Degraded=counted(where("Degraded", 1)),
        Data_loss=counted(where("DataLoss", 1)),
        Lag_unknown=counted(WITHOUT_LAG),
    )


def _operator() -> AnyPanel:
    return panels.highlighted(
        panels.figures(
            About(
                title="Operator",
                text=(
                    "One replica leads and serves the sources. Ready replicas lead or stand "
                    "by, with all rights that they need. Without a leader running queries "
                    "continue, and nothing is rescaled or repaired: look at the pods of the "
                    "operator."
                ),
                alerts=["BalancedSourceOperatorDown", "BalancedSourceOperatorNotReady"],
                width=8,
                height=5,
            ),
            panels.COUNT,
            Leaders=f"sum({OPERATOR('leader')})",
            Ready_replicas=f"sum({OPERATOR('ready')})",
            Replicas=f"count({OPERATOR('ready')})",
        ),
        "Leaders",
        below=1,
    )


def _attention() -> AnyPanel:
    wrong = f"{each(WRONG, 'namespace, source, type')} == 1"
    missing = f"{each(MISSING, 'namespace, source, type')} == 0"
    # Ready is Unknown then, which is neither 0 nor 1.
    silent = f"{each(IS_SILENT, 'namespace, source, type')} == 1"
    reasons = each(
        SOURCES("condition_reason", 'reason!~"Suspended|PausedByAnnotation"'),
        "namespace, source, type, reason",
    )
    return panels.listed(
        About(
            title="Sources that need attention",
            text=(
                "A row for each condition that is not as it should be, with its reason. "
                "Select the name of a source to see its dashboard. The page of reasons in the "
                "reference says what to do; kubectl describe bsrc shows the whole message."
            ),
            alerts=[
                "BalancedSourceNotReady",
                "BalancedSourceDegraded",
                "BalancedSourceDataLoss",
                "BalancedSourceDriverSilent",
                "BalancedSourceAutoscalerLimited",
            ],
        ),
        f"{reasons} and on (namespace, source, type) ({wrong} or {missing} or {silent})",
        ("namespace", "source", "type", "reason"),
    )


def _states() -> AnyPanel:
    return panels.named(
        About(
            title="Sources by state over time",
            text=(
                "How many sources had a problem, and since when. If many sources change at "
                "once, look for a cause that they share: a CLUSTER, a node, the API server or "
                "an upgrade."
            ),
            alerts=[
                "BalancedSourceNotReady",
                "BalancedSourceDegraded",
                "BalancedSourceDataLoss",
                "BalancedSourceDataLossUnknown",
            ],
        ),
        panels.COUNT,
        axis="sources",
        Ready=counted(READY),
        Not_ready=counted(NOT_READY),
        Unknown=counted(UNKNOWN),
        Suspended=counted(SUSPENDED),
        Degraded=counted(where("Degraded", 1)),
        Data_loss=counted(where("DataLoss", 1)),
        Restart_pending=counted(where("RestartPending", 1)),
    )


def _row_lag() -> list[AnyPanel]:
    return [_lag(), _growth_of_the_lag(), _time_behind()]


def _lag() -> AnyPanel:
    return panels.ranked(
        About(
            title="Lag",
            text=(
                "Records that can be read and are not read yet. A gap means that the lag was "
                "unknown, not that it was zero. A high lag that shrinks needs no action."
            ),
            alerts=["BalancedSourceLagGrowing", "BalancedSourceLagHigh"],
            width=8,
        ),
        panels.RECORDS,
        top(SOURCES("lag_records")),
        axis="records",
    )


def _growth_of_the_lag() -> AnyPanel:
    return panels.ranked(
        About(
            title="Growth of the lag",
            text=(
                "Change of the lag over 15 minutes. Above zero, more records arrive than are "
                "read: add readers, or find what limits them on the dashboard of the source."
            ),
            alerts=["BalancedSourceLagGrowing", "BalancedSourceLagHigh"],
            width=8,
        ),
        panels.RECORDS_PER_SECOND,
        top_of("deriv", SOURCES("lag_records"), "15m"),
    )


def _time_behind() -> AnyPanel:
    return panels.ranked(
        About(
            title="Time behind",
            text=(
                "Seconds by which the slowest split is behind, for sources that do not count "
                "records, such as Kinesis. Add readers if it grows."
            ),
            width=8,
        ),
        panels.SECONDS,
        top(SOURCES("behind_seconds")),
    )


def _row_drivers() -> list[AnyPanel]:
    return [
        _age_of_the_newest_report(),
        _sources_without_a_fresh_report(),
        _epochs_not_adopted(),
        _failing_discoveries(),
        _failures_of_applications_in_a_row(),
        _restarts_of_drivers(),
        _skipped_records(),
        _skipped_gaps(),
    ]


def _age_of_the_newest_report() -> AnyPanel:
    return panels.limited(
        panels.ranked(
            About(
                title="Age of the newest report",
                text=(
                    "Time since the driver of a source that may be read wrote its report, by "
                    "the driver's clock. Above 120 s it is unknown whether the driver reads: look "
                    "at its pod and its log, or at the clock of its node."
                ),
                alerts=["BalancedSourceDriverSilent"],
                width=8,
            ),
            panels.SECONDS,
            f"({AGE} {MAY_BE_READ}) and "
            f"topk($top, time() - {each(SOURCES('report_timestamp_seconds') + ' @ end()')})",
        ),
        120,
    )


def _sources_without_a_fresh_report() -> AnyPanel:
    return panels.named(
        About(
            title="Sources without a fresh report",
            text=(
                "Sources whose driver the operator has not heard for more than 120 s. "
                "If there are many at once, check the network between the drivers and the API "
                "server."
            ),
            alerts=["BalancedSourceDriverSilent"],
            width=8,
        ),
        panels.COUNT,
        axis="sources",
        Without_a_fresh_report=counted(SILENT),
    )


def _epochs_not_adopted() -> AnyPanel:
    return panels.ranked(
        About(
            title="Epochs not adopted",
            text=(
                "Published assignments that readers have not adopted. A change of parallelism "
                "takes effect when this is back at zero. If it stays, check the length of the "
                "micro-batches, and whether executors are missing. Sources that adopt one epoch "
                "after the other, such as those of files, are left out."
            ),
            alerts=["BalancedSourceEpochNotAdopted"],
            width=8,
        ),
        panels.COUNT,
        f"{top(SOURCES('epoch_lag'))} unless on (namespace, source) {ADOPTS}",
        axis="epochs",
    )


def _failing_discoveries() -> AnyPanel:
    return panels.ranked(
        About(
            title="Failing discoveries",
            text=(
                "Clusters, or other parts of a source, whose newest discovery failed. Their "
                "new partitions are not found; known ones are read. The condition Degraded "
                "has the error."
            ),
            alerts=["BalancedSourceDiscoveryFailing"],
            width=8,
        ),
        panels.COUNT,
        top(SOURCES("discovery_failing_scopes")),
        axis="scopes",
    )


def _failures_of_applications_in_a_row() -> AnyPanel:
    return panels.limited(
        panels.ranked(
            About(
                title="Failures of applications in a row",
                text=(
                    "How often the Spark application of a source has failed without a longer "
                    "run in between. See the log of its driver."
                ),
                alerts=["BalancedSourceApplicationFailing"],
                width=8,
            ),
            panels.COUNT,
            top(SOURCES("application_failures")),
            axis="failures",
        ),
        3,
    )


def _restarts_of_drivers() -> AnyPanel:
    return panels.limited(
        panels.ranked(
            About(
                title="Restarts of drivers within 2 hours",
                text=(
                    "Drivers that were started again although no change of the source asked for "
                    "it, of the host with most. A driver that dies every 12 minutes is seen here "
                    "only. See the log of the driver, and the events of its pod."
                ),
                alerts=["BalancedSourceDriverRestarting"],
                width=8,
            ),
            panels.COUNT,
            top_of("changes", SOURCES("driver_restarts_total"), "2h"),
            axis="restarts",
        ),
        4,
    )


def _skipped_records() -> AnyPanel:
    return panels.ranked(
        About(
            title="Skipped records",
            text=(
                "Offsets that were deleted before they were read, since the driver has "
                "started. The sink lacks them. Raise the retention, or read faster."
            ),
            alerts=["BalancedSourceDataLoss", "BalancedSourceDataLossGrowing"],
            width=12,
        ),
        panels.RECORDS,
        top(SOURCES("skipped_records")),
        axis="records",
    )


def _skipped_gaps() -> AnyPanel:
    return panels.ranked(
        About(
            title="Skipped gaps and blocks",
            text=(
                "How often Kinesis shards and files had lost something before it was read, since "
                "the driver has started. How many records that were is unknown. The sink lacks "
                "them. Raise the retention, read faster, or do not change files."
            ),
            alerts=["BalancedSourceDataLoss", "BalancedSourceDataLossGrowing"],
            width=12,
        ),
        panels.COUNT,
        top(SOURCES("skipped_gaps")),
        axis="losses",
    )


def _row_readers() -> list[AnyPanel]:
    return [_readers_of_all_sources(), _readers_of_sources_with_autoscaling(), _utilization()]


def _readers_of_all_sources() -> AnyPanel:
    return panels.named(
        About(
            title="Readers of all sources",
            text=(
                "Readers that the specs ask for, and readers of the adopted epochs. If they "
                "differ for long, see the panel Epochs not adopted."
            ),
            width=8,
        ),
        panels.COUNT,
        axis="readers",
        Desired=f"sum({each(SOURCES('desired_readers'))})",
        Actual=f"sum({each(SOURCES('readers'))})",
    )


def _readers_of_sources_with_autoscaling() -> AnyPanel:
    return panels.named(
        About(
            title="Readers of sources with autoscaling",
            text=(
                "Readers that the autoscaler has decided on, and the actual ones. No data "
                "means that no source has spec.autoscaling."
            ),
            width=8,
        ),
        panels.COUNT,
        axis="readers",
        Decided=f"sum({DECIDED})",
        Actual=f"sum({each(SOURCES('readers'))} and on (namespace, source) {DECIDED})",
    )


def _utilization() -> AnyPanel:
    return panels.ranked(
        About(
            title="Utilization",
            text=(
                "Percentage of its capacity that the busiest reader of a source uses. Above "
                "the target for long: the autoscaler adds readers, unless the condition "
                "Autoscaling says why it cannot."
            ),
            alerts=["BalancedSourceAutoscalerLimited"],
            width=8,
        ),
        panels.PERCENT,
        top(SOURCES("autoscaling_utilization_percent")),
    )
