"""Kafka: one cluster or many."""

from balanced_source.connectors.kafka.limits import ReadLimits, admit
from balanced_source.connectors.kafka.offsets import EARLIEST, LATEST, Anchor, FromAnchor, OffsetsInitializer
from balanced_source.connectors.kafka.properties import check_properties
from balanced_source.connectors.kafka.source import DiscoverKafka, InitializeKafka, KafkaCluster, KafkaSource
from balanced_source.connectors.kafka.split import KafkaPartitionSplit
from balanced_source.connectors.kafka.subscriber import KafkaSubscriber, PartitionSet, TopicList, TopicPattern

__all__ = [
    "EARLIEST",
    "LATEST",
    "Anchor",
    "DiscoverKafka",
    "FromAnchor",
    "InitializeKafka",
    "KafkaCluster",
    "KafkaPartitionSplit",
    "KafkaSource",
    "KafkaSubscriber",
    "OffsetsInitializer",
    "PartitionSet",
    "ReadLimits",
    "TopicList",
    "TopicPattern",
    "admit",
    "check_properties",
]
