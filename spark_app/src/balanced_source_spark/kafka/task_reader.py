"""What a task unpickles: it reads ranges, and knows nothing of planning.

Spark starts a Python process per worker, which loads what the pickled reader names. So this module
imports what reading needs and no more: no admin client, no logging, no metrics, nothing of
Kubernetes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from balanced_source.connectors.kafka import (
    KafkaCluster,
    KafkaReaderSettings,
    KafkaSplitId,
    OnDataLoss,
    how_to_continue,
)
from balanced_source.host import SplitRange
from balanced_source_spark.contract.secrets import GIVEN, QuerySecrets
from balanced_source_spark.kafka.cut_logs import read_unless_cut
from balanced_source_spark.kafka.readers import read_ranges
from balanced_source_spark.kafka.rotation import read_with_newest
from balanced_source_spark.kafka.same_topics import SameTopics
from balanced_source_spark.kafka.settings import (
    STALL,
    LogRewrittenError,
    OffsetsLostError,
    RangeReaderSettings,
    consumer_config,
)
from balanced_source_spark.kafka.skipping import Skip, read_what_is_left, task_admin
from balanced_source_spark.partition import ReaderPartition
from balanced_source_spark.skipped_ranges import tell_skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTaskReader:
    """Reads one reader's share of a micro-batch.

    Attributes:
        client_id: what brokers see; cluster and reader are added.
        secrets: resolves the Secrets that clusters name.
        columns: of the rows.
        prefetch: bytes that one reader fetches ahead at most.
        implementation: `auto`, `native` or `python`.
    """

    client_id: str
    secrets: QuerySecrets
    columns: tuple[str, ...]
    prefetch: int
    implementation: str

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """All records of the partition's ranges."""
        # Spark passes what `partitions` returned
        assert isinstance(partition, ReaderPartition)  # noqa: S101
        known = KafkaReaderSettings.of(partition.settings)
        for name in sorted({KafkaSplitId.of(piece.split_id).cluster for piece in partition.ranges}):
            cluster = known.cluster(name)
            ranges = [
                piece
                for piece in partition.ranges
                if KafkaSplitId.of(piece.split_id).cluster == name
            ]
            settings = partial(self._range_settings, cluster, partition)
            skip = partial(tell_skipped, partition.samples)
            read = partial(self._read_planned, cluster, known.on_data_loss, skip)
            # Secrets that came with the options never change: a refusal is final.
            can_change = any(secret != GIVEN for secret in cluster.secrets)
            yield from read_with_newest(
                ranges, settings, read, patience=STALL if can_change else 0.0
            )

    def _read_planned(
        self,
        cluster: KafkaCluster,
        policy: OnDataLoss,
        skip: Skip,
        ranges: Sequence[SplitRange],
        settings: RangeReaderSettings,
    ) -> Iterator[pa.RecordBatch]:
        # Without ids there is nothing to compare, so no admin client is needed.
        if policy is OnDataLoss.FAIL and all(piece.identity is None for piece in ranges):
            # of a state that knows no topic ids
            yield from _with_remedy(read_ranges(ranges, settings))
            return
        admin = task_admin(self.secrets, self.client_id)
        topics = SameTopics(
            cluster=cluster.name,
            title=cluster.title,
            ask=partial(admin.ask_topic_ids, cluster),
            policy=policy,
            skip=skip,
        )

        read_whole = partial(read_unless_cut, read=read_ranges, ends=partial(admin.ends, cluster))

        def read(kept: Sequence[SplitRange]) -> Iterator[pa.RecordBatch]:
            if policy is OnDataLoss.FAIL:
                return _with_remedy(read_whole(kept, settings))
            return read_what_is_left(
                kept, settings, begins=partial(admin.begins, cluster), read=read_whole, skip=skip
            )

        yield from topics.read(ranges, read, settings.interrupt)

    def _range_settings(
        self, cluster: KafkaCluster, partition: ReaderPartition
    ) -> RangeReaderSettings:
        return RangeReaderSettings(
            cluster=cluster.name,
            title=cluster.title,
            config=consumer_config(
                cluster,
                self.secrets,
                client_id=f"{self.client_id}-{cluster.name}-{partition.subtask_id}",
            ),
            columns=self.columns,
            reader=partition.subtask_id,
            splits=partition.splits,
            prefetch=self.prefetch,
            implementation=self.implementation,
        )


def _with_remedy(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Say how to continue where records are gone.

    The micro-batch is in Spark's offset log, so it fails again at each start of the query, and
    planning does not get a turn to say so.
    """
    try:
        yield from batches
    except LogRewrittenError as error:
        remedy = how_to_continue("to read the records that are available now")
        raise LogRewrittenError(f"{error}. {remedy}", cuts=error.cuts) from error
    except OffsetsLostError as error:
        raise OffsetsLostError(f"{error}. {how_to_continue('to skip them')}") from error
