"""Kinesis streams: shards are splits, and children of a shard are read after it.

listed ──► parents read? ──► assigned ──► closed and read to its end ──► a child is held ──► leaves
the state
"""

from balanced_source.connectors.kinesis.contract import DiscoveredShards
from balanced_source.connectors.kinesis.enumerator import ShardEnumerator
from balanced_source.connectors.kinesis.lineage import Lineage, Shard
from balanced_source.connectors.kinesis.names import is_arn, name_of
from balanced_source.connectors.kinesis.settings import (
    KIND,
    OnShardLoss,
    Server,
    ShardReaderSettings,
)
from balanced_source.connectors.kinesis.source import (
    FirstPositions,
    KinesisSource,
    ListShards,
    discovered,
    first_splits,
    named_twice,
)
from balanced_source.connectors.kinesis.split import END, ShardSplit, split_of
from balanced_source.connectors.kinesis.start import (
    TRIM_HORIZON,
    Start,
    StartAt,
    StartWords,
    checked_start,
)

__all__ = [
    "END",
    "KIND",
    "TRIM_HORIZON",
    "DiscoveredShards",
    "FirstPositions",
    "KinesisSource",
    "Lineage",
    "ListShards",
    "OnShardLoss",
    "Server",
    "Shard",
    "ShardEnumerator",
    "ShardReaderSettings",
    "ShardSplit",
    "Start",
    "StartAt",
    "StartWords",
    "checked_start",
    "discovered",
    "first_splits",
    "is_arn",
    "name_of",
    "named_twice",
    "split_of",
]
