"""Kafka clusters in KRaft mode, from jars, on loopback."""

from testbed.kafka.cluster import KafkaCluster
from testbed.kafka.security import KafkaSecurity, Listener, Mechanism

__all__ = ["KafkaCluster", "KafkaSecurity", "Listener", "Mechanism"]
