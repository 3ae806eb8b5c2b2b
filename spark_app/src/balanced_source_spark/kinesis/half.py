"""The Spark half of Kinesis; see `ReadersHalf`.

Every Python process of a query imports this module.

A shard does not say where it ends, so tasks get readers, and a journal keeps where each of them has
stopped.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from balanced_source.api import Json, Position, SourceReader, SourceReaderContext, SplitId
from balanced_source.connectors.kinesis import (
    KinesisSource,
    OnShardLoss,
    ShardReaderSettings,
    ShardSplit,
    split_of,
)
from balanced_source_spark.contract.half import Choices, Query
from balanced_source_spark.contract.hooks import PlannerContext
from balanced_source_spark.contract.option_table import Option
from balanced_source_spark.contract.readers import ReaderHooks, ReadersHalf
from balanced_source_spark.kinesis.option_names import OPTIONS
from balanced_source_spark.kinesis.options import kinesis_source

if TYPE_CHECKING:
    import pyarrow as pa

    from balanced_source_adapters.kinesis.client import Record


class ShardHooks(ReaderHooks):
    """Children continue a shard that was split or merged."""

    @property
    def is_continued(self) -> bool:
        return True

    @property
    def tells_event_times(self) -> bool:
        return True  # the approximate time of arrival


class KinesisSparkHalf(ReadersHalf[None, "Record", ShardSplit]):
    """Streams of Kinesis."""

    def options(self) -> tuple[Option, ...]:
        return OPTIONS

    def read_options(self, options: Mapping[str, str]) -> None:
        return None

    def schema(self, read: None) -> str:
        return (
            "data BINARY, partitionKey STRING, sequenceNumber STRING, shardId STRING, stream"
            " STRING, approximateArrivalTimestamp TIMESTAMP"
        )

    def source(self, options: Mapping[str, str], choices: Choices) -> KinesisSource:
        return kinesis_source(options, choices.assigner)

    def hooks(self, context: PlannerContext[None]) -> ShardHooks:
        return ShardHooks()

    def split(
        self, split_id: SplitId, position: Position, attributes: Mapping[str, Json]
    ) -> ShardSplit:
        return split_of(split_id, position, attributes)

    def reader(
        self, query: Query[None], settings: Mapping[str, Any], context: SourceReaderContext
    ) -> "SourceReader[Record, ShardSplit]":
        from balanced_source_adapters.kinesis.client import KinesisClient
        from balanced_source_adapters.kinesis.reader import threaded

        known = ShardReaderSettings.of(settings)
        client = KinesisClient(
            known.server, query.secrets, client_id=query.client_id, arns=known.arns
        )
        place = f"{known.server.endpoint} {known.server.region}"
        return threaded(context, client, server=place, on_loss=known.on_loss)

    def may_skip(self, query: Query[None], settings: Mapping[str, Any]) -> bool:
        known = ShardReaderSettings.found(settings)
        return known is not None and known.on_loss is OnShardLoss.CONTINUE

    def rows(self, records: "Sequence[Record]") -> "pa.RecordBatch":
        import pyarrow as pa

        columns = {
            "data": pa.array([record.data for record in records], pa.binary()),
            "partitionKey": pa.array([record.key for record in records], pa.string()),
            "sequenceNumber": pa.array([str(record.sequence) for record in records], pa.string()),
            "shardId": pa.array([record.shard for record in records], pa.string()),
            "stream": pa.array([record.stream for record in records], pa.string()),
            "approximateArrivalTimestamp": pa.array(
                [record.arrived for record in records], pa.timestamp("us", tz="UTC")
            ),
        }
        return pa.RecordBatch.from_pydict(columns)
