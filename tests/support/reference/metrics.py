"""Prometheus metrics of operator and driver, from their registries."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from prometheus_client import CollectorRegistry

from balanced_source_adapters.kafka.client_statistics import BrokerStatistics
from balanced_source_operator.metrics import Metrics
from balanced_source_spark.contract.hooks import Figure
from balanced_source_spark.driver_metrics import DriverMetrics
from balanced_source_spark.kafka.broker_figures import broker_figures
from support.reference.markdown import head, table

TEXT: Final = """The operator serves its metrics on port 8080 (`BALANCED_SOURCE_METRICS_PORT`), a
driver on port 8090 (`BALANCED_SOURCE_DRIVER_METRICS_PORT` of the operator), or on the one that its
query's option `metricsPort` names. The driver's label `source` is the name of the source, or
`embedded` without an operator. A connector can have metrics of its own. A gauge whose value is
unknown has no series: unknown is never shown as zero.
"""

_STATISTICS: Final = {"main": BrokerStatistics(rtt=0.001)}
"""With a value for everything, so that no metric of Kafka is left out."""


def page() -> str:
    """Return the page."""
    driver, kafka = _driver(), _driver(broker_figures(_STATISTICS))
    connector = [row for row in _rows(kafka) if row not in set(_rows(driver))]
    parts = [head("Metrics", "the registries of operator and driver", TEXT)]
    for title, rows in (
        ("Operator", _rows(Metrics().registry)),
        ("Driver", _rows(driver)),
        ("Driver of a Kafka source", connector),
    ):
        parts.append(f"\n## {title}\n\n" + table(("metric", "type", "labels", "meaning"), rows))
    return "".join(parts)


def _driver(figures: Iterable[Figure] = ()) -> CollectorRegistry:
    driver = DriverMetrics("orders", namespace="jobs", port=None)
    driver.note_figures(figures)
    return driver.registry


def _rows(registry: Any) -> Iterator[tuple[str, str, str, str]]:
    for collector in dict.fromkeys(registry._names_to_collectors.values()):
        for metric in collector.describe() or collector.collect():
            labels = ", ".join(f"`{label}`" for label in getattr(collector, "_labelnames", ()))
            name = f"{metric.name}_total" if metric.type == "counter" else metric.name
            yield f"`{name}`", metric.type, labels, metric.documentation
