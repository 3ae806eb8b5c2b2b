"""A broker comes back with an older disk.

The log is cut below the position, and soon longer than before.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from balanced_source.api import SplitId
from balanced_source.connectors.kafka import KafkaCluster as ClusterSpec
from balanced_source.host import SplitRange
from balanced_source.host.ends import Mark
from balanced_source_adapters.kafka.admin import KafkaAdmin
from balanced_source_adapters.kafka.config import NoSecrets
from balanced_source_adapters.kafka.log_check import check_logs
from balanced_source_spark.kafka.cut_logs import read_unless_cut
from balanced_source_spark.kafka.settings import RangeReaderSettings, consumer_config
from balanced_source_spark.kafka.skipping import read_what_is_left
from contract.range_reader.readers import READERS, ReadRanges
from support.queries import Collector, start, wait_failed, wait_rows
from testbed.kafka import KafkaCluster

pytestmark = pytest.mark.thorough

TOPIC = "restored"


class OldDisk:
    """A broker whose disk is kept as it was after 70 of 100 records of each partition."""

    def __init__(self, folder: Path, partitions: int = 1) -> None:
        self.cluster = KafkaCluster("restored", folder)
        self._folder = folder
        self._partitions = range(partitions)

    def start(self) -> None:
        self.cluster.start()
        self.cluster.admin.create_topic(TOPIC, len(self._partitions))
        self._produce([b"old"] * 70)
        self.cluster.stop()
        for log in self._logs:
            shutil.copytree(log, self._folder / "copy" / log.name)
        self.cluster.start()
        self._produce([b"old"] * 30)

    def restore(self, *, new: int) -> None:
        """The disk is the old one again, and gets new records."""
        logs = self._logs
        self.cluster.stop()
        for log in logs:
            shutil.rmtree(log)
            shutil.copytree(self._folder / "copy" / log.name, log)
        self.cluster.start()
        assert self.cluster.admin.offsets(TOPIC) == dict.fromkeys(self._partitions, (0, 70))
        self._produce([b"new"] * new)

    def _produce(self, values: list[bytes]) -> None:
        for partition in self._partitions:
            self.cluster.admin.produce(TOPIC, values, partition)

    @property
    def _logs(self) -> list[Path]:
        copies = self._folder / "copy"
        return [
            next(log for log in self._folder.rglob(f"{TOPIC}-{p}") if copies not in log.parents)
            for p in self._partitions
        ]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[OldDisk]:
    made = OldDisk(tmp_path / "brokers")
    made.start()
    yield made
    made.cluster.end(None)


def ends_at_the_cut(
    spark: SparkSession, disk: OldDisk, folder: Path, new: int
) -> tuple[dict[str, str], Collector]:
    """Read 100 records, cut the log at 70, and see the query end.

    Returns the options and the sink.
    """
    options = {
        "kafka.bootstrap.servers": disk.cluster.bootstrap,
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
    }
    sink = Collector()
    query = start(spark, sink, folder / "ck", **options)
    wait_rows(query, sink, 100)
    disk.restore(new=new)

    reason = wait_failed(query, timeout=120)

    assert "partition 0 from offset 70 to 99" in reason
    assert "failOnDataLoss to false" in reason
    assert len(sink.rows) == 100
    return options, sink


NEW = pytest.mark.parametrize("new", [10, 50], ids=["shorter than the position", "longer"])


@NEW
def test_a_log_that_was_cut_ends_the_query(
    spark: SparkSession, disk: OldDisk, tmp_path: Path, new: int
) -> None:
    ends_at_the_cut(spark, disk, tmp_path, new)


@NEW
def test_a_log_that_was_cut_is_read_from_there_with_consent(
    spark: SparkSession, disk: OldDisk, tmp_path: Path, new: int
) -> None:
    options, sink = ends_at_the_cut(spark, disk, tmp_path, new)
    after = start(spark, sink, tmp_path / "ck", **options, failOnDataLoss="false")
    try:
        wait_rows(after, sink, 100 + new)
    finally:
        after.stop()
    assert Counter((bytes(row.value), row.offset) for row in sink.rows) == Counter(
        [(b"old", offset) for offset in range(100)]
        + [(b"new", offset) for offset in range(70, 70 + new)]
    )


def test_logs_are_checked_by_leader_epoch_and_by_their_end(disk: OldDisk) -> None:
    """Restarts alone, which change the epoch too, leave a log whole."""
    config, split = {"bootstrap.servers": disk.cluster.bootstrap}, ("c", TOPIC, 0)
    read = Mark(position=100, term=2)
    disk.cluster.stop()
    disk.cluster.start()
    assert cuts_of(config, {split: read}) == {split: None}

    disk.restore(new=10)

    assert cuts_of(config, {split: read}) == {split: 70}
    assert cuts_of(config, {split: Mark(position=100)}) == {split: 80}, (
        "without an epoch, by its end"
    )
    assert cuts_of(config, {split: Mark(position=70, term=2)}) == {split: None}
    disk.cluster.admin.produce(TOPIC, [b"new"] * 40)
    assert cuts_of(config, {split: read}) == {split: 70}
    assert cuts_of({"bootstrap.servers": "127.0.0.1:1"}, {split: read}, timeout=0.5) == {}

    for reader in READERS.values():
        planned = SplitRange(split_id=split, start=60, end=100, term=2)
        assert rows(disk, reader, planned) == [(b"old", offset) for offset in range(60, 70)]
        now = SplitRange(split_id=split, start=70, end=100, term=99)
        assert rows(disk, reader, now) == [(b"new", offset) for offset in range(70, 100)]


@pytest.mark.parametrize("name", READERS)
def test_a_planned_range_whose_log_has_not_grown_again_is_passed_over(
    disk: OldDisk, name: str
) -> None:
    """Its offsets may never come again: a restart would wait for the same."""
    disk.restore(new=0)
    for begin, left in ((60, range(60, 70)), (70, range(0)), (80, range(0))):
        planned = SplitRange(split_id=("c", TOPIC, 0), start=begin, end=100, term=2)
        assert rows(disk, READERS[name], planned) == [(b"old", offset) for offset in left]


@pytest.mark.parametrize("name", READERS)
def test_a_task_passes_over_each_partition_that_was_cut_and_reads_the_others(
    tmp_path: Path, name: str
) -> None:
    disk = OldDisk(tmp_path / "brokers", partitions=2)
    disk.start()
    try:
        disk.cluster.admin.create_topic("whole")
        disk.cluster.admin.produce("whole", [b"whole"] * 50)
        disk.restore(new=0)
        cut = [
            SplitRange(split_id=("c", TOPIC, p), start=60, end=end, term=2)
            for p, end in enumerate((100, 80))
        ]
        whole = SplitRange(split_id=("c", "whole", 0), start=0, end=50)

        delivered = rows(disk, READERS[name], *cut, whole)
    finally:
        disk.cluster.end(None)

    assert Counter(delivered) == Counter(
        [(b"old", offset) for offset in range(60, 70)] * 2
        + [(b"whole", offset) for offset in range(50)]
    )


def cuts_of(
    config: Mapping[str, str], marks: Mapping[SplitId, Mark], timeout: float = 10
) -> dict[SplitId, int | None]:
    """Where logs were cut, whoever leads them now."""
    asked = {split_id: (mark, None) for split_id, mark in marks.items()}
    return {
        split_id: found.cut
        for split_id, found in check_logs(config, asked, timeout=timeout).items()
    }


def rows(disk: OldDisk, reader: ReadRanges, *pieces: SplitRange) -> list[tuple[bytes, int]]:
    """What a task delivers of planned ranges with `onDataLoss: Continue`."""
    cluster = ClusterSpec(name="c", bootstrap_servers=disk.cluster.bootstrap)
    admin = KafkaAdmin(NoSecrets(), client_id="test")
    settings = RangeReaderSettings(
        cluster="c", config=consumer_config(cluster, NoSecrets(), client_id="test"), stall=3
    )
    batches = read_what_is_left(
        pieces,
        settings,
        begins=partial(admin.begins, cluster),
        read=partial(read_unless_cut, read=reader, ends=partial(admin.ends, cluster)),
        skip=lambda _: None,
    )
    return [(row["value"], row["offset"]) for batch in batches for row in batch.to_pylist()]
