"""Every series that operator and drivers serve, with its labels."""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry

from balanced_source.host.observation import Observation, ReaderLoad
from balanced_source.host.reader_figures import ReaderFigures
from balanced_source_adapters.kafka.client_statistics import BrokerStatistics
from balanced_source_spark.driver_metrics import DriverMetrics
from balanced_source_spark.kafka.broker_figures import broker_figures
from support.served_metrics import everything


def of_operator() -> Mapping[str, frozenset[str]]:
    """Return the operator's series: name → labels, without those that scraping adds."""
    return _labels(registry_of_operator())


def of_driver() -> Mapping[str, frozenset[str]]:
    """Return the same of a driver that reads from Kafka."""
    return _labels(registry_of_driver())


def registry_of_operator() -> CollectorRegistry:
    """Return a registry of the operator in which each metric has a series."""
    return everything().registry


def registry_of_driver() -> CollectorRegistry:
    """Return the same of a driver that reads from Kafka."""
    metrics = DriverMetrics("orders", namespace="jobs", port=None)
    load = ReaderLoad(splits=1, lag=1, records=1, running=1)
    split_id = ("main", "orders", 0)
    seen = Observation(readers={0: load}, lags={split_id: 1}, behind={split_id: 1})
    metrics.note(seen, aligned_to=1)
    metrics.note_readers({0: ReaderFigures(first=0.1)})
    metrics.note_figures(broker_figures({"main": BrokerStatistics(rtt=0.1)}))
    return metrics.registry


def _labels(registry: CollectorRegistry) -> Mapping[str, frozenset[str]]:
    samples: Iterable[tuple[str, Iterable[str]]] = (
        (sample.name, sample.labels) for family in registry.collect() for sample in family.samples
    )
    return {name: frozenset(labels) for name, labels in samples}
