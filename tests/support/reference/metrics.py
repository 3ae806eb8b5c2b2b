"""Prometheus metrics of operator and driver, from their registries."""

from collections.abc import Iterator
from typing import Any, Final

from balanced_source_operator.metrics import Metrics
from balanced_source_spark.driver_metrics import DriverMetrics
from support.reference.markdown import head, table

TEXT: Final = """The operator serves its metrics on port 8080 (`BALANCED_SOURCE_METRICS_PORT`), a
driver on port 8090 (`BALANCED_SOURCE_DRIVER_METRICS_PORT` of the operator), or on the one that its
query's option `metricsPort` names. A gauge whose value is unknown has no series:
unknown is never shown as zero.
"""


def page() -> str:
    """Return the page."""
    driver = DriverMetrics("orders", namespace="jobs", port=None)
    parts = [head("Metrics", "the registries of operator and driver", TEXT)]
    for title, registry in (("Operator", Metrics().registry), ("Driver", driver.registry)):
        parts.append(
            f"\n## {title}\n\n" + table(("metric", "type", "labels", "meaning"), _rows(registry))
        )
    return "".join(parts)


def _rows(registry: Any) -> Iterator[tuple[str, str, str, str]]:
    for collector in dict.fromkeys(registry._names_to_collectors.values()):
        for metric in collector.describe() or collector.collect():
            labels = ", ".join(f"`{label}`" for label in getattr(collector, "_labelnames", ()))
            name = f"{metric.name}_total" if metric.type == "counter" else metric.name
            yield f"`{name}`", metric.type, labels, metric.documentation
