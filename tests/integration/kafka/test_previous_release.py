"""A query of release 0.1.0 continues with this one: its checkpoint, and its source's documents."""

from collections import Counter
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from balanced_source_operator.local import LocalOperator
from support.builders import spec_json
from support.queries import Collector, start
from support.released_queries import TOPIC, Delivered, ReleasedQuery, released
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

PARTITIONS = {"standalone": {0: 30, 1: 20}, "local": {0: 20, 1: 20, 2: 20}}
"""Query → partition → records that it found."""


@pytest.fixture
def former(request: pytest.FixtureRequest, kafka: KafkaCluster, tmp_path: Path) -> ReleasedQuery:
    """Its topic, with the same records, and its folder."""
    which = str(request.param)
    found = released("0.1.0", which)
    # The checkpoint names it, so both tests need this name.
    if TOPIC in kafka.admin.client.list_topics(timeout=30).topics:
        kafka.admin.delete_topic(TOPIC)
    kafka.admin.create_topic(TOPIC, partitions=len(PARTITIONS[which]))
    for partition, count in PARTITIONS[which].items():
        kafka.admin.produce(TOPIC, [b"record"] * count, partition=partition)
    found.put(tmp_path, kafka.admin.topic_id(TOPIC))
    return found


def expected(which: str, later: int = 0) -> Delivered:
    """Every record once, with so many more in partition 1."""
    return Counter(
        (partition, offset)
        for partition, count in PARTITIONS[which].items()
        for offset in range(count + later * (partition == 1))
    )


def delivered(former: ReleasedQuery, sink: Collector) -> Delivered:
    """By both releases together."""
    return former.delivered + Counter((row.partition, row.offset) for row in sink.rows)


@pytest.mark.parametrize("former", ["standalone"], indirect=True)
def test_a_query_without_an_operator_continues(
    spark: SparkSession, kafka: KafkaCluster, former: ReleasedQuery, tmp_path: Path
) -> None:
    """The micro-batch that was not finished has the range that was logged."""
    sink = Collector()
    query = start(
        spark,
        sink,
        tmp_path / "checkpoint",
        **{
            "kafka.bootstrap.servers": kafka.bootstrap,
            "subscribe": TOPIC,
            "startingOffsets": "earliest",
            "parallelism": "2",
            "maxOffsetsPerTrigger": "16",
        },
    )
    try:
        kafka.admin.produce(TOPIC, [b"later"] * 5, partition=1)
        wait_until(
            lambda: (
                query.exception() is not None
                or delivered(former, sink).keys() >= expected("standalone", 5).keys()
            ),
            120,
            "all records",
        )
        assert query.exception() is None
    finally:
        query.stop()

    assert delivered(former, sink) == expected("standalone", 5)
    replayed = Counter((row.partition, row.offset) for row in sink.batches[former.unfinished])
    assert replayed == Counter((p, offset) for p in (0, 1) for offset in range(8, 16))


@pytest.mark.slow  # it waits until the former driver has been silent for half a minute
@pytest.mark.parametrize("former", ["local"], indirect=True)
def test_a_query_in_local_mode_continues_from_the_state_of_its_source(
    spark: SparkSession, kafka: KafkaCluster, former: ReleasedQuery, tmp_path: Path
) -> None:
    """No split moves by the upgrade; then the readers are rescaled live, as before."""
    file, sink = tmp_path / "source.yaml", Collector()

    def scale(parallelism: int) -> None:
        settings = {
            "clusters": [{"name": "main", "bootstrapServers": kafka.bootstrap}],
            "subscription": {"topics": [TOPIC]},
            "startingOffsets": {"type": "Earliest"},
            "limits": {"maxOffsetsPerTrigger": 9},
        }
        spec = spec_json(parallelism=parallelism, source={"kafka": settings})
        file.write_text(yaml.safe_dump({"spec": spec}))

    scale(3)
    operator = LocalOperator(file, tmp_path / "documents")
    operator.start()
    before = operator.coordinator.state
    assert before.epoch == 4, "its state was read: after its three epochs, the broker's new address"
    assert before.owners == {("main", TOPIC, partition): partition for partition in range(3)}
    query = start(spark, sink, tmp_path / "checkpoint", assignmentDir=str(tmp_path / "documents"))

    def wait_for_all(later: int) -> None:
        wait_until(
            lambda: (
                operator.look()
                or query.exception() is not None
                or delivered(former, sink).keys() >= expected("local", later).keys()
            ),
            120,
            "all records",
        )
        assert query.exception() is None

    try:
        wait_for_all(0)
        assert operator.coordinator.state.owners == before.owners
        scale(1)
        kafka.admin.produce(TOPIC, [b"later"] * 5, partition=1)
        wait_for_all(5)
        wait_until(
            lambda: operator.look() or operator.coordinator.state.parallelism == 1, 60, "one reader"
        )
    finally:
        query.stop()
        operator.close()

    assert delivered(former, sink) == expected("local", 5)
