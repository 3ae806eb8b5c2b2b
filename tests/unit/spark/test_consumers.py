"""Consumers of readers.

Errors of their configuration end in the query's error, and show nothing secret.
"""

import pytest

from balanced_source.connectors.kafka import KafkaCluster
from balanced_source.errors import BalancedSourceError
from balanced_source_adapters.kafka.config import NoSecrets
from balanced_source_spark.kafka.consumers import borrowed_consumer
from balanced_source_spark.kafka.settings import consumer_config

CLUSTER = KafkaCluster(name="c", bootstrap_servers="127.0.0.1:1")


@pytest.mark.parametrize(
    ("name", "value"),
    [("security.protocol", "hunter2"), ("ssl.key.pem", "hunter2"), ("sasl.passwords", "hunter2")],
)
def test_an_invalid_configuration_is_reported_without_its_values(name: str, value: str) -> None:
    config = consumer_config(CLUSTER, NoSecrets(), client_id="x") | {
        "security.protocol": "SSL",
        name: value,
    }

    with pytest.raises(BalancedSourceError) as caught, borrowed_consumer(config):
        pass

    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
