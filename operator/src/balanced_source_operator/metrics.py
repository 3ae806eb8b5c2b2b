"""Prometheus metrics of the operator."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.spec.status import Condition, Status

PREFIX: Final = "balanced_source_"

LABELS: Final = ("namespace", "source")
"""Labels of all series about one source."""

_OF_STATUS: Final = {
    "epoch": ("epoch", "Newest epoch."),
    "acknowledged_epoch": ("acknowledged_epoch", "Newest epoch that readers have adopted."),
    "readers": ("readers", "Readers of the newest adopted epoch."),
    "splits": ("splits", "Known splits."),
    "pending_splits": ("pending_splits", "Splits without a reader."),
    "lag": (
        "lag_records",
        (
            "Records that are not read yet, with those of the running micro-batch. No series while"
            " unknown."
        ),
    ),
    "seconds_behind": (
        "behind_seconds",
        (
            "Seconds by which the slowest split is behind, for sources that do not count records."
            " No series while unknown."
        ),
    ),
}
"""Field of the status → name and text."""

_OF_AUTOSCALING: Final = {
    "desired_readers": (
        "autoscaling_desired_readers",
        "Readers that the autoscaler has decided on.",
    ),
    "utilization": (
        "autoscaling_utilization_percent",
        "Percentage of its capacity that the busiest reader uses.",
    ),
    "arrival_rate": ("autoscaling_arrival_records_per_second", "Records that arrive per second."),
    "capacity_per_reader": (
        "autoscaling_reader_capacity_records_per_second",
        (
            "Records that one reader can process per second. No series while it is unknown, or less"
            " than one."
        ),
    ),
}
"""Field of the autoscaler's part of the status → name and text."""

OF_SIGNALS: Final = {
    "desired_readers": (
        "Readers that spec.parallelism asks for. No series while the spec was never valid."
    ),
    "epoch_lag": (
        "Published epochs that readers have not adopted. No series while no driver is meant to run."
    ),
    "discovery_failing_scopes": "Clusters, or other scopes, whose newest discovery failed.",
    "report_timestamp_seconds": (
        "Unix time of the driver's newest report; with several hosts, the oldest of these. No"
        " series before the first, and when everything has been read."
    ),
    "skipped_records": (
        "Offsets that were deleted before they were read, since the driver has started, as far as"
        " they are counted. No series while it is unknown whether there are any."
    ),
    "skipped_gaps": (
        "How often records of an unknown number were gone before they were read, since the driver"
        " has started: gaps of Kinesis shards, and blocks of files."
    ),
    "application_failures": (
        "Failures of the application in a row, of the host with most; 0 when one has run for ten"
        " minutes."
    ),
}
"""What is known of a source besides its status: name → text."""

_OF_RESTARTS: Final = (
    "Drivers that were started again although no change of the source asked for it: after a"
    " failure, or because the pod was evicted or deleted."
)


