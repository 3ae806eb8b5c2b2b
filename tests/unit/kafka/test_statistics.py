"""Client behaviour: statistics of brokers, and where a reader says that it is."""

import json

import pytest

from balanced_source.connectors.kafka import KafkaCluster
from balanced_source_adapters.kafka.client_statistics import BrokerStatistics, parse
from balanced_source_adapters.kafka.config import NoSecrets
from balanced_source_spark.driver_metrics import DriverMetrics
from balanced_source_spark.kafka.broker_figures import broker_figures
from balanced_source_spark.kafka.settings import FORMER_ZONE, ZONE, consumer_config


def test_the_worst_broker_counts() -> None:
    document = {
        "brokers": {
            "a:1/1": {
                "state": "UP",
                "rtt": {"avg": 1500},
                "throttle": {"avg": 0},
                "tx": 5,
                "req_timeouts": 1,
            },
            "b:1/2": {
                "state": "UP",
                "rtt": {"avg": 4000},
                "throttle": {"avg": 250},
                "tx": 7,
                "req_timeouts": 0,
            },
            "bootstrap": {"state": "DOWN"},
        }
    }

    told = parse(json.dumps(document))

    assert told == BrokerStatistics(connected=2, rtt=0.004, throttle=0.25, requests=12, timeouts=1)
    assert parse("{}") == BrokerStatistics()


def test_statistics_are_metrics_by_cluster() -> None:
    metrics = DriverMetrics("orders", namespace="jobs", port=None)

    metrics.note_figures(broker_figures({"east": BrokerStatistics(connected=3, rtt=0.5)}))

    labels = {"namespace": "jobs", "source": "orders", "cluster": "east"}
    assert (
        metrics.registry.get_sample_value("balanced_source_host_kafka_brokers_connected", labels)
        == 3
    )
    assert (
        metrics.registry.get_sample_value("balanced_source_host_kafka_rtt_seconds", labels) == 0.5
    )


def test_a_round_trip_without_a_measurement_is_unknown_and_not_0() -> None:
    metrics = DriverMetrics("orders", namespace="jobs", port=None)

    seen = parse(json.dumps({"brokers": {"a:1/1": {"state": "UP", "rtt": {"avg": 0}}}}))
    metrics.note_figures(broker_figures({"east": seen}))

    labels = {"namespace": "jobs", "source": "orders", "cluster": "east"}
    assert (
        metrics.registry.get_sample_value("balanced_source_host_kafka_brokers_connected", labels)
        == 1
    )
    assert (
        metrics.registry.get_sample_value("balanced_source_host_kafka_rtt_seconds", labels) is None
    )


@pytest.mark.scenario("H12")
def test_the_rack_comes_from_where_the_reader_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set: used; absent or empty: ignored.

    Asked when a split is read, as upstream's supplier is.
    """
    plain = KafkaCluster(name="c", bootstrap_servers="b:1")
    said = KafkaCluster(name="c", bootstrap_servers="b:1", properties={"client.rack": "spec"})

    def rack(cluster: KafkaCluster) -> object:
        return consumer_config(cluster, NoSecrets(), client_id="x").get("client.rack")

    for name in (ZONE, FORMER_ZONE):
        monkeypatch.delenv(name, raising=False)
    assert rack(plain) is None
    for name in (ZONE, FORMER_ZONE):
        monkeypatch.setenv(name, "")
    assert rack(plain) is None
    monkeypatch.setenv(ZONE, "us-east-1a")
    assert (rack(plain), rack(said)) == ("us-east-1a", "spec")
    # the brokers' name of the zone, as a user has set it for 0.1.0
    monkeypatch.setenv(FORMER_ZONE, "use1-az1")
    assert (rack(plain), rack(said)) == ("use1-az1", "spec")
