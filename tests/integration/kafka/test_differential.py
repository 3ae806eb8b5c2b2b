"""The same topics read by Spark's own Kafka source and by ours, bounded.

The same rows, whatever the options.

Topics hold what records can be: null and empty keys and values, headers, compressed batches,
transactions that were committed, aborted or left open, offsets that compaction took, records that
retention took, partitions without any record. Commits as a start or a stop are not here: Spark's
own source has none (`tests/unit/kafka/test_offsets.py`).
"""

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import unix_millis
from pyspark.sql.types import StringType

from support.queries import Collector
from testbed.kafka import KafkaCluster
from testbed.waiting import wait_until

pytestmark = pytest.mark.thorough

SHAPES, TRANSACTIONS, COMPACTED, COMPRESSED = "shapes", "transactions", "compacted", "compressed"
CODECS = ("gzip", "snappy", "lz4", "zstd")
ALL = f"{SHAPES},{TRANSACTIONS},{COMPACTED},{COMPRESSED}"
START = 1_700_000_000_000
TRANSACTIONAL = {"transaction.timeout.ms": 800_000}


@pytest.fixture(scope="module", autouse=True)
def topics(kafka: KafkaCluster) -> Iterator[None]:
    _shapes(kafka)
    producers = _transactions(kafka)
    _compacted(kafka)
    _compressed(kafka)
    yield
    for producer in producers:
        with contextlib.suppress(KafkaException):
            producer.abort_transaction(30)


def _shapes(kafka: KafkaCluster) -> None:
    """Partition 0: all shapes, in order of time; 1: begins at 5; 2: empty.

    3: times go back and forth.
    """
    # its times are long ago
    kafka.admin.create_topic(SHAPES, partitions=4, config={"retention.ms": "-1"})
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    bodies: list[tuple[bytes | None, bytes | None, Any]] = [
        (None, None, None),
        (b"", b"", []),
        (b"k", None, [("h", b"1"), ("h", b"2")]),
        (None, b"v" * 1000, [("empty", b""), ("none", None)]),
        (bytes(range(256)), b"\x00", None),
    ]
    for number, (key, value, headers) in enumerate(bodies * 4):
        producer.produce(
            SHAPES,
            key=key,
            value=value,
            headers=headers,
            partition=0,
            timestamp=START + number * 1000,
        )
    for number in range(10):
        producer.produce(SHAPES, b"%d" % number, partition=1, timestamp=START + number * 1000)
        back_and_forth = START + (number * 7 % 10) * 1000
        producer.produce(SHAPES, b"%d" % number, partition=3, timestamp=back_and_forth)
    assert producer.flush(30) == 0
    kafka.admin.delete_records(SHAPES, {1: 5})


def _transactions(kafka: KafkaCluster) -> list[Producer]:
    """Partition 0: committed, aborted, committed; 1: only aborted.

    2: ends in a transaction that is open.
    """
    kafka.admin.create_topic(TRANSACTIONS, partitions=3)

    def producer(name: str) -> Producer:
        made = Producer(
            {**TRANSACTIONAL, "bootstrap.servers": kafka.bootstrap, "transactional.id": name}
        )
        made.init_transactions(60)
        made.begin_transaction()
        return made

    for number, (partition, is_kept) in enumerate(
        [(0, True), (0, False), (0, True), (1, False), (2, True)]
    ):
        one = producer(f"t-{number}")
        for record in range(5):
            one.produce(TRANSACTIONS, b"%d-%d" % (number, record), partition=partition)
        one.flush(30)
        (one.commit_transaction if is_kept else one.abort_transaction)(30)
    opened = producer("t-open")
    opened.produce(TRANSACTIONS, b"open", partition=2)
    opened.flush(30)
    return [opened]


def _compacted(kafka: KafkaCluster) -> None:
    """Many versions of few keys; only the last ones are left, with gaps between their offsets."""
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    kafka.admin.create_topic(COMPACTED, partitions=1, config=config)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})

    def is_cleaned() -> bool:
        # A new record rolls the segment, and only segments that are rolled are cleaned.
        for key in range(5):
            producer.produce(COMPACTED, key=b"%d" % key, value=b"v")
        producer.flush(30)
        return _count(kafka, COMPACTED) < kafka.admin.offsets(COMPACTED)[0][1]

    wait_until(is_cleaned, 120, "compaction to leave gaps", interval=0.5)


def _compressed(kafka: KafkaCluster) -> None:
    """A codec per partition."""
    kafka.admin.create_topic(COMPRESSED, partitions=len(CODECS))
    for partition, codec in enumerate(CODECS):
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "compression.type": codec})
        for number in range(50):
            producer.produce(
                COMPRESSED, key=b"%d" % number, value=b"v" * number, partition=partition
            )
        assert producer.flush(30) == 0


