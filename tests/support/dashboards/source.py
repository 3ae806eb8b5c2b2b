"""The dashboard of one source: what the operator knows of it."""

from grafana_foundation_sdk.builders import dashboard as dashboards

from support.dashboards import panels
from support.dashboards.board import Board, Row, labels_of, rendered
from support.dashboards.panels import About, AnyPanel, Query
from support.dashboards.problems import row_problems
from support.dashboards.promql import OPERATOR, SOURCE, of_source
from support.dashboards.readers import row_brokers, row_readers


def dashboard() -> str:
    """Return the dashboard."""
    return rendered(
        Board(
            uid=panels.SOURCE_UID,
            title="Balanced Source / One source",
            text="One BalancedSource: is it read, how far is it behind, and what limits it?",
            other="All sources",
            variables=_variables(),
            rows=[
                Row(title="Now", panels=_row_now()),
                Row(title="Conditions", panels=_row_conditions()),
                Row(title="Lag and load", panels=_row_load()),
                Row(title="Assignment", panels=_row_assignment()),
                Row(title="Problems", panels=row_problems()),
                Row(title="Readers (needs the drivers to be scraped)", panels=row_readers()),
                Row(title="Kafka brokers, as the driver sees them", panels=row_brokers()),
            ],
        )
    )


def _variables() -> list[dashboards.QueryVariable | dashboards.CustomVariable]:
    sources = OPERATOR("condition", 'namespace="$namespace"')
    return [
        labels_of("namespace", "Namespace", OPERATOR("condition"), "Namespace of the source."),
        labels_of("source", "Source", sources, "Name of the BalancedSource."),
    ]


AGE = f"time() - {of_source('report_timestamp_seconds')}"
READY = SOURCE("condition_reason", 'type="Ready"')
REASON = f"max by (reason) ({READY}) == 1"
CAPACITY = of_source("autoscaling_reader_capacity_records_per_second")


def _row_now() -> list[AnyPanel]:
    return [_state(), _behind(), _readers_and_splits(), _newest_report()]


def _state() -> AnyPanel:
    return panels.words(
        About(
            title="State",
            text=(
                "The reason of the condition Ready. Reading and Finished are good. The page "
                "of reasons in the reference explains all others."
            ),
            alerts=["BalancedSourceNotReady", "BalancedSourceDriverSilent"],
            width=4,
            height=4,
        ),
        REASON,
        "{{reason}}",
    )


def _behind() -> AnyPanel:
    return panels.figures(
        About(
            title="Behind",
            text=(
                "Records that are not read yet, or seconds behind for sources that do not "
                "count records. One of the two is unknown for most sources; if both are, the "
                "driver cannot reach a broker or does not report."
            ),
            alerts=["BalancedSourceLagGrowing", "BalancedSourceLagHigh"],
            width=6,
            height=4,
        ),
        panels.COUNT,
        Records=of_source("lag_records"),
        Seconds=of_source("behind_seconds"),
    )


def _readers_and_splits() -> AnyPanel:
    return panels.figures(
        About(
            title="Readers and splits",
            text=(
                "Desired readers are those of the spec, actual ones those of the adopted "
                "epoch. Pending splits have no reader yet and are not read."
            ),
            width=10,
            height=4,
        ),
        panels.COUNT,
        Desired_readers=of_source("desired_readers"),
        Actual_readers=of_source("readers"),
        Splits=of_source("splits"),
        Pending_splits=of_source("pending_splits"),
    )


def _newest_report() -> AnyPanel:
    return panels.figures(
        About(
            title="Newest report",
            text=(
                "Time since the driver wrote its report. Above 120 s it is unknown whether "
                "the driver reads: look at its pod and its log."
            ),
            alerts=["BalancedSourceDriverSilent"],
            width=4,
            height=4,
        ),
        panels.SECONDS,
        bad_from=120,
        Age=AGE,
    )


def _row_conditions() -> list[AnyPanel]:
    return [_conditions(), _reasons()]


def _conditions() -> AnyPanel:
    return panels.states(
        About(
            title="Conditions",
            text=(
                "Blue is good and red is bad; grey is neither. A gap means that the operator "
                "did not report the condition. kubectl describe bsrc shows the messages."
            ),
            alerts=[
                "BalancedSourceNotReady",
                "BalancedSourceDegraded",
                "BalancedSourceDataLoss",
                "BalancedSourceAutoscalerLimited",
            ],
        ),
        Query(expr=f"max by (type) ({SOURCE('condition')})", legend="{{type}}"),
        good="Ready|Autoscaling",
        bad="Degraded|DataLoss",
    )


def _reasons() -> AnyPanel:
    return panels.bands(
        About(
            title="Reasons",
            text=(
                "The reasons that the conditions had. The page of reasons in the reference "
                "says what each means and what to do."
            ),
            alerts=[
                "BalancedSourceDegraded",
                "BalancedSourceDataLoss",
                "BalancedSourceDataLossUnknown",
            ],
        ),
        Query(
            expr=f"max by (type, reason) ({SOURCE('condition_reason')}) == 1",
            legend="{{type}}: {{reason}}",
        ),
    )


def _row_load() -> list[AnyPanel]:
    return [
        _lag(),
        _growth_of_the_lag(),
        _time_behind(),
        _arrival_and_capacity(),
        _utilization(),
        _readers(),
    ]


def _lag() -> AnyPanel:
    return panels.named(
        About(
            title="Lag",
            text=(
                "Records that can be read and are not read yet. A gap means that the lag was "
                "unknown, not that it was zero. If it grows, add readers, or find what limits "
                "them below."
            ),
            alerts=["BalancedSourceLagGrowing", "BalancedSourceLagHigh"],
            width=8,
        ),
        panels.RECORDS,
        axis="records",
        Lag=of_source("lag_records"),
    )


