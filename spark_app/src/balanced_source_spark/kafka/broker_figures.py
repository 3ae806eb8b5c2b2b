"""What the clients of the planning process tell of their clusters, for Prometheus."""

from collections.abc import Iterator, Mapping
from typing import Final

from balanced_source_adapters.kafka.client_statistics import BrokerStatistics
from balanced_source_spark.contract.hooks import Figure

_CONNECTED: Final = "Brokers with a connection."
_RTT: Final = "Mean round trip to the slowest broker."
_THROTTLE: Final = "Mean delay by quotas, at the worst broker."


def broker_figures(statistics: Mapping[str, BrokerStatistics]) -> Iterator[Figure]:
    """Return the figures of each cluster; a round trip that no one has measured is left out."""
    for cluster, seen in statistics.items():
        labels = {"cluster": cluster}
        yield Figure(
            name="kafka_brokers_connected", text=_CONNECTED, labels=labels, value=seen.connected
        )
        if seen.rtt is not None:
            yield Figure(name="kafka_rtt_seconds", text=_RTT, labels=labels, value=seen.rtt)
        yield Figure(
            name="kafka_throttle_seconds", text=_THROTTLE, labels=labels, value=seen.throttle
        )
