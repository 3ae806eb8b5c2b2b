"""The row of the operator itself: its turns, its replicas, and the API server."""

from typing import Final

from support.dashboards import panels
from support.dashboards.panels import About, AnyPanel
from support.dashboards.promql import OPERATOR, RATE, SOURCES, top_of

TURNS: Final = f"sum by (le) (rate({SOURCES('turn_seconds_bucket')}{RATE}))"


def row_operator() -> list[AnyPanel]:
    """Return the panels about the operator."""
    return [
        _time_of_a_turn(),
        _failed_turns_within_10_minutes(),
        _leaders_and_ready_replicas(),
        _requests_to_the_api_server(),
        _failed_requests_to_the_api_server(),
        _changes_within_an_hour(),
    ]


def _time_of_a_turn() -> AnyPanel:
    return panels.named(
        About(
            title="Time of a turn",
            text=(
                "How long the operator works on one source at a time. Above 1 s for long: "
                "check the latency of the API server, and the CPU limit of the operator."
            ),
            width=8,
        ),
        panels.SECONDS,
        p50=f"histogram_quantile(0.5, {TURNS})",
        p99=f"histogram_quantile(0.99, {TURNS})",
    )


def _failed_turns_within_10_minutes() -> AnyPanel:
    return panels.ranked(
        About(
            title="Failed turns within 10 minutes",
            text=(
                "The operator retries them. If they repeat, the condition Degraded of the "
                "source and the log of the operator have the error."
            ),
            alerts=["BalancedSourceTurnsFailing"],
            width=8,
        ),
        panels.COUNT,
        top_of("increase", SOURCES("failed_turns_total"), "10m"),
        axis="turns",
    )


def _leaders_and_ready_replicas() -> AnyPanel:
    return panels.named(
        About(
            title="Leaders and ready replicas",
            text=(
                "There is one leader. Two are possible for seconds while a replica ends. A "
                "replica that is not ready lacks rights: its log names them. Starts that repeat "
                "have their cause in the state of the container that ended."
            ),
            alerts=[
                "BalancedSourceOperatorDown",
                "BalancedSourceOperatorNotReady",
                "BalancedSourceOperatorRestarting",
            ],
            width=8,
        ),
        panels.COUNT,
        axis="replicas",
        Leaders=f"sum({OPERATOR('leader')})",
        Ready=f"sum({OPERATOR('ready')})",
        All=f"count({OPERATOR('ready')})",
        Starts_within_an_hour=f"sum(changes({OPERATOR('start_time_seconds')}[1h]))",
    )


def _requests_to_the_api_server() -> AnyPanel:
    return panels.ranked(
        About(
            title="Requests to the API server",
            text=(
                "By verb and kind. A rate that grows although the number of sources does not "
                "is a defect: report it."
            ),
            width=8,
        ),
        panels.REQUESTS_PER_SECOND,
        f"sum by (verb, kind) (rate({OPERATOR('api_requests_total')}{RATE}))",
        legend="{{verb}} {{kind}}",
    )


def _failed_requests_to_the_api_server() -> AnyPanel:
    return panels.ranked(
        About(
            title="Failed requests to the API server",
            text=(
                "By verb, kind and status code. 403 is a missing right or an admission "
                "policy, 429 and 5xx an overloaded API server. Conflicts are normal, and "
                "retried."
            ),
            alerts=["BalancedSourceApiErrors"],
            width=8,
        ),
        panels.REQUESTS_PER_SECOND,
        f"sum by (verb, kind, error) (rate({OPERATOR('api_errors_total')}{RATE}))",
        legend="{{verb}} {{kind}}: {{error}}",
    )


def _changes_within_an_hour() -> AnyPanel:
    return panels.named(
        About(
            title="Changes within an hour",
            text=(
                "Published assignments and created Spark applications of all sources. Many "
                "applications mean restarts: see the failures of applications, and the restarts "
                "of drivers."
            ),
            width=8,
        ),
        panels.COUNT,
        Assignments=f"sum(increase({SOURCES('assignments_published_total')}[1h]))",
        Applications=f"sum(increase({SOURCES('applications_created_total')}[1h]))",
    )
