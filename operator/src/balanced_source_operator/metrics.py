"""Prometheus metrics of the operator."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from balanced_source_operator.resources.identity import Identity
from balanced_source_operator.spec.status import Status

_LABELS = ("namespace", "source")


class Metrics:
    """All series carry the labels `namespace` and `source`."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._turns = Histogram(
            "balanced_source_turn_seconds", "Time of one turn of a source", _LABELS, registry=self.registry
        )
        self._failed = Counter(
            "balanced_source_failed_turns", "Turns that did not come to their end", _LABELS, registry=self.registry
        )
        self._published = Counter(
            "balanced_source_assignments_published", "Published assignments", _LABELS, registry=self.registry
        )
        self._gauges = {
            "epoch": self._gauge("epoch", "Newest epoch"),
            "acknowledged_epoch": self._gauge("acknowledged_epoch", "Newest epoch that readers have adopted"),
            "readers": self._gauge("readers", "Readers of the newest adopted epoch"),
            "splits": self._gauge("splits", "Known splits"),
            "pending_splits": self._gauge("pending_splits", "Splits without a reader"),
            "lag": self._gauge("lag_records", "Records not read yet; no series while unknown"),
        }
        self._autoscaling = {
            "desired_readers": self._gauge("autoscaling_desired_readers", "Readers that the autoscaler has decided on"),
            "utilization": self._gauge(
                "autoscaling_utilization_percent", "Share of its capacity of the busiest reader"
            ),
            "arrival_rate": self._gauge("autoscaling_arrival_records_per_second", "Records that arrive per second"),
            "capacity_per_reader": self._gauge(
                "autoscaling_reader_capacity_records_per_second", "Records that one reader can process per second"
            ),
        }
        self._balance = Gauge(
            "balanced_source_splits_per_reader",
            "Splits of the emptiest and of the fullest reader",
            (*_LABELS, "bound"),
            registry=self.registry,
        )

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"balanced_source_{name}", text, _LABELS, registry=self.registry)

    @contextmanager
    def turn(self, source: Identity) -> Iterator[None]:
        """Time a turn, and count it if it fails."""
        begin = time.perf_counter()
        try:
            yield
        except BaseException:
            self._failed.labels(source.namespace, source.name).inc()
            raise
        finally:
            self._turns.labels(source.namespace, source.name).observe(time.perf_counter() - begin)

    def published(self, source: Identity) -> None:
        """An assignment was published."""
        self._published.labels(source.namespace, source.name).inc()

    def observe(self, source: Identity, status: Status) -> None:
        """Take over what the status says."""
        found = [(gauge, getattr(status, name)) for name, gauge in self._gauges.items()]
        found += [(gauge, getattr(status.autoscaling, name, None)) for name, gauge in self._autoscaling.items()]
        for gauge, value in found:
            if value is not None:
                gauge.labels(source.namespace, source.name).set(value)
            else:  # unknown: no series, rather than the last value that was known
                _remove(gauge, (source.namespace, source.name))
        self._balance.labels(source.namespace, source.name, "min").set(status.balance.min)
        self._balance.labels(source.namespace, source.name, "max").set(status.balance.max)

    def forget(self, source: Identity) -> None:
        """The source is gone."""
        labels = (source.namespace, source.name)
        for metric in (self._turns, self._failed, self._published, *self._gauges.values(), *self._autoscaling.values()):
            _remove(metric, labels)
        for bound in ("min", "max"):
            _remove(self._balance, (*labels, bound))


def _remove(metric: Any, labels: tuple[str, ...]) -> None:
    try:
        metric.remove(*labels)
    except KeyError:
        return
