"""Kafka: one cluster or many."""

from balanced_source.connectors.kafka.cluster import BROKERS, KafkaCluster, is_brokers
from balanced_source.connectors.kafka.data_loss import (
    SKIPPED_OFFSETS,
    UNCOUNTED_OFFSETS,
    Gap,
    OnDataLoss,
    SkipCounter,
    listed,
    log_truncated,
    topic_deleted,
    topic_recreated,
)
from balanced_source.connectors.kafka.java_properties import translated
from balanced_source.connectors.kafka.limits import ReadLimits, admit
from balanced_source.connectors.kafka.offsets import (
    EARLIEST,
    LATEST,
    AfterHistory,
    Anchor,
    AtCommit,
    AtOffset,
    AtTime,
    FromAnchor,
    FromCommit,
    FromTime,
    OffsetsInitializer,
    PerPartition,
    PerTopic,
    initializer_of,
    initializer_text,
    wish_of,
)
from balanced_source.connectors.kafka.properties import (
    ASKED_SERVER,
    check_not_lending,
    check_properties,
    check_reserved,
    is_secret,
)
from balanced_source.connectors.kafka.resolution import OffsetLookup, resolve_start, resolve_stop
from balanced_source.connectors.kafka.settings import (
    KafkaReaderSettings,
    SettingsCache,
    with_former,
)
from balanced_source.connectors.kafka.source import DiscoverKafka, InitializeKafka, KafkaSource
from balanced_source.connectors.kafka.split import KafkaPartitionSplit, KafkaSplitId
from balanced_source.connectors.kafka.subscriber import (
    KafkaSubscriber,
    PartitionSet,
    TopicList,
    TopicPattern,
)

__all__ = [
    "ASKED_SERVER",
    "BROKERS",
    "EARLIEST",
    "LATEST",
    "SKIPPED_OFFSETS",
    "UNCOUNTED_OFFSETS",
    "AfterHistory",
    "Anchor",
    "AtCommit",
    "AtOffset",
    "AtTime",
    "DiscoverKafka",
    "FromAnchor",
    "FromCommit",
    "FromTime",
    "Gap",
    "InitializeKafka",
    "KafkaCluster",
    "KafkaPartitionSplit",
    "KafkaReaderSettings",
    "KafkaSource",
    "KafkaSplitId",
    "KafkaSubscriber",
    "OffsetLookup",
    "OffsetsInitializer",
    "OnDataLoss",
    "PartitionSet",
    "PerPartition",
    "PerTopic",
    "ReadLimits",
    "SettingsCache",
    "SkipCounter",
    "TopicList",
    "TopicPattern",
    "admit",
    "check_not_lending",
    "check_properties",
    "check_reserved",
    "initializer_of",
    "initializer_text",
    "is_brokers",
    "is_secret",
    "listed",
    "log_truncated",
    "resolve_start",
    "resolve_stop",
    "topic_deleted",
    "topic_recreated",
    "translated",
    "wish_of",
    "with_former",
]