def _growth_of_the_lag() -> AnyPanel:
    return panels.named(
        About(
            title="Growth of the lag",
            text="Change of the lag over 15 minutes: above zero the source falls behind.",
            alerts=["BalancedSourceLagGrowing", "BalancedSourceLagHigh"],
            width=8,
        ),
        panels.RECORDS_PER_SECOND,
        Growth=f"max(deriv({SOURCE('lag_records')}[15m]))",
    )


def _time_behind() -> AnyPanel:
    return panels.named(
        About(
            title="Time behind",
            text=(
                "Seconds by which the slowest split is behind, for sources that do not count "
                "records, such as Kinesis."
            ),
            width=8,
        ),
        panels.SECONDS,
        Behind=of_source("behind_seconds"),
    )


def _arrival_and_capacity() -> AnyPanel:
    return panels.named(
        About(
            title="Arrival and capacity",
            text=(
                "Records that arrive, and records that all readers together can process, as "
                "the autoscaler measures them. The capacity is unknown until readers have had "
                "a backlog. No data means that the source has no spec.autoscaling."
            ),
            alerts=["BalancedSourceAutoscalerLimited"],
            width=8,
        ),
        panels.RECORDS_PER_SECOND,
        Arrival=of_source("autoscaling_arrival_records_per_second"),
        Capacity=f"{CAPACITY} * {of_source('readers')}",
        Capacity_of_one_reader=CAPACITY,
    )


def _utilization() -> AnyPanel:
    return panels.named(
        About(
            title="Utilization",
            text=(
                "Percentage of its capacity that the busiest reader uses. If it stays at 100 "
                "% with idle readers, splits are uneven: use the strategy LoadAware."
            ),
            alerts=["BalancedSourceAutoscalerLimited"],
            width=8,
        ),
        panels.PERCENT,
        Busiest_reader=of_source("autoscaling_utilization_percent"),
    )


def _readers() -> AnyPanel:
    return panels.named(
        About(
            title="Readers",
            text=(
                "Readers that the autoscaler has decided on, that the spec asks for, and that "
                "read. If the actual number stays behind, see the panel Epochs."
            ),
            alerts=["BalancedSourceEpochNotAdopted", "BalancedSourceAutoscalerLimited"],
            width=8,
        ),
        panels.COUNT,
        axis="readers",
        Decided_by_the_autoscaler=of_source("autoscaling_desired_readers"),
        Desired=of_source("desired_readers"),
        Actual=of_source("readers"),
    )


def _row_assignment() -> list[AnyPanel]:
    return [
        _splits_per_reader(),
        _epochs(),
        _epochs_not_adopted(),
        _splits(),
        _changes_within_an_hour(),
        _age_of_the_newest_report(),
    ]


def _splits_per_reader() -> AnyPanel:
    return panels.named(
        About(
            title="Splits per reader",
            text=(
                "Splits of the reader with the fewest and with the most. With a strategy that "
                "counts splits they differ by one at most after a rebalancing. If they differ "
                "by more, splits were added since: rebalance."
            ),
            width=8,
        ),
        panels.COUNT,
        axis="splits",
        Fewest=of_source("splits_per_reader", 'bound="min"'),
        Most=of_source("splits_per_reader", 'bound="max"'),
    )


def _epochs() -> AnyPanel:
    return panels.named(
        About(
            title="Epochs",
            text=(
                "The newest epoch that was decided, and the newest that the readers have "
                "adopted. The lines meet at the next micro-batch. If they do not, the "
                "micro-batch takes long, or executors are missing."
            ),
            alerts=["BalancedSourceEpochNotAdopted"],
            width=8,
        ),
        panels.COUNT,
        axis="epoch",
        Decided=of_source("epoch"),
        Adopted=of_source("acknowledged_epoch"),
    )


def _epochs_not_adopted() -> AnyPanel:
    return panels.named(
        About(
            title="Epochs not adopted",
            text=(
                "Published epochs that readers have not adopted. A change of parallelism is "
                "without effect until this is zero."
            ),
            alerts=["BalancedSourceEpochNotAdopted"],
            width=8,
        ),
        panels.COUNT,
        axis="epochs",
        Not_adopted=of_source("epoch_lag"),
    )


def _splits() -> AnyPanel:
    return panels.named(
        About(
            title="Splits",
            text=(
                "Known splits, and those without a reader. Splits are pending while a host "
                "recovers, or after a discovery until the next epoch."
            ),
            width=8,
        ),
        panels.COUNT,
        axis="splits",
        Known=of_source("splits"),
        Pending=of_source("pending_splits"),
    )


def _changes_within_an_hour() -> AnyPanel:
    return panels.named(
        About(
            title="Changes within an hour",
            text=(
                "Published assignments, and Spark applications that the operator created. "
                "Kubeflow's Spark operator starts a failed driver again in the same application: "
                "see the restarts of drivers."
            ),
            width=8,
        ),
        panels.COUNT,
        Assignments=f"max(increase({SOURCE('assignments_published_total')}[1h]))",
        Applications=f"max(increase({SOURCE('applications_created_total')}[1h]))",
    )


def _age_of_the_newest_report() -> AnyPanel:
    return panels.limited(
        panels.named(
            About(
                title="Age of the newest report",
                text=(
                    "Time since the driver wrote its report. Above 120 s it is unknown "
                    "whether the driver reads. It grows while a source is suspended."
                ),
                alerts=["BalancedSourceDriverSilent"],
                width=8,
            ),
            panels.SECONDS,
            Age=AGE,
        ),
        120,
    )
