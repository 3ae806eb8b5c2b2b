"""A topic that a user names and that does not exist, beside one that does."""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from testbed.kafka import KafkaCluster

SAYS = "topic oders does not exist on the cluster at"


@pytest.fixture
def filled(kafka: KafkaCluster, topic: str) -> str:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(30):
        producer.produce(topic, str(number).encode(), partition=number % 3)
    assert producer.flush(30) == 0
    return topic


def options(kafka: KafkaCluster, *topics: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribe": ",".join(topics),
        "startingOffsets": "earliest",
    }


@pytest.mark.parametrize("kind", ["balanced", "kafka"])
def test_a_batch_query_fails_as_one_of_sparks_own_source_does(
    spark: SparkSession, kafka: KafkaCluster, filled: str, kind: str
) -> None:
    rows = spark.read.format(kind).options(**options(kafka, filled, "oders"))
    with pytest.raises(Exception, match="UnknownTopicOrPartition" if kind == "kafka" else SAYS):
        rows.load().count()


@pytest.mark.parametrize("ends", ["available now", "bounded"])
def test_a_stream_that_ends_delivers_the_others_and_fails(
    spark: SparkSession, kafka: KafkaCluster, filled: str, ends: str, tmp_path: Path
) -> None:
    seen = list[str]()

    def keep(rows: DataFrame, _: int) -> None:
        seen.extend(row.value for row in rows.selectExpr("string(value) as value").collect())

    source = spark.readStream.format("balanced").options(**options(kafka, filled, "oders"))
    if ends == "bounded":
        source = source.option("endingOffsets", "latest")
    writer = source.load().writeStream.foreachBatch(keep)
    writer = writer.option("checkpointLocation", str(tmp_path))
    if ends == "available now":
        writer = writer.trigger(availableNow=True)
    query = writer.start()

    with pytest.raises(StreamingQueryException, match=SAYS):
        query.awaitTermination(120)

    assert sorted(map(int, seen)) == [*range(30)]