def _count(kafka: KafkaCluster, topic: str) -> int:
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap, "group.id": "count", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    count = 0
    try:
        while True:
            message = consumer.poll(10)
            assert message is not None
            if message.error() is None:
                count += 1
            elif message.error().code() == KafkaError._PARTITION_EOF:
                return count
    finally:
        consumer.close()


Read = Callable[..., Counter[Any]]


@pytest.fixture
def read(spark: SparkSession, kafka: KafkaCluster) -> Read:
    def rows(source: str, **options: str) -> Counter[Any]:
        base = {"kafka.bootstrap.servers": kafka.bootstrap, "includeHeaders": "true"}
        return _rows(spark.read.format(source).options(**{**base, **options}).load())

    return rows


def _rows(frame: DataFrame) -> Counter[Any]:
    millis = frame.withColumn("millis", unix_millis("timestamp"))
    columns = ("topic", "partition", "offset", "key", "value", "millis", "timestampType", "headers")
    return Counter(
        tuple(_plain(row[name]) for name in columns) for row in millis.select(*columns).collect()
    )


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple((header.key, _plain(header.value)) for header in value)
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def offsets(**topics: dict[int, int]) -> str:
    return json.dumps(
        {topic: {str(p): o for p, o in listed.items()} for topic, listed in topics.items()}
    )


EVERY_START = {
    SHAPES: {0: 7, 1: -2, 2: -2, 3: 2},
    TRANSACTIONS: {0: 3, 1: 0, 2: -2},
    COMPACTED: {0: -2},
    COMPRESSED: {0: 10, 1: 11, 2: 12, 3: 13},
}
EVERY_END = {
    SHAPES: {0: 12, 1: -1, 2: -1, 3: 9},
    TRANSACTIONS: {0: 8, 1: -1, 2: 5},
    COMPACTED: {0: -1},
    COMPRESSED: {0: 40, 1: 41, 2: -1, 3: 43},
}
TIMES = {SHAPES: {0: START + 3000, 1: START + 7000, 2: START, 3: START + 4000}}
LATER = {SHAPES: {0: START + 9000, 1: START + 9000, 2: START, 3: START + 8000}}
NEVER = {SHAPES: dict.fromkeys(range(4), START + 10**9)}
NO_MATCH = {"startingOffsetsByTimestampStrategy": "latest"}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"subscribe": ALL}, id="everything"),
        pytest.param({"subscribePattern": "sha.*|trans.*"}, id="pattern"),
        pytest.param({"assign": json.dumps({SHAPES: [1, 3], TRANSACTIONS: [0]})}, id="assign"),
        pytest.param(
            {"subscribe": ALL, "startingOffsets": offsets(**EVERY_START)}, id="from offsets"
        ),
        pytest.param({"subscribe": ALL, "endingOffsets": offsets(**EVERY_END)}, id="to offsets"),
        pytest.param(
            {
                "subscribe": ALL,
                "startingOffsets": offsets(**EVERY_START),
                "endingOffsets": offsets(**EVERY_END),
            },
            id="between offsets",
        ),
        pytest.param(
            {
                "subscribe": SHAPES,
                "startingTimestamp": str(START + 4500),
                "startingOffsetsByTimestampStrategy": "latest",
            },
            id="from a moment",
        ),
        pytest.param(
            {
                "subscribe": SHAPES,
                "startingOffsetsByTimestamp": offsets(**TIMES),
                "startingOffsetsByTimestampStrategy": "latest",
            },
            id="from moments",
        ),
        pytest.param(
            {"subscribe": ALL, "startingOffsets": "earliest", "endingOffsets": "latest"},
            id="in words",
        ),
        pytest.param(
            {
                "subscribe": SHAPES,
                "startingTimestamp": str(START + 2000),
                "endingTimestamp": str(START + 6000),
                **NO_MATCH,
            },
            id="between two moments",
        ),
        pytest.param(
            {
                "subscribe": SHAPES,
                "startingOffsetsByTimestamp": offsets(**TIMES),
                "endingOffsetsByTimestamp": offsets(**LATER),
                **NO_MATCH,
            },
            id="between moments",
        ),
        pytest.param(
            {
                "subscribe": TRANSACTIONS,
                "startingTimestamp": str(START),
                "endingOffsets": offsets(**{TRANSACTIONS: EVERY_END[TRANSACTIONS]}),
                **NO_MATCH,
            },
            id="from a moment to offsets",
        ),
        pytest.param({"subscribe": SHAPES, "endingTimestamp": str(START + 6000)}, id="to a moment"),
        pytest.param(
            {"subscribe": SHAPES, "endingOffsetsByTimestamp": offsets(**TIMES)}, id="to moments"
        ),
        pytest.param(
            {
                "subscribe": SHAPES,
                "startingTimestamp": "0",
                "startingOffsetsByTimestampStrategy": "latest",
            },
            id="before everything",
        ),
    ],
)
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_both_sources_read_the_same_rows(
    read: Read, options: dict[str, str], isolation: str
) -> None:
    """The one default that differs.

    Records of transactions that were aborted or are open are no data to us.
    """
    defaults = {"kafka": "read_uncommitted", "balanced": "read_committed"}
    native, ours = (
        read(
            source,
            **options,
            **({} if isolation == default else {"kafka.isolation.level": isolation}),
            **more,
        )
        for (source, default), more in zip(
            defaults.items(), ({}, {"parallelism": "3"}), strict=True
        )
    )

    assert ours == native
    assert sum(native.values()) > 0, "the options leave something to compare"