class Metrics:
    """All metrics of the process, in one registry."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._turns = self._made(
            Histogram, "turn_seconds", "Time of one turn of a source.", *LABELS
        )
        self._failed = self._made(
            Counter, "failed_turns", "Turns of a source that failed.", *LABELS
        )
        self._published = self._made(
            Counter, "assignments_published", "Published assignments.", *LABELS
        )
        self._created = self._made(
            Counter, "applications_created", "Created SparkApplications.", *LABELS
        )
        self._restarts = self._made(Counter, "driver_restarts", _OF_RESTARTS, *LABELS, "host")
        self._status = {
            field: self._gauge(name, text) for field, (name, text) in _OF_STATUS.items()
        }
        self._autoscaling = {
            field: self._gauge(name, text) for field, (name, text) in _OF_AUTOSCALING.items()
        }
        self._signals = {name: self._gauge(name, text) for name, text in OF_SIGNALS.items()}
        balance = "Splits of the reader that has fewest (min) and of the one that has most (max)."
        self._balance = self._gauge("splits_per_reader", balance, "bound")
        self._condition = self._gauge(
            "condition",
            "1 while a condition is True, 0 while it is False, NaN while it is Unknown.",
            "type",
        )
        self._reason = self._gauge(
            "condition_reason", "1 for the present reason of a condition.", "type", "reason"
        )
        self._requests = self._made(
            Counter, "api_requests", "Requests to the API server.", "verb", "kind"
        )
        self._errors = self._made(
            Counter,
            "api_errors",
            "Requests that the API server refused or did not answer.",
            "verb",
            "kind",
            "error",
        )
        self._leader = self._made(
            Gauge, "leader", "1 while this replica serves, 0 while it stands by."
        )
        self._ready = self._made(
            Gauge, "ready", "1 while this replica serves or stands by with all rights it needs."
        )
        # A replica that restarts leads again within seconds: only this shows it.
        self._made(
            Gauge, "start_time_seconds", "Unix time at which the process of this replica started."
        ).set(time.time())
        self._reasons: dict[Identity, set[tuple[str, str]]] = {}
        self._conditions: dict[Identity, set[str]] = {}
        self._hosts: dict[Identity, set[str]] = {}
        self._observed: dict[Identity, tuple[Status, Mapping[str, float | None]]] = {}

    def _made(self, kind: Any, name: str, text: str, *labels: str) -> Any:
        return kind(PREFIX + name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Any:
        return self._made(Gauge, name, text, *LABELS, *labels)

    @contextmanager
    def turn(self, source: Identity) -> Iterator[None]:
        """Time a turn, and count it if it fails."""
        begin = time.perf_counter()
        # from 0 on, or the first failure is no increase
        failed = self._failed.labels(source.namespace, source.name)
        try:
            yield
        except BaseException:
            failed.inc()
            raise
        finally:
            self._turns.labels(source.namespace, source.name).observe(time.perf_counter() - begin)

    def published(self, source: Identity) -> None:
        """Count a published assignment."""
        self._published.labels(source.namespace, source.name).inc()

    def created(self, source: Identity) -> None:
        """Count a created SparkApplication."""
        self._created.labels(source.namespace, source.name).inc()

    def restarted(self, source: Identity, hosts: Mapping[str, int]) -> None:
        """Count drivers that were started again, by host.

        A host is counted from 0 on, or its first restart is no increase.
        """
        self._hosts.setdefault(source, set()).update(hosts)
        for host, number in hosts.items():
            self._restarts.labels(source.namespace, source.name, host).inc(number)

    def requested(self, verb: str, kind: str, error: str = "") -> None:
        """Count a request to the API server, and its failure if `error` says what failed."""
        self._requests.labels(verb, kind).inc()
        if error:
            self._errors.labels(verb, kind, error).inc()

    def follow(self, *, is_leader: Callable[[], bool], is_ready: Callable[[], bool]) -> None:
        """Ask what this replica does whenever metrics are read."""
        self._leader.set_function(lambda: float(is_leader()))
        self._ready.set_function(lambda: float(is_ready()))

    def observe(
        self, source: Identity, status: Status, signals: Mapping[str, float | None] | None = None
    ) -> None:
        """Take over what the status says, and what else is known.

        Values of `OF_SIGNALS` by their names.
        """
        labels = (source.namespace, source.name)
        signals = signals or {}
        before_status, before = self._observed.get(source, (None, {}))
        self._observed[source] = (status, signals)
        # Most turns change only the time of the report, and setting every series takes time with
        # thousands of sources.
        for name, gauge in self._signals.items():
            if before.get(name) != signals.get(name):
                _set(gauge, labels, signals.get(name))
        if before_status == status:
            return
        for name, gauge in self._status.items():
            _set(gauge, labels, getattr(status, name))
        for name, gauge in self._autoscaling.items():
            _set(gauge, labels, getattr(status.autoscaling, name, None))
        self._balance.labels(*labels, "min").set(status.balance.min)
        self._balance.labels(*labels, "max").set(status.balance.max)
        self._observe_conditions(source, status.conditions)

    def heard(self, source: Identity, heartbeat: float) -> None:
        """Take over the time of a report that says nothing else.

        A driver may report while its end is known already: no report is expected then.
        """
        _, signals = self._observed.get(source, (None, {}))
        if signals.get("report_timestamp_seconds") is None:
            return
        self._signals["report_timestamp_seconds"].labels(source.namespace, source.name).set(
            heartbeat
        )

    def _observe_conditions(self, source: Identity, conditions: list[Condition]) -> None:
        labels = (source.namespace, source.name)
        types, reasons = {c.type for c in conditions}, {(c.type, c.reason) for c in conditions}
        for kind in self._conditions.get(source, set()) - types:
            _remove(self._condition, (*labels, kind))
        for pair in self._reasons.get(source, set()) - reasons:
            _remove(self._reason, (*labels, *pair))
        for condition in conditions:
            self._condition.labels(*labels, condition.type).set(_number_of(condition))
            self._reason.labels(*labels, condition.type, condition.reason).set(1)
        self._conditions[source], self._reasons[source] = types, reasons

    def forget(self, source: Identity) -> None:
        """Drop all series of a source that is gone."""
        labels = (source.namespace, source.name)
        self._observe_conditions(source, [])
        self._observed.pop(source, None)
        del self._conditions[source], self._reasons[source]
        counters = (self._turns, self._failed, self._published, self._created)
        for metric in (
            *counters,
            *self._status.values(),
            *self._autoscaling.values(),
            *self._signals.values(),
        ):
            _remove(metric, labels)
        for host in self._hosts.pop(source, ()):
            _remove(self._restarts, (*labels, host))
        for bound in ("min", "max"):
            _remove(self._balance, (*labels, bound))


def _number_of(condition: Condition) -> float:
    """Return what no alert takes for True or for False while the status is Unknown."""
    return math.nan if condition.status == "Unknown" else float(condition.status == "True")


def _set(gauge: Any, labels: tuple[str, ...], value: float | None) -> None:
    """Show a value; what is unknown has no series, rather than the last value that was known."""
    if value is None:
        _remove(gauge, labels)
    else:
        gauge.labels(*labels).set(value)


def _remove(metric: Any, labels: tuple[str, ...]) -> None:
    try:
        metric.remove(*labels)
    except KeyError:
        return