def test_by_default_only_committed_records_are_read(read: Read) -> None:
    """15 records were committed, 10 aborted, and one transaction is open."""
    assert read("balanced", subscribe=TRANSACTIONS).total() == 15
    assert read("kafka", subscribe=TRANSACTIONS).total() == 26


def test_an_empty_topic_gives_no_rows(read: Read, kafka: KafkaCluster) -> None:
    """Spark reads a partition of its own if a source plans none."""
    kafka.admin.create_topic("nothing", partitions=2)

    assert read("balanced", subscribe="nothing") == Counter()


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"startingTimestamp": str(START + 10**9)}, id="moment"),
        pytest.param(
            {
                "startingOffsetsByTimestamp": offsets(
                    **{SHAPES: dict.fromkeys(range(4), START + 10**9)}
                )
            },
            id="each",
        ),
    ],
)
def test_both_sources_reject_a_timestamp_without_records_if_configured(
    read: Read, options: dict[str, str]
) -> None:
    """At once, and both for that reason."""
    for source in ("kafka", "balanced"):
        with pytest.raises(PySparkException, match=r"timestamp|record at or after"):
            read(source, subscribe=SHAPES, startingOffsetsByTimestampStrategy="error", **options)


def test_columns_and_types_are_the_same_and_one_more(
    spark: SparkSession, kafka: KafkaCluster
) -> None:
    for headers in ("true", "false"):
        base = {
            "kafka.bootstrap.servers": kafka.bootstrap,
            "subscribe": SHAPES,
            "includeHeaders": headers,
        }
        native, ours = (
            [
                (field.name, field.dataType)
                for field in spark.read.format(name).options(**base).load().schema
            ]
            for name in ("kafka", "balanced")
        )
        assert ours == [*native, ("cluster", StringType())]


def test_a_stream_that_is_triggered_once_reads_all_available_records(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    """As Spark's own source; also again, with limits, and with nothing new."""
    got: dict[str, list[int]] = {"kafka": [], "balanced": []}
    for produced in (30, 20, 0):
        kafka.admin.produce(topic, [b"x"] * produced)
        for source, counts in got.items():
            sink = Collector()
            options = {
                "subscribe": topic,
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": "7",
            }
            stream = spark.readStream.format(source).options(**options)
            stream = stream.option("kafka.bootstrap.servers", kafka.bootstrap).load()
            writer = stream.writeStream.foreachBatch(sink).option(
                "checkpointLocation", str(tmp_path / source)
            )
            assert writer.trigger(once=True).start().awaitTermination(120)
            counts.append(len(sink.rows))

    assert got == {"kafka": [30, 20, 0], "balanced": [30, 20, 0]}


def test_a_stream_from_the_latest_offsets_reads_what_comes_after(
    spark: SparkSession, kafka: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    """Each in two runs of one checkpoint.

    What was there is skipped, what came between them is read, once.
    """
    got: dict[str, list[int]] = {"kafka": [], "balanced": []}
    for source in got:

        def run(source: str = source) -> int:
            sink = Collector()
            options = {
                "kafka.bootstrap.servers": kafka.bootstrap,
                "subscribe": topic,
                "startingOffsets": "latest",
            }
            stream = spark.readStream.format(source).options(**options).load()
            writer = stream.writeStream.foreachBatch(sink).option(
                "checkpointLocation", str(tmp_path / source)
            )
            assert writer.trigger(availableNow=True).start().awaitTermination(120)
            return len(sink.rows)

        kafka.admin.produce(topic, [b"x"] * 30)
        before = run()
        kafka.admin.produce(topic, [b"y"] * 50)
        got[source] = [before, run()]

    assert got == {"kafka": [0, 50], "balanced": [0, 50]}
